"""What a check costs: seconds of `verify_proof` beside seconds of `solve`, on School, the digits, and the mixed models of the tests.

    python benchmarks/verify.py [folder of the papers' data]      writes benchmarks/results/verify.md

CPU seconds, one BLAS thread; a solve that compiles loops is run twice and the second counts.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mtldsl as mtl
from mtldsl.datasets import load_digits, load_school
from mtldsl.errors import DataError

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

#: the check in fractions is shown where it is allowed and takes seconds
_EXACT = 300_000


def problems(papers: Path | None):
    """(name, problem, its tasks) of data sets of ordinary size."""
    tasks = load_digits()
    W = mtl.Weights(tasks, intercept=True)
    yield (
        "digits, logistic + trace norm",
        mtl.minimize(mtl.trace_norm(W) + 50 * mtl.logistic_loss(W, tasks, mean=True)),
        [tasks],
    )
    yield (
        "digits, squared hinge + l21",
        mtl.minimize(mtl.squared_hinge_loss(W, tasks) + 20 * mtl.l21_norm(W)),
        [tasks],
    )
    V = mtl.Weights(tasks)
    yield (
        "digits, F-score + ridge",
        mtl.minimize(50 * mtl.structured_hinge(V, tasks, metric=mtl.metrics.FScore()) + mtl.ridge(V)),
        [tasks],
    )
    yield "digits, hinge + ridge", mtl.minimize(mtl.hinge_loss(V, tasks) + mtl.ridge(V)), [tasks]
    try:
        tasks = load_school(papers)
    except DataError as error:
        print(f"School left out: {error}")
        return
    W, L, S = mtl.Weights(tasks), mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    yield (
        "School, squared + trace norm",
        mtl.minimize(mtl.squared_loss(W, tasks) + 200 * mtl.trace_norm(W)),
        [tasks],
    )
    yield "School, squared + l21", mtl.minimize(mtl.squared_loss(W, tasks) + 200 * mtl.l21_norm(W)), [tasks]
    yield (
        "School, square root + trace norm",
        mtl.minimize(mtl.square_root_loss(W, tasks) + 2 * mtl.trace_norm(W)),
        [tasks],
    )
    robust = mtl.squared_loss(L + S, tasks) + 200 * mtl.trace_norm(L) + 100 * mtl.l12_norm(S)
    yield "School, robust (two blocks)", mtl.minimize(robust), [tasks]
    near = mtl.absolute_loss(W, tasks) + 10 * mtl.mean_regularizer(W) + mtl.ridge(W)
    yield "School, absolute + mean + ridge", mtl.minimize(near), [tasks]


def measured(name, problem, tasks, folder: Path, solves: int = 1) -> dict:
    for _ in range(solves):
        start = time.process_time()
        solution = problem.solve(tol=1e-6)
        solved = time.process_time() - start
    start = time.process_time()
    path = solution.certificate.save(folder / "proof")
    saved = time.process_time() - start
    start = time.process_time()
    verdict = mtl.verify_proof(path, tasks)
    checked = time.process_time() - start
    size = sum(one.n_samples * one.n_features for one in tasks)
    exact = None
    if size <= _EXACT and size * tasks[0].n_tasks <= _EXACT:
        start = time.process_time()
        mtl.verify_proof(path, tasks, exact=True)
        exact = time.process_time() - start
    row = {
        "name": name, "size": f"{sum(one.n_samples for one in tasks):,} x {tasks[0].n_features}", "solve": solved, "save": saved,
        "verify": checked, "exact": exact, "bytes": path.stat().st_size, "gap": float(solution.gap), "verified": verdict.relative_gap,
        "verdict": "confirmed" if verdict.confirmed else "; ".join(verdict.unchecked) or "not confirmed",
    }  # fmt: skip
    print(row, flush=True)
    return row


def main(papers: Path | None) -> None:
    from tests.models import MODELS

    rows, mixed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, problem, tasks in problems(papers):
            rows.append(measured(name, problem, tasks, Path(folder), solves=2))
        for name, make in MODELS.items():
            problem = make()
            tasks = [term.source or term.tasks for term in problem.objective.terms if term.is_loss]
            mixed.append(measured(name.replace("_", " "), problem, tasks, Path(folder), solves=2))
    lines = [
        "# What a check costs", "", "`python benchmarks/verify.py`: CPU seconds on one BLAS thread, tol 1e-6. `verify` reads, hashes and",
        "recomputes in intervals; `exact` in rational numbers.", "",
        "| problem | labels x features | solve | save | verify | file, kB | gap claimed | gap verified | verdict |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]  # fmt: skip
    for r in rows:
        lines.append(
            f"| {r['name']} | {r['size']} | {r['solve']:.2f} | {r['save']:.2f} | {r['verify']:.2f} | {r['bytes'] / 1e3:.0f} | "
            f"{r['gap']:.1e} | {r['verified']:.1e} | {r['verdict']} |"
        )
    lines += ["", f"The {len(mixed)} mixed models of tests/models.py, small:", ""]
    lines += ["| model | solve | verify | exact | verdict |", "| --- | ---: | ---: | ---: | --- |"]
    for r in mixed:
        exact = "" if r["exact"] is None else f"{r['exact']:.2f}"
        lines.append(f"| {r['name']} | {r['solve']:.3f} | {r['verify']:.3f} | {exact} | {r['verdict']} |")
    solve, verify = (np.array([r[key] for r in rows]) for key in ("solve", "verify"))
    lines += [
        "",
        f"On the larger problems a check takes {np.median(verify / solve):.2f} of the solve in the median, {np.max(verify / solve):.2f} at most.",
        "",
    ]
    (ROOT / "benchmarks" / "results" / "verify.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
