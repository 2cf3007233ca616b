"""Coefficients: numbers, parameters, and arithmetic between them, kept as a tree so that a path can change them later."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf, isfinite

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.language.expressions.latex import number_latex
from mtldsl.language.expressions.mixable import NoArray
from mtldsl.shown.math import escaped
from mtldsl.values.arguments import complete
from mtldsl.values.number import as_float, is_scalar, quoted
from mtldsl.values.size import LARGEST, SMALLEST

__all__ = ["ONE", "Number", "Parameter", "Scalar", "as_scalar", "is_foreign"]


class Scalar(NoArray):
    """A scalar expression: `value` now, `text` as typed, `latex`, and the parameters it contains."""

    __array_ufunc__ = None  # numpy scalars on the left defer to the operators below
    __pandas_priority__ = 10_000  # and pandas tables
    precedence = 3  # of the outermost operator: 1 sum, 2 product, 3 atom

    value: float
    text: str
    latex: str
    parameters: frozenset[Parameter] = frozenset()

    def __add__(self, other):
        return _combine(operator.add, "+", self, other, 1)

    def __radd__(self, other):
        return _combine(operator.add, "+", other, self, 1)

    def __sub__(self, other):
        return _combine(operator.sub, "-", self, other, 1)

    def __rsub__(self, other):
        return _combine(operator.sub, "-", other, self, 1)

    def __mul__(self, other):
        return _combine(operator.mul, "*", self, other, 2)

    def __rmul__(self, other):
        return _combine(operator.mul, "*", other, self, 2)

    def __truediv__(self, other):
        return _combine(operator.truediv, "/", self, other, 2)

    def __rtruediv__(self, other):
        return _combine(operator.truediv, "/", other, self, 2)

    def __neg__(self):
        negative = Number(-1.0) * self
        if not isinstance(negative, Number):
            negative.text, negative.latex = f"-{bracket(self, 2)}", f"-{bracket(self, 2, 'latex')}"
        return negative

    def __pow__(self, power):
        raise ModelError(
            f"{self.text} ** {power!r}: write the product, {bracket(self, 3)} * {bracket(self, 3)}"
        )

    def __repr__(self):
        return self.text


class Number(Scalar):
    """A plain number in a scalar expression."""

    def __init__(self, value: float):
        number = as_float(value)
        if number is None or not isfinite(number):
            problem = "beyond float64" if number is None else "not finite"
            raise ModelError(f"the coefficient {quoted(value)} is {problem}: write a finite number")
        if number != 0 and not SMALLEST <= abs(number) <= LARGEST:
            raise ModelError(
                f"the coefficient {quoted(value)} is beyond what can be computed with",
                write_instead=f"write one from {SMALLEST:g} to {LARGEST:g}",
            )
        self.value = number
        self.text, self.latex = f"{self.value:.10g}", number_latex(self.value)


#: the coefficient of what is typed without one
ONE = Number(1.0)


class Parameter(Scalar):
    """A coefficient that may be changed between solves: `lam = Parameter(10.0)`, `lam.value = 3`, `problem.path(lam, [...])`.

    value : a finite number >= 0 (a convex term must keep a coefficient >= 0; ModelError otherwise).
    name  : how the model prints it; "lam" unless given.

    >>> from mtldsl import Parameter
    >>> lam = Parameter(10.0)
    >>> (2 * lam).value
    20.0
    >>> lam.value = -1
    Traceback (most recent call last):
    mtldsl.errors.ModelError: Parameter 'lam' cannot be -1: a coefficient must be finite and >= 0, or its term would not be convex
    """

    @complete("write Parameter(1.0), or Parameter(1.0, name='mu')")
    def __init__(self, value: float, name: str = "lam"):
        # numpy is not asked how many dimensions a list has: a ragged one is an error of its own
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            raise ModelError(
                "it is one number",
                term=f"Parameter({quoted(value)})",
                write_instead="write a Parameter for each, lam_1 * l1_norm(W[:, 0]) + ..., or give the word weights: l1_norm(W, weights=[...])",
            )
        if isinstance(value, str):
            raise ModelError(
                "the value comes first",
                term=f"Parameter({quoted(value)})",
                write_instead=f"write Parameter(1.0, name={quoted(value)})",
            )
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(
                "a name must be a Python identifier such as 'lam' or 'mu'",
                term=f"Parameter(..., name={quoted(name)})",
            )
        self.name = self.text = name
        self.latex = _GREEK.get(name, rf"\mathrm{{{escaped(name)}}}" if len(name) > 1 else name)
        self.value = value

    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        number = as_float(value)
        if number is None or not (number == 0 or SMALLEST <= number <= LARGEST):
            if number is not None and 0 < number < inf:
                raise ModelError(
                    f"Parameter {self.name!r} cannot be {quoted(value)}: a coefficient is 0 or from {SMALLEST:g} to {LARGEST:g}; rescale"
                )
            raise ModelError(
                f"Parameter {self.name!r} cannot be {quoted(value)}: a coefficient must be finite and >= 0, "
                "or its term would not be convex"
            )
        self._value = number

    @property
    def parameters(self) -> frozenset[Parameter]:
        return frozenset({self})

    def __repr__(self):
        return f"Parameter({self.value:g}, name={self.name!r})"


class _Binary(Scalar):
    def __init__(self, function: Callable, symbol: str, left: Scalar, right: Scalar, precedence: int):
        self._function, self._left, self._right = function, left, right
        self.precedence = precedence
        self.parameters = left.parameters | right.parameters
        self.text = f"{bracket(left, precedence)} {symbol} {bracket(right, precedence + (symbol in '-/'))}"
        self.latex = (
            rf"\frac{{{left.latex}}}{{{right.latex}}}"
            if symbol == "/"
            else f"{bracket(left, precedence, 'latex')} {_between(symbol, right)}"
            f"{bracket(right, precedence + (symbol == '-'), 'latex')}"
        )

    @property
    def value(self) -> float:
        try:
            value = self._function(self._left.value, self._right.value)
        except ZeroDivisionError:
            raise ModelError(f"the coefficient {self.text} divides by zero") from None
        if value != 0 and not SMALLEST <= abs(value) <= LARGEST:
            raise ModelError(
                f"the coefficient {self.text} is {value:g}",
                write_instead=f"write one that is 0 or from {SMALLEST:g} to {LARGEST:g}",
            )
        return value


_GREEK = {
    name: rf"\{name}"
    for name in [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "phi",
        "chi",
        "psi",
        "omega",
    ]
} | {"lam": r"\lambda"}


def _between(symbol: str, right: Scalar) -> str:
    """Factors stand side by side, save for a number after another factor."""
    if symbol != "*":
        return f"{symbol} "
    return r"\cdot " if isinstance(right, Number) else ""


def bracket(node, precedence: int, kind: str = "text") -> str:
    """The node's text (or latex) in parentheses where its outermost operator binds less than the one around it."""
    text = getattr(node, kind)
    return f"({text})" if node.precedence < precedence else text


def as_scalar(value) -> Scalar | None:
    """A Scalar from a number or a Scalar; None for anything else."""
    if isinstance(value, Scalar):
        return value
    return Number(value) if is_scalar(value) else None


def is_foreign(value) -> bool:
    """Whether this is nothing of the language, whose expressions answer operators themselves."""
    kind = type(value)
    return getattr(kind, "__array_ufunc__", is_foreign) is not None and not getattr(
        kind, "answers_arrays", False
    )


def _combine(function, symbol, left, right, precedence):
    typed = left, right
    left, right = as_scalar(left), as_scalar(right)
    if left is None or right is None:
        if any(
            map(is_foreign, (one for one, scalar in zip(typed, (left, right), strict=True) if scalar is None))
        ):
            shown = [one.text if isinstance(one, Scalar) else quoted(one) for one in typed]
            raise ModelError(
                f"{shown[0]} {symbol} {shown[1]}: a Parameter is combined with numbers and Parameters, and multiplies terms and weights"
            )
        return NotImplemented
    if isinstance(left, Number) and isinstance(right, Number) and (symbol != "/" or right.value != 0):
        return Number(function(left.value, right.value))
    # 1 is where every term's coefficient starts; it is not what anyone typed
    if symbol == "*" and isinstance(left, Number) and left.value == 1.0:
        return right
    if symbol in "*/" and isinstance(right, Number) and right.value == 1.0:
        return left
    return _Binary(function, symbol, left, right, precedence)
