"""The experiment of the SMTL paper (section 6) with this package: six SMTL variants against eleven baselines.

    python -m benchmarks.papers.smtl --data flags emotions --seeds 10 --folds 10
    python -m benchmarks.papers.smtl --study imbalance --data emotions segmentation --seeds 5 --folds 5
    python -m benchmarks.papers.smtl --data yeast.arff --xml yeast.xml     # the same on files of yours, see given_data.py
    python -m benchmarks.papers.smtl --quick                               # a minute, in a folder of its own
    python -m benchmarks.papers.smtl --report-only

Run it from the root of the repository. Each (data, partition, method) is appended to smtl_runs.csv as it is done, so that a run
that was stopped goes on where it was; the tables and smtl.md come from that file alone. Data: see mtldsl.datasets; every one of
the paper's sets that is published with them, and scikit-learn's digits for the larger Optdigits.
"""

from __future__ import annotations

import argparse

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
from benchmarks.papers.given_data import add_data, checked, data_lines, folder_of, sources
from benchmarks.papers.many import add_workers, several, workers
from benchmarks.papers.rows import append, done
from benchmarks.papers.smtl_data import DATA
from benchmarks.papers.smtl_methods import METHODS, Settings
from benchmarks.papers.smtl_multilabel import MULTILABEL
from benchmarks.papers.smtl_report import report
from benchmarks.papers.smtl_units import RATIOS, unit_fits

COLUMNS = (
    "study", "data", "ratio", "seed", "folds", "intercept", "refine", "method", "select", "lam", "macro_f1", "micro_f1", "auc",
    "auc_labels", "status", "gap", "fit_seconds", "cv_seconds", "cv_solves", "cv_capped",
)  # fmt: skip
#: what tells one unit of work from another
KEY = ("study", "data", "ratio", "seed", "folds", "intercept", "refine", "method")
QUICK_METHODS = (
    "SMTL(l21+AUC)", "SMTL(l21+F1)", "MTL-CLS(l21)", "MTL-REG(l21)", "StructSVM(F1)", "BR", "LP", "RAkEL", "ECC",
)  # fmt: skip
IMBALANCE_METHODS = ("SMTL(l21+AUC)", "SMTL(l21+F1)", "MTL-CLS(l21)", "MTL-REG(l21)")


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    console = Console()
    folder = folder_of(options.resume_dir, "smtl", options.files, options.quick, RESULTS)
    data_lines(folder, "smtl", options.files)
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
    if options.report or options.report_only or options.quick or options.files:
        report(runs, folder / "smtl.md", console)


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.smtl", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", choices=("main", "imbalance"), default="main")
    add_data(parser, tuple(DATA))
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
        "--quick",
        action="store_true",
        help="two partitions, two folds, a third of the grid, half of the methods",
    )
    parser.add_argument(
        "--resume-dir",
        "--folder",
        help="folder of smtl_runs.csv and smtl.md (benchmarks/results; quick: a new one)",
    )
    add_workers(parser)
    parser.add_argument("--report", action="store_true", help="write the tables after the run")
    parser.add_argument("--report-only", action="store_true", help="write the tables, run nothing")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seeds, options.folds = 2, 2
    if options.methods is None:
        usual = QUICK_METHODS if options.quick else METHODS
        options.methods = list(usual if options.study == "main" else IMBALANCE_METHODS)
    if not options.data:
        options.data = ["flags"] if options.quick else ["flags", "emotions", "segmentation"]
    options.names, options.files = sources(parser, options, tuple(DATA))
    if not options.report_only:
        checked(parser, options.files, labels=True, fewest=4)
    return options


def _run(options, settings, runs, console) -> None:
    finished = done(runs, KEY)
    given = {source.name: source for source in options.files}
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
        for data in [*options.names, *given]
        for seed in range(options.seeds)
        for ratio in (RATIOS if options.study == "imbalance" else (0,))
        for method in options.methods
        # label powersets and chains need all labels of a row
        if data not in given or given[data].labelled.is_shared or method not in MULTILABEL
    ]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        todo = [unit for unit in units if tuple(unit[name] for name in KEY) not in finished]
        bar = progress.add_task("", total=len(units), completed=len(units) - len(todo))
        with workers(options):
            found = several(unit_fits, [(unit, settings, given.get(unit["data"])) for unit in todo])
            for unit, fits in zip(todo, found, strict=True):
                append(runs, COLUMNS, *(_row(unit, fit) for fit in fits))
                progress.update(bar, advance=1, description=f"{unit['data']} {unit['seed']} {unit['method']}")


def _row(unit, fit) -> dict:
    return {
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


if __name__ == "__main__":
    main()
