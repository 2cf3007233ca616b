"""The experiments of the CGM paper (section 5) with this package: which graph of labels is learned, and what it is worth.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.cgm                          # all of it
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.cgm --study star "star, noise" --seeds 3
    OPENBLAS_NUM_THREADS=1 python -m benchmarks.papers.cgm --data yeast.arff --xml yeast.xml    # Table 3 and Figure 3 on files of yours
    python -m benchmarks.papers.cgm --quick                                         # a smoke test, in a folder of its own
    python -m benchmarks.papers.cgm --report-only

Run it from the root of the repository. Studies: "star" (Table 2), "star, noise" (5 % of the training labels turned), "scene" (Table 3),
"emotions", "flags", "convergence" (Figure 2), "scores" (the node-only dual), "growth" (Figure 3). Each (study, draw or fold, method) is
appended to cgm_runs.csv as it is done, so that a run that was stopped goes on where it was; cgm.md and its figures come from that and
cgm_history.csv alone. Scene, Emotions and Flags are read from the folder of the papers' data.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.machine import RESULTS
from benchmarks.papers.cgm_data import FOLDS, MOST_LABELS, REAL
from benchmarks.papers.cgm_methods import METHODS
from benchmarks.papers.cgm_report import report
from benchmarks.papers.cgm_studies import COLUMNS, KEY, convergence, growth, scores
from benchmarks.papers.cgm_units import unit_rows
from benchmarks.papers.given_data import add_data, checked, data_lines, end, folder_of, sources
from benchmarks.papers.many import add_workers, grow, workers
from benchmarks.papers.rows import done

STUDIES = ("star", "star, noise", *REAL, "scores", "convergence", "growth")
QUICK_STUDIES = ("star", "emotions", "scores", "growth")
#: Left out of --quick: all marginals of every row at every step; all candidates to the optimum.
SLOW = ("HLLM-L1", "CGM, optimum")


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    folder = folder_of(options.folder, "cgm", options.files, options.quick, RESULTS)
    data_lines(folder, "cgm", options.files)
    if not options.report_only:
        with workers(options):
            for study in options.study:
                _run(study, options, folder)
    report(folder)


def _options(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.cgm", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", nargs="+", choices=STUDIES, help="default: all; with --quick a few")
    add_data(parser)
    parser.add_argument("--seeds", type=int, default=10, help="draws of the star (10)")
    parser.add_argument("--folds", type=int, default=FOLDS, help=f"how many of the {FOLDS} folds ({FOLDS})")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), help="default: all")
    parser.add_argument("--quick", action="store_true", help="one draw or fold, few rows: a smoke test")
    parser.add_argument("--folder", help="of cgm_runs.csv and cgm.md (benchmarks/results; quick: a new one)")
    add_workers(parser)
    parser.add_argument(
        "--report-only", action="store_true", help="write cgm.md and its figures, run nothing"
    )
    options = parser.parse_args(arguments)
    _, options.files = sources(parser, options)
    if not options.report_only:
        checked(parser, options.files, labels=True, fewest=FOLDS + 1)
        for source in options.files:
            _suits(parser, source)
    if options.files:
        # as REAL's: a loader, and whether its features are standardised
        REAL.update({source.name: (lambda source=source: source.labelled, True) for source in options.files})
        options.study = [name for source in options.files for name in (source.name, f"growth, {source.name}")]
    options.study = options.study or list(QUICK_STUDIES if options.quick else STUDIES)
    options.methods = options.methods or [name for name in METHODS if not options.quick or name not in SLOW]
    return options


def _suits(parser, source) -> None:
    """A graph of labels needs labels of the same rows, all of them there."""
    tasks = source.labelled
    if not tasks.is_shared:
        end(
            parser,
            f"{source.path}: the tasks have rows of their own, or labels are missing; a graph over labels is learned from rows that have all "
            "labels",
        )
    if not 2 < tasks.n_tasks <= MOST_LABELS:
        end(
            parser,
            f"{source.path}: {tasks.n_tasks} labels; the experiment is for 3 to {MOST_LABELS} (--labels chooses some, --rare leaves out rare "
            "ones)",
        )


def _run(study: str, options, folder: Path) -> None:
    runs, seeds = folder / "cgm_runs.csv", range(1 if options.quick else options.seeds)
    if study == "scores":
        scores(runs, seeds, options.quick)
    elif study == "convergence":
        convergence(runs, folder / "cgm_history.csv", options.quick)
    elif study.startswith("growth"):
        data = study.removeprefix("growth").removeprefix(", ") or "scene"
        growth(runs, study, data, range(1 if options.quick else options.folds), options.quick)
    elif study in REAL:
        _compare(study, range(1 if options.quick else options.folds), options, runs)
    else:
        _compare(study, seeds, options, runs)


def _compare(study: str, seeds, options, runs: Path) -> None:
    given = next((source.labelled for source in options.files if source.name == study), None)
    finished = done(runs, KEY)
    units = [
        dict(zip(KEY, (study, str(seed), method), strict=True))
        for seed in seeds
        for method in options.methods
    ]
    left = [unit for unit in units if tuple(unit.values()) not in finished]
    if study in REAL:  # nobody knows the graph that made them
        left = [unit for unit in left if unit["method"] != "true graph"]
    grow(runs, COLUMNS, unit_rows, [(unit, given, options.quick) for unit in left])


if __name__ == "__main__":
    main()
