"""The command line as a whole: its parser, and what an error or a signal does to the exit code."""

from __future__ import annotations

import argparse
import sys
from io import TextIOWrapper

from mtldsl.cli.command import BAD_INPUT, FAILED
from mtldsl.cli.completion import completion
from mtldsl.cli.listings import MODELS, WORDS
from mtldsl.cli.new_command import NEW
from mtldsl.cli.output import print_error
from mtldsl.cli.path_and_cv import CV, PATH
from mtldsl.cli.predict_commands import PREDICT, REPORT
from mtldsl.cli.solve_commands import CHECK, EXPLAIN, SOLVE, VERIFY
from mtldsl.errors import MTLError, SolverError
from mtldsl.language.suggestions import nearest
from mtldsl.utils import interrupts
from mtldsl.utils.files import noting_inputs
from mtldsl.utils.starting import VERSION, leave_by_default

_COMMANDS = (NEW, SOLVE, CHECK, EXPLAIN, PATH, CV, PREDICT, REPORT, VERIFY, WORDS, MODELS)
COMMANDS = (*_COMMANDS, completion(_COMMANDS))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        leave_by_default()
        with interrupts.handle_signals(raises=True), noting_inputs():
            options = _parser().parse_args(arguments)
            for stream in (sys.stdout, sys.stderr):
                # a terminal that lacks a letter shows ? rather than nothing at all
                if isinstance(stream, TextIOWrapper):
                    stream.reconfigure(errors="replace")
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
    except KeyboardInterrupt as stop:  # of many parts it says how many were complete
        print(f"mtldsl: {str(stop) or 'interrupted before a point was found'}", file=sys.stderr)
        return interrupts.exit_code()


class _Parser(argparse.ArgumentParser):
    """It says which command is near where one does not exist."""

    def _check_value(self, action, value) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise argparse.ArgumentError(
                None, f"there is no command {value!r}{nearest(str(value), action.choices)}; `mtldsl --help` says what each is for"
            )  # fmt: skip
        super()._check_value(action, value)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mtldsl",
        description="Solve multi-task models with a proof, and check them against an independent formulation.",
        epilog="exit codes: 0 certified and agreeing, 1 not certified or disagreeing, 2 bad input, 130 interrupted (143 by SIGTERM)",
    )
    parser.add_argument("--version", action="version", version=f"mtldsl {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=argparse.ArgumentParser)
    for command in COMMANDS:
        command.add_to(commands)
    return parser
