"""Half the squared group norm of columns, and half the squared group k-support norm: an edge's columns as one thing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.k_support import half_squared_k_support, shares_of_norms
from mtldsl.atoms.calculus.shrinkage import shrinkage
from mtldsl.atoms.function import register
from mtldsl.atoms.regularizers.column_groups import ColumnGroups, checked_columns
from mtldsl.errors import ModelError
from mtldsl.values.number import as_whole, quoted

__all__ = ["HalfSquaredGroupNorm", "HalfSquaredKSupportNorm"]


@register
@dataclass(frozen=True, eq=False)
class HalfSquaredGroupNorm(ColumnGroups):
    r"""Half the squared group norm: 1/2 (sum over groups c of columns ||W_c||_F)^2.

    Whole groups of columns are zero. The groups of `EdgeWeights` are the cliques; of other expressions (p, q) every column is one,
    unless told otherwise.

    Parameters
    ----------
    columns : list of lists of columns by position or name, or a dict of them, default see above
        Disjoint; every column is in one.

    Raises
    ------
    ModelError
        Where a column is in two groups or in none, or beyond the argument's; where a group is empty.

    Notes
    -----
    The eliminated form of min over eta >= 0, sum eta <= 1, of 1/2 sum ||W_c||^2 / eta_c: `half_squared_k_support_norm` with r = 1,
    and MT-MKL's penalty with p = 1. Conjugate: 1/2 max_c ||Z_c||_F^2. prox: ||W_c|| is reduced by step t, but not below zero,
    where t is the sum of the norms that result.
    Source: CGM, equation (10).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.0, 0.6], [0.0, 4.0, 0.8]])
    >>> norm = HalfSquaredGroupNorm([[0, 1], [2]])
    >>> norm.value(W)
    18.0
    >>> norm.prox(W, 1.0).round(3)
    array([[1.5, 0. , 0. ], [0. , 2. , 0. ]])
    """

    columns: list[list[int]] | None = field(default=None, metadata={"names": "columns"})

    name: ClassVar[str] = "half_squared_group_norm"
    meaning: ClassVar[str] = "half the squared sum over groups $c$ of columns of their Frobenius norms"
    formula: ClassVar[str] = r"\tfrac12\Big(\sum_c \|{}_c\|_F\Big)^2"
    finite_dual: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "columns", checked_columns(self.columns, self.name))

    @classmethod
    def examples(cls):
        return [cls(), cls([[0, 1], [2, 3]]), cls([[3, 0], [1], [2]]), cls([[0, 1, 2, 3]])]

    @property
    def r(self) -> int:
        """Its place among the k-support norms."""
        return 1

    @property
    def k_support(self):
        return 1

    def value(self, W):
        return 0.5 * float(self.norms(W).sum()) ** 2

    def prox(self, W, step):
        norms = self.norms(W)
        a = np.sort(norms)[::-1]
        if not a.size:
            return W.copy()
        # t = (sum of the k largest) / (1 / step + k), k as large as leaves those k above t
        thresholds = np.cumsum(a) * step / (1.0 + step * np.arange(1, a.size + 1))
        return W * self.over_columns(shrinkage(norms, thresholds.max()))

    def conjugate(self, Z):
        return 0.5 * float(self.norms(Z).max(initial=0.0)) ** 2

    def dual_gauge(self, Z):
        return 0.0


@register
@dataclass(frozen=True, eq=False)
class HalfSquaredKSupportNorm(ColumnGroups):
    r"""Half the squared group k-support norm: min over eta in [0, 1]^q, sum eta <= r, of 1/2 sum over groups c ||W_c||_F^2 / eta_c.

    The largest convex function below 1/2 ||W||_F^2 on the W with at most r groups that are not zero, up to scaling: a graph of at most
    r edges, relaxed. r = 1 is `half_squared_group_norm`, r >= q is `ridge`.

    Parameters
    ----------
    r : whole number >= 1
    columns : list of lists of columns by position or name, or a dict of them, default the cliques of `EdgeWeights`, else every column apart
        Disjoint; every column is in one.

    Raises
    ------
    ModelError
        Where r is not a whole number >= 1; for groups as in `half_squared_group_norm`.

    Notes
    -----
    With a_1 >= a_2 >= ... the norms of the groups, p the smallest of 0, ..., r - 1 with a_(p+1) <= nu = (sum_{j>p} a_j) / (r - p):
    1/2 (sum_{j<=p} a_j^2 + (sum_{j>p} a_j)^2 / (r - p)). Conjugate: 1/2 the sum of the r largest ||Z_c||_F^2.
    prox: W_c eta_c / (eta_c + step), eta_c = clip(kappa ||W_c|| - step, 0, 1), kappa such that they sum to r.
    Source: CGM, equations (6) and (11), in the form of Argyriou, Foygel and Srebro, "Sparse prediction with the k-support norm",
    NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.0, 0.6], [0.0, 4.0, 0.8]])
    >>> HalfSquaredKSupportNorm(1).value(W), HalfSquaredKSupportNorm(2).value(W), HalfSquaredKSupportNorm(3).value(W)
    (32.0, 16.0, 13.0)
    """

    r: int
    columns: list[list[int]] | None = field(default=None, metadata={"names": "columns"})

    name: ClassVar[str] = "half_squared_k_support_norm"
    meaning: ClassVar[str] = "half the squared $<r>$-support norm of the groups' Frobenius norms"
    formula: ClassVar[str] = r"\tfrac12\big(\|{}\|^{\mathrm{sp}}_{r}\big)^2"
    finite_dual: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        if (as_whole(self.r) or 0) < 1:
            raise ModelError(
                f"{self.name}(..., r={quoted(self.r)}): r is the largest number of groups, a whole number >= 1"
            )
        object.__setattr__(self, "r", int(self.r))
        object.__setattr__(self, "columns", checked_columns(self.columns, self.name))

    @classmethod
    def examples(cls):
        return [
            cls(2),
            cls(1, [[0, 1], [2, 3]]),
            cls(2, [[3, 0], [1], [2]]),
            cls(3),
            cls(9, [[0, 1], [2, 3]]),
        ]

    @property
    def k_support(self):
        return self.r

    def value(self, W):
        return half_squared_k_support(self.norms(W), self.r)

    def prox(self, W, step):
        eta = shares_of_norms(self.norms(W), self.r, step)
        factors = np.divide(eta, eta + step, out=np.ones_like(eta), where=eta + step > 0)
        return W * self.over_columns(factors)

    def conjugate(self, Z):
        a = np.sort(self.norms(Z))[::-1][: self.r]
        return 0.5 * float(a @ a)

    def dual_gauge(self, Z):
        return 0.0
