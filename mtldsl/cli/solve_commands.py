"""`mtldsl solve`, `check`, `explain` and `verify`: commands that run or check a problem file."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter

from mtldsl.cli.command import (
    BAD_INPUT,
    FAILED,
    OK,
    OVER,
    Command,
    add_file,
    add_solve_options,
    choose,
    is_told,
    load,
    load_with_options,
)
from mtldsl.cli.output import SolvedFile, print_content, print_json, show, write
from mtldsl.cli.problem_files.solve_sections import written_file_options
from mtldsl.errors import DataError, MTLError
from mtldsl.utils import interrupts
from mtldsl.utils.files import check_writable, npz_path, require_apart
from mtldsl.utils.progress import say
from mtldsl.utils.starting import BEGAN

# --------------------------------------------------------------------------------------------------------------
# `mtldsl explain`: the model of a problem file, and which solvers take it.


def _arguments(parser: ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def _explain(options) -> int:
    from mtldsl.cli.record import describe_explanation, describe_file
    from mtldsl.cli.run_report import explain_report

    with load(options) as file:
        record = describe_file(file) | describe_explanation(file.problem)
    show(options, record, explain_report)
    return OK if record["chosen"] is not None else FAILED


EXPLAIN = Command(
    "explain", "show the model and which solvers take it, without solving", _arguments, _explain
)


# --------------------------------------------------------------------------------------------------------------
# `mtldsl solve` and `mtldsl check`: a problem file solved, certified, and cross-checked.


#: Limit of a cross-check where the file says none: with hundreds of features and a trace norm cvxpy would take many minutes.
CHECK_SECONDS = 120.0


def _solve_options(parser: ArgumentParser) -> None:
    add_solve_options(parser)
    parser.add_argument("--no-check", action="store_true", help="leave out the cross-check")
    parser.add_argument(
        "-o", "--output", action="append", type=Path, default=[], metavar="PATH",
        help="write the solution (.npz), predictions of the rows held out (.csv) or the report (.txt, .html, .json), "
        f"{OVER}; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--proof",
        type=Path,
        metavar="PATH",
        help=f"write the proof (.npz), which `mtldsl verify PATH FILE` checks, {OVER}",
    )
    parser.add_argument(
        "--report",
        dest="output",
        action="append",
        type=Path,
        metavar="PATH",
        help=f"the same, of a report, {OVER}",
    )


def _solve(options) -> int:
    for path in options.output:
        if path.suffix not in (".npz", ".csv", ".txt", ".html", ".json"):
            raise DataError(
                f"--output {path}: the path must end in .npz (solution), .csv (predictions), .txt, .html or .json (report)"
            )
    began = perf_counter() if BEGAN is None else BEGAN
    with load_with_options(options) as file:
        if options.no_check:
            file.check = None
        outputs = [*file.outputs.items(), *(("output", path) for path in options.output)]
        if options.proof is not None:
            outputs.append(("proof", npz_path(options.proof)))
        for _, path in outputs:
            check_writable(path)
        own = written_file_options(file.solve)
        require_apart(
            [*((_content(kind, path), path) for kind, path in outputs),
             *((f"the {key} of the solver", Path(str(file.solve[key]))) for key in own if key in file.solve)]
        )  # fmt: skip
        outputs = list({path.resolve(): (kind, path) for kind, path in outputs}.values())
        for kind, path in outputs:
            if kind == "proof" and not file.problem.is_convex:
                raise DataError(
                    f"{path}: the model is not convex, and a saved proof is of a convex one",
                    write_instead="leave the proof out; the report says how far the point is stationary",
                )
            if path.suffix == ".csv" and file.predictions is None and file.test_rows is None:
                raise DataError(
                    f"{path}: predictions are of rows held out, and the file holds none out",
                    write_instead='write [split], or mtldsl predict with the solution',
                )  # fmt: skip
        ran = run_file(file, is_told(options))
        from mtldsl.cli.run_report import run_report, verdict

        ran.record["waited"] = perf_counter() - began
        try:
            with interrupts.handle_signals():  # what was computed is not lost to a signal that comes now
                write(outputs, ran)
        finally:  # what was solved is seen, even where the disk has become full meanwhile
            # the page is waited for, too: one model a task is fitted for it
            show(options, ran.record | {"waited": perf_counter() - began}, run_report, verdict)
    return ran.code


def _content(kind: str, path: Path) -> str:
    """Return what is written there: the same is written once, wherever it is asked for."""
    if kind == "proof":
        return "the proof"
    return {".npz": "the solution", ".csv": "the predictions"}.get(path.suffix, f"the report ({path.suffix})")


def _check(options) -> int:
    with load_with_options(options) as file:
        file.check = file.check or {}
        ran = run_file(file, is_told(options))
    from mtldsl.cli.run_report import check_report, verdict

    show(options, ran.record, check_report, verdict)
    return ran.code


def run_file(file, progress: bool = False) -> SolvedFile:
    """One solve, with the choice of a parameter before it and the cross-check that the file asks for."""
    from mtldsl.cli.record import describe_run

    counts = [_passes(file)]
    if progress:
        say(
            f"read: {file.tasks_train.n_tasks:,} tasks, {file.tasks_train.n_features:,} features; solving ..."
        )
    chosen = choose(file, progress)
    counts.append(_passes(file))
    solution = file.problem.solve(**file.solve)
    counts.append(_passes(file))
    interrupted = solution.interrupted
    check = None if file.check is None else "not made: the solve was interrupted"
    if file.check is not None and not interrupted:
        how = {"max_seconds": CHECK_SECONDS} | file.check
        if progress:
            say(f"solved; cross-check by cvxpy, at most {how['max_seconds']:g} s (Ctrl-C leaves it out) ...")
        try:
            check = file.problem.cross_check(solution, **how)
        except MTLError as error:
            check = f"could not be made: {error}"
        except KeyboardInterrupt:
            check, interrupted = "interrupted", True
    counts.append(_passes(file))
    if not interrupted:
        try:
            solution = file.cut(solution, progress)
        except KeyboardInterrupt:
            interrupted = True
    good = solution.is_certified and (file.check is None or getattr(check, "agrees", False))
    code = interrupts.exit_code() if interrupted else OK if good else FAILED
    record = describe_run(file, solution, check, chosen, counts)
    return SolvedFile(record, file, solution, check, chosen, code)


def _passes(file) -> tuple[int, int]:
    """(runs over the rows, bytes moved by them) so far, where the rows are elsewhere."""
    facts = file.tasks_train.storage_facts()
    return facts.get("passes", 0), facts.get("bytes_moved", 0)


SOLVE = Command(
    "solve",
    "solve a problem file, certify it, and cross-check it as the file says",
    _solve_options,
    _solve,
    examples=("mtldsl solve exams.toml --report exams.html",),
)
CHECK = Command(
    "check", "cross-check a problem file against cvxpy, whatever the file says", add_solve_options, _check
)


# --------------------------------------------------------------------------------------------------------------
# `mtldsl verify`: a saved proof, checked in rigorous arithmetic.


def _verify_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "proof",
        type=Path,
        metavar="PROOF",
        help="what solution.certificate.save(path), or .proof.save(path) of a proven choice, wrote (.npz)",
    )
    parser.add_argument(
        "data", nargs="*", type=Path, metavar="DATA",
        help="where the data are: the problem file (.toml) that was solved, whose model is then compared too, or an .npz that "
        "certificate.save(path, data=True) wrote; not needed where PROOF is such a file itself",
    )  # fmt: skip
    parser.add_argument("--exact", action="store_true", help="in rational numbers: for small problems")
    parser.add_argument(
        "--tol", type=float, metavar="GAP",
        help="the relative gap up to which the claim is confirmed; without it 1e-4, or what the proof claims where that is smaller",
    )  # fmt: skip
    parser.add_argument(
        "--within", action="store_true",
        help="exit with 0, too, where the claim is confirmed for the stated weights alone, or for constraints relaxed by the stated violation",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def _verify(options) -> int:
    try:
        verdict = _verdict(options)
    except DataError as error:
        flags = ["--exact"] if options.exact else []
        typed = ["mtldsl", "verify", str(options.proof), *map(str, options.data), *flags]
        if not str(error.term).startswith("verify("):
            raise
        of_data = {f"verify({str(path)!r})": str(path) for path in options.data}
        raise error.about(of_data.get(str(error.term), shlex.join(typed))) from error
    if options.json:
        print_json(verdict.as_plain())
    else:
        print_content(f"{verdict.model}\n\n{verdict}")
    confirmed = verdict.confirmed if options.within else verdict.holds
    return BAD_INPUT if verdict.unchecked else OK if confirmed else FAILED


def _verdict(options):
    from mtldsl.certificates.checker.choice_file import FORMAT
    from mtldsl.certificates.checker.proof_file import format_of, read_proof
    from mtldsl.certificates.verify_proof import verify_proof

    is_choice = format_of(options.proof) == FORMAT
    named, files = [], []
    for path in options.data:
        if path.suffix == ".toml":
            from mtldsl.cli.problem_files.problem_file import load_problem

            file = load_problem(path)
            if not is_choice:
                file.take_values_of(read_proof(options.proof)[0])
            named.append(file.problem)
            files.append(str(path))
        else:
            named += read_proof(path)[1]
    where = " and ".join(files or map(str, options.data)) or str(options.proof)
    return verify_proof(options.proof, named, exact=options.exact, tol=options.tol, where=where)


VERIFY = Command(
    "verify",
    "check a saved proof (solution.certificate.save) in rigorous arithmetic, apart from the solvers",
    _verify_arguments,
    _verify,
    epilog="exit codes: 0 the claim is confirmed, of the model and the data that are named; 1 it is not, though the interval shown holds "
    "of the model that is printed; 2 nothing is proven: other data, no proof, or a term that is not convex or that the checker does not know. See docs/proofs.md",
)
