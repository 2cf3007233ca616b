"""The experiments of the FETR paper (section 6) with this package.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.fetr                     # all of it: an hour and a half
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.fetr --study sarcos --methods STN MTN MTN-FETR
    python -m benchmarks.papers.fetr --quick                                    # a minute, in a folder of its own
    python -m benchmarks.papers.fetr --report-only

Run it from the root of the repository. Every study leaves a CSV file in benchmarks/results, from which fetr.md and its figures are
made. The prediction studies (sarcos, school) go on where they were stopped. Data: see mtldsl.datasets; networks need PyTorch.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.machine import RESULTS
from benchmarks.papers.fetr_correlations import rounds_needed, run_correlations
from benchmarks.papers.fetr_descent import run_descent
from benchmarks.papers.fetr_methods import LINEAR, NETWORKS, PREPARATIONS
from benchmarks.papers.fetr_prediction import run_table
from benchmarks.papers.fetr_report import report
from benchmarks.papers.fetr_weights import run_weights

STUDIES = ("weights", "descent", "correlations", "sarcos", "school")


def main() -> None:
    options = _options()
    folder = Path(options.folder or (tempfile.mkdtemp(prefix="fetr_") if options.quick else RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        with threadpool_limits(1):
            for study in options.study:
                print(f"\n{study}", flush=True)
                _run(study, folder, options)
    report(folder)


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.fetr", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument(
        "--methods", nargs="+", choices=(*LINEAR, *NETWORKS), help="of sarcos and school (all)"
    )
    parser.add_argument(
        "--preparations", nargs="+", choices=sum(PREPARATIONS.values(), ()), help="of sarcos and school (all)"
    )
    parser.add_argument("--partitions", nargs="+", type=int, help="sarcos: 0 to 4, school: 0 to 9 (all)")
    parser.add_argument("--seed", type=int, default=0, help="of the networks (0)")
    parser.add_argument("--starts", type=int, default=10, help="random starts of descent (10)")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, one partition, few settings: a smoke test"
    )
    parser.add_argument(
        "--folder", help="of the CSV files and fetr.md (benchmarks/results; quick: a new one)"
    )
    parser.add_argument(
        "--report-only", action="store_true", help="write fetr.md and its figures, run nothing"
    )
    return parser.parse_args()


def _run(study: str, folder: Path, options) -> None:
    quick = options.quick
    if study == "weights":
        run_weights(folder, quick=quick)
    elif study == "descent":
        run_descent(
            folder,
            starts=2 if quick else options.starts,
            seconds=1.0 if quick else 4.0,
            iterations=100 if quick else 500,
        )
    elif study == "correlations":
        run_correlations(folder, quick=quick)
        rounds_needed(folder, quick=quick)
    else:
        partitions = options.partitions or ([0] if quick else range(5 if study == "sarcos" else 10))
        known = PREPARATIONS[study]
        preparations = [name for name in options.preparations or known if name in known]
        run_table(
            folder / "fetr_runs.csv",
            study,
            partitions=partitions,
            methods=options.methods,
            preparations=preparations[:1] if quick else preparations,
            seed=options.seed,
            quick=quick,
        )


if __name__ == "__main__":
    main()
