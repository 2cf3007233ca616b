"""Losses over margin and residual, metrics over two kinds of errors, penalties of one singular value."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import mtldsl as mtl
from mtldsl.display.pictures.axes import COLOURS, plain

DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


def values(make, z, label) -> np.ndarray:
    """The loss of one row with this label at every prediction, by the word itself."""
    rows = [[label], [-label]] if label in (-1.0, 1.0) else [[label]]  # a task of labels has both classes
    tasks = mtl.Tasks.shared(np.eye(len(rows)), np.array(rows))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(make(W, tasks) + 0.0 * mtl.ridge(W))
    other = problem.value({"W": np.zeros((len(rows), 1))})
    first = []
    for each in z:
        at = np.zeros((len(rows), 1))
        at[0] = each
        first.append(problem.value({"W": at}) - (other / 2 if len(rows) == 2 else 0.0))
    return np.array(first)


def lines(ax, z, losses, label) -> None:
    for (name, make), colour, dash in zip(losses.items(), COLOURS, DASHES, strict=False):
        ax.plot(z, values(make, z, label), label=name, color=colour, linestyle=dash, linewidth=2.2)
    ax.legend(frameon=False, fontsize=11)
    ax.tick_params(labelsize=11)


def losses():
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    z = np.linspace(-2.5, 2.5, 201)
    lines(
        left, z,
        {
            "hinge_loss": mtl.hinge_loss,
            "squared_hinge_loss": mtl.squared_hinge_loss,
            "logistic_loss": mtl.logistic_loss,
            "exponential_loss": mtl.exponential_loss,
        }, 1.0,
    )  # fmt: skip
    left.set_ylim(0, 5)
    left.set_xlabel("margin: label times prediction", fontsize=12)
    left.set_ylabel("loss", fontsize=12)
    plain(left, "labels -1 and +1")
    r = np.linspace(-3, 3, 241)
    lines(
        right, r,
        {
            "squared_loss": mtl.squared_loss,
            "huber_loss, delta=1": mtl.huber_loss,
            "absolute_loss": mtl.absolute_loss,
            "quantile_loss, q=0.9": lambda W, tasks: mtl.quantile_loss(W, tasks, q=0.9),
        }, 0.0,
    )  # fmt: skip
    right.set_ylim(0, 4)
    right.set_xlabel("prediction minus label", fontsize=12)
    plain(right, "labels that are numbers")
    return figure


def metrics():
    positives, negatives = 10, 90
    c, b = np.meshgrid(np.arange(0, positives + 1), np.arange(0, 41))
    shown = {
        "error rate": (b + c) / (positives + negatives),
        "1 - F1": mtl.metrics.FScore().delta(b, c, positives, negatives),
        "1 - AUC of the labels": mtl.metrics.AUC().delta(b, c, positives, negatives),
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained", sharey=True)
    for ax, (name, cost) in zip(axes, shown.items(), strict=True):
        image = ax.pcolormesh(
            c, b, np.broadcast_to(cost, c.shape), cmap="cividis_r", vmin=0, vmax=1, shading="nearest"
        )
        curves = ax.contour(
            c,
            b,
            cost,
            levels=[0.05, 0.1, 0.2, 0.4, 0.6, 0.8],
            colors=["black"] * 4 + ["white"] * 2,
            linewidths=1.2,
        )
        ax.clabel(curves, fontsize=10)
        ax.set_xlabel("positives missed, of 10", fontsize=12)
        ax.set_xticks([0, 5, 10])
        ax.tick_params(labelsize=11)
        plain(ax, name)
    axes[0].set_ylabel("negatives called positive, of 90", fontsize=12)
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    bar.set_label("cost of the labelling", fontsize=12)
    return figure


def spectra():
    figure, ax = plt.subplots(figsize=(6.4, 3.9), layout="constrained")
    s = np.linspace(0, 4, 201)
    tasks = mtl.Tasks.shared(np.eye(1), np.zeros((1, 1)))
    W = mtl.Weights(tasks)
    shown = {
        "trace_norm": mtl.trace_norm(W),
        "log_rank, eps=0": mtl.log_rank(W, eps=0),
        "schatten_norm, p=0.5, eps=0": mtl.schatten_norm(W, 0.5, eps=0),
        "capped_trace_norm, tau=1.5": mtl.capped_trace_norm(W, 1.5),
        "rank": 1.0 * mtl.rank(W),
    }
    for (name, term), colour, dash in zip(shown.items(), COLOURS, DASHES, strict=False):
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + term)
        cost = [problem.value({"W": np.array([[x]])}) - x**2 / 2 for x in s]
        ax.plot(s, cost, label=name, color=colour, linestyle=dash, linewidth=2.2)
    ax.set_xlabel("singular value", fontsize=12)
    ax.set_ylabel("what it costs", fontsize=12)
    ax.tick_params(labelsize=11)
    ax.legend(frameon=False, fontsize=10.5)
    return plain(ax).figure


DRAWINGS = {"losses": losses, "metrics": metrics, "spectra": spectra}
