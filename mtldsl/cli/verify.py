"""`mtldsl verify`: a saved proof, checked in rigorous arithmetic."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from pathlib import Path

from mtldsl.cli.command import BAD_INPUT, FAILED, OK, Command
from mtldsl.cli.output import print_content, print_json
from mtldsl.errors import DataError

__all__ = ["VERIFY"]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "proof", type=Path, metavar="PROOF", help="what solution.certificate.save(path) wrote (.npz)"
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
    from mtldsl.proof.checker.proof_file import read_proof
    from mtldsl.proof.verifying import verify_proof

    named, files = [], []
    for path in options.data:
        if path.suffix == ".toml":
            from mtldsl.files.problem_file import load_problem

            file = load_problem(path)
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
    _arguments,
    _verify,
    epilog="exit codes: 0 the claim is confirmed, of the model and the data that are named; 1 it is not, though the interval shown holds "
    "of the model that is printed; 2 nothing is proven: other data, no proof, or a term that is not convex or that the checker does not know. See docs/proofs.md",
)
