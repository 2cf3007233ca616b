"""What a command of the command line is: its name, its arguments, and what it does."""

from __future__ import annotations

import shutil
import textwrap
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BAD_INPUT", "FAILED", "OK", "Command", "add_file", "load"]

#: exit codes
OK, FAILED, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True)
class Command:
    """`mtldsl NAME ...`: `arguments` adds them to a parser, `run` takes what was parsed and returns the exit code; `examples` end its --help."""

    name: str
    about: str
    arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    epilog: str = ""
    examples: tuple[str, ...] = ()

    def add_to(self, commands) -> None:
        examples = [f"example{'s' * (len(self.examples) > 1)}:", *(f"  {line}" for line in self.examples)]
        below = [*([_broken(self.epilog)] if self.epilog else []), *(["\n".join(examples)] if self.examples else [])]  # fmt: skip
        parser = commands.add_parser(
            self.name,
            help=self.about,
            description=_broken(self.about[0].upper() + self.about[1:] + "."),
            epilog="\n\n".join(below),
            formatter_class=RawDescriptionHelpFormatter,
        )
        parser.set_defaults(run=self.run)
        self.arguments(parser)


def _broken(text: str) -> str:
    """The text in lines as long as argparse makes them."""
    return textwrap.fill(text, max(shutil.get_terminal_size().columns - 2, 40))


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
        help="let the file write outside of its folder",
    )
    parser.add_argument(
        "--allow-plugins", action="append", default=[], metavar="NAME",
        help="let the file import this module or .py file that [plugins] names, and run its code; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help='of engine = "dask": local, or an address, which the file alone cannot choose: tcp://10.0.0.1:8786',
    )  # fmt: skip
