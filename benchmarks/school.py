"""The School data (139 tasks, 15,362 x 28): time to a certified relative gap of 1e-8, and the optima.

    python benchmarks/school.py          # writes benchmarks/results/school.md

Needs the published data, see `mtldsl.datasets.load_school`. The optima to compare with were established by another program
(objectives 725844.67783737, 708730.74427390 and 729570.63966130 in the project's specification). A solution's objective is
recomputed here from the data; its gap is the certificate's.
"""

from __future__ import annotations

import time

import numpy as np
from machine import RESULTS, stamp

import mtldsl as mtl
from mtldsl.datasets import load_school

GAP, RUNS, ALLOWED = 1e-8, 7, 0.5
MODELS = {
    "100 trace_norm": (
        100.0,
        mtl.trace_norm,
        lambda W: np.linalg.svd(W, compute_uv=False).sum(),
        725844.67783737,
    ),
    "50 l21_norm": (50.0, mtl.l21_norm, lambda W: np.linalg.norm(W, axis=1).sum(), 708730.74427390),
    "10 l1_norm": (10.0, mtl.l1_norm, lambda W: np.abs(W).sum(), 729570.63966130),
}


def main() -> None:
    tasks = load_school()
    W = mtl.Weights(tasks)
    table = [
        "| squared_loss + | solver | seconds | iterations | certified gap | objective | known optimum | relative difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print(*table, sep="\n")
    missed = []
    for name, (lam, word, penalty, known) in MODELS.items():
        problem = mtl.minimize(lam * word(W) + mtl.squared_loss(W, tasks))
        for solver in ("auto", "proximal_gradient", "admm"):
            seconds = []
            for _ in range(RUNS if solver == "auto" else 2):
                started = time.perf_counter()
                solution = problem.solve(solver, tol=GAP)
                seconds.append(time.perf_counter() - started)
            residuals = zip(tasks.inputs, tasks.per_task(tasks.targets), solution.W.T, strict=True)
            objective = 0.5 * sum(np.sum((X @ w - y) ** 2) for X, y, w in residuals) + lam * penalty(
                solution.W
            )
            shown = f"auto: {solution.solver}" if solver == "auto" else solver
            table.append(
                f"| {name} | {shown} | {min(seconds):.3f} | {solution.iterations} | {solution.relative_gap:.1e} | "
                f"{objective:.8f} | {known:.8f} | {objective / known - 1:.1e} |"
            )
            print(table[-1], flush=True)
            if solver == "auto" and (min(seconds) > ALLOWED or abs(objective / known - 1) > GAP):
                missed.append(name)
    verdict = f"Allowed: {ALLOWED} s. " + (
        f"MISSED: {', '.join(missed)}." if missed else "All three reached."
    )
    print(verdict)
    text = ["# School: certified optima", "", stamp("numba"), "", *table, "", verdict, ""]
    (RESULTS / "school.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
