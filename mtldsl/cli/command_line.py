"""The command line: `mtldsl solve | check | explain FILE`, `mtldsl verify PROOF`, `mtldsl words`, `mtldsl models`.

Exit codes: 0 certified (and, where it was checked, agreeing); 1 not certified, or a cross-check that disagrees or could not be
made; 2 bad input; 130 interrupted by Ctrl-C, 143 by SIGTERM, after the best point so far was reported and written. A model that is not convex is certified as a
stationary point.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

import mtldsl
from mtldsl.cli.output import print_content, print_error, print_json, show, write
from mtldsl.errors import DataError, MTLError, SolverError
from mtldsl.system import stops
from mtldsl.system.atomic_files import check_writable

__all__ = ["main"]

OK, FAILED, BAD_INPUT = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(
            stream, "reconfigure"
        ):  # a terminal that lacks a letter shows ? rather than nothing at all
            stream.reconfigure(errors="replace")
    try:
        with stops.heard(raises=True):
            return options.run(options)
    except MTLError as error:
        print_error(error)
        # what a user asked for was checked before: a solver's error is a failure to solve
        return FAILED if isinstance(error, SolverError) else BAD_INPUT
    except MemoryError as error:
        print(
            f"mtldsl: there is not enough memory ({error}); take fewer rows, features or tasks",
            file=sys.stderr,
        )
        return FAILED
    except KeyboardInterrupt:
        print("mtldsl: interrupted before a point was found", file=sys.stderr)
        return stops.exit_code()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mtldsl",
        description="Solve multi-task models with a proof, and check them against an independent formulation.",
        epilog="exit codes: 0 certified and agreeing, 1 not certified or disagreeing, 2 bad input, 130 interrupted (143 by SIGTERM)",
    )
    parser.add_argument("--version", action="version", version=f"mtldsl {mtldsl.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    solve = _command(
        commands, "solve", _solve, "solve a problem file, certify it, and cross-check it as the file says"
    )
    _solving_options(solve)
    solve.add_argument("--no-check", action="store_true", help="leave out the cross-check")
    solve.add_argument(
        "--output", action="append", type=Path, default=[], metavar="PATH",
        help="write the solution (.npz) or the report (.txt, .html, .json); may be repeated",
    )  # fmt: skip

    check = _command(
        commands, "check", _check, "cross-check a problem file against cvxpy, whatever the file says"
    )
    _solving_options(check)

    explain = _command(
        commands, "explain", _explain, "show the model and which solvers take it, without solving"
    )
    _file(explain)
    explain.add_argument("--json", action="store_true", help="print JSON and nothing else")

    verify = _command(
        commands,
        "verify",
        _verify,
        "check a saved proof (solution.certificate.save) in rigorous arithmetic, apart from the solvers",
    )
    verify.add_argument(
        "proof", type=Path, metavar="PROOF", help="what solution.certificate.save(path) wrote (.npz)"
    )
    verify.add_argument(
        "data", nargs="*", type=Path, metavar="DATA",
        help="where the data are: the problem file (.toml) that was solved, whose model is then compared too, or an .npz that "
        "certificate.save(path, data=True) wrote; not needed where PROOF is such a file itself",
    )  # fmt: skip
    verify.add_argument("--exact", action="store_true", help="in rational numbers: for small problems")
    verify.add_argument("--json", action="store_true", help="print JSON and nothing else")
    verify.epilog = (
        "exit codes: 0 the claim is confirmed; 1 it is not, though the interval shown holds; 2 nothing is proven: other data, "
        "no proof, or a term that is not convex or that the checker does not know. See docs/proofs.md"
    )

    for name, run, text in (
        ("words", _words, "the words of the language"),
        ("models", _models, "models of papers by name, each with its statement in the language"),
    ):
        listing = _command(commands, name, run, text)
        listing.add_argument(
            "name", nargs="?", metavar="NAME", help=f"everything about one {name.removesuffix('s')}"
        )
        style = listing.add_mutually_exclusive_group()
        style.add_argument("--json", action="store_true", help="print JSON and nothing else")
        style.add_argument(
            "--markdown", action="store_true", help="print the catalogue as a page of documentation"
        )
    return parser


def _command(commands, name: str, run, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.set_defaults(run=run)
    return command


def _file(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="a problem file (TOML)")
    command.add_argument(
        "--allow-outside",
        action="store_true",
        help="let the file write outside of its folder, in [output] and in the checkpoint of a solver",
    )


def _solving_options(command: argparse.ArgumentParser) -> None:
    _file(command)
    command.add_argument(
        "--solver", metavar="NAME", help="in place of the file's; `mtldsl explain FILE` lists them"
    )
    command.add_argument(
        "--tol",
        type=float,
        metavar="GAP",
        help="relative duality gap (of a model that is not convex, the residual), in place of the file's",
    )
    command.add_argument(
        "--starts",
        type=int,
        metavar="N",
        help="of a model that is not convex: solve from N starts, the solver's own and random ones; the best is kept",
    )
    command.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="anything else that may stand in [solve], in place of the file's, such as max_seconds=60 or random_state=1, and the "
        "options of the solver named, such as method=block or continuation=3; may be repeated",
    )  # fmt: skip
    style = command.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print JSON and nothing else")
    style.add_argument("--quiet", action="store_true", help="print one line")


# ------------------------------------------------------------------------------------------------ commands


def _solve(options) -> int:
    for path in options.output:
        if path.suffix not in (".npz", ".txt", ".html", ".json"):
            raise DataError(
                f"--output {path}: the path must end in .npz (solution), .txt, .html or .json (report)"
            )
    file = _load(options)
    if options.no_check:
        file.check = None
    outputs = [*file.outputs.values(), *options.output]
    for path in outputs:
        check_writable(path)
    record, solution, code = _run(file)
    from mtldsl.report.text import run_report

    try:
        with stops.heard():  # what was computed is not lost to a signal that comes now
            write(outputs, record, solution)
    finally:  # what was solved is seen, even where the disk has become full meanwhile
        show(options, record, run_report)
    return code


def _check(options) -> int:
    file = _load(options)
    file.check = file.check or {}
    record, _, code = _run(file)
    from mtldsl.report.text import check_report

    show(options, record, check_report)
    return code


def _explain(options) -> int:
    from mtldsl.files.problem_file import load_problem
    from mtldsl.report.record import describe_explanation, describe_file
    from mtldsl.report.text import explain_report

    file = load_problem(options.file, allow_outside=options.allow_outside)
    record = describe_file(file) | describe_explanation(file.problem)
    options.quiet = False
    show(options, record, explain_report)
    return OK if record["chosen"] is not None else FAILED


def _verify(options) -> int:
    from mtldsl.proof.checker.proof_file import read_proof
    from mtldsl.proof.checker.verify import verify_proof
    from mtldsl.proof.saved import same_model

    data, other = [], []
    for path in options.data:
        if path.suffix == ".toml":
            from mtldsl.files.problem_file import load_problem
            from mtldsl.proof.saved import describe_form

            form = load_problem(path).problem.form()
            describe_form(form, data)
            if not same_model(form, read_proof(options.proof)[0]):
                other.append(f"the proof is not of the model in {path}, as it stands there now")
        else:
            data += read_proof(path)[1]
    verdict = verify_proof(options.proof, data, exact=options.exact)
    verdict.notes += other
    verdict.confirmed = verdict.confirmed and not other
    if options.json:
        print_json(verdict.as_plain())
    else:
        print_content(f"{verdict.model}\n\n{verdict}")
    return BAD_INPUT if verdict.unchecked else OK if verdict.confirmed else FAILED


def _words(options) -> int:
    from mtldsl.catalogue import pages as words

    return _list("words", words, options)


def _models(options) -> int:
    from mtldsl.named_models import pages

    return _list("models", pages, options)


def _list(kind: str, catalogue, options) -> int:
    """A catalogue, or one name of it, in the style asked for."""
    if options.name is not None and options.markdown:
        raise DataError(f"{kind} NAME --markdown: the page is of all {kind}; leave out the name")
    if options.json:
        print_json(catalogue.as_plain(options.name))
    elif options.markdown:
        print_content(catalogue.markdown().removesuffix("\n"))
    else:
        print_content(catalogue.page(options.name))
    return OK


# --------------------------------------------------------------------------------------------------- steps


def _load(options):
    from mtldsl.files.problem_file import load_problem

    file = load_problem(options.file, allow_outside=options.allow_outside)
    flags = [(key, getattr(options, key)) for key in ("solver", "tol", "starts")]
    given = [(key, value, f"--{key} {value}") for key, value in flags if value is not None]
    given += [_setting(text) for text in options.set]
    for key, value, typed in sorted(given, key=lambda option: option[0] != "solver"):  # it has the options
        file.set(key, value, typed)
    try:
        file.check_starts()
    except DataError as error:
        raise error.within(f"--starts {file.solve['starts']}") from error
    return file


def _setting(text: str) -> tuple[str, object, str]:
    """(key, value, as typed) of KEY=VALUE: the value as in a problem file, text without quotes too."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals or not value:
        raise DataError(f"--set {text}: write KEY=VALUE, such as --set max_seconds=60")
    try:
        return key, tomllib.loads(f"value = {value}")["value"], f"--set {text}"
    except tomllib.TOMLDecodeError:
        return key, value, f"--set {text}"


def _run(file):
    """(record, solution, exit code) of one solve, with the cross-check that the file asks for."""
    from mtldsl.report.record import describe_run

    solution = file.problem.solve(**file.solve)
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
    good = solution.is_certified and (file.check is None or getattr(check, "agrees", False))
    return (
        describe_run(file, solution, check),
        solution,
        stops.exit_code() if interrupted else OK if good else FAILED,
    )
