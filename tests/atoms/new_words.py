"""Words that no part of the package knows: some are twins of old ones, written again from their formulas, some are new functions.

`registered()` enters them, with a reference formula each, and takes them out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import cvxpy as cp
import numpy as np

import mtldsl as mtl
from mtldsl.atoms.function import Regularizer, SeparableLoss, Set
from mtldsl.atoms.parts import ROWS, RowProfile


class _Norm(Regularizer):
    norm: ClassVar[bool] = True

    def conjugate(self, Z):
        return 0.0 if self.dual_gauge(Z) <= 1.0 + 1e-12 else np.inf


# ---------------------------------------------------------------------------------------------------------- twins


@dataclass(frozen=True, eq=False)
class RowLengths(_Norm):
    """l21_norm again: sum of the rows' lengths."""

    name: ClassVar[str] = "row_lengths"
    separable: ClassVar[str] = "rows"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    scales = ROWS
    profile = RowProfile(length=1.0)

    def on_rows(self, rows, shape):
        return self

    def value(self, W):
        return float(sum(np.sqrt(w @ w) for w in W))

    def prox(self, W, step):
        lengths = np.sqrt(np.square(W).sum(axis=1, keepdims=True))
        return W * np.maximum(1.0 - step / np.where(lengths > 0, lengths, 1.0), 0.0)

    def dual_gauge(self, Z):
        return float(np.sqrt(np.square(Z).sum(axis=1).max()))


@dataclass(frozen=True, eq=False)
class Magnitudes(_Norm):
    """l1_norm again: sum of absolute values."""

    name: ClassVar[str] = "magnitudes"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    profile = RowProfile(absolute=1.0)

    def on_rows(self, rows, shape):
        return self

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


@dataclass(frozen=True, eq=False)
class HalfSquares(Regularizer):
    """ridge again: half the sum of squares."""

    name: ClassVar[str] = "half_squares"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    finite_dual: ClassVar[bool] = True
    curvature: ClassVar[float] = 1.0
    strong_convexity: ClassVar[float] = 1.0

    profile = RowProfile(square=1.0)

    def on_rows(self, rows, shape):
        return self

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


@dataclass(frozen=True, eq=False)
class TaskJumps(_Norm):
    """total_variation again: sum of the absolute differences of neighbouring tasks."""

    name: ClassVar[str] = "task_jumps"
    separable: ClassVar[str] = "rows"
    absorbs: ClassVar[bool] = False
    ordinal: ClassVar[bool] = True

    def value(self, W):
        return float(np.abs(W[:, 1:] - W[:, :-1]).sum())

    def prox(self, W, step):
        from mtldsl.atoms.regularizers import TotalVariation

        return TotalVariation().prox(W, step)

    def dual_gauge(self, Z):
        sums = np.abs(np.cumsum(Z, axis=1))
        return np.inf if sums[:, -1].max() > 1e-12 * np.abs(Z).max() else float(sums.max())

    def dual_project(self, Z):
        Z = Z - Z.mean(axis=1, keepdims=True)
        return Z - Z.mean(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Nonnegative(Set):
    """W >= 0 again."""

    name: ClassVar[str] = "nonnegative"
    separable: ClassVar[str] = "entries"
    absorbs: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    homogeneous: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    interval = (0.0, np.inf)

    def on_rows(self, rows, shape):
        return self

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


@dataclass(frozen=True, eq=False)
class MarginShortfall(SeparableLoss):
    """hinge_loss again: sum of max(0, 1 - y z)."""

    name: ClassVar[str] = "margin_shortfall"
    labels: ClassVar[str] = "sign"
    max_affine: ClassVar[bool] = True
    least: ClassVar[float] = 1.0  # the margin asked for

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


# ------------------------------------------------------------------------------------------------------ new functions


@dataclass(frozen=True, eq=False)
class RowMixture(Regularizer):
    """sum_ij 0.3 |W_ij| + sum_r 0.8 ||W_r|| + 1/2 sum_ij 0.2 W_ij^2: three old words at once."""

    name: ClassVar[str] = "row_mixture"
    separable: ClassVar[str] = "rows"
    monotone: ClassVar[bool] = True
    finite_dual: ClassVar[bool] = True
    strong_convexity: ClassVar[float] = 0.2

    profile = RowProfile(absolute=0.3, length=0.8, square=0.2)

    def on_rows(self, rows, shape):
        return self

    def value(self, W):
        return float(0.3 * np.abs(W).sum() + 0.8 * np.linalg.norm(W, axis=1).sum() + 0.1 * np.vdot(W, W))

    def prox(self, W, step):
        soft = np.sign(W) * np.maximum(np.abs(W) - 0.3 * step, 0.0)
        lengths = np.linalg.norm(soft, axis=1, keepdims=True)
        return (
            soft
            * np.maximum(1.0 - 0.8 * step / np.where(lengths > 0, lengths, 1.0), 0.0)
            / (1.0 + 0.2 * step)
        )

    def conjugate(self, Z):
        soft = np.maximum(np.abs(Z) - 0.3, 0.0)
        return float(np.sum(np.maximum(np.linalg.norm(soft, axis=1) - 0.8, 0.0) ** 2) / 0.4)

    def dual_gauge(self, Z):
        return 0.0


@dataclass(frozen=True, eq=False)
class Between(Set):
    """-0.2 <= W <= 0.3."""

    name: ClassVar[str] = "between"
    separable: ClassVar[str] = "entries"
    finite_dual: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    interval = (-0.2, 0.3)

    def on_rows(self, rows, shape):
        return self

    def project(self, W):
        return np.clip(W, -0.2, 0.3)

    def violation(self, W):
        return float(np.abs(W - self.project(W)).max())

    def support(self, Z):
        return float(np.sum(np.maximum(-0.2 * Z, 0.3 * Z)))

    def dual_gauge(self, Z):
        return 0.0


@dataclass(frozen=True, eq=False)
class HalfMargin(MarginShortfall):
    """sum of max(0, 1/2 - y z)."""

    name: ClassVar[str] = "half_margin"
    least: ClassVar[float] = 0.5


#: word -> (class, reference formula, its marks)
NEW = {
    cls.name: (cls, statement, marks)
    for cls, statement, marks in [
        (RowLengths, lambda W, atom: cp.sum(cp.norm(W, 2, axis=1)), {}),
        (Magnitudes, lambda W, atom: cp.sum(cp.abs(W)), {}),
        (HalfSquares, lambda W, atom: 0.5 * cp.sum_squares(W), {}),
        (TaskJumps, lambda W, atom: cp.sum(cp.abs(W[:, 1:] - W[:, :-1])), {}),
        (Nonnegative, lambda W, atom: [W >= 0], {}),
        (
            MarginShortfall,
            lambda z, y, s, atom: _weighted(s, cp.pos(1 - cp.multiply(y, z))),
            {"sum_over_samples": True},
        ),
        (
            RowMixture,
            lambda W, atom: (
                0.3 * cp.sum(cp.abs(W)) + 0.8 * cp.sum(cp.norm(W, 2, axis=1)) + 0.1 * cp.sum_squares(W)
            ),
            {},
        ),
        (Between, lambda W, atom: [W >= -0.2, W <= 0.3], {}),
        (
            HalfMargin,
            lambda z, y, s, atom: _weighted(s, cp.pos(0.5 - cp.multiply(y, z))),
            {"sum_over_samples": True},
        ),
    ]
}


def _weighted(s, values):
    return cp.sum(values) if s is None else s @ values


@contextmanager
def registered() -> Iterator[SimpleNamespace]:
    """The new words, as functions."""
    words = {}
    try:
        for name, (cls, statement, marks) in NEW.items():
            words[name] = mtl.register(cls, statement, **marks)
        yield SimpleNamespace(**words)
    finally:
        for name in words:
            mtl.unregister(name)
