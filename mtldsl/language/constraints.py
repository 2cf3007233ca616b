"""Constraints as typed: comparisons of expressions, balls of norms, and bounds on learned matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.matrix_function import Set
from mtldsl.errors import ModelError
from mtldsl.language.scalars import (
    Number,
    Operation,
    Parameter,
    Scalar,
    as_matrix,
    constant_latex,
    constant_text,
    number_latex,
)
from mtldsl.utils.validation import as_float, is_scalar, quoted

# --------------------------------------------------------------------------------------------------------------
# Constraints: comparisons of affine expressions with constants, and norm balls.

_LATEX = {">=": r"\geq", "<=": r"\leq", "==": "="}


@dataclass(frozen=True, eq=False)
class Constraint:
    """A set contains argument; `text` and `tree` as typed.

    given  : the set; of a ball whose radius depends on parameters what makes it of a number
    radius : of such a ball, else None
    """

    given: Any
    argument: Any  # an Affine
    text: str
    latex: str
    tree: Operation
    radius: Scalar | None = None

    @property
    def atom(self) -> Set:
        """The set at the parameters' present values."""
        return self.given if self.radius is None else self.given(self.radius.value)

    @property
    def of_radius(self) -> frozenset[Parameter]:
        """The parameters of its radius."""
        return frozenset() if self.radius is None else self.radius.parameters

    def __bool__(self):
        raise ModelError(
            f"{self.text} has no truth value: a chained comparison such as 0 <= W <= 1 must be written as two constraints, "
            "subject_to=[W >= 0, W <= 1]"
        )

    def __repr__(self):
        return self.text


def compare(left: Any, symbol: str, right) -> Constraint:
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


def compare_expressions(left: Any, symbol: str, right: Any, difference: Any) -> Constraint:
    """left (symbol) right, both expressions: a bound of 0 on their difference."""
    text = f"{left.text} {symbol} {right.text}"
    latex = f"{left.latex} {_LATEX[symbol]} {right.latex}"
    tree = Operation(symbol, (left.tree, right.tree))
    return Constraint(_kind(symbol)(0.0), difference, text, latex, tree)


def _kind(symbol: str) -> Callable[[Any], Set]:
    from mtldsl.atoms.sets import AtLeast, AtMost, EqualTo

    return {">=": AtLeast, "<=": AtMost, "==": EqualTo}[symbol]


# --------------------------------------------------------------------------------------------------------------
# What constraints say of a learned matrix: bounds on its eigenvalues and on its trace.


@dataclass(frozen=True, eq=False)
class RangeConstraint:
    """Bound on the eigenvalues or on the trace of a learned matrix, as one comparison states it."""

    unknown: Any  # a LearnedUnknown
    bound: str  # the field of `Range`: "lower", "upper" or "trace"
    value: float
    text: str
    latex: str

    def __bool__(self):
        raise ModelError(
            f"{self.text} has no truth value: write two constraints, subject_to=[S >> l, S << u], not a chain"
        )

    def __repr__(self):
        return self.text

    def _chained(self, other):
        raise ModelError(
            f"{self.text} is a constraint already, and a chain is two: write subject_to=[{self.unknown.text} >> 0.01, "
            f"{self.unknown.text} << 100]"
        )

    __rshift__ = __lshift__ = __rrshift__ = __rlshift__ = _chained

    def tighten(self, before: Range) -> Range:
        """Return what is known of the matrix with this constraint too; ModelError where the two contradict each other."""
        tightest = max if self.bound == "lower" else min
        now = replace(before, **{self.bound: tightest(self.value, getattr(before, self.bound))})
        if now.lower > now.upper:
            raise ModelError(
                f"no matrix has all eigenvalues >= {now.lower:g} and <= {now.upper:g}",
                term=self.text,
                write_instead=f"exchange or relax the bounds of {self.unknown.text}",
            )
        return now


def refused_comparison(symbol: str) -> Any:
    """The operator of a class whose `_refuse` says why there is no such comparison."""
    return lambda self, other: self._refuse(symbol, other)


class UpperBounded:
    """A number of what is learned that stands in a comparison by itself, and is bounded from above."""

    __array_ufunc__ = None
    __hash__ = object.__hash__
    what: ClassVar[str]
    refused: ClassVar[dict[str, str]]  # comparison -> what is wrong with it

    def __init__(self, unknown: Any, text: str):
        self.unknown, self.text = unknown, text

    def __repr__(self):
        return self.text

    def _no_arithmetic(self, *_):
        raise ModelError(
            f"{self.what} in a comparison by itself",
            term=self.text,
            write_instead=f"write {self.text} <= 1",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _no_arithmetic

    def bounded(self, symbol: str, other) -> RangeConstraint:
        """The constraint; == is <= as well, for the penalty falls where the number grows, so that the bound is met with equality."""
        raise NotImplementedError

    def __le__(self, other) -> RangeConstraint:
        return self.bounded("<=", other)

    def __eq__(self, other) -> RangeConstraint:
        return self.bounded("==", other)

    def _refuse(self, symbol: str, other):
        raise ModelError(
            f"{self.text} {symbol} {quote_value(other)}: {self.refused[symbol]}",
            write_instead=f"write {self.text} <= 1",
        )

    __ge__, __gt__, __lt__, __ne__ = map(refused_comparison, (">=", ">", "<", "!="))


class Trace(UpperBounded):
    """tr S in a comparison."""

    what = "a trace stands"
    refused: ClassVar[dict[str, str]] = {
        ">=": "a trace is bounded from above",
        "<": "a strict inequality has no closed feasible set",
        "!=": "this is not a convex constraint",
    }
    __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = UpperBounded._no_arithmetic
    __gt__ = UpperBounded.__ge__

    def __init__(self, unknown: Any):
        super().__init__(unknown, f"{unknown.text}.trace()")

    def bounded(self, symbol: str, other) -> RangeConstraint:
        typed, value = f"{self.text} {symbol} {quote_value(other)}", number_of(other)
        if self.unknown.kind == "precision":
            raise ModelError(
                "a precision is bounded in the order of semidefinite matrices",
                term=typed,
                write_instead=f"write {self.unknown.text} >> 0.01, {self.unknown.text} << 100",
            )
        if value is None or not (0 < value < np.inf):
            raise ModelError("the bound of a trace must be a plain, finite number > 0", term=typed)
        latex = rf"\operatorname{{tr}} {self.unknown.latex} {_LATEX[symbol]} {number_latex(value)}"
        return RangeConstraint(self.unknown, "trace", value, typed, latex)


def ranges_of(constraints) -> dict[Any, Range]:
    """Return what the constraints together say of everything learned; ModelError where they contradict each other."""
    found: dict[Any, Range] = {}
    for constraint in constraints:
        unknown = constraint.unknown
        found[unknown] = constraint.tighten(found.get(unknown, unknown.unconstrained))
    return found


def number_of(value) -> float | None:
    """A plain number as a float, of any size, also an infinite one or NaN; else None."""
    if is_scalar(value):
        return as_float(value)
    return value.value if isinstance(value, Number) else None


def quote_value(value) -> str:
    """A value as it is quoted in a message."""
    number = as_float(value) if is_scalar(value) else None
    if number is not None:
        return f"{number:.10g}"
    return value.text if isinstance(value, Scalar) else quoted(value)
