"""Norms that treat every row (feature) of W as one: a feature is used by all tasks or by none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.shrinkage import shrinkage
from mtldsl.atoms.function import register
from mtldsl.atoms.parts import ROWS, RowProfile
from mtldsl.atoms.regularizers.norm import WeightedNorm
from mtldsl.atoms.regularizers.weights import check_length

__all__ = ["L1InfNorm", "L21Norm"]


@dataclass(frozen=True, eq=False)
class _RowNorm(WeightedNorm):
    weights: float | np.ndarray | None = None

    separable: ClassVar[str] = "rows"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    @classmethod
    def examples(cls):
        return [
            cls(),
            cls(weights=np.array([1.0, 2.0, 0.5, 1.5, 3.0])),
            cls(weights=np.array([1.0, 0.0, 0.5, 2.0, 0.0])),
        ]

    def check(self, shape):
        return check_length(self.weights, shape[0], "rows")

    def spread(self, per_cell, shape):
        return np.asarray(per_cell)[..., None]


@register
@dataclass(frozen=True, eq=False)
class L21Norm(_RowNorm):
    r"""The l2,1 norm: sum over rows r of a_r ||W_r||_2.

    Makes whole rows of W (p features, q tasks) zero: features are selected jointly for all tasks.

    Parameters
    ----------
    weights : number or array a (p,), >= 0, default all 1
        What each row costs; a row of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or there is not one weight per row.

    Notes
    -----
    prox: W_r -> (1 - step a_r / ||W_r||_2)_+ W_r. Dual norm: max ||Z_r||_2 / a_r.
    Source: Yuan and Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68
    (2006); Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 4.0], [0.6, 0.8]])
    >>> L21Norm().value(W)
    6.0
    >>> L21Norm().prox(W, 2.5)
    array([[1.5, 2. ], [0. , 0. ]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "l21_norm"
    meaning: ClassVar[str] = r"the $\ell_{2,1}$ norm, the sum of the rows' Euclidean norms"
    formula: ClassVar[str] = r"\|{}\|_{2,1}"
    weighted_formula: ClassVar[str] = r"\sum_r a_r \|{}_{r\cdot}\|_2"

    def cell_norms(self, W):
        return np.sqrt(np.einsum("rc,rc->r", W, W))

    def prox(self, W, step):
        return W * shrinkage(self.cell_norms(W), self.thresholds(step))[:, None]

    @property
    def scales(self):
        return ROWS

    @property
    def profile(self):
        return RowProfile(length=1.0 if self.weights is None else self.weights)

    def on_rows(self, rows, shape):
        return L21Norm(self.weights[rows]) if isinstance(self.weights, np.ndarray) else self


@register
@dataclass(frozen=True, eq=False)
class L1InfNorm(_RowNorm):
    r"""The l1,inf norm: sum over rows r of a_r max_i |W_ri|.

    Makes whole rows of W (p features, q tasks) zero; within a row, the largest entries tie.

    Parameters
    ----------
    weights : number or array a (p,), >= 0, default all 1
        What each row costs; a row of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or there is not one weight per row.

    Notes
    -----
    prox: each row is clipped at the level theta >= 0 that removes sum_i (|W_ri| - theta)_+ = step a_r in all
    (theta = 0, a zero row, where the whole row is less than that): Moreau's identity with the projection on
    the l1 ball. Dual norm: max ||Z_r||_1 / a_r.
    Source: Turlach, Venables and Wright, "Simultaneous variable selection", Technometrics 47 (2005);
    Quattoni et al., "An efficient projection for l1,inf regularization", ICML 2009.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -2.0], [0.6, 0.8]])
    >>> L1InfNorm().value(W)
    3.8
    >>> L1InfNorm().prox(W, 2.0)
    array([[ 1.5, -1.5], [ 0. ,  0. ]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "l1_inf_norm"
    meaning: ClassVar[str] = r"the $\ell_{1,\infty}$ norm, the sum of the rows' largest absolute entries"
    formula: ClassVar[str] = r"\|{}\|_{1,\infty}"
    weighted_formula: ClassVar[str] = r"\sum_r a_r \|{}_{r\cdot}\|_\infty"

    def cell_norms(self, W):
        return np.abs(W).max(axis=1)

    def cell_dual_norms(self, Z):
        return np.abs(Z).sum(axis=1)

    def prox(self, W, step):
        removed = np.broadcast_to(self.thresholds(step), W.shape[:1])
        magnitudes = np.abs(W)
        # Smaller rows vanish; where solutions are sparse these are most, so only the others are sorted.
        kept = np.flatnonzero(magnitudes.sum(axis=1) > removed)
        sums = np.cumsum(np.sort(magnitudes[kept], axis=1)[:, ::-1], axis=1)
        # (sum of the k largest - removed) / k rises with k exactly as long as the k largest are above the
        # level: its maximum is the level.
        levels = np.max((sums - removed[kept, None]) / np.arange(1, W.shape[1] + 1), axis=1)
        level = np.zeros((len(W), 1))
        level[kept, 0] = np.maximum(levels, 0.0)  # the two sums round differently
        return np.clip(W, -level, level)
