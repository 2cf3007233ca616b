"""Base class of every atom: a frozen dataclass whose fields are what a user may type, entered in one registry under its word."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from math import isfinite
from typing import Any, ClassVar, TypeVar

import numpy as np

from mtldsl.errors import ModelError, MTLError
from mtldsl.utils.validation import MAX_MAGNITUDE, as_float, quoted

REGISTRY: dict[str, type[Atom]] = {}

#: Rounding of what is zero or one in exact arithmetic, relative to the data that it is made of.
ROUNDING_SHARE = 1e-12

#: What a field with the metadata "matrix" or "told" holds until the model tells it; nothing asks an atom for its numbers before.
SET_BY_MODEL: Any = None

_A = TypeVar("_A", bound="Atom")


def register(cls: type[_A]) -> type[_A]:
    """Class decorator: enter an atom under its word. Tests, the catalogue and the capability table read this registry."""
    if cls.name in REGISTRY:
        raise ValueError(f"two atoms are called {cls.name!r}")
    REGISTRY[cls.name] = cls
    return cls


@dataclass(frozen=True, eq=False)
class Atom:
    """Base of all atoms. `name` is the word a user types; `formula` is LaTeX in which {} stands for the argument."""

    name: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    meaning: ClassVar[str] = (
        ""  # what it is, in a few words with $LaTeX$, <field> for a parameter's value; default: `summary`
    )
    convex: ClassVar[bool] = True
    #: why `mtldsl.certificates.checker` has no formula of a convex function, "" where it must have one
    unchecked: ClassVar[str] = ""

    @classmethod
    def examples(cls: type[_A]) -> list[_A]:
        """Instances on which every law of tests/atoms/test_registry.py is run (matrices there are 5 x 4, vectors have 12 entries)."""
        return [cls()]

    @classmethod
    def summary(cls) -> str:
        """The first paragraph of its documentation, in one line."""
        return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())

    @classmethod
    def typed_fields(cls) -> list[Field]:
        """The parameters that a user may type after the argument (a structure is told the rest by the model)."""
        return [field for field in fields(cls) if not {"matrix", "told"} & set(field.metadata)]

    def arguments(self) -> dict[str, object]:
        """The parameters that differ from their defaults, as typed after the argument."""
        typed = {}
        for field in self.typed_fields():
            value = getattr(self, field.name)
            default = field.default
            same = default is value or (np.isscalar(value) and np.isscalar(default) and value == default)
            if not same:
                typed[field.name] = value
        return typed

    def keep_number(self, name: str, allowed: Callable[[float], bool], must_be: str) -> None:
        """Make a parameter a float; the error of `checked_number` where it is not allowed."""
        number = checked_number(self.name, name, getattr(self, name), allowed, must_be)
        object.__setattr__(self, name, number)

    def latex(self, argument: str) -> str:
        r"""The formula of an argument. A number that was typed stands for its name in braces: `{q}`, `{\delta}` or `{\varepsilon}`."""
        shown = self.formula
        for field in self.typed_fields():
            value = getattr(self, field.name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                number = f"{value:g}" if isinstance(value, float) else str(value)
                for symbol in (field.name, rf"\{field.name}", rf"\var{field.name}"):
                    shown = shown.replace(f"{{{symbol}}}", f"{{{number}}}")
        return shown.replace("{}", argument)


def in_parentheses(argument: str) -> str:
    """LaTeX of an argument that an index or a product follows: parentheses around all but a single symbol."""
    composed = argument.startswith("-") or any(
        sign in argument for sign in " _^"
    )  # two indices in a row are not LaTeX
    return f"({argument})" if composed else argument


# --------------------------------------------------------------------------------------------------------------
# Numbers a user may type after the argument of a word: checked once when the atom is made, then trusted.


def checked_number(
    word: str,
    name: str,
    value,
    allowed: Callable[[float], bool],
    must_be: str,
    kind: type[MTLError] = ModelError,
    largest: float = MAX_MAGNITUDE,
) -> float:
    """The value as a float; an error of that kind with the sentence `must_be` where it is not finite, not allowed or too large."""
    number = as_float(value)
    if number is None or not isfinite(number) or not allowed(number):
        raise kind(f"{word}(..., {name}={quoted(value)}): {name} must be {must_be}")
    if abs(number) > largest:
        raise kind(f"{word}(..., {name}={quoted(value)}): {name} must be {must_be}, and at most {largest:g}")
    return number


# --------------------------------------------------------------------------------------------------------------
# Parts of a weight matrix: into which pieces a function separates, and which pieces a proximal step scales.

#: one axis: every line by itself, all lines together, or disjoint groups of lines (lines in no group stand outside)
Axis = str | tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Separability:
    """The matrix cut into rectangles: every part is one piece of the rows by one piece of the columns."""

    rows: Axis
    columns: Axis

    def within(self, other: Separability) -> bool:
        """Tell whether every part of this lies within one part of the other."""
        return _within(self.rows, other.rows) and _within(self.columns, other.columns)


def _within(inner: Axis, outer: Axis) -> bool:
    if inner == "each" or outer == "all":
        return True
    if inner == "all" or outer == "each":
        return inner == outer
    owner = {
        line: g for g, group in enumerate(outer) for line in group
    }  # of lines in no group: None, a piece of its own
    return all(len({owner.get(line) for line in group}) == 1 for group in inner)


ENTRIES = Separability("each", "each")
ROWS = Separability("each", "all")
COLUMNS = Separability("all", "each")
MATRIX = Separability("all", "all")


def row_groups(groups) -> Separability:
    """Disjoint groups of whole rows."""
    return Separability(tuple(map(tuple, groups)), "all")


def column_groups(groups) -> Separability:
    """Disjoint groups of whole columns; None: every column by itself."""
    return COLUMNS if groups is None else Separability("all", tuple(map(tuple, groups)))


@dataclass(frozen=True, eq=False)
class RowProfile:
    """sum_ij absolute_ij |W_ij| + sum_r length_r ||W_r||_2 + 1/2 sum_ij square_ij W_ij^2; None where such a sum is not there.

    absolute, square : a number, or an array that broadcasts to the shape of W
    length           : a number, or one a row
    """

    absolute: float | np.ndarray | None = None
    length: float | np.ndarray | None = None
    square: float | np.ndarray | None = None


def broadcasts(values, shape: tuple[int, int]) -> bool:
    """Tell whether a number, or an array, broadcasts to this shape."""
    try:
        return np.broadcast_shapes(np.shape(values), shape) == tuple(shape)
    except ValueError:
        return False


def is_same_along_rows(values) -> bool:
    """Tell whether a number, or an array that broadcasts to a matrix, is one number along every row."""
    return np.ndim(values) == 0 or bool(np.all(values == values[..., :1]))
