"""`mtldsl solve` and `mtldsl check`: a problem file solved, certified, and cross-checked."""

from __future__ import annotations

import tomllib
from argparse import ArgumentParser
from pathlib import Path

from mtldsl.cli.command import FAILED, OK, Command, add_file, load
from mtldsl.cli.output import Ran, show, write
from mtldsl.errors import DataError, MTLError
from mtldsl.system import stops
from mtldsl.system.atomic_files import check_writable

__all__ = ["CHECK", "SOLVE", "run_file"]


def _options(parser: ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument(
        "--solver", metavar="NAME", help="in place of the file's; `mtldsl explain FILE` lists them"
    )
    parser.add_argument(
        "--tol",
        type=float,
        metavar="GAP",
        help="relative duality gap (of a model that is not convex, the residual), in place of the file's",
    )
    parser.add_argument(
        "--starts",
        type=int,
        metavar="N",
        help="of a model that is not convex: solve from N starts, the solver's own and random ones; the best is kept",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="anything else that may stand in [solve], in place of the file's, such as max_seconds=60 or random_state=1, and the "
        "options of the solver named, such as method=block or continuation=3; may be repeated",
    )  # fmt: skip
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print JSON and nothing else")
    style.add_argument("--quiet", action="store_true", help="print one line")


def _solve_options(parser: ArgumentParser) -> None:
    _options(parser)
    parser.add_argument("--no-check", action="store_true", help="leave out the cross-check")
    parser.add_argument(
        "--output", action="append", type=Path, default=[], metavar="PATH",
        help="write the solution (.npz) or the report (.txt, .html, .json); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--report", dest="output", action="append", type=Path, metavar="PATH", help="the same, of a report"
    )


def _solve(options) -> int:
    for path in options.output:
        if path.suffix not in (".npz", ".txt", ".html", ".json"):
            raise DataError(
                f"--output {path}: the path must end in .npz (solution), .txt, .html or .json (report)"
            )
    with _load(options) as file:
        if options.no_check:
            file.check = None
        outputs = [*file.outputs.values(), *options.output]
        for path in outputs:
            check_writable(path)
        ran = run_file(file)
        from mtldsl.report.text import run_report

        try:
            with stops.heard():  # what was computed is not lost to a signal that comes now
                write(outputs, ran)
        finally:  # what was solved is seen, even where the disk has become full meanwhile
            show(options, ran.record, run_report)
    return ran.code


def _check(options) -> int:
    with _load(options) as file:
        file.check = file.check or {}
        ran = run_file(file)
    from mtldsl.report.text import check_report

    show(options, ran.record, check_report)
    return ran.code


def _load(options):
    file = load(options)
    try:
        _set(file, options)
    except BaseException:
        file.close()
        raise
    return file


def _set(file, options) -> None:
    """What the command line says in place of the file's [solve]."""
    flags = [(key, getattr(options, key)) for key in ("solver", "tol", "starts")]
    given = [(key, value, f"--{key} {value}") for key, value in flags if value is not None]
    given += [_setting(text) for text in options.set]
    for key, value, typed in sorted(given, key=lambda option: option[0] != "solver"):  # it has the options
        file.set(key, value, typed)
    try:
        file.check_starts()
    except DataError as error:
        raise error.within(f"--starts {file.solve['starts']}") from error


def _setting(text: str) -> tuple[str, object, str]:
    """(key, value, as typed) of KEY=VALUE: the value as in a problem file, text without quotes too."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals or not value:
        raise DataError(f"--set {text}: write KEY=VALUE, such as --set max_seconds=60")
    try:
        return key, tomllib.loads(f"value = {value}")["value"], f"--set {text}"
    except tomllib.TOMLDecodeError:
        return key, value, f"--set {text}"


def run_file(file) -> Ran:
    """One solve, with the choice of a parameter before it and the cross-check that the file asks for."""
    from mtldsl.report.record import describe_run

    counts = [_passes(file)]
    chosen = file.choose()
    counts.append(_passes(file))
    solution = file.problem.solve(**file.solve)
    counts.append(_passes(file))
    interrupted = solution.interrupted
    check = None
    if file.check is not None:
        check = "not made: the solve was interrupted"
    if file.check is not None and not interrupted:
        try:
            check = file.problem.cross_check(solution, **file.check)
        except MTLError as error:
            check = f"could not be made: {error}"
        except KeyboardInterrupt:
            check, interrupted = "interrupted", True
    counts.append(_passes(file))
    good = solution.is_certified and (file.check is None or getattr(check, "agrees", False))
    record, code = (
        describe_run(file, solution, check, chosen, counts),
        stops.exit_code() if interrupted else OK if good else FAILED,
    )
    return Ran(record, file, solution, check, chosen, code)


def _passes(file) -> tuple[int, int]:
    """(runs over the rows, bytes moved by them) so far, where the rows are elsewhere."""
    tasks = file.tasks_train
    return (tasks.parts.passes, tasks.parts.bytes_moved) if tasks.is_distributed else (0, 0)


SOLVE = Command(
    "solve", "solve a problem file, certify it, and cross-check it as the file says", _solve_options, _solve
)
CHECK = Command("check", "cross-check a problem file against cvxpy, whatever the file says", _options, _check)
