"""`mtldsl explain`: the model of a problem file, and which solvers take it."""

from __future__ import annotations

from argparse import ArgumentParser

from mtldsl.cli.command import FAILED, OK, Command, add_file, load
from mtldsl.cli.output import show

__all__ = ["EXPLAIN"]


def _arguments(parser: ArgumentParser) -> None:
    add_file(parser)
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def _explain(options) -> int:
    from mtldsl.report.record import describe_explanation, describe_file
    from mtldsl.report.text import explain_report

    with load(options) as file:
        record = describe_file(file) | describe_explanation(file.problem)
    options.quiet = False
    show(options, record, explain_report)
    return OK if record["chosen"] is not None else FAILED


EXPLAIN = Command(
    "explain", "show the model and which solvers take it, without solving", _arguments, _explain
)
