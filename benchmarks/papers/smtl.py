"""The experiment of the SMTL paper (section 6) with this package: six SMTL variants against eleven baselines.

    python -m benchmarks.papers.smtl --data flags emotions --seeds 10 --folds 10
    python -m benchmarks.papers.smtl --study imbalance --data emotions segmentation --seeds 5 --folds 3
    python -m benchmarks.papers.smtl --report-only

Run it from the root of the repository. Each (data, partition, method) is appended to smtl_runs.csv as it is done, so that a run
that was stopped goes on where it was; the tables and smtl.md come from that file alone. Data: see mtldsl.datasets; every one of
the paper's sets that is published with them, and scikit-learn's digits for the larger Optdigits.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.machine import RESULTS
from benchmarks.papers.many import add_workers, several, workers
from benchmarks.papers.smtl_data import DATA
from benchmarks.papers.smtl_methods import METHODS, Settings
from benchmarks.papers.smtl_report import report
from benchmarks.papers.smtl_units import RATIOS, unit_fits

COLUMNS = (
    "study", "data", "ratio", "seed", "folds", "intercept", "refine", "method", "select", "lam", "macro_f1", "micro_f1", "auc",
    "auc_labels", "status", "gap", "fit_seconds", "cv_seconds", "cv_solves", "cv_capped",
)  # fmt: skip
#: what tells one unit of work from another
KEY = ("study", "data", "ratio", "seed", "folds", "intercept", "refine", "method")
IMBALANCE_METHODS = ("SMTL(l21+AUC)", "SMTL(l21+F1)", "MTL-CLS(l21)", "MTL-REG(l21)")


def main() -> None:
    options = _options()
    console = Console()
    folder = Path(options.resume_dir or (tempfile.mkdtemp(prefix="smtl_") if options.quick else RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    runs = folder / "smtl_runs.csv"
    if not options.report_only:
        settings = Settings(
            folds=options.folds,
            intercept=options.intercept,
            refine=options.refine,
            cv_seconds=options.cv_seconds,
            fit_seconds=options.fit_seconds,
            quick=options.quick,
        )
        _run(options, settings, runs, console)
    if options.report or options.report_only or options.quick:
        report(runs, folder / "smtl.md", console)


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.smtl", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", choices=("main", "imbalance"), default="main")
    parser.add_argument(
        "--data", nargs="+", choices=tuple(DATA), default=["flags", "emotions", "segmentation"]
    )
    parser.add_argument("--seeds", type=int, default=10, help="random 60:40 partitions (10)")
    parser.add_argument(
        "--folds", type=int, default=10, help="of the cross-validation on the training part (10)"
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all; imbalance: the l21 ones")
    parser.add_argument(
        "--intercept", action=argparse.BooleanOptionalAction, default=True, help="in every model"
    )
    parser.add_argument(
        "--refine", action=argparse.BooleanOptionalAction, default=True, help="the grid about its best"
    )
    parser.add_argument(
        "--cv-seconds", type=float, default=2.0, help="cap of one solve in cross-validation (2)"
    )
    parser.add_argument("--fit-seconds", type=float, default=30.0, help="cap of one final solve (30)")
    parser.add_argument(
        "--quick", action="store_true", help="one partition, two folds, a third of the grid: a smoke test"
    )
    parser.add_argument(
        "--resume-dir", help="folder of smtl_runs.csv and smtl.md (benchmarks/results; quick: a new one)"
    )
    add_workers(parser)
    parser.add_argument("--report", action="store_true", help="write the tables after the run")
    parser.add_argument("--report-only", action="store_true", help="write the tables, run nothing")
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.folds = 1, 2
    if options.methods is None:
        options.methods = list(METHODS if options.study == "main" else IMBALANCE_METHODS)
    return options


def _run(options, settings, runs, console) -> None:
    done = _done(runs)
    units = [
        {
            "study": options.study,
            "data": data,
            "ratio": str(ratio),
            "seed": str(seed),
            "folds": str(settings.folds),
            "intercept": str(int(settings.intercept)),
            "refine": str(int(settings.refine)),
            "method": method,
        }
        for data in options.data
        for seed in range(options.seeds)
        for ratio in (RATIOS if options.study == "imbalance" else (0,))
        for method in options.methods
    ]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        todo = [unit for unit in units if tuple(unit[name] for name in KEY) not in done]
        bar = progress.add_task("", total=len(units), completed=len(units) - len(todo))
        with workers(options):
            found = several(unit_fits, [(unit, settings) for unit in todo], options.jobs)
            for unit, fits in zip(todo, found, strict=True):
                _append(runs, unit, fits)
                progress.update(bar, advance=1, description=f"{unit['data']} {unit['seed']} {unit['method']}")


def _done(runs: Path) -> set[tuple]:
    if not runs.is_file():
        return set()
    with runs.open(newline="") as file:
        return {tuple(row[name] for name in KEY) for row in csv.DictReader(file)}


def _append(runs: Path, unit, fits) -> None:
    """All rows of one unit in one write, so that a run stopped at any time leaves whole units."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not runs.is_file() or runs.stat().st_size == 0:
        writer.writeheader()
    for fit in fits:
        row = {
            **unit,
            "select": fit.select,
            "lam": fit.lam,
            **{name: f"{value:.4f}" for name, value in fit.test.items()},
            "status": fit.status,
            "gap": f"{fit.gap:.1e}",
            "fit_seconds": f"{fit.fit_seconds:.4f}",
            "cv_seconds": f"{fit.cv_seconds:.3f}",
            "cv_solves": fit.cv_solves,
            "cv_capped": fit.cv_capped,
        }
        writer.writerow(row)
    handle = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
        os.fsync(handle)
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
