"""The experiments of the CGM paper (section 5) with this package: which graph of labels is learned, and what it is worth.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.cgm                          # all of it
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.cgm --study star "star, noise" --seeds 3
    python -m benchmarks.papers.cgm --quick                                         # a smoke test, in a folder of its own
    python -m benchmarks.papers.cgm --report-only

Run it from the root of the repository. Studies: "star" (Table 2), "star, noise" (5 % of the training labels turned), "scene" (Table 3),
"emotions", "flags", "convergence" (Figure 2), "scores" (the node-only dual), "growth" (Figure 3). Each (study, draw or fold, method) is
appended to cgm_runs.csv as it is done, so that a run that was stopped goes on where it was; cgm.md and its figures come from that and
cgm_history.csv alone. Scene, Emotions and Flags are read from the folder of the papers' data.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.machine import RESULTS
from benchmarks.papers.calibrated_rows import append, done
from benchmarks.papers.cgm_data import FOLDS, REAL, fold_part, star_part
from benchmarks.papers.cgm_methods import METHODS, best_setting, run_setting, settings
from benchmarks.papers.cgm_report import report
from benchmarks.papers.cgm_studies import COLUMNS, KEY, convergence, growth, scores

STUDIES = ("star", "star, noise", *REAL, "scores", "convergence", "growth")


def main() -> None:
    options = _options()
    folder = Path(options.folder or (tempfile.mkdtemp(prefix="cgm_") if options.quick else RESULTS))
    folder.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        with threadpool_limits(1):
            for study in options.study:
                _run(study, options, folder)
    report(folder)


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.cgm", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--seeds", type=int, default=10, help="draws of the star (10)")
    parser.add_argument("--folds", type=int, default=FOLDS, help=f"how many of the {FOLDS} folds ({FOLDS})")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="one draw or fold, few rows: a smoke test")
    parser.add_argument("--folder", help="of cgm_runs.csv and cgm.md (benchmarks/results; quick: a new one)")
    parser.add_argument(
        "--report-only", action="store_true", help="write cgm.md and its figures, run nothing"
    )
    return parser.parse_args()


def _run(study: str, options, folder: Path) -> None:
    runs, seeds = folder / "cgm_runs.csv", range(1 if options.quick else options.seeds)
    if study == "scores":
        scores(runs, seeds, options.quick)
    elif study == "convergence":
        convergence(runs, folder / "cgm_history.csv", options.quick)
    elif study == "growth":
        growth(runs, range(1 if options.quick else options.folds), options.quick)
    elif study in REAL:
        for fold in range(1 if options.quick else options.folds):
            _compare(study, fold, fold_part(study, fold, options.quick), options, runs)
    else:
        for seed in seeds:
            part = star_part(seed, 0.05 if study == "star, noise" else 0.0, options.quick)
            _compare(study, seed, part, options, runs)


def _compare(study: str, seed: int, part, options, runs: Path) -> None:
    for method in options.methods:
        unit = dict(zip(KEY, (study, str(seed), method), strict=True))
        if tuple(unit.values()) in done(runs, KEY) or (method == "true graph" and part.true_edges is None):
            continue
        choices = settings(study, method, part.train.n_tasks, options.quick)
        chosen, tried = best_setting(method, part, choices, seed)
        row, _ = run_setting(method, part, chosen)
        seconds = [float(one["seconds"]) for one in tried]
        row |= {"slowest_setting": f"{max(seconds):.2f}"} if seconds else {}
        append(runs, COLUMNS, unit | row)
        print(
            f"{study} {seed} {method}: Hamming {row['hamming']} at {row['setting']}, {row['seconds']} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
