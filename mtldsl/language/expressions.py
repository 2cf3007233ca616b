"""Affine expressions of weights: sums, products and selections, with the names of their rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np

from mtldsl.display.displayable import Listed
from mtldsl.errors import ModelError
from mtldsl.language.constraints import Constraint, compare, compare_expressions
from mtldsl.language.scalars import (
    Mixable,
    Number,
    Operation,
    Scalar,
    add_offsets,
    as_factor,
    as_matrix,
    as_scalar,
    bracket,
    chain,
    constant_latex,
    constant_text,
    index_latex,
    index_text,
    is_foreign,
    picked_rows,
    selector,
)
from mtldsl.utils.validation import as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# `W.T`: the transpose of an expression, which stands alone inside a word for a norm or a penalty.


def _refused(symbol: str, instead: str) -> Any:
    """An operator of a transpose, which says what to write in its place: `{0}` stands for the expression, `{1}` for its transpose."""

    def refuse(self: Transposed, *_, **__) -> NoReturn:
        raise ModelError(
            f"a transpose stands alone inside a word, without {symbol}",
            term=self.text,
            write_instead="write " + instead.format(bracket(self.of, 3), self.text),
        )

    return refuse


def _no_such(said: str) -> Any:
    """An operator that expressions do not have: `said` of their text."""

    def refuse(self: Affine | Transposed, *_) -> NoReturn:
        raise ModelError(said.format(self.text))

    return refuse


class Transposed(Mixable):
    """The transpose (q, p) of an expression (p, q): a word of `W.T` is a word of W with rows and columns exchanged.

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    >>> W.T, W.T.shape, W.T.T is W
    (W.T, (2, 3), True)
    >>> 2 * W.T
    Traceback (most recent call last):
    mtldsl.errors.ModelError: W.T: a transpose stands alone inside a word, without *; write (c * W).T
    """

    __hash__ = object.__hash__
    precedence = 3

    def __init__(self, of: Any):
        self.of = of  # an Affine
        self.shape: tuple[int, int] = of.shape[::-1]
        self.text, self.latex = f"{bracket(of, 3)}.T", rf"{bracket(of, 3, 'latex')}^\top"
        self.tree = Operation("T", (of.tree,))

    def __repr__(self):
        return self.text

    @property
    def T(self) -> Any:
        return self.of

    __add__ = __radd__ = _refused("+", "({0} + V).T")
    __sub__ = __rsub__ = _refused("-", "({0} - V).T")
    __mul__ = __rmul__ = __truediv__ = __neg__ = _refused("*", "(c * {0}).T")
    __matmul__ = _refused("@", "(A.T @ {0}).T for {1} @ A")
    __rmatmul__ = _refused("@", "({0} @ A.T).T for A @ {1}")
    __pow__ = __abs__ = _refused("powers", "ridge({0}), half the sum of squares, or l1_norm({0})")
    __getitem__ = _refused("[]", "{0}[rows, tasks].T for {1}[tasks, rows]")
    sum = _refused("sums", "{0}.sum(axis=1) for {1}.sum(axis=0)")
    __ge__ = __gt__ = _refused(">=", "{0} >= C.T for {1} >= C")
    __le__ = __lt__ = _refused("<=", "{0} <= C.T for {1} <= C")
    __eq__ = __ne__ = _refused("==", "{0} == C.T for {1} == C")

    def __iter__(self):
        raise ModelError(
            f"{self.text} cannot be iterated over",
            write_instead=f"select tasks with {self.of.text}[:, [0, 1]]",
        )


# --------------------------------------------------------------------------------------------------------------
# What the rows and columns of an expression are called: after the features and tasks of its weights, wherever each is one of them.


def row_names(expression: Affine | Transposed) -> tuple[str, ...]:
    """The feature of every row; () where rows are mixtures of several, or where the summands' rows are of different ones."""
    if isinstance(expression, Transposed):
        return column_names(expression.of)
    return _agreed([_picked(part.left, part.weights.tasks.feature_names) for part in expression.parts])


def column_names(expression: Affine | Transposed) -> tuple[str, ...]:
    """The task of every column; () where columns are mixtures of several, or where the summands' columns are of different ones."""
    if isinstance(expression, Transposed):
        return row_names(expression.of)
    of_parts = []
    for part in expression.parts:
        right = None if part.right is None else part.right.T
        of_parts.append(_picked(right, part.weights.column_names))
    return _agreed(of_parts)


def position_of(name: str, expression: Affine | Transposed, axis: int, typed: str, told: bool = True) -> int:
    """The row (axis 0) or the column (axis 1) of that name; ModelError where there is none.

    told : whether the error says how a name of the other axis is written

    >>> import numpy as np, mtldsl as mtl
    >>> W = mtl.Weights(mtl.Tasks.shared(np.eye(2), np.eye(2), feature_names=["age", "sex"]))
    >>> position_of("sex", W, 0, "W['sex', :]"), position_of("sex", W[["sex", "age"], :], 0, "...")
    (1, 0)
    """
    names, others = row_names(expression), column_names(expression)
    if axis == 1:
        names, others = others, names
    if name in names:
        return names.index(name)
    lines, theirs = ("rows", "column") if axis == 0 else ("columns", "row")
    if not names:
        raise ModelError(
            f"the {lines} of {expression.text} are not called anything, since they are mixtures",
            term=typed,
            write_instead="write positions",
        )
    shown = ", ".join(map(str, names[:8])) + ("..." if len(names) > 8 else "")
    place = f"{expression.text}[:, {name!r}]" if axis == 0 else f"{expression.text}[{name!r}, :]"
    near = get_close_matches(name, names, n=1)
    if name in others:
        advice = f"{name!r} is a {theirs}" + (f": write {place}" if told else "")
    else:
        advice = f"did you mean {near[0]!r}?" if near else ""
    raise ModelError(f"no name {name!r} among {shown}", term=typed, write_instead=advice)


def _picked(matrix: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that a matrix of zeros and a one a row picks; () of any other matrix."""
    if matrix is None:
        return tuple(names)
    picked = picked_rows(matrix)
    return () if picked is None else tuple(names[j] for j in picked)


def _agreed(of_parts: list[tuple[str, ...]]) -> tuple[str, ...]:
    return of_parts[0] if of_parts and all(names == of_parts[0] for names in of_parts) else ()


# --------------------------------------------------------------------------------------------------------------
# Affine expressions of weight matrices: sums, multiples, products with matrices, slices, row and column sums.


@dataclass(frozen=True, eq=False)
class AffineTerm:
    """coefficient * left @ weights @ right; None stands for the identity."""

    weights: Any  # a Weights
    coefficient: Scalar
    left: Any = None
    right: Any = None


class Affine(Mixable, Listed):
    """A matrix that depends affinely on weights. Users make it from `Weights` with + - * / @ [] and sum()."""

    _unlisted = frozenset(["answers_arrays", "linear_part", "parts", "precedence", "tree"])

    __hash__ = object.__hash__

    def __init__(
        self, parts, shape, text: str, latex: str, tree: Operation, precedence: int = 3, offset=None
    ):
        self._parts: tuple[AffineTerm, ...] = tuple(parts)
        rows, columns = shape
        self.shape: tuple[int, int] = int(rows), int(columns)
        self.text, self.latex, self.precedence = text, latex, precedence
        self.offset: np.ndarray | None = offset
        self.tree = tree

    def __repr__(self):
        return self.text

    @property
    def parts(self) -> tuple[AffineTerm, ...]:
        """The summands."""
        return self._parts

    # ------------------------------------------------------------------------------------------ arithmetic

    def __add__(self, other):
        return self._plus(other, "+", +1.0)

    def __sub__(self, other):
        return self._plus(other, "-", -1.0)

    def __radd__(self, other):
        # sum([L, S]) starts from 0
        return (
            self
            if isinstance(as_scalar(other), Number) and other == 0
            else self._plus(other, "+", +1.0, reflected=True)
        )

    def __rsub__(self, other):
        result = (-self)._plus(other, "+", +1.0, reflected=True)
        if result is not NotImplemented:
            result.text = f"{constant_text(other)} - {bracket(self, 2)}"
            result.latex = f"{constant_latex(other)} - {bracket(self, 2, 'latex')}"
        return result

    def _plus(self, other, symbol, sign, reflected=False):
        if isinstance(other, Affine):
            if other.shape != self.shape:
                shape = max(self.shape[0], other.shape[0]), max(self.shape[1], other.shape[1])
                mine, theirs = self.broadcast_to(shape), other.broadcast_to(shape)
                if mine is None or theirs is None:
                    raise ModelError(
                        f"{self.text} {symbol} {other.text}: the shapes {self.shape} and {other.shape} differ",
                        write_instead="add expressions of one shape, or with one row or one column",
                    )
                return mine._plus(theirs, symbol, sign)
            parts = self.parts + tuple(_scaled(part, Number(sign)) for part in other.parts)
            offset = add_offsets(self.offset, other.offset, sign)
            right_text, right_latex = (
                bracket(other, 1 + (symbol == "-"), kind) for kind in ("text", "latex")
            )
            right: Any = other.tree
        else:
            if isinstance(other, Scalar):
                raise ModelError(
                    f"{self.text} {symbol} {other.text}: a Parameter may only multiply weights or a term; write its value, {other.text}.value"
                )
            constant = as_matrix(other, self.shape, f"{self.text} {symbol} ...")
            if constant is None:
                return NotImplemented
            parts, offset, right = self.parts, add_offsets(self.offset, constant, sign), constant
            right_text, right_latex = constant_text(other), constant_latex(other)
        pieces = [(self.text, self.latex, self.tree), (right_text, right_latex, right)]
        if reflected:
            pieces.reverse()
        (text_a, latex_a, a), (text_b, latex_b, b) = pieces
        text, latex = f"{text_a} {symbol} {text_b}", f"{latex_a} {symbol} {latex_b}"
        return Affine(parts, self.shape, text, latex, Operation(symbol, (a, b)), 1, offset)

    def broadcast_to(self, shape: tuple[int, int]) -> Affine | None:
        """Its one row, or one column, repeated to this shape; None where it does not fit. Text and tree stay, for numpy adds it so, too."""
        (p, q), (n, m) = self.shape, shape
        if p not in (1, n) or q not in (1, m):
            return None
        left = np.ones((n, 1)) if p < n else None
        right = np.ones((1, m)) if q < m else None
        if left is None and right is None:
            return self
        latex = bracket(self, 2, "latex")
        latex = latex if left is None else rf"\mathbf 1 {latex}"
        latex = latex if right is None else rf"{latex} \mathbf 1^\top"
        return self._mapped(left, right, self.tree, self.text, latex, min(self.precedence, 2))

    def __mul__(self, other):
        scalar = as_scalar(other)
        if scalar is None:
            if isinstance(other, Affine):
                squared = (
                    f"ridge({self.text}) is half the sum of squares, frobenius_norm({self.text}) its root"
                )
                raise ModelError(
                    f"{self.text} * {other.text}: a product of two unknowns is not affine, so no term made of it is convex",
                    write_instead=squared if other is self else "",
                )
            if is_foreign(other):
                raise ModelError(
                    f"{self.text} * {_shown(other)}: elementwise products are not in the language; write A @ W or "
                    "W @ A for a matrix product, or give per-entry weights to the regularizer, l1_norm(W, weights=...)"
                )
            return NotImplemented
        parts = tuple(_scaled(part, scalar) for part in self.parts)
        offset = None
        if self.offset is not None:
            if scalar.parameters:
                raise ModelError(
                    f"{scalar.text} * ({self.text}): a constant cannot be multiplied by a Parameter here; "
                    "multiply the weights first and add the constant afterwards"
                )
            offset = scalar.value * self.offset
        text = f"{bracket(scalar, 2)} * {bracket(self, 2)}"
        latex = f"{bracket(scalar, 2, 'latex')} {bracket(self, 2, 'latex')}"
        return Affine(parts, self.shape, text, latex, Operation("*", (scalar, self.tree)), 2, offset)

    __rmul__ = __mul__

    def __truediv__(self, other):
        scalar = as_scalar(other)
        if scalar is None:
            raise ModelError(f"{self.text} / {_shown(other)}: divide by a nonzero number or a Parameter")
        if not scalar.parameters and scalar.value == 0:
            raise ModelError(f"{self.text} / 0: division by zero")
        result = self * (1.0 / scalar)
        result.text = f"{bracket(self, 2)} / {bracket(scalar, 3)}"
        result.latex = rf"\frac{{{self.latex}}}{{{scalar.latex}}}"
        return result

    def __pow__(self, power):
        raise ModelError(
            f"{self.text} ** {quoted(power)}: powers are not in the language; ridge({self.text}) is half the sum of squares"
        )

    __abs__ = _no_such("abs({0}): absolute values are not in the language; l1_norm({0}) is their sum")
    __iter__ = _no_such("{0} cannot be iterated over: select tasks with {0}[:, [0, 1]]")

    def __neg__(self):
        result = self * -1.0
        result.text, result.latex = f"-{bracket(self, 2)}", f"-{bracket(self, 2, 'latex')}"
        return result

    # -------------------------------------------------------------------------------------- linear maps

    def __matmul__(self, right):
        if isinstance(right, Affine | Transposed):
            raise ModelError(
                f"{self.text} @ ...: a product of two unknowns is not affine, so no term made of it is convex"
            )
        matrix, n = as_factor(right, f"{self.text} @ ..."), self.shape[1]
        if matrix is None:
            return NotImplemented
        if matrix.shape[0] != n:
            raise ModelError(
                f"{self.text} @ A: {self.text} has {n} columns (tasks) but A has {matrix.shape[0]} rows; A must be {n} x k"
            )
        text = f"{bracket(self, 2)} @ {constant_text(right)}"
        latex = f"{bracket(self, 2, 'latex')} {constant_latex(right)}"
        return self._mapped(None, matrix, Operation("@", (self.tree, matrix)), text, latex, 2)

    def __rmatmul__(self, left):
        matrix, n = as_factor(left, f"... @ {self.text}"), self.shape[0]
        if matrix is None:
            return NotImplemented
        if matrix.shape[1] != n:
            raise ModelError(
                f"A @ {self.text}: A has {matrix.shape[1]} columns but {self.text} has {n} rows (features); A must be k x {n}"
            )
        text = f"{constant_text(left)} @ {bracket(self, 3)}"
        latex = f"{constant_latex(left)} {bracket(self, 3, 'latex')}"
        return self._mapped(matrix, None, Operation("@", (matrix, self.tree)), text, latex, 2)

    def sum(self, axis: int | None = None, dtype=None, out=None) -> Affine:
        """Column sums (axis=0, shape 1 x m), row sums (axis=1, shape d x 1), or the sum of all entries (1 x 1); np.sum is the same."""
        if dtype is not None or out is not None:
            raise ModelError(f"{self.text}.sum: dtype and out are not taken; write axis alone")
        given, axis = axis, None if axis is None else as_whole(axis)
        if given is not None and axis not in (0, 1):
            raise ModelError(
                f"{self.text}.sum(axis={quoted(given)}): axis must be 0 (over rows), 1 (over tasks) or None"
            )
        p, q = self.shape
        left = np.ones((1, p)) if axis in (None, 0) else None
        right = np.ones((q, 1)) if axis in (None, 1) else None
        argument = "" if axis is None else f"axis={axis}"
        latex = {
            None: rf"\mathbf 1^\top {bracket(self, 2, 'latex')} \mathbf 1",
            0: rf"\mathbf 1^\top {bracket(self, 2, 'latex')}",
            1: rf"{bracket(self, 2, 'latex')} \mathbf 1",
        }[axis]
        typed = Operation("sum", (self.tree, axis))
        return self._mapped(left, right, typed, f"{bracket(self, 3)}.sum({argument})", latex)

    def __getitem__(self, key) -> Affine:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        text = f"{bracket(self, 3)}[{index_text(rows)}, {index_text(columns)}]"
        row, task = f"row of {text}", f"task of {text}"
        left = selector(rows, self.shape[0], lambda name: position_of(name, self, 0, row), row)
        right = selector(columns, self.shape[1], lambda name: position_of(name, self, 1, task), task)
        latex = rf"{bracket(self, 3, 'latex')}_{{{index_latex(rows)},\,{index_latex(columns)}}}"
        typed = Operation("[]", (self.tree, _positions(rows, left), _positions(columns, right)))
        return self._mapped(left, None if right is None else right.T.tocsr(), typed, text, latex)

    @property
    def T(self) -> Transposed:
        """The transpose, which stands alone inside a word: `l21_norm(W.T)`."""
        return Transposed(self)

    @property
    def mean(self):
        raise ModelError(
            f"{self.text}.mean is not in the language",
            write_instead=f"write {bracket(self, 3)}.sum(axis) / n; mean_regularizer({self.text}) draws columns to their mean",
        )

    def _mapped(self, left, right, tree, text, latex, precedence=3):
        parts = [
            AffineTerm(part.weights, part.coefficient, chain(left, part.left), chain(part.right, right))
            for part in self.parts
        ]
        p = self.shape[0] if left is None else left.shape[0]
        q = self.shape[1] if right is None else right.shape[1]
        offset = self.offset
        if offset is not None:
            offset = offset if left is None else left @ offset
            offset = offset if right is None else offset @ right
        return Affine(parts, (p, q), text, latex, tree, precedence, offset)

    # --------------------------------------------------------------------------------------- constraints

    def linear_part(self) -> Affine:
        """The expression without its constants."""
        return Affine(self.parts, self.shape, self.text, self.latex, self.tree, self.precedence)

    def _compared(self, symbol: str, other) -> Constraint:
        if isinstance(other, Affine):
            return compare_expressions(self, symbol, other, self - other)
        return compare(self, symbol, other)

    def __ge__(self, other):
        return self._compared(">=", other)

    def __le__(self, other):
        return self._compared("<=", other)

    def __eq__(self, other):
        return self._compared("==", other)

    __ne__ = _no_such("{0} != ...: this is not a convex constraint; write >=, <= or ==")
    __gt__ = _no_such("{0} > ...: a strict inequality has no closed feasible set; write {0} >= ...")
    __lt__ = _no_such("{0} < ...: a strict inequality has no closed feasible set; write {0} <= ...")


# ------------------------------------------------------------------------------------------------- helpers


def _shown(other) -> str:
    """A number in full, an array by its shape, an expression as typed."""
    text = getattr(other, "text", None)
    if isinstance(text, str):
        return text
    return constant_text(other) if isinstance(other, np.ndarray) and other.ndim else quoted(other)


def _positions(key, selected):
    """Return what stands between brackets, where numpy reads it too; of names and all else the positions that were found."""
    if isinstance(key, slice):
        return key
    plain = isinstance(key, list | tuple | np.ndarray) and np.asarray(key).dtype.kind in "biu"
    return np.asarray(key) if plain else selected.indices


def _scaled(part: AffineTerm, scalar: Scalar) -> AffineTerm:
    return AffineTerm(part.weights, scalar * part.coefficient, part.left, part.right)
