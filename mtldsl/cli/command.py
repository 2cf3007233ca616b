"""Description of one command of the command line: its name, its arguments, and what it does."""

from __future__ import annotations

import shutil
import sys
import textwrap
import tomllib
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtldsl.errors import DataError, Interrupted
from mtldsl.utils.progress import say

#: Exit codes.
OK = 0
FAILED = 1
BAD_INPUT = 2


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
    from mtldsl.cli.problem_files.problem_file import load_problem

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


# --------------------------------------------------------------------------------------------------------------
# What stands between the cells of a table on the command line, and between the digits of a number.


def add_marks(parser: ArgumentParser, table: str) -> None:
    parser.add_argument(
        "--delimiter",
        metavar="C",
        help=f"of {table}, such as ';'; without it what makes the most columns of the first line",
    )
    parser.add_argument(
        "--decimal",
        metavar="C",
        help="a comma where 1,5 is one and a half: --decimal ,; without it as in the table that was learned on",
    )


def marks_of(options, path: Path) -> dict[str, Any]:
    """{"delimiter": ..., "decimal": ...} of a table in a CSV file, as its readers take them."""
    if path.suffix == ".npz":
        return {}
    from mtldsl.data.readers.csv import delimiter_of

    return {"delimiter": options.delimiter or delimiter_of(path), "decimal": options.decimal}


# --------------------------------------------------------------------------------------------------------------
# What the commands that solve a problem file share: its name, how it is solved in place of what it says, and what is shown.

#: Endings of files.
PICTURES = (".png", ".svg", ".pdf")
PAGES = (".html",)
TABLES = (".csv",)

#: What becomes of an output's file that is there, of every command and option.
OVER = "over a file that is there"


def add_solve_options(parser: ArgumentParser, starts: bool = True) -> None:
    """The file, and how it is solved and shown; `starts`: whether from several starts."""
    add_file(parser)
    parser.add_argument("--solver", metavar="NAME", help="one that `mtldsl explain FILE` lists")
    parser.add_argument(
        "--tol",
        type=float,
        metavar="GAP",
        help="relative duality gap, or residual where the model is not convex",
    )
    if starts:
        parser.add_argument(
            "--starts",
            type=int,
            metavar="N",
            help="of a model that is not convex: solve from N starts, the solver's own and random ones; the best is kept",
        )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="another key of [solve], such as max_seconds=60 or method=block; may be repeated",
    )  # fmt: skip
    style = parser.add_mutually_exclusive_group()
    style.add_argument("--json", action="store_true", help="print JSON and nothing else")
    style.add_argument("--quiet", action="store_true", help="print one line")
    parser.add_argument(
        "--progress",
        action="store_true",
        help="say on standard error how far it is",
    )


def is_told(options) -> bool:
    """Tell whether progress is told: where it was asked for, and in a terminal that a person looks at."""
    return options.progress or (sys.stderr.isatty() and not (options.json or options.quiet))


def add_values(parser: ArgumentParser) -> None:
    """Which parameter, and over which values."""
    parser.add_argument(
        "--parameter", metavar="NAME",
        help="without it that of [validation], or the only one",
    )  # fmt: skip
    parser.add_argument(
        "--values", metavar="VALUES",
        help="such as 10,1,0.1, in the order in which they are solved; or how many, from where the weights are zero on; without it those of "
        "[validation], or 20",
    )  # fmt: skip


def values_of(typed: str | None) -> int | list[float] | None:
    """Return what --values says: so many values, a list of them, or nothing."""
    if typed is None:
        return None
    if typed.strip().isdecimal():
        if int(typed) < 2:
            raise DataError("write how many values, at least 2, or 1.0 for the value 1", term=f"--values {typed}")  # fmt: skip
        return int(typed)
    try:
        return [float(part) for part in typed.split(",") if part.strip()]
    except ValueError:
        raise DataError(
            "write numbers with commas between, such as 10,1,0.1, or how many values, such as 20",
            term=f"--values {typed}",
        ) from None


def parameter_of(file, name: str | None):
    """The parameter of a problem file that is meant: by name, that of [validation], or the only one."""
    known = {parameter.name: parameter for parameter in file.problem.parameters}
    if name is not None:
        if name not in known:
            raise DataError(
                f"the model has no parameter {name!r}; it has {', '.join(known) or 'none'}",
                term="--parameter",
            )
        return known[name]
    said = list((file.validation or {}).get("values", ()))
    if len(said) == 1:
        return said[0]
    if len(known) == 1:
        return next(iter(known.values()))
    if not known:
        raise DataError(
            "the model has no parameter to go along",
            term=file.path,
            write_instead="name its strength: [parameters] lam = 1.0, and lam * l21_norm(W) in the model",
        )
    raise DataError(f"the model has {', '.join(known)}", term=file.path, write_instead=f"write --parameter {next(iter(known))}")  # fmt: skip


def check_ending(path: Path | None, option: str, endings: tuple[str, ...]) -> None:
    """DataError where a path has another ending."""
    if path is not None and path.suffix not in endings:
        many = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
        raise DataError(f"the path must end in {many}", term=f"{option} {path}")


def choose(file, progress: bool, typed: str = "[validation] folds = "):
    """Return what folds choose for the parameters of [validation]; what is wrong with their number, which was `typed` so, and where it is
    interrupted, it says in the terminal's words."""
    try:
        return file.choose(progress)
    except DataError as error:
        if error.argument != "folds":
            raise
        raise DataError(
            error.what, term=f"{typed}{file.validation.get('folds', 5)}", write_instead=error.write_instead
        ) from error
    except Interrupted as stop:
        names = ", ".join(parameter.name for parameter in file.validation["values"])
        so_far = str(stop).partition("was interrupted")[2]
        raise Interrupted(
            f"choosing {names} was interrupted{so_far}; nothing is kept", stop.completed
        ) from None


def load_with_options(options):
    """The problem file that a command names, with what stands on the command line in place of its [solve]."""
    if is_told(options):
        say(f"reading {options.file} ...")
    file = load(options)
    try:
        _set(file, options)
    except BaseException:
        file.close()
        raise
    return file


def _set(file, options) -> None:
    flags = [(key, getattr(options, key, None)) for key in ("solver", "tol", "starts")]
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
