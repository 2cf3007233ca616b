"""Norms that treat every column (task) of W as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.shrinkage import shrinkage
from mtldsl.atoms.function import register
from mtldsl.atoms.parts import COLUMNS
from mtldsl.atoms.regularizers.norm import WeightedNorm
from mtldsl.atoms.regularizers.weights import check_length

__all__ = ["L12Norm"]


@register
@dataclass(frozen=True, eq=False)
class L12Norm(WeightedNorm):
    r"""Group norm with one group a task: sum over columns i of a_i ||W_i||_2.

    Makes whole columns of W (p features, q tasks) zero. On S in L + S it singles out outlier tasks.

    Parameters
    ----------
    weights : number or array a (q,), >= 0, default all 1
        What each column costs; a column of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or there is not one weight per column.

    Notes
    -----
    prox: W_i -> (1 - step a_i / ||W_i||_2)_+ W_i. Dual norm: max ||Z_i||_2 / a_i.
    Source: Chen, Zhou and Ye, "Integrating low-rank and group-sparse structures for robust multi-task
    learning", KDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.6], [4.0, 0.8]])
    >>> L12Norm().value(W)
    6.0
    >>> L12Norm().prox(W, 2.5)
    array([[1.5, 0. ], [2. , 0. ]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "l12_norm"
    meaning: ClassVar[str] = r"the $\ell_{1,2}$ norm, the sum of the columns' Euclidean norms"
    formula: ClassVar[str] = r"\|{}\|_{1,2}"
    weighted_formula: ClassVar[str] = r"\sum_i a_i \|{}_{\cdot i}\|_2"
    separable: ClassVar[str] = "columns"
    monotone: ClassVar[bool] = True

    @property
    def scales(self):
        return COLUMNS

    @classmethod
    def examples(cls):
        return [
            cls(),
            cls(weights=np.array([1.0, 2.0, 0.5, 3.0])),
            cls(weights=np.array([1.0, 0.0, 0.5, 2.0])),
        ]

    def check(self, shape):
        return check_length(self.weights, shape[1], "columns (tasks)")

    def spread(self, per_cell, shape):
        return np.asarray(per_cell)

    def cell_norms(self, W):
        return np.sqrt(np.einsum("rc,rc->c", W, W))

    def prox(self, W, step):
        return W * shrinkage(self.cell_norms(W), self.thresholds(step))
