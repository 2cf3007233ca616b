"""Scalars and constants of the language: numbers, parameters, matrix factors, and arithmetic kept as a tree."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.display.math import GREEK_LETTERS, escape_name
from mtldsl.errors import ModelError, Spelled
from mtldsl.utils.arrays import read_dense, require_sound
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import (
    MAX_MAGNITUDE,
    MIN_MAGNITUDE,
    as_float,
    as_list,
    as_positions,
    complete,
    is_scalar,
    quoted,
    shape_of,
)

# --------------------------------------------------------------------------------------------------------------
# Numbers, arrays and names as they stand in LaTeX.


def number_latex(value: float) -> str:
    r"""1e-07 as 10^{-7}, infinity as \infty."""
    text = f"{value:.10g}".replace("inf", r"\infty")
    mantissa, exponential, exponent = text.partition("e")
    if not exponential:
        return text
    power = f"10^{{{int(exponent)}}}"
    return power if mantissa == "1" else f"-{power}" if mantissa == "-1" else rf"{mantissa} \cdot {power}"


def constant_latex(value) -> str:
    """A constant as it is printed in a model: numbers in full, arrays by their shape."""
    number, shape = as_float(value), shape_of(value) or ()
    if number is not None:
        return number_latex(number)
    return rf"\mathrm{{array}}({', '.join(str(n) for n in shape)})"


def index_latex(index) -> str:
    r"""A selection of rows or columns as an index: names upright, lists in braces, all of them as a dot.

    >>> print(index_latex(slice(None)), index_latex("a_1"), index_latex(["age", 3]), index_latex(slice(0, 2)))
    \cdot \mathrm{a\_1} \{\mathrm{age}, 3\} 0{:}2
    """
    if isinstance(index, slice):
        return r"\cdot" if index == slice(None) else index_text(index).replace(":", "{:}")
    if isinstance(index, str):
        return r"\mathrm{" + escape_name(index).replace(" ", r"\ ") + "}"
    listed = as_list(index)
    if listed is None:
        return escape_name(index_text(index))
    if len(listed) > 6:
        return rf"\{{{len(listed)}\ \mathrm{{chosen}}\}}"
    return r"\{" + ", ".join(index_latex(one) for one in listed) + r"\}"


def index_text(index) -> str:
    """A selection as it is printed in a model."""
    if isinstance(index, slice):
        start, stop = ("" if v is None else str(v) for v in (index.start, index.stop))
        return f"{start}:{stop}" + (f":{index.step}" if index.step is not None else "")
    if isinstance(index, np.ndarray):
        index = index.tolist()
    text = quoted(index, 25)
    if len(text) <= 24:
        return text
    shape = shape_of(index)
    return f"<{shape[0]} indices>" if shape and len(shape) == 1 else quoted(index, 24)


# --------------------------------------------------------------------------------------------------------------
# Expressions beside arrays and tables of numpy and pandas: which of their functions the language has, and what to write for the others.

#: numpy's functions behind the operators of an array on the left, and what they are here.
_REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "matmul": "__rmatmul__", "less_equal": "__ge__", "greater_equal": "__le__", "equal": "__eq__", "less": "__gt__",
    "greater": "__lt__", "not_equal": "__ne__",
}  # fmt: skip

#: What to write in place of functions of entries.
_INSTEAD = {
    "absolute": "write l1_norm({0}), the sum of absolute values",
    "square": "write ridge({0}), half the sum of squares",
    "power": "write ridge({0}), half the sum of squares",
    "exp": "write a loss, such as exponential_loss or poisson_loss",
    "log": "write a loss, such as logistic_loss",
    "sqrt": "write frobenius_norm({0})",
    "maximum": "write a constraint, {0} >= 0, or a loss, such as hinge_loss",
    "minimum": "write a constraint, {0} <= 1",
}


#: The same of numpy's functions of arrays.
_OF_ARRAYS = {
    "mean": "write {0}.sum() / n, with the number of entries as n; mean_regularizer(W) draws tasks to their mean",
    "average": "write {0}.sum() / n, with the number of entries as n",
    "norm": "write frobenius_norm({0}), or trace_norm, l1_norm, l21_norm",
    "svd": "write trace_norm({0}), the sum of singular values",
    "diff": "write total_variation({0})",
    "transpose": "write {0}.T",
    "clip": "write constraints, subject_to=[{0} >= 0, {0} <= 1]",
    "max": "write a constraint, {0} <= 1, or l1_inf_norm({0})",
    "amax": "write a constraint, {0} <= 1, or l1_inf_norm({0})",
    "min": "write a constraint, {0} >= 0",
    "amin": "write a constraint, {0} >= 0",
}


class NoArray:
    """A thing of the language: one object for numpy and scipy, which then leave `A @ W` to it."""

    def __array__(self, dtype=None, copy=None):
        """Return the object itself, of shape (). ModelError where pandas asks, which keeps `table @ W` and `table.dot(W)` to itself."""
        if sys._getframe(1).f_globals.get("__name__", "").startswith("pandas."):
            raise ModelError(
                f"{getattr(self, 'text', type(self).__name__)} is not an array of numbers, and a pandas table on the left of @ wants one",
                write_instead="write A.to_numpy() in place of the table A",
            )
        itself = np.empty((), dtype=object)
        itself[()] = self
        return itself


class Mixable(NoArray):
    """An expression that numpy and pandas hand their operators to."""

    text: str

    answers_arrays = True  # by `__array_ufunc__`
    __pandas_priority__ = 10_000  # pandas tables on the left defer to the operators below

    def __array_function__(self, function, types, args, kwargs):
        """`np.sum` and `np.dot` are `.sum()` and `@`; other functions of arrays are not in the language."""
        name = function.__name__
        if name == "sum" and args and args[0] is self and hasattr(self, "sum"):
            return self.sum(*args[1:], **kwargs)  # type: ignore[attr-defined]
        if name == "dot" and len(args) == 2 and not kwargs:
            return args[0] @ args[1]
        if name == "transpose" and len(args) == 1 and not kwargs:
            return self.T  # type: ignore[attr-defined]
        if name in ("shape", "ndim", "size"):
            return function._implementation(*args, **kwargs)
        raise ModelError(
            f"np.{name} of {self.text} is not in the language",
            write_instead=_OF_ARRAYS.get(name, "write + - * / @ and the words of the language").format(
                self.text
            ),
        )

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Arrays on the left defer to the operators below; other functions of numpy are not in the language."""
        reflected = _REFLECTED.get(ufunc.__name__)
        if reflected and method == "__call__" and not options and not isinstance(inputs[0], Mixable):
            return getattr(self, reflected)(inputs[0])
        raise ModelError(
            f"np.{ufunc.__name__} of {self.text} is not in the language",
            write_instead=_INSTEAD.get(
                ufunc.__name__, "write + - * / @ and the words of the language"
            ).format(self.text),
        )


# --------------------------------------------------------------------------------------------------------------
# Coefficients: numbers, parameters, and arithmetic between them, kept as a tree so that a path can change them later.


def _both_ways(function: Callable, symbol: str, precedence: int) -> tuple[Any, Any]:
    """The operator of a scalar on its left, and that of one on its right."""
    return (
        lambda self, other: _combine(function, symbol, self, other, precedence),
        lambda self, other: _combine(function, symbol, other, self, precedence),
    )


class Scalar(NoArray):
    """A scalar expression: `value` now, `text` as typed, `latex`, and the parameters it contains."""

    __array_ufunc__ = None  # numpy scalars on the left defer to the operators below
    __pandas_priority__ = 10_000  # and pandas tables
    precedence = 3  # of the outermost operator: 1 sum, 2 product, 3 atom

    value: float
    text: str
    latex: str
    parameters: frozenset[Parameter] = frozenset()

    __add__, __radd__ = _both_ways(operator.add, "+", 1)
    __sub__, __rsub__ = _both_ways(operator.sub, "-", 1)
    __mul__, __rmul__ = _both_ways(operator.mul, "*", 2)
    __truediv__, __rtruediv__ = _both_ways(operator.truediv, "/", 2)

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
        if number != 0 and not MIN_MAGNITUDE <= abs(number) <= MAX_MAGNITUDE:
            raise ModelError(
                f"the coefficient {quoted(value)} is beyond what can be computed with",
                write_instead=f"write one from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g}",
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
        require_identifier(name, "Parameter", "'lam' or 'mu'")
        self.name = self.text = name
        self.latex = _GREEK.get(name, rf"\mathrm{{{escape_name(name)}}}" if len(name) > 1 else name)
        self.value = value

    @property
    def value(self) -> float:
        return self._value

    @value.setter
    def value(self, value: float) -> None:
        number = as_float(value)
        if number is None or not (number == 0 or MIN_MAGNITUDE <= number <= MAX_MAGNITUDE):
            if number is not None and 0 < number < inf:
                raise ModelError(
                    f"Parameter {self.name!r} cannot be {quoted(value)}: a coefficient is 0 or from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g}; rescale"
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


def require_identifier(name: object, kind: str, such_as: str) -> None:
    """ModelError unless what was given to a kind for its name is one that Python reads."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ModelError(
            f"a name must be a Python identifier such as {such_as}", term=f"{kind}(..., name={quoted(name)})"
        )


@contextmanager
def put_back(parameters: Iterable[Parameter]) -> Iterator[None]:
    """Context after which parameters have the values that they had before."""
    before = [(parameter, parameter.value) for parameter in parameters]
    try:
        yield
    finally:
        for parameter, value in before:
            parameter.value = value


class _BinaryOperation(Scalar):
    def __init__(self, function: Callable, symbol: str, left: Scalar, right: Scalar, precedence: int):
        self._function, self._left, self._right = function, left, right
        self.precedence = precedence
        self.parameters = left.parameters | right.parameters
        self.text = f"{bracket(left, precedence)} {symbol} {bracket(right, precedence + (symbol in '-/'))}"
        self.latex = (
            rf"\frac{{{left.latex}}}{{{right.latex}}}"
            if symbol == "/"
            else f"{bracket(left, precedence, 'latex')} {_product_sign(symbol, right)}"
            f"{bracket(right, precedence + (symbol == '-'), 'latex')}"
        )

    @property
    def value(self) -> float:
        try:
            value = self._function(self._left.value, self._right.value)
        except ZeroDivisionError:
            raise ModelError(f"the coefficient {self.text} divides by zero") from None
        if value != 0 and not MIN_MAGNITUDE <= abs(value) <= MAX_MAGNITUDE:
            raise ModelError(
                f"the coefficient {self.text} is {value:g}",
                write_instead=f"write one that is 0 or from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g}",
            )
        return value


_GREEK = {name: rf"\{name}" for name in GREEK_LETTERS} | {"lam": r"\lambda"}


def _product_sign(symbol: str, right: Scalar) -> str:
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
    """Tell whether this is nothing of the language, whose expressions answer operators themselves."""
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
    return _BinaryOperation(function, symbol, left, right, precedence)


# --------------------------------------------------------------------------------------------------------------
# How the language's names are spelled in messages: made by a call in Python, declared in a table of a problem file.

#: The number without end.
INFINITY = Spelled("np.inf", "inf")

#: Weights of graphs of labels stand in [weights], all else that is declared by its kind in [learned].
_WEIGHTS = ("NodeWeights", "EdgeWeights")


def constructor_text(kind: str, arguments: object = "tasks") -> Spelled:
    """An unknown of a kind, as it is made.

    >>> print(constructor_text("KernelWeights", 3), "or", constructor_text("KernelWeights", 3).on("file"))
    KernelWeights(3) or "KernelWeights" in [learned]
    """
    return Spelled(f"{kind}({arguments})", f'"{kind}" in [{"weights" if kind in _WEIGHTS else "learned"}]')


def declaration_hint(kind: str, name: str) -> Spelled:
    """Return what a problem file adds to a message that names a kind: the line that declares it, and nothing in Python.

    >>> ("theta must be KernelWeights" + declaration_hint("KernelWeights", "theta")).on("file")
    'theta must be KernelWeights (in [learned]: theta = "KernelWeights")'
    """
    return Spelled("", f' (in [learned]: {name} = "{kind}")')


# --------------------------------------------------------------------------------------------------------------
# What stands beside the unknowns in an expression: constants, matrix factors, selections by position or name.


def as_matrix(value, shape, typed) -> np.ndarray | None:
    """A float array broadcast to `shape`; None where `value` is of the language itself; ModelError where it is not an array of numbers, or
    does not fit.
    """
    if not is_foreign(value):
        return None
    array = read_dense(value, f"{typed}: the constant", ModelError)
    if np.isnan(array).any():
        raise ModelError("the constant contains NaN", term=typed)
    require_memory(
        16.0 * np.prod(np.array(shape, float)),
        f"{typed}: a constant of shape {shape}",
        "give weights of fewer features or tasks",
        ModelError,
    )
    if ((np.abs(array) > MAX_MAGNITUDE) & np.isfinite(array)).any():
        raise ModelError(
            f"the constant has numbers beyond {MAX_MAGNITUDE:g}",
            term=typed,
            write_instead="write smaller ones, or " + INFINITY + " for no bound",
        )
    try:
        return np.array(np.broadcast_to(array, shape))
    except ValueError:
        raise ModelError(
            f"a constant of shape {array.shape} does not fit the shape {shape}", term=typed
        ) from None


def as_factor(value, typed):
    """A matrix factor: dense float array or CSR; None where `value` is of the language itself; ModelError where it is not a matrix."""
    if not is_foreign(value):
        return None
    what, is_sparse = f"{typed}: the matrix", sparse.issparse(value)
    array: Any = require_sound(value, what, ModelError) if is_sparse else read_dense(value, what, ModelError)
    if array.ndim != 2:
        raise ModelError(f"@ needs a matrix (2-D array), not an array of shape {array.shape}", term=typed)
    if not np.isfinite(array.data if is_sparse else array).all():
        raise ModelError("the matrix contains NaN or infinity", term=typed)
    if (np.abs(array.data if is_sparse else array) > MAX_MAGNITUDE).any():
        raise ModelError(
            f"the matrix has numbers beyond {MAX_MAGNITUDE:g}", term=typed, write_instead="write smaller ones"
        )
    return array.astype(float).tocsr() if is_sparse else array


def selector(index, size, position_of: Callable[[str], int], typed):
    """CSR matrix that picks rows; None for the full slice. Names may stand for positions, which `position_of` knows."""
    if isinstance(index, slice) and index == slice(None):
        return None
    listed = [index] if isinstance(index, str) else index if isinstance(index, slice) else as_list(index)
    if isinstance(listed, list) and any(isinstance(one, str) for one in listed):
        listed = [position_of(one) if isinstance(one, str) else one for one in listed]
    picked = as_positions(index if listed is None else listed, size, typed, ModelError)
    if picked.size == 0:
        raise ModelError(f"{quoted(index)} selects nothing", term=typed, write_instead="select at least one")
    ones = np.ones(picked.size)
    return sparse.csr_array((ones, (np.arange(picked.size), picked)), shape=(picked.size, size))


def picked_rows(matrix) -> np.ndarray | None:
    """The positions of a matrix that picks rows, as a `selector` does; None of any other matrix."""
    rows: Any = sparse.csr_array(matrix, copy=True)
    rows.eliminate_zeros()
    one_each = bool(np.all(np.diff(rows.indptr) == 1) and np.all(rows.data == 1.0))
    return rows.indices if one_each else None


def constant_text(value) -> str:
    """A constant as it is printed in a model: numbers in full, arrays by their shape."""
    if not is_foreign(value):
        return quoted(value)
    number, shape = as_float(value), shape_of(value)
    if number is not None:
        return f"{number:.10g}"
    return "array({})".format(", ".join(map(str, shape))) if shape else quoted(value)


def add_offsets(a, b, sign):
    """a + sign * b, where None stands for zero."""
    if b is None:
        return a
    return sign * b if a is None else a + sign * b


def chain(a, b):
    """a @ b, where None stands for the identity."""
    if a is None or b is None:
        return b if a is None else a
    return a @ b


# --------------------------------------------------------------------------------------------------------------
# Expressions as they were typed: a tree of operations over the names of blocks, which holds no data of tasks.


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation and what it was applied to, in the order typed.

    name     : "block" (a name) · "+" "-" (two operands) · "*" (a `Scalar`, an expression) · "@" (a matrix on either side) ·
               "[]" (an expression, its rows, its columns) · "sum" (an expression, an axis) · "beside" (columns after columns) ·
               "T" (an expression) · ">=" "<=" "==" (two sides) · "in" (a set, an expression) · "ball" (a norm's factor, the norm, an expression, the radius)
    operands : operations, arrays, numbers, `Scalar`s

    The second evaluation of an objective walks this tree (`mtldsl.certificates.plain`); all else reads `Affine.parts`, which are made
    beside it.
    """

    name: str
    operands: tuple[Any, ...]


def block(name: str) -> Operation:
    """Return the matrix of unknowns of that name."""
    return Operation("block", (name,))
