"""The experiments of the FETR paper (section 6) with this package.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.fetr                     # all of it: an hour and a half
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.fetr --study sarcos --methods STN MTN MTN-FETR
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.fetr --data exams.csv --labels score --task school    # on a file of yours
    python -m benchmarks.papers.fetr --quick                                    # a minute, in a folder of its own
    python -m benchmarks.papers.fetr --report-only

Run it from the root of the repository. Every study leaves a CSV file in benchmarks/results, from which fetr.md and its figures are
made. The prediction studies (sarcos, school) go on where they were stopped. Data: see mtldsl.datasets; networks need PyTorch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.machine import RESULTS
from benchmarks.papers.fetr_correlations import rounds_needed, run_correlations
from benchmarks.papers.fetr_descent import run_descent
from benchmarks.papers.fetr_methods import LIKE, LINEAR, NETWORKS, PREPARATIONS
from benchmarks.papers.fetr_prediction import run_table
from benchmarks.papers.fetr_report import report
from benchmarks.papers.fetr_weights import run_weights
from benchmarks.papers.given_data import add_data, checked, data_lines, folder_of, sources
from benchmarks.papers.many import add_workers, workers

STUDIES = ("weights", "descent", "correlations", "sarcos", "school")


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    folder = folder_of(options.folder, "fetr", options.files, options.quick, RESULTS)
    for source in options.files or [None]:
        # a folder a file: the studies of one data set fill files of their own
        own = folder if len(options.files) < 2 else folder / source.name
        own.mkdir(exist_ok=True)
        data_lines(own, "fetr", [source] if source else [], labels=False)
        if not options.report_only:
            with threadpool_limits(1), workers(options):
                for study in options.study if source is None else _studies(source):
                    print(f"\n{study}", flush=True)
                    _run(study, own, options, source)
        report(own)


def _studies(source) -> list[str]:
    """What can be asked of a file: its prediction, and where inputs are shared descents and correlations too."""
    return [source.name, *(("descent", "correlations") if source.tasks.is_shared else ())]


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.fetr", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
    add_data(parser)
    parser.add_argument(
        "--methods", nargs="+", choices=(*LINEAR, *NETWORKS), help="of sarcos and school (all)"
    )
    parser.add_argument(
        "--preparations", nargs="+", choices=sum(PREPARATIONS.values(), ()), help="of sarcos and school (all)"
    )
    parser.add_argument(
        "--partitions",
        nargs="+",
        type=int,
        help="sarcos: 0 to 4, school: 0 to 9, files of yours: 0 to 4 (all)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the networks (0)")
    parser.add_argument("--starts", type=int, default=10, help="random starts of descent (10)")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one partition, few settings: a smoke test"
    )
    parser.add_argument(
        "--folder", help="of the CSV files and fetr.md (benchmarks/results; quick: a new one)"
    )
    add_workers(parser)
    parser.add_argument(
        "--report-only", action="store_true", help="write fetr.md and its figures, run nothing"
    )
    options = parser.parse_args(arguments)
    _, options.files = sources(parser, options)
    if not options.report_only:
        checked(parser, options.files, labels=False)
    return options


def _run(study: str, folder: Path, options, source) -> None:
    quick, tasks = options.quick, source.tasks if source else None
    if study == "weights":
        run_weights(folder, quick=quick)
    elif study == "descent":
        run_descent(
            folder,
            starts=2 if quick else options.starts,
            seconds=1.0 if quick else 4.0,
            iterations=100 if quick else 500,
            tasks=tasks,
        )
    elif study == "correlations":
        run_correlations(folder, quick=quick, given=tasks)
        rounds_needed(folder, quick=quick, given=tasks)
    else:
        known = PREPARATIONS[study if tasks is None else LIKE[tasks.is_shared]]
        partitions = options.partitions or ([0] if quick else range(10 if study == "school" else 5))
        preparations = [name for name in options.preparations or known if name in known]
        run_table(
            folder / "fetr_runs.csv",
            study,
            partitions=partitions,
            methods=options.methods,
            preparations=preparations[:1] if quick else preparations,
            seed=options.seed,
            quick=quick,
            tasks=tasks,
        )


if __name__ == "__main__":
    main()
