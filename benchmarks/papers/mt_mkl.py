"""The experiment of the MT-MKL paper (section 4) with this package: p-norm MKL over a tree of tasks against its baselines.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl                        # ten draws, a few minutes
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl --study printed --seeds 3    # the data as the paper prints them
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl --landmine LandmineData.mat  # the same methods on data of yours
    python -m benchmarks.papers.mt_mkl --quick                                       # a minute, in a folder of its own
    python -m benchmarks.papers.mt_mkl --report-only

Run it from the root of the repository. Each (study, draw, hierarchy, method) is appended to mt_mkl_runs.csv as it is done, so that a
run that was stopped goes on where it was; mt_mkl.md and its figures come from that file alone. The tree data are generated; Landmine
is not part of this package, see mtldsl.datasets.load_landmine.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import tempfile
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.machine import RESULTS
from benchmarks.papers.calibrated_rows import done
from benchmarks.papers.mt_mkl_data import STUDIES, landmine_part, tree_part
from benchmarks.papers.mt_mkl_methods import (
    COLUMNS,
    EXTRAS,
    GRID,
    HIERARCHIES,
    KEY,
    METHODS,
    USES_HIERARCHY,
    run_method,
)
from benchmarks.papers.mt_mkl_report import report


def main() -> None:
    options = _options()
    folder = Path(options.folder or (tempfile.mkdtemp(prefix="mt_mkl_") if options.quick else RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        with threadpool_limits(1):
            _run(options, folder / "mt_mkl_runs.csv")
    report(folder)


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.mt_mkl", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", nargs="+", choices=tuple(STUDIES), default=["corrected"])
    parser.add_argument("--seeds", type=int, default=10, help="draws of the data, or splits (10)")
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, *EXTRAS), help="default: all")
    parser.add_argument(
        "--hierarchies",
        nargs="+",
        choices=HIERARCHIES,
        default=list(HIERARCHIES),
        help="the tree that made the data, one inferred from the training rows, the first with kernels of trace 1",
    )
    parser.add_argument("--landmine", metavar="PATH", help="a .mat file: run on it, not on the tree data")
    parser.add_argument(
        "--share",
        type=float,
        default=0.2,
        help="of Landmine's rows, to train on, and as many to choose on (0.2)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one draw, 8 tasks, a third of the grid: a smoke test"
    )
    parser.add_argument(
        "--folder", help="of mt_mkl_runs.csv and mt_mkl.md (benchmarks/results; quick: a new one)"
    )
    parser.add_argument(
        "--report-only", action="store_true", help="write mt_mkl.md and its figures, run nothing"
    )
    options = parser.parse_args()
    if not 0 < options.share < 0.5:
        parser.error(
            f"--share {options.share:g}: twice that must leave rows to test on, so write less than 0.5"
        )
    options.methods = options.methods or [*METHODS, *EXTRAS]
    return options


def _run(options, runs: Path) -> None:
    seeds = range(1 if options.quick else options.seeds)
    grid = GRID[1::3] if options.quick else GRID
    if options.landmine is None:
        parts = {
            study: (lambda seed, study=study: tree_part(study, seed, options.quick))
            for study in options.study
        }
        hierarchies = options.hierarchies
    else:
        from mtldsl.datasets import load_landmine

        tasks = load_landmine(options.landmine)
        parts = {f"landmine {options.share:g}": lambda seed: landmine_part(tasks, seed, options.share)}
        hierarchies = ["inferred"]
    for study, make in parts.items():
        methods = [name for name in options.methods if options.landmine is None or name in METHODS]
        for seed in seeds:
            part = None
            for method in methods:
                for hierarchy in hierarchies if method in USES_HIERARCHY else ["none"]:
                    unit = dict(zip(KEY, (study, str(seed), hierarchy, method), strict=True))
                    if tuple(unit.values()) in done(runs, KEY):
                        continue
                    part = part or make(seed)
                    rows = run_method(method, part, hierarchy, grid)
                    _append(runs, [unit | row for row in rows])
                    chosen = next(row for row in rows if row["chosen"])
                    print(
                        f"{study} {seed} {method} ({hierarchy}): AUC {chosen['auc']} at C = {chosen['C']}, "
                        f"{sum(float(row['seconds']) for row in rows):.1f} s",
                        flush=True,
                    )


def _append(runs: Path, rows: list[dict]) -> None:
    """All rows of one unit in one write, so that a run stopped at any time leaves whole units."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not runs.is_file() or runs.stat().st_size == 0:
        writer.writeheader()
    writer.writerows(rows)
    handle = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
        os.fsync(handle)
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
