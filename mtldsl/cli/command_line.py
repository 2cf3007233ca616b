"""The command line as a whole: its parser, and what an error or a signal does to the exit code."""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module
from io import TextIOWrapper

from mtldsl.cli.command import BAD_INPUT, FAILED, OK, Command
from mtldsl.cli.completion import completion
from mtldsl.cli.new_command import NEW
from mtldsl.cli.output import print_content, print_error, print_json
from mtldsl.cli.path_and_cv import CV, PATH
from mtldsl.cli.predict_commands import PREDICT, REPORT
from mtldsl.cli.solve_commands import CHECK, EXPLAIN, SOLVE, VERIFY
from mtldsl.errors import DataError, MTLError, SolverError
from mtldsl.language.suggestions import nearest
from mtldsl.utils import interrupts
from mtldsl.utils.files import noting_inputs
from mtldsl.utils.starting import VERSION, leave_by_default

# --------------------------------------------------------------------------------------------------------------
# `mtldsl words` and `mtldsl models`: the catalogues, or one name of them.


def _listing(kind: str, about: str, module: str) -> Command:
    """The command that lists a catalogue: a module, imported when it is asked for, that has it as text, Markdown and plain values."""

    def arguments(parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help=f"everything about one {kind.removesuffix('s')}"
        )
        style = parser.add_mutually_exclusive_group()
        style.add_argument("--json", action="store_true", help="print JSON and nothing else")
        style.add_argument(
            "--markdown", action="store_true", help="print the catalogue as a page of documentation"
        )

    def run(options: Namespace) -> int:
        if options.name is not None and options.markdown:
            raise DataError(
                f"{kind} NAME --markdown: the page is of all {kind}", write_instead="leave out the name"
            )
        pages = import_module(module)
        if options.json:
            print_json(pages.as_plain(options.name))
        elif options.markdown:
            print_content(pages.markdown().removesuffix("\n"))
        else:
            print_content(pages.page(options.name))
        return OK

    return Command(kind, about, arguments, run)


WORDS = _listing("words", "the words of the language", "mtldsl.cli.catalogue_pages")
MODELS = _listing(
    "models", "models of papers by name, each with its statement in the language", "mtldsl.cli.model_pages"
)


# --------------------------------------------------------------------------------------------------------------
# All commands, and what a call ends with.

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
