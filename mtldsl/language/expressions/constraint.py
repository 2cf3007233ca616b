"""Constraints: comparisons of affine expressions with constants, and norm balls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mtldsl.atoms.function import Set
from mtldsl.errors import ModelError
from mtldsl.language.expressions.constants import as_matrix, constant_text
from mtldsl.language.expressions.latex import constant_latex
from mtldsl.language.expressions.operation import Operation
from mtldsl.language.expressions.scalar import Parameter, Scalar

__all__ = ["Argument", "Balls", "Constraint", "compare", "compare_expressions"]

_LATEX = {">=": r"\geq", "<=": r"\leq", "==": "="}


class Argument(Protocol):
    """What a constraint asks of an affine expression."""

    shape: tuple[int, int]
    offset: Any
    text: str
    latex: str
    precedence: int
    tree: Operation

    @property
    def parts(self) -> tuple[Any, ...]: ...

    def linear_part(self) -> Argument: ...


@dataclass(frozen=True, eq=False)
class Balls:
    """A ball whose radius depends on parameters: `ball` makes it of a number."""

    ball: Callable[[float], Set]
    radius: Scalar


@dataclass(frozen=True, eq=False)
class Constraint:
    """A set contains argument; `text` and `tree` as typed."""

    given: Set | Balls
    argument: Argument
    text: str
    latex: str
    tree: Operation

    @property
    def atom(self) -> Set:
        """The set at the parameters' present values."""
        return self.given.ball(self.given.radius.value) if isinstance(self.given, Balls) else self.given

    @property
    def of_radius(self) -> frozenset[Parameter]:
        """The parameters of its radius."""
        return self.given.radius.parameters if isinstance(self.given, Balls) else frozenset()

    def __bool__(self):
        raise ModelError(
            f"{self.text} has no truth value: a chained comparison such as 0 <= W <= 1 must be written as two constraints, "
            "subject_to=[W >= 0, W <= 1]"
        )

    def __repr__(self):
        return self.text


def compare(left: Argument, symbol: str, right) -> Constraint:
    """left (symbol) right as a constraint on an affine expression; right is a number or an array."""
    typed = f"{left.text} {symbol} {constant_text(right)}"
    bound = as_matrix(right, left.shape, typed)
    if bound is None:
        raise ModelError(
            f"{typed}: the right-hand side must be a number, an array or another expression of weights"
            + ("" if not hasattr(right, "value") else "; a Parameter may only multiply a term")
        )
    tree = Operation(symbol, (left.tree, _plain(bound)))
    if left.offset is not None:
        # constants move to the right, so that `W - 1 >= 0` is a bound on W itself
        bound, left = bound - left.offset, left.linear_part()
    latex = f"{left.latex} {_LATEX[symbol]} {constant_latex(right)}"
    return Constraint(_kind(symbol)(_plain(bound)), left, typed, latex, tree)


def _plain(bound: np.ndarray) -> np.ndarray | float:
    """Return one number where all entries are the same."""
    return float(bound.flat[0]) if bound.size and (bound == bound.flat[0]).all() else bound


def compare_expressions(left: Argument, symbol: str, right: Argument, difference: Argument) -> Constraint:
    """left (symbol) right, both expressions: a bound of 0 on their difference."""
    text = f"{left.text} {symbol} {right.text}"
    latex = f"{left.latex} {_LATEX[symbol]} {right.latex}"
    tree = Operation(symbol, (left.tree, right.tree))
    return Constraint(_kind(symbol)(0.0), difference, text, latex, tree)


def _kind(symbol: str) -> Callable[[Any], Set]:
    from mtldsl.atoms.sets import AtLeast, AtMost, EqualTo

    return {">=": AtLeast, "<=": AtMost, "==": EqualTo}[symbol]
