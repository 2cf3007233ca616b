"""Tables of a problem file: how a reader treats each, the list of all of them, and what they have said so far."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mtldsl.cli.problem_files.toml_parser import TomlFile
from mtldsl.data.tasks import Tasks
from mtldsl.language.suggestions import meant, nearest
from mtldsl.language.vocabulary import CALLABLE
from mtldsl.problems.named_model import NamedModel
from mtldsl.utils.files import InputPaths

# --------------------------------------------------------------------------------------------------------------
# What may stand under a key of a problem file, and what is said where something else stands there.

Rule = tuple[Callable[[object], bool], str]  # (does the value fit, "what it must be")
Rules = dict[str, Rule]  # by key


def wrong(table: str, key: str, value, rules: Rules, advice: Callable[[str], str]) -> str:
    """Return what is wrong with a key and its value, "" where they fit; `advice` says what to write in place of a key without a rule."""
    if key not in rules:
        return f"{table} has no key {key!r}{advice(key)}"
    fits, must_be = rules[key]
    if fits(value):
        return ""
    near = meant(value, fits.words) if isinstance(fits, ChoiceTest) and isinstance(value, str) else None
    return f"{key} must be {must_be}" + (f"; did you mean {near!r}?" if near else "")


def number(low: float, high: float, must_be: str) -> Rule:
    """A number between the two."""
    return lambda v: isinstance(v, int | float) and not isinstance(v, bool) and low < v < high, must_be


def whole(low: int, must_be: str, high: float = float("inf")) -> Rule:
    """A whole number of at least `low`."""
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high, must_be


@dataclass(frozen=True)
class ChoiceTest:
    """The test of a few words, which knows them."""

    words: tuple[str, ...]

    def __call__(self, value: object) -> bool:
        return value in self.words


def one_of(words: Iterable[str]) -> Rule:
    """One of a few words."""
    fits = ChoiceTest(tuple(words))
    return fits, f"one of {', '.join(map(repr, fits.words))}"


def texts(must_be: str, least: int = 0) -> Rule:
    """A list of so many texts, or more."""
    return (
        lambda v: isinstance(v, list) and len(v) >= least and all(isinstance(one, str) for one in v),
        must_be,
    )


TEXT: Rule = (lambda v: isinstance(v, str), "text in quotes")
SWITCH: Rule = (lambda v: isinstance(v, bool), "true or false")
ANYTHING: Rule = (lambda v: True, "")
TABLE: Rule = (lambda v: isinstance(v, dict), "a table")
PATH: Rule = (lambda v: isinstance(v, str) and v != "", "the path of a file, in quotes")
TOLERANCE = number(0.0, 1.0, "a number between 0 and 1, such as 1e-6")
FINITE = number(float("-inf"), float("inf"), "a number")
SECONDS = number(0.0, float("inf"), "a number of seconds > 0")
SEED = whole(0, "a whole number >= 0")


@dataclass(frozen=True)
class FileTable:
    """One table of a problem file, such as [groups]; "" is the top of the file.

    rules : key -> what its value must be
    names : whether the keys are names, which expressions may use
    check : refuses what can be known before any data are read; unless given, what the two above refuse
    read  : puts what the table says into the ProblemFileReader; called for a file without the table too
    """

    name: str
    rules: Rules = field(default_factory=dict)
    names: bool = False
    check: Callable[[ProblemFileReader], None] | None = None
    read: Callable[[ProblemFileReader], None] | None = None

    def checked(self, reading: ProblemFileReader) -> None:
        """DataError with its place for the first key, or value, that cannot stand there."""
        if self.check is not None:
            self.check(reading)
        elif self.names:
            for name in reading.table(self.name):
                reading.declare(self.name, name)
        else:
            reading.require((self.name,) if self.name else (), self.rules)


def belongs(key: str, path: tuple, sections: Iterable[FileTable]) -> str:
    """`; it belongs into [table]` for a key of another section than that of the path; "" where none has it."""
    for section in sections:
        if key in section.rules and (section.name,) != path and (section.name or path):
            if not section.name:
                return "; it belongs to the top, before the first [table]"
            return f"; it belongs into [{section.name}]"
    return ""


class ExpressionNames(dict):
    """Names that an expression may use, and those that expressions used."""

    def __init__(self, names: dict[str, object]):
        super().__init__(names)
        self.used: set[str] = set()

    def __getitem__(self, name: str):
        self.used.add(name)
        return super().__getitem__(name)


@dataclass(kw_only=True)
class FileContent:
    """Content of the tables of a problem file. `solve` are keyword arguments of Problem.solve, `check` of Problem.cross_check (None: no check)."""

    file: TomlFile
    tasks_train: Any = None  # Tasks, once [data] is read
    tasks_test: Tasks | None = None
    solve: dict[str, object] = field(default_factory=dict)
    check: dict[str, object] | None = None
    outputs: dict[str, Path] = field(default_factory=dict)  # "solution", "report", "predictions"
    metrics: list[str] = field(default_factory=list)  # measures that are reported
    predictions: dict[str, Any] | None = None  # what beside the path [output] predictions says
    data: dict[str, Any] = field(default_factory=dict)  # [data] as it stands there
    test_rows: Any = None  # (N,) the rows of the data held out, task after task where inputs are separate
    validation: dict[str, Any] | None = None
    thresholds: dict[str, Any] | None = None
    cluster: Any = None  # the workers that have the rows, where the file names them


@dataclass(kw_only=True)
class ProblemFileReader(FileContent):
    """A problem file while it is read: every section adds what its table says."""

    folder: Path
    sections: tuple[FileTable, ...]
    allow_outside: bool = False
    allow_plugins: Iterable[str] = ()
    scheduler: str | None = None  # in place of the file's
    inputs: InputPaths = field(default_factory=InputPaths)  # all that is read for the file
    named: NamedModel | None = None
    names: ExpressionNames = field(default_factory=lambda: ExpressionNames({"tasks": None}))
    train_rows: Any = None  # which rows of the data are learned on, where some are held out

    def table(self, name: str) -> dict:
        """Return what the file says in a table."""
        return self.file.content.get(name, {})

    def require(self, path: tuple, rules: Rules, advice: Callable[[str], str] | None = None) -> None:
        """DataError with its place for the first key of a table that has no rule, or whose value does not fit."""
        table, where = self.file.content, f"[{'.'.join(path)}]" if path else "a problem file"
        for key in path:
            table = table.get(key, {})
        for key, value in table.items():
            said = wrong(where, key, value, rules, advice or (lambda key: self.advice(path, key, rules)))
            if said:
                raise self.file.error(said, (*path, key), value=key in rules)

    def advice(self, path: tuple, key: str, known: Iterable[str]) -> str:
        """Return what to write in place of an unknown key: the table it belongs into, or the nearest known key."""
        return belongs(key, path, self.sections) or nearest(key, known)

    def declare(self, table: str, name: str) -> None:
        """Takes the name for what the table says of it. DataError where it cannot be one, or is taken."""
        wrong = ""
        if not (name.isidentifier() and name.isascii()):
            wrong = "is not a name; write letters, digits and _, such as W or lam_2"
        elif keyword.iskeyword(name):
            wrong = f"cannot be a name, because it means something in an expression; write {name[:3]}"
        elif name in CALLABLE:
            wrong = "is a word of the language; choose another name"
        elif name in self.names:
            wrong = (
                "stands for the data already"
                if name == "tasks"
                else "is given twice; every name stands for one thing"
            )
        if wrong:
            raise self.file.error(f"{name!r} {wrong}", (table, name))
        self.names[name] = None
