"""The command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import rows
from .data import SETS
from .problems import FAMILIES, HALVES, Problem, interleaved, problems
from .runner import Settings, run

__all__ = ["main"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
OF_A_USER = Path("corpus_of_your_data")
QUICK = 1  # problems of every family and half


def main(arguments: list[str]) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    results = OF_A_USER if options.data else RESULTS  # nobody's own data overwrite the published page
    options.rows = options.rows or results / "corpus.csv"
    options.pages = options.pages or results
    try:
        every = problems(options.data)
    except ValueError as error:
        parser.error(str(error))
    chosen = [
        p
        for p in every
        if (not options.families or p.family in options.families)
        and (not options.half or p.half in (options.half, "data"))
        and (not options.problem or any(part in p.id for part in options.problem))
    ]
    chosen = interleaved(chosen)
    if options.quick:
        chosen = _few(chosen)
        options.limit = min(options.limit, 5.0)
    if options.most:
        chosen = chosen[: options.most]
    if not chosen:
        parser.error("no problem is of these families, this half and such a name; --list prints them all")
    if options.list:
        print(*(f"{p.half:8} {p.id}" for p in chosen), sep="\n")
        return 0
    packed = options.rows.with_suffix(".parquet")
    files = [
        *options.also,
        packed,
        options.rows,
    ]  # the latest row of a measurement counts, and rows are appended to the last file
    if options.pack:
        rows.write_parquet(packed, rows.read(*files))
        options.rows.unlink(missing_ok=True)
        return 0
    if options.fit:
        from .fit import Table, report

        print(report(Table(every, rows.read(*files))))
        return 0
    if not options.page:
        known = rows.read(*files)
        _say_what_is_missing()
        run(
            Settings(
                options.rows, options.jobs, options.limit, options.patience, tuple(options.tol), tuple(options.routes),
                options.data, options.seconds, known=known,
            ),
            chosen,
        )  # fmt: skip
    if options.page or not options.no_page:
        from .page import write

        write(rows.read(*files), every, options.pages, options.machine)
    return 0


def _few(chosen: list[Problem]) -> list[Problem]:
    """The first ones of every family and half that are not large."""
    found: dict = {}
    for p in chosen:
        pile = found.setdefault((p.family, p.half), [])
        if len(pile) < QUICK and SETS[p.data].size < 1e6:
            pile.append(p)
    kept = {p.id for pile in found.values() for p in pile}
    return [p for p in chosen if p.id in kept]


def _say_what_is_missing() -> None:
    from .peers import missing_packages

    missing = missing_packages()
    if missing:
        print(f"not installed, and left out: {', '.join(missing)}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/corpus",
        description="Measures every route of mtldsl, and peers, on the corpus of problems; then writes the page.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a small stratified part, 5 s a route: minutes")
    add("--families", nargs="*", choices=tuple(FAMILIES), metavar="FAMILY", help=f"of {', '.join(FAMILIES)}")
    add("--half", choices=HALVES, help="one half of the data sets")
    add("--problem", nargs="*", help="problems whose name contains one of these")
    add(
        "--routes", nargs="*", default=[], help="auto, own, peers, or names such as admm celer (default: all)"
    )
    add("--tol", nargs="*", type=float, default=[1e-3, 1e-4, 1e-6], help="accuracies")
    add("--limit", type=float, default=60.0, help="CPU seconds of one route at one accuracy (60)")
    add(
        "--patience", type=float, default=30.0, help="a route is stopped at so many times the best known (30)"
    )
    add("--jobs", type=int, default=1, help="processes, of one BLAS thread each (1)")
    add(
        "--seconds", type=float, default=float("inf"), help="begin no new problem after that; rows stay valid"
    )
    add("--most", type=int, default=0, help="no more than so many problems")
    add(
        "--data",
        default="",
        metavar="FOLDER",
        help="run the corpus's models on the data files in this folder instead",
    )
    add(
        "--rows",
        type=Path,
        help="where rows are appended (benchmarks/results/corpus.csv; with --data corpus_of_your_data/corpus.csv here)",
    )
    add(
        "--also",
        type=Path,
        nargs="*",
        default=[],
        help="further files of rows that count as done, and on the page",
    )
    add(
        "--pack",
        action="store_true",
        help="move all rows into one small Parquet file beside --rows, which is read as well",
    )
    add(
        "--fit",
        action="store_true",
        help="measure nothing: what the tuning half's rows say of the route table",
    )
    add("--page", action="store_true", help="measure nothing: the page from the rows alone")
    add("--no-page", action="store_true", help="measure only")
    add(
        "--pages",
        type=Path,
        help="the folder that the page and its pictures go to (where --rows go by default)",
    )
    add(
        "--machine", default="", help="the machine whose rows make the page (default: the one with most rows)"
    )
    add("--list", action="store_true", help="print the problems, in the order in which they are measured")
    return parser
