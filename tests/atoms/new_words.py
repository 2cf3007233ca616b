"""Words that no part of the package knows: some are twins of old ones, written again from their formulas, some are new functions.

`registered()` enters them, with a reference formula each, and takes them out again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import cvxpy as cp
import numpy as np

import mtldsl as mtl
from mtldsl.atoms.atom import ROWS, RowProfile
from mtldsl.extending import Norm, Regularizer, SeparableLoss, Set


class _AnyRows:
    """The same function of some rows alone."""

    def on_rows(self, rows, shape):
        return self


class RowLengths(_AnyRows, Norm):
    """l21_norm again: sum of the rows' lengths."""

    name = "row_lengths"
    separable = "rows"
    monotone = True
    order_preserving = True

    scales = ROWS
    profile = RowProfile(length=1.0)

    def value(self, W):
        return float(sum(np.sqrt(w @ w) for w in W))

    def prox(self, W, step):
        lengths = np.sqrt(np.square(W).sum(axis=1, keepdims=True))
        return W * np.maximum(1.0 - step / np.where(lengths > 0, lengths, 1.0), 0.0)

    def dual_gauge(self, Z):
        return float(np.sqrt(np.square(Z).sum(axis=1).max()))


class Magnitudes(_AnyRows, Norm):
    """l1_norm again: sum of absolute values."""

    name = "magnitudes"
    separable = "entries"
    monotone = True
    order_preserving = True

    profile = RowProfile(absolute=1.0)

    def value(self, W):
        return float(np.abs(W).sum())

    def prox(self, W, step):
        return np.sign(W) * np.maximum(np.abs(W) - step, 0.0)

    def entry_slopes(self, W):
        return np.where(W > 0, 1.0, -1.0), np.where(W < 0, -1.0, 1.0)

    def dual_gauge(self, Z):
        return float(np.abs(Z).max())

    def column_gauges(self, Z):
        return np.abs(Z).max(axis=0)


class HalfSquares(_AnyRows, Regularizer):
    """ridge again: half the sum of squares."""

    name = "half_squares"
    separable = "entries"
    monotone = True
    finite_dual = True
    curvature = 1.0
    strong_convexity = 1.0

    profile = RowProfile(square=1.0)

    def value(self, W):
        return 0.5 * float(np.vdot(W, W))

    def gradient(self, W):
        return 1.0 * W

    def prox(self, W, step):
        return W / (1.0 + step)

    def conjugate(self, Z):
        return 0.5 * float(np.vdot(Z, Z))

    def dual_gauge(self, Z):
        return 0.0

    def task_quadratic(self, n_columns):
        return np.eye(n_columns)


class Nonnegative(_AnyRows, Set):
    """W >= 0 again."""

    name = "nonnegative"
    separable = "entries"
    absorbs = False
    monotone = False
    homogeneous = True
    order_preserving = True

    interval = (0.0, np.inf)

    def project(self, W):
        return np.where(W > 0, W, 0.0)

    def violation(self, W):
        return max(0.0, -float(W.min()))

    def support(self, Z):
        return 0.0 if self.dual_gauge(Z) == 0.0 else np.inf

    def dual_gauge(self, Z):
        return 0.0 if Z.max() <= 0 else np.inf

    def dual_project(self, Z):
        return np.minimum(Z, 0.0)


class MarginShortfall(SeparableLoss):
    """hinge_loss again: sum of max(0, 1 - y z)."""

    name = "margin_shortfall"
    labels = "sign"
    max_affine = True
    least = 1.0  # the margin asked for

    def pointwise(self, z, y):
        return np.maximum(self.least - y * z, 0.0)

    def slope(self, z, y):
        return -y * (y * z < self.least)

    def pointwise_prox(self, z, y, step):
        margin = y * z
        return y * np.where(margin >= self.least, margin, np.minimum(margin + step, self.least))

    def dual_quadratic(self, y):
        return self.least * y, 0.0

    def dual_interval(self, y):
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)


class RowMixture(_AnyRows, Regularizer):
    """sum_ij 0.3 |W_ij| + sum_r 0.8 ||W_r|| + 1/2 sum_ij 0.2 W_ij^2: three old words at once."""

    name = "row_mixture"
    separable = "rows"
    monotone = True
    finite_dual = True
    strong_convexity = 0.2

    profile = RowProfile(absolute=0.3, length=0.8, square=0.2)

    def value(self, W):
        return float(0.3 * np.abs(W).sum() + 0.8 * np.linalg.norm(W, axis=1).sum() + 0.1 * np.vdot(W, W))

    def prox(self, W, step):
        soft = np.sign(W) * np.maximum(np.abs(W) - 0.3 * step, 0.0)
        lengths = np.linalg.norm(soft, axis=1, keepdims=True)
        shorter = np.maximum(1.0 - 0.8 * step / np.where(lengths > 0, lengths, 1.0), 0.0)
        return soft * shorter / (1.0 + 0.2 * step)

    def conjugate(self, Z):
        soft = np.maximum(np.abs(Z) - 0.3, 0.0)
        return float(np.sum(np.maximum(np.linalg.norm(soft, axis=1) - 0.8, 0.0) ** 2) / 0.4)

    def dual_gauge(self, Z):
        return 0.0


class HalfMargin(MarginShortfall):
    """sum of max(0, 1/2 - y z)."""

    name = "half_margin"
    least = 0.5


def _row_mixture(W, atom):
    lengths = cp.sum(cp.norm(W, 2, axis=1))
    return 0.3 * cp.sum(cp.abs(W)) + 0.8 * lengths + 0.1 * cp.sum_squares(W)


def _shortfall(z, y, s, atom):
    values = cp.pos(atom.least - cp.multiply(y, z))
    return cp.sum(values) if s is None else s @ values


#: class -> its reference formula
NEW = {
    RowLengths: lambda W, atom: cp.sum(cp.norm(W, 2, axis=1)),
    Magnitudes: lambda W, atom: cp.sum(cp.abs(W)),
    HalfSquares: lambda W, atom: 0.5 * cp.sum_squares(W),
    Nonnegative: lambda W, atom: [W >= 0],
    RowMixture: _row_mixture,
    MarginShortfall: _shortfall,
    HalfMargin: _shortfall,
}


@contextmanager
def registered() -> Iterator[SimpleNamespace]:
    """The new words, as functions."""
    words = {}
    try:
        for cls, statement in NEW.items():
            marks = {"sum_over_samples": True} if issubclass(cls, SeparableLoss) else {}
            words[cls.name] = mtl.register(cls, statement, **marks)
        yield SimpleNamespace(**words)
    finally:
        for name in words:
            mtl.unregister(name)
