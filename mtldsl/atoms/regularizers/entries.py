"""Norms that treat every entry by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.parts import RowProfile, is_same_along_rows
from mtldsl.atoms.regularizers.norm import WeightedNorm
from mtldsl.atoms.regularizers.weights import check_broadcast

__all__ = ["L1Norm"]


@register
@dataclass(frozen=True, eq=False)
class L1Norm(WeightedNorm):
    r"""The l1 norm: sum over entries of a_ij |W_ij|.

    Makes entries of W (p, q) exactly zero, each by itself.

    Parameters
    ----------
    weights : number or array a that broadcasts to the shape of W, >= 0, default all 1
        What each entry costs; an entry of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or the weights do not broadcast to the argument's shape.

    Notes
    -----
    prox: soft threshold W_ij -> sign(W_ij) (|W_ij| - step a_ij)_+. Dual norm: max |Z_ij| / a_ij.
    Source: Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 58 (1996).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -1.0], [0.5, 2.0]])
    >>> L1Norm().value(W)
    6.5
    >>> L1Norm().prox(W, 1.0)
    array([[2., 0.], [0., 1.]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "l1_norm"
    meaning: ClassVar[str] = r"the $\ell_1$ norm, the sum of absolute entries"
    formula: ClassVar[str] = r"\|{}\|_1"
    weighted_formula: ClassVar[str] = r"\|a \circ {}\|_1"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    of_precisions: ClassVar[bool] = True
    weight_axes: ClassVar[int] = 2

    @classmethod
    def examples(cls):
        per_entry = np.arange(20.0).reshape(5, 4) / 7
        return [
            cls(),
            cls(weights=2.5),
            cls(weights=per_entry),
            cls(weights=np.array([[1.0], [2.0], [0.0], [0.5], [3.0]])),
        ]

    def check(self, shape):
        return check_broadcast(self.weights, shape)

    def cell_norms(self, W):
        return np.abs(W)

    def spread(self, per_cell, shape):
        return np.asarray(per_cell)

    def prox(self, W, step):
        threshold = self.thresholds(step)
        # W - clip(W) is the soft threshold: exactly 0 inside, one temporary.
        inside = np.clip(W, -threshold, threshold)
        return np.subtract(W, inside, out=inside)

    @property
    def order_preserving(self) -> bool:
        return self.weights is None or is_same_along_rows(self.weights)

    @property
    def profile(self):
        return RowProfile(absolute=1.0 if self.weights is None else self.weights)

    def on_rows(self, rows, shape):
        if not isinstance(self.weights, np.ndarray):
            return self
        return L1Norm(np.broadcast_to(self.weights, shape)[rows])

    def entry_slopes(self, W):
        threshold = self.thresholds(1.0)
        slope = threshold * np.sign(W)
        return np.where(W == 0, -threshold, slope), np.where(W == 0, threshold, slope)
