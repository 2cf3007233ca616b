"""The experiment of the MT-MKL paper (section 4) with this package: p-norm MKL over a tree of tasks against its baselines.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl                        # ten draws, a few minutes
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl --study printed --seeds 3    # the data as the paper prints them
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl --data LandmineData.mat      # on files of yours
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.mt_mkl --data schools.csv --task school --labels passed --share 0.3
    python -m benchmarks.papers.mt_mkl --quick                                       # a minute, in a folder of its own
    python -m benchmarks.papers.mt_mkl --report-only

Run it from the root of the repository. Each (study, draw, hierarchy, method) is appended to mt_mkl_runs.csv as it is done, so that a
run that was stopped goes on where it was; mt_mkl.md and its figures come from that file alone. The tree data are generated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.machine import RESULTS
from benchmarks.papers.given_data import add_data, checked, data_lines, folder_of, sources
from benchmarks.papers.many import add_workers, grow, workers
from benchmarks.papers.mt_mkl_data import STUDIES
from benchmarks.papers.mt_mkl_methods import (
    COLUMNS,
    EXTRAS,
    HIERARCHIES,
    KEY,
    METHODS,
    USES_HIERARCHY,
)
from benchmarks.papers.mt_mkl_report import report
from benchmarks.papers.mt_mkl_units import unit_rows
from benchmarks.papers.rows import done


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    folder = folder_of(options.folder, "mt_mkl", options.files, options.quick, RESULTS)
    data_lines(folder, "mt_mkl", options.files)
    if not options.report_only:
        with workers(options):
            _run(options, folder / "mt_mkl_runs.csv")
    report(folder)


def _options(arguments):
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
    add_data(parser)
    parser.add_argument(
        "--share",
        type=float,
        default=0.2,
        help="of the rows of --data, to train on, and as many to choose on (0.2)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one draw, 8 tasks, a third of the grid: a smoke test"
    )
    parser.add_argument(
        "--folder", help="of mt_mkl_runs.csv and mt_mkl.md (benchmarks/results; quick: a new one)"
    )
    add_workers(parser)
    parser.add_argument(
        "--report-only", action="store_true", help="write mt_mkl.md and its figures, run nothing"
    )
    options = parser.parse_args(arguments)
    if not 0 < options.share < 0.5:
        parser.error(
            f"--share {options.share:g}: twice that must leave rows to test on, so write less than 0.5"
        )
    options.methods = options.methods or [*METHODS, *EXTRAS]
    _, options.files = sources(parser, options)
    if not options.report_only:
        checked(parser, options.files, labels=True, fewest=5)
    return options


def _run(options, runs: Path) -> None:
    seeds = range(1 if options.quick else options.seeds)
    given = {f"{source.name} {options.share:g}": source.labelled for source in options.files}
    finished = done(runs, KEY)
    work = []
    for study in given or options.study:
        for seed in seeds:
            for method in options.methods:
                if given and method not in METHODS:
                    continue
                trees = ["inferred"] if given else options.hierarchies
                for hierarchy in trees if method in USES_HIERARCHY else ["none"]:
                    unit = dict(zip(KEY, (study, str(seed), hierarchy, method), strict=True))
                    if tuple(unit.values()) not in finished:
                        work.append((unit, given.get(study), options.share, options.quick))
    grow(runs, COLUMNS, unit_rows, work)


if __name__ == "__main__":
    main()
