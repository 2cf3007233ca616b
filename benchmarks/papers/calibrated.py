"""The experiments of the NC-CMTL paper (section 5) with this package.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.calibrated                     # all of it: about 45 minutes on one core
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.calibrated --study table --partitions 0 1 --methods NN-MTL NC-CMTL
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.calibrated --study synthetic --repeats 100 --validations 5    # as the paper
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.calibrated --data exams.csv --labels score --task school    # on a file of yours
    python -m benchmarks.papers.calibrated --quick                                    # a minute, in a folder of its own
    python -m benchmarks.papers.calibrated --report-only

Run it from the root of the repository. Every study leaves a CSV file in benchmarks/results, from which calibrated.md and its figures
are made. Studies: synthetic (Table 3), mu (Fig. 2), table (Table 4), convergence (Fig. 3), time (Table 5, at the settings that table
chose). The first three go on where they were stopped. Data: see mtldsl.datasets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.machine import RESULTS
from benchmarks.papers.calibrated_convergence import run_convergence
from benchmarks.papers.calibrated_data import GIVEN, sizes_of
from benchmarks.papers.calibrated_methods import METHODS
from benchmarks.papers.calibrated_mu import run_mu
from benchmarks.papers.calibrated_report import report
from benchmarks.papers.calibrated_synthetic import SETTINGS, VARIANTS, run_synthetic
from benchmarks.papers.calibrated_table import run_table
from benchmarks.papers.calibrated_time import run_time
from benchmarks.papers.given_data import add_data, checked, data_lines, folder_of, sources
from benchmarks.papers.many import add_workers, workers

STUDIES = ("mu", "table", "convergence", "time", "synthetic")
_PUBLISHED = ("school", "sarcos")
#: Partitions of the table and of Fig. 2.
PARTITIONS = {"school": 5, "sarcos": 10, "mu": 5}


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    folder = folder_of(options.folder, "calibrated", options.files, options.quick, RESULTS)
    for source in options.files or [None]:
        # a folder a file: the studies of one data set fill files of their own
        own = folder if len(options.files) < 2 else folder / source.name
        own.mkdir(exist_ok=True)
        data_lines(own, "calibrated", [source] if source else [], labels=False)
        if source is not None:
            GIVEN[source.name] = source.tasks
        if not options.report_only:
            with threadpool_limits(1), workers(options):
                for study in options.study:
                    print(f"\n{study}", flush=True)
                    _run(study, own, options, source and source.name)
        report(own)


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.calibrated", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--study", nargs="+", choices=STUDIES, help="all; of files of yours all but synthetic"
    )
    add_data(parser, _PUBLISHED)
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="of table (all)")
    parser.add_argument(
        "--partitions", nargs="+", type=int, help="of table and mu (school 0 to 4, sarcos 0 to 9, mu 0 to 4)"
    )
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, help="of synthetic (all)")
    parser.add_argument(
        "--repeats", type=int, default=2, help="data sets a setting of synthetic (2; the paper: 100)"
    )
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, help="of synthetic (all)")
    parser.add_argument(
        "--validations",
        type=int,
        default=1,
        help="of five folds, how many are held out to choose on in synthetic (1)",
    )
    parser.add_argument(
        "--searched", type=int, help="mu is chosen on so many data sets of synthetic, the first; the others take what these chose (all)"
    )  # fmt: skip
    parser.add_argument("--mu", type=float, default=MU, help=f"of convergence ({MU:g})")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one partition, few settings: a smoke test"
    )
    parser.add_argument(
        "--folder", help="of the CSV files and calibrated.md (benchmarks/results; quick: a new one)"
    )
    add_workers(parser)
    parser.add_argument(
        "--report-only", action="store_true", help="write calibrated.md and its figures, run nothing"
    )
    options = parser.parse_args(arguments)
    names, options.files = sources(parser, options, _PUBLISHED)
    options.data = names or list(_PUBLISHED)
    known = STUDIES[:-1] if options.files else STUDIES
    options.study = [study for study in options.study or known if study in known]
    if not options.report_only:
        checked(parser, options.files, labels=False)
    return options


#: of convergence: chosen most often by cross-validation on School, 20 %
MU = 32.0


def _run(study: str, folder: Path, options, given: str | None) -> None:
    """given : the name of a file's data, which takes the place of School and SARCOS"""
    quick = options.quick
    size = sizes_of(given)[1] if given else None

    def partitions(name):
        return options.partitions or range(1 if quick else PARTITIONS.get(name, 5))

    if study == "synthetic":
        run_synthetic(
            folder,
            repeats=range(1 if quick else options.repeats),
            settings=options.settings or (SETTINGS[-1:] if quick else None),
            variants=options.variants,
            validations=options.validations,
            searched=options.searched,
            quick=quick,
        )
    elif study == "mu":
        sizes = [size or 100] if quick else None
        run_mu(folder, partitions=partitions("mu"), data=given or "sarcos", sizes=sizes, quick=quick)
    elif study == "convergence":
        run_convergence(folder, options.mu, data=given or "school", size=size or 20, quick=quick)
    elif study == "time":
        run_time(folder, repeats=1 if quick else 5, timed={given: size} if given else None)
    else:
        for data in [given] if given else options.data:
            sizes = [{"school": 20, "sarcos": 300}.get(data, size)] if quick else None
            run_table(
                folder, data, partitions=partitions(data), methods=options.methods, sizes=sizes, quick=quick
            )


if __name__ == "__main__":
    main()
