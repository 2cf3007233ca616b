"""The paper's Fig. 3: the objective by iteration on School with 20 % to train on; plain, accelerated, and Algorithm 1 as printed."""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

import mtldsl as mtl
from benchmarks.papers.calibrated_data import Preparation, part
from benchmarks.papers.rows import rows_of

__all__ = ["LEVELS", "METHODS", "draw_convergence", "read_convergence", "run_convergence"]

METHODS = {
    "newton": "accelerated, then Newton's steps (the default)",
    "joint": "accelerated",
    "block": "plain",
    "algorithm_1": "Algorithm 1 as printed",
}
#: (eps of log_rank, eps of the loss)
SMOOTHINGS = ((1e-2, 1e-6), (1e-8, 1e-6))
LEVELS = (1e-2, 1e-3, 1e-4, 1e-6)
ITERATIONS = 1000


def run_convergence(results: Path, mu: float, *, data="school", size=20, quick=False, log=print) -> None:
    """Every method from where it starts by itself, X_i^T y_i, until it ends or has made so many iterations; one row an iteration."""
    train, _ = part(data, size, 0)
    tasks = Preparation.of(train, "one unit").apply(train)
    W = mtl.Weights(tasks)
    with (results / "calibrated_convergence.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("mu", "eps", "loss_eps", "method", "iteration", "objective", "residual", "seconds", "status")
        )
        for eps, loss_eps in SMOOTHINGS:
            objective = mtl.square_root_loss(W, tasks, eps=loss_eps) + mu * mtl.log_rank(W, eps=eps)
            for method in METHODS:
                began = time.process_time()
                solution = mtl.minimize(objective).solve(
                    solver="alternating",
                    method=method,
                    tol=1e-8,
                    max_iter=20 if quick else ITERATIONS,
                    max_seconds=120.0,
                )
                seconds = time.process_time() - began
                values = [value for look in solution.history for value in look["objectives"]]
                for iteration, value in enumerate(values, 1):
                    last = iteration == len(values)
                    end = (
                        (f"{solution.history[-1]['residual']:.1e}", f"{seconds:.3f}", solution.status)
                        if last
                        else ("", "", "")
                    )
                    writer.writerow(
                        (f"{mu:g}", f"{eps:g}", f"{loss_eps:g}", method, iteration, f"{value:.13g}", *end)
                    )
                log(
                    f"convergence, eps {eps:g}, {method}: {len(values)} iterations, {values[-1]:.10g}, {solution.status}"
                )


def read_convergence(results: Path) -> dict[tuple[str, str], dict[str, list[dict]]]:
    """(eps, eps of the loss) -> method -> its rows, one an iteration."""
    found: dict = defaultdict(lambda: defaultdict(list))
    for row in rows_of(results / "calibrated_convergence.csv"):
        found[row["eps"], row["loss_eps"]][row["method"]].append(row)
    return {key: dict(of_method) for key, of_method in found.items()}


def draw_convergence(results: Path, name: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = read_convergence(results)
    figure, axes = plt.subplots(
        2, len(runs), figsize=(5.4 * len(runs), 7), layout="constrained", squeeze=False
    )
    for column, ((eps, _), of_method) in zip(axes.T, runs.items(), strict=True):
        best = min(float(look["objective"]) for looks in of_method.values() for look in looks)
        for (method, looks), style in zip(of_method.items(), ("-", "-.", "--", ":"), strict=True):
            iterations = [int(look["iteration"]) for look in looks]
            objectives = np.array([float(look["objective"]) for look in looks])
            column[0].plot(iterations, objectives, style, label=METHODS[method], lw=2)
            column[1].plot(
                iterations, np.maximum(objectives / best - 1.0, 1e-13), style, label=METHODS[method], lw=2
            )
        column[0].set(title=f"eps = {eps}", xlim=(0, 30), xlabel="iteration", ylabel="smoothed objective")
        column[1].set(
            xscale="log", yscale="log", xlabel="iteration", ylabel="relative distance to the lowest seen"
        )
        for axis in column:
            axis.grid(alpha=0.3)
    axes[0, 0].legend()
    figure.suptitle(f"NC-CMTL on {name}")
    figure.savefig(results / "calibrated_convergence.png", dpi=110)
    plt.close(figure)
