"""What a command of the command line is: its name, its arguments, and what it does."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BAD_INPUT", "FAILED", "OK", "Command", "add_file", "load"]

#: exit codes
OK, FAILED, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True)
class Command:
    """`mtldsl NAME ...`: `arguments` adds them to a parser, `run` takes what was parsed and returns the exit code."""

    name: str
    about: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    epilog: str | None = None

    def add_to(self, commands) -> None:
        parser = commands.add_parser(
            self.name,
            help=self.about,
            description=self.about[0].upper() + self.about[1:] + ".",
            epilog=self.epilog,
        )
        parser.set_defaults(run=self.run)
        self.arguments(parser)


def load(options):
    """The problem file that a command names, read as its arguments say."""
    from mtldsl.files.problem_file import load_problem

    return load_problem(
        options.file, allow_outside=options.allow_outside, allow_plugins=options.allow_plugins,
        scheduler=options.scheduler,
    )  # fmt: skip


def add_file(parser: ArgumentParser) -> None:
    """The problem file that a command reads."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a problem file (TOML)")
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="let the file write outside of its folder, in [output] and in the checkpoint of a solver",
    )
    parser.add_argument(
        "--allow-plugins", action="append", default=[], metavar="NAME",
        help="let the file import this module, or this .py file, where it names it in [plugins], which runs its code; may be repeated "
        "(installed plugins need no permission)",
    )  # fmt: skip
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help='of rows that Dask\'s workers read (engine = "dask"), in place of the file\'s: local, or an address such as tcp://10.0.0.1:8786; an '
        "address that the file names is asked only where it stands here too, because whoever answers there can run code",
    )  # fmt: skip
