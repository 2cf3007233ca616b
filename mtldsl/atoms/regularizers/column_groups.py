"""Penalties on groups of columns: of an edge's columns as of one thing, which is in the label graph or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import Separability, column_groups, register
from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.atoms.prox.shrinkage import (
    half_squared_k_support,
    shares_of_norms,
    shrinkage,
    squared_sum_threshold,
)
from mtldsl.atoms.regularizers.group_norms import GroupNorm, checked_family
from mtldsl.atoms.regularizers.l1_and_l21_norms import L21Norm
from mtldsl.atoms.regularizers.norm_base import WeightedNorm, checked_group_weights
from mtldsl.errors import ModelError
from mtldsl.utils.validation import as_list, as_whole, quoted


class ColumnGroups(Regularizer):
    """Base of functions of the Frobenius norms of groups of columns; a subclass has a field `columns`, None for every column apart."""

    columns: list[list[int]] | None
    groups_columns: ClassVar[bool] = True

    @property
    def scales(self) -> Separability:
        return column_groups(self.columns)

    @cached_property
    def owner(self) -> np.ndarray | None:
        """The group of every column; None where every column is one."""
        if self.columns is None:
            return None
        owner = np.empty(sum(map(len, self.columns)), dtype=np.intp)
        for g, group in enumerate(self.columns):
            owner[list(group)] = g
        return owner

    def check(self, shape):
        owner = self.owner
        if owner is None or len(owner) == shape[1]:
            return None
        return (
            f"the groups hold {len(owner)} columns, but the argument has {shape[1]}; give every column a group, "
            "[[0, 1], [2, 3], ...]"
        )

    def norms(self, W) -> np.ndarray:
        """(number of groups,) the Frobenius norms of the groups."""
        squares = np.einsum("rc,rc->c", W, W)
        if self.columns is None or self.owner is None:
            return np.sqrt(squares)
        return np.sqrt(np.bincount(self.owner, weights=squares, minlength=len(self.columns)))

    def over_columns(self, per_group) -> np.ndarray:
        """One number a group -> one a column."""
        return per_group if self.owner is None else np.asarray(per_group)[self.owner]


@register
@dataclass(frozen=True, eq=False)
class ColumnGroupNorm(ColumnGroups, WeightedNorm):
    r"""Norm of disjoint groups of columns: sum over groups c of a_c ||W_c||_F.

    The groups of `EdgeWeights` are the cliques, so that whole edges leave the label graph; of other expressions (p, q) every column is
    one, unless told otherwise. `group_norm` is the same on rows.

    Parameters
    ----------
    columns : list of lists of columns by position or name, or a dict of them, default see above
        Disjoint; every column is in one.
    weights : number or array a (number of groups,), >= 0, default all 1
        What each group costs. A group of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a column is in two groups or in none; where a weight is negative or not finite, or there is not one weight per group.

    Notes
    -----
    prox: W_c -> (1 - step a_c / ||W_c||_F)_+ W_c. Dual norm: max ||Z_c||_F / a_c.
    Source: Yuan and Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68 (2006); over the edges of
    a graph of labels: CGM, section 5 (HLLM-L1).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.0, 0.6], [0.0, 4.0, 0.8]])
    >>> ColumnGroupNorm([[0, 1], [2]]).value(W)
    6.0
    """

    columns: list[list[int]] | None = field(default=None, metadata={"names": "columns"})
    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "column_group_norm"
    meaning: ClassVar[str] = "the sum over groups $c$ of columns of their Frobenius norms"
    formula: ClassVar[str] = r"\sum_c \|{}_c\|_F"
    weighted_formula: ClassVar[str] = r"\sum_c a_c \|{}_c\|_F"
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "columns", checked_columns(self.columns, self.name))
        if self.columns is None:
            WeightedNorm.__post_init__(self)
        else:
            weights = checked_group_weights(self.weights, self.name, len(self.columns))
            object.__setattr__(self, "weights", weights)

    @classmethod
    def examples(cls):
        return [
            cls(),
            cls([[0, 1], [2, 3]]),
            cls([[3, 0], [1], [2]], weights=np.array([1.0, 0.5, 2.0])),
            cls([[0, 1], [2, 3]], weights=np.array([0.0, 1.0])),
        ]

    def check(self, shape):
        if self.columns is None and isinstance(self.weights, np.ndarray) and self.weights.size != shape[1]:
            return f"there are {self.weights.size} weights for {shape[1]} columns"
        return ColumnGroups.check(self, shape)

    @property
    def parts(self):
        return self.scales

    def of_transpose(self, shape):
        return L21Norm(self.weights) if self.columns is None else GroupNorm(self.columns, self.weights)

    def cell_norms(self, W):
        return self.norms(W)

    def spread(self, per_cell, shape):
        groups = shape[1] if self.columns is None else len(self.columns)
        return self.over_columns(np.broadcast_to(per_cell, groups))[None, :]


def checked_columns(columns, word: str) -> tuple[tuple[int, ...], ...] | None:
    """Disjoint groups that hold the columns 0, 1, ... to the largest, or None."""
    if columns is None:
        return None
    listed = as_list(columns)
    if listed == []:  # of a graph of labels without edges
        return ()
    groups = checked_family(columns if listed is None else listed, word, "columns", disjoint=True)
    held = set().union(*groups)
    missing = next((column for column in range(max(held)) if column not in held), None)
    if missing is not None:
        raise ModelError(f"column {missing} is in no group; every column is in one group", term=word)
    return groups


# --------------------------------------------------------------------------------------------------------------
# Half the squared group norm of columns, and half the squared group k-support norm: an edge's columns as one thing.


class _HalfSquaredSupportNorm(ColumnGroups):
    """Half the squared r-support norm of the groups' norms; a subclass has `r`, the largest number of groups."""

    r: int
    finite_dual: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "columns", checked_columns(self.columns, self.name))

    @property
    def k_support(self):
        return self.r

    def prox(self, W, step):
        eta = shares_of_norms(self.norms(W), self.r, step)
        factors = np.divide(eta, eta + step, out=np.ones_like(eta), where=eta + step > 0)
        return W * self.over_columns(factors)

    def conjugate(self, Z):
        a = np.sort(self.norms(Z))[::-1][: self.r]
        return 0.5 * float(a @ a)


@register
@dataclass(frozen=True, eq=False)
class HalfSquaredGroupNorm(_HalfSquaredSupportNorm):
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
    r: ClassVar[int] = 1  # its place among the k-support norms
    meaning: ClassVar[str] = "half the squared sum over groups $c$ of columns of their Frobenius norms"
    formula: ClassVar[str] = r"\tfrac12\Big(\sum_c \|{}_c\|_F\Big)^2"

    @classmethod
    def examples(cls):
        return [cls(), cls([[0, 1], [2, 3]]), cls([[3, 0], [1], [2]]), cls([[0, 1, 2, 3]])]

    def value(self, W):
        return 0.5 * float(self.norms(W).sum()) ** 2

    def prox(self, W, step):
        norms = self.norms(W)
        # zeros are exact, unlike those of shares
        threshold = squared_sum_threshold(np.sort(norms)[::-1], step)
        return W * self.over_columns(shrinkage(norms, threshold))


@register
@dataclass(frozen=True, eq=False)
class HalfSquaredKSupportNorm(_HalfSquaredSupportNorm):
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

    def __post_init__(self):
        if (as_whole(self.r) or 0) < 1:
            raise ModelError(
                f"{self.name}(..., r={quoted(self.r)}): r is the largest number of groups, a whole number >= 1"
            )
        object.__setattr__(self, "r", int(self.r))
        super().__post_init__()

    @classmethod
    def examples(cls):
        return [
            cls(2),
            cls(1, [[0, 1], [2, 3]]),
            cls(2, [[3, 0], [1], [2]]),
            cls(3),
            cls(9, [[0, 1], [2, 3]]),
        ]

    def value(self, W):
        return half_squared_k_support(self.norms(W), self.r)
