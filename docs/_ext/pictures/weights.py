"""What penalties do to weights: one planted data set under twelve of them, and seven of them on six kinds of truth."""

from __future__ import annotations

from functools import cache

import matplotlib.pyplot as plt
import numpy as np

import mtldsl as mtl
from mtldsl.display.pictures.axes import plain

D, M, N = 24, 12, 20  # features, tasks, rows a task


def two_patterns(rng) -> np.ndarray:
    """Eight features that matter, in a pattern for the first six tasks and one for the others; task 11 (column 10) follows neither."""
    W = np.zeros((D, M))
    W[:8, :6] = rng.normal(size=(8, 1)) * rng.uniform(0.6, 1.4, 6)
    W[:8, 6:] = rng.normal(size=(8, 1)) * rng.uniform(0.6, 1.4, 6)
    W[:, 10] = 0.0
    W[14:20, 10] = 1.3 * rng.choice([-1.0, 1.0], 6)
    return W


def groups_of_tasks() -> np.ndarray:
    """The Laplacian of two groups of six tasks, each a complete graph: each task a sixth of a neighbour of five others."""
    A = np.kron(np.eye(2), np.ones((M // 2, M // 2))) / (M // 2)
    return np.diag(A.sum(axis=1)) - A


#: name -> its terms, of lam and of one matrix or two
PENALTIES = {
    "ridge": lambda lam, W: lam * mtl.ridge(W),
    "l1_norm": lambda lam, W: lam * mtl.l1_norm(W),
    "l21_norm": lambda lam, W: lam * mtl.l21_norm(W),
    "trace_norm": lambda lam, W: lam * mtl.trace_norm(W),
    "l12_norm": lambda lam, W: lam * mtl.l12_norm(W),
    "mean_regularizer": lambda lam, W: lam * mtl.mean_regularizer(W) + 0.5 * mtl.ridge(W),
    "graph_laplacian": lambda lam, W: lam * mtl.graph_laplacian(W, groups_of_tasks()) + 0.5 * mtl.ridge(W),
    "total_variation": lambda lam, W: lam * mtl.total_variation(W) + 0.5 * mtl.ridge(W),
    "l1_inf_norm(P) + l1_norm(Q)": lambda lam, P, Q: 2.5 * lam * mtl.l1_inf_norm(P) + lam * mtl.l1_norm(Q),
    "trace_norm(L) + l12_norm(S)": lambda lam, L, S: lam * mtl.trace_norm(L) + 0.75 * lam * mtl.l12_norm(S),
    "l21_norm + trace_norm": lambda lam, W: 0.5 * lam * mtl.l21_norm(W) + 0.5 * lam * mtl.trace_norm(W),
}


def learned(tasks, penalty, values, names, tol=1e-4):
    """The weights at every value of lam."""
    parts = [mtl.Weights(tasks, name=name) for name in names]
    lam = mtl.Parameter(1.0, name="lam")
    problem = mtl.minimize(mtl.squared_loss(sum(parts[1:], parts[0]), tasks) + penalty(lam, *parts))
    return [solution.W if len(parts) == 1 else sum(getattr(solution, name) for name in names)
            for solution in problem.path(lam, values, tol=tol)]  # fmt: skip


def names_of(penalty) -> tuple[str, ...]:
    return penalty.__code__.co_varnames[1 : penalty.__code__.co_argcount]


def rows(truth, seed, noise=1.0, n=N):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, D)) for _ in range(M)]
    y = [x @ w + noise * rng.normal(size=n) for x, w in zip(X, truth.T, strict=True)]
    return mtl.Tasks.separate(X, y)


def distance(W, truth) -> float:
    return float(np.linalg.norm(W - truth) / np.linalg.norm(truth))


def weights():
    truth = two_patterns(np.random.default_rng(3))
    tasks = rows(truth, seed=1)
    shown = {"planted": (truth, None)}
    for name, penalty in PENALTIES.items():
        found = learned(tasks, penalty, np.geomspace(60, 0.5, 12), names_of(penalty))
        best = min(found, key=lambda W: distance(W, truth))
        shown[name] = best, distance(best, truth)
    figure, axes = plt.subplots(3, 4, figsize=(10, 9.6), layout="constrained", sharex=True, sharey=True)
    for ax, (name, (W, error)) in zip(axes.flat, shown.items(), strict=True):
        image = ax.imshow(W, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto", interpolation="nearest")
        ax.set_title(name if error is None else f"{name}\n{error:.2f}", fontsize=10.5, loc="left")
        ax.set_xticks([0, 5, 10], ["1", "6", "11"])
        ax.set_yticks([0, 7, 15, 23], ["1", "8", "16", "24"])
    for ax in axes[-1]:
        ax.set_xlabel("task", fontsize=11)
    for ax in axes[:, 0]:
        ax.set_ylabel("feature", fontsize=11)
    bar = figure.colorbar(image, ax=axes, shrink=0.4, aspect=30, location="bottom")
    bar.set_label("weight", fontsize=11)
    return figure


# ------------------------------------------------------------------------------------------------ six kinds of truth


def truths(rng) -> dict[str, np.ndarray]:
    few = np.zeros((D, M))
    few[rng.permutation(D)[:5]] = rng.normal(size=(5, M))
    own = np.zeros((D, M))
    for i in range(M):
        own[rng.permutation(D)[:5], i] = rng.normal(size=5)
    found = {
        "the same few features": few,
        "mixtures of two patterns": rng.normal(size=(D, 2)) @ rng.normal(size=(2, M)),
        "alike, a little different": rng.normal(size=(D, 1)) + 0.3 * rng.normal(size=(D, M)),
        "two known groups": np.repeat(rng.normal(size=(D, 2)), M // 2, axis=1)
        + 0.3 * rng.normal(size=(D, M)),
        "a few features each, nothing shared": own,
        "many features each, nothing shared": rng.normal(size=(D, M)),
    }
    return {name: W * np.sqrt(D * M) / np.linalg.norm(W) * 0.7 for name, W in found.items()}


#: those that the second picture compares
COMPARED = (
    "ridge",
    "l1_norm",
    "l21_norm",
    "trace_norm",
    "mean_regularizer",
    "graph_laplacian",
    "l1_inf_norm(P) + l1_norm(Q)",
)


@cache
def errors() -> tuple[list[str], np.ndarray]:
    """(truths, (truths, penalties)): errors of the weights whose lam is the best on rows held out."""
    kinds = truths(np.random.default_rng(0))
    table = np.zeros((len(kinds), len(COMPARED)))
    for i, truth in enumerate(kinds.values()):
        tasks, held_out = rows(truth, 100), rows(truth, 200)
        inputs, labels = held_out.inputs, held_out.per_task(held_out.targets)
        for j, name in enumerate(COMPARED):
            found = learned(
                tasks, PENALTIES[name], np.geomspace(60, 0.5, 7), names_of(PENALTIES[name]), tol=1e-3
            )
            best = min(found, key=lambda W, X=inputs, y=labels: sum(
                float(np.sum((b - a @ w) ** 2)) for a, b, w in zip(X, y, W.T, strict=True)))  # fmt: skip
            table[i, j] = distance(best, truth)
    return list(kinds), table


def truths_picture():
    kinds, table = errors()
    figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
    ax.imshow(table, cmap="cividis", vmin=0.2, vmax=0.9, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        ax.text(
            j,
            i,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=12,
            color="white" if value < 0.55 else "black",
        )
    for i, j in enumerate(table.argmin(axis=1)):
        ax.add_patch(
            plt.Rectangle((j - 0.47, i - 0.45), 0.94, 0.9, fill=False, edgecolor="#d55e00", linewidth=3)
        )
    ax.set_yticks(range(len(kinds)), kinds, fontsize=11)
    ax.set_xticks(
        range(len(COMPARED)),
        [name.replace(" + ", "\n+ ").replace("_norm", "") for name in COMPARED],
        fontsize=10,
        rotation=20,
    )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return plain(ax, "what is true, and what is assumed: error of the weights").figure


DRAWINGS = {"weights": weights, "truths": truths_picture}
