"""Price of the second evaluation of a solve: its CPU seconds beside those of the rest of the solve.

python benchmarks/second_look.py      writes benchmarks/results/second_look.md
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable

import numpy as np
from machine import RESULTS, stamp

import mtldsl as mtl
from mtldsl.problems.statement_check import agree_with_statement

SIZES = [(50, 5, 3), (500, 20, 10), (5_000, 50, 20), (100_000, 50, 20)]
LOSSES = [mtl.squared_loss, mtl.logistic_loss]
PENALTIES = [mtl.ridge, mtl.l21_norm, mtl.trace_norm]
KINDS = ["table", "missing labels", "one X a task"]


def tasks_of(kind: str, rows: int, features: int, tasks: int, labels: str) -> mtl.Tasks:
    """Draw a linear model with noise of one unit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    Y = X @ rng.normal(size=(features, tasks)) + rng.normal(size=(rows, tasks))
    Y = np.sign(Y) if labels == "sign" else Y
    if kind == "one X a task":
        return mtl.Tasks.grouped(np.tile(X, (tasks, 1)), Y.T.ravel(), np.repeat(np.arange(tasks), rows))
    if kind == "missing labels":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    return mtl.Tasks.shared(X, Y)


def milliseconds(work: Callable, times: int) -> float:
    """Return the median CPU time of one call."""
    spent = []
    for _ in range(times):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return 1e3 * float(np.median(spent))


def row(kind: str, size: tuple, loss, penalty, lam: float = 1.0) -> str:
    """Measure one model."""
    tasks = tasks_of(kind, *size, "sign" if loss is mtl.logistic_loss else "real")
    W = mtl.Weights(tasks)
    problem = mtl.minimize(loss(W, tasks) + lam * penalty(W))
    solution, form = problem.solve(), problem.form()
    whole = milliseconds(problem.solve, 5)
    look = milliseconds(lambda: agree_with_statement(problem, form, solution), 21)
    name = f"{loss.__name__} + {lam:g} {penalty.__name__}"
    shape = " x ".join(f"{n:,}" for n in size)
    return f"| {kind} | {shape} | {name} | {whole - look:.2f} | {look:.3f} | {look / (whole - look):.1%} |"


def main() -> None:
    lines = [
        "# Price of the second evaluation",
        "",
        stamp(),
        "CPU milliseconds, one BLAS thread, medians.",
        "",
        "| data | rows x features x tasks | model | rest of the solve | second evaluation | share |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    cases = [("table", size, loss, penalty) for size in SIZES[:3] for loss in LOSSES for penalty in PENALTIES]
    cases += [("table", SIZES[3], mtl.squared_loss, penalty) for penalty in PENALTIES]
    cases += [(kind, SIZES[2], mtl.squared_loss, mtl.ridge) for kind in KINDS[1:]]
    lines += [row(*case) for case in cases]
    lines += [row("table, all weights zero", size, mtl.squared_loss, mtl.l21_norm, 1e7) for size in SIZES[:3]]
    (RESULTS / "second_look.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
