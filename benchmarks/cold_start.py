"""The first solve of a fresh process with an empty compilation cache: import, compile, solve and certify.

python benchmarks/cold_start.py          # writes benchmarks/results/cold_start.md
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from machine import RESULTS, stamp

SETUP = """
import numpy as np, mtldsl as mtl
from mtldsl.datasets import make_low_rank
tasks, _ = make_low_rank(10, 200, 50, 3, 1.0, shared={shared}, labels={labels!r}, random_state=0)
W = mtl.Weights(tasks)
solution = mtl.minimize({objective}).solve(tol=1e-6)
assert solution.status == "optimal", solution
print(solution.solver)
"""
CASES = {
    "squared + l21, shared X": (True, "real", "mtl.squared_loss(W, tasks) + 20 * mtl.l21_norm(W)"),
    "squared + l1, separate X": (False, "real", "mtl.squared_loss(W, tasks) + 20 * mtl.l1_norm(W)"),
    "squared + l21, separate X": (False, "real", "mtl.squared_loss(W, tasks) + 20 * mtl.l21_norm(W)"),
    "squared + trace": (False, "real", "mtl.squared_loss(W, tasks) + 20 * mtl.trace_norm(W)"),
    "logistic + trace": (True, "sign", "mtl.logistic_loss(W, tasks) + 5 * mtl.trace_norm(W)"),
    "hinge + total variation": (
        True,
        "sign",
        "mtl.hinge_loss(W, tasks) + mtl.total_variation(W) + mtl.ridge(W)",
    ),
    "hinge + mkl_norm, separate X": (
        False,
        "sign",
        "mtl.hinge_loss(W, tasks) + mtl.mkl_norm(W, [mtl.union(), mtl.individual()], p=2)",
    ),
    "ridge": (True, "real", "mtl.squared_loss(W, tasks) + mtl.ridge(W)"),
}


def run(code: str, cache: str) -> tuple[float, str]:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return time.perf_counter() - started, done.stdout.strip()


def main() -> None:
    table = ["| model | cold cache, s | warm cache, s | solver |", "|---|---|---|---|"]
    for name, (shared, labels, objective) in CASES.items():
        code = SETUP.format(shared=shared, labels=labels, objective=objective)
        with tempfile.TemporaryDirectory() as cache:
            cold, solver = run(code, cache)
            warm, _ = run(code, cache)
        table.append(f"| {name} | {cold:.2f} | {warm:.2f} | {solver} |")
        print(table[-1], flush=True)
    head = [
        "# The first solve of a fresh process",
        "",
        stamp("numba"),
        "",
        "Whole process, interpreter start and imports included.",
        "",
    ]
    (RESULTS / "cold_start.md").write_text("\n".join([*head, *table, ""]))


if __name__ == "__main__":
    main()
