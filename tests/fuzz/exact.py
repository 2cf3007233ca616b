"""Least squares in exact rational arithmetic: every float is a rational number, and so is the solution."""

from fractions import Fraction

import numpy as np

from tests.fuzz.formulas import LONG
from tests.fuzz.recipes import Model

_FACTOR = {"squared_loss": Fraction(1, 2), "sum_of_squares": Fraction(1)}


def exact_blocks(model: Model) -> dict | None:
    """The minimiser of squared losses of one block, with ridges on it or nothing; None where the model is another."""
    (loss, *others) = model.losses
    name, *more = model.blocks
    ridges = [p for p in model.penalties if p.coefficient > 0]
    suits = loss.word in _FACTOR and loss.argument.plain == name and not (others or more or model.constraints)
    if not suits or any(p.word != "ridge" or p.options or p.argument.plain != name for p in ridges):
        return None
    ridge = sum((Fraction(p.coefficient) for p in ridges), Fraction(0))
    has_intercept, columns = model.blocks[name], []
    for X, y, s in model.data[loss.data].tasks():
        rows = [[Fraction(float(x)) for x in row] + [Fraction(1)] * has_intercept for row in X]
        weights = [Fraction(1)] * len(y) if s is None else [Fraction(float(value)) for value in s]
        scale = 2 * _FACTOR[loss.word] * Fraction(loss.coefficient) / (sum(weights) if loss.mean else 1)
        columns.append(
            _normal_equations(
                rows, [Fraction(float(v)) for v in y], [scale * w for w in weights], ridge, has_intercept
            )
        )
    solved = np.array([[_long(value) for value in column] for column in columns], LONG).T
    d = model.shape[0]
    return {name: solved[:d]} | ({f"{name}.intercept": solved[d]} if has_intercept else {})


def _normal_equations(rows, y, weights, ridge: Fraction, has_intercept: bool) -> list[Fraction]:
    """(A^T S A + ridge I) x = A^T S y by Gauss' elimination; of many solutions the one with zeros where a column depends on others."""
    k = len(rows[0])
    A = [
        [sum(w * row[i] * row[j] for w, row in zip(weights, rows, strict=True)) for j in range(k)]
        for i in range(k)
    ]
    b = [sum(w * row[i] * v for w, row, v in zip(weights, rows, y, strict=True)) for i in range(k)]
    for i in range(k - has_intercept):
        A[i][i] += ridge
    free, order = list(range(k)), []
    for j in range(k):
        pivot = next((i for i in free if A[i][j] != 0), None)
        if pivot is None:
            continue
        free.remove(pivot)
        order.append((pivot, j))
        for i in range(k):
            if i != pivot and A[i][j] != 0:
                factor = A[i][j] / A[pivot][j]
                A[i] = [a - factor * p for a, p in zip(A[i], A[pivot], strict=True)]
                b[i] -= factor * b[pivot]
    x = [Fraction(0)] * k
    for pivot, j in order:
        x[j] = b[pivot] / A[pivot][j]
    return x


def _long(value: Fraction) -> LONG:
    """To the last of its 64 bits: the double nearest to it, and the double nearest to what is left."""
    first = float(value)
    return LONG(first) + LONG(float(value - Fraction(first)))
