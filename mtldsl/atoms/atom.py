"""What every atom is: a frozen dataclass whose fields are what a user may type, entered in one registry under its word."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

__all__ = ["REGISTRY", "TOLD", "Atom", "in_parentheses", "register"]

REGISTRY: dict[str, type[Atom]] = {}

#: What a field with the metadata "matrix" or "told" holds until the model tells it; nothing asks an atom for its numbers before.
TOLD: Any = None

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
    #: why `mtldsl.proof.checker` has no formula of a convex function, "" where it must have one
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
            default = field.default if field.default is not MISSING else MISSING
            same = default is value or (np.isscalar(value) and np.isscalar(default) and value == default)
            if not same:
                typed[field.name] = value
        return typed

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
