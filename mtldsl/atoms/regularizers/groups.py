"""Norms on groups of rows, and on all of W at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import in_parentheses
from mtldsl.atoms.calculus.shrinkage import shrinkage
from mtldsl.atoms.function import register
from mtldsl.atoms.parts import MATRIX, row_groups
from mtldsl.atoms.regularizers.norm import Norm, WeightedNorm
from mtldsl.errors import ModelError
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_whole, quoted

__all__ = ["FrobeniusNorm", "GroupNorm"]


@register
@dataclass(frozen=True, eq=False)
class GroupNorm(WeightedNorm):
    r"""Norm of groups of rows: sum over groups g of a_g ||W[g, :]||_F.

    Features (rows of W) enter and leave the model group by group. Where groups overlap, the word is a sum of such norms, each of groups
    that are apart, or of `tree_norm` where one holds another, and prints as that sum: the weights that are *left out* are then a union
    of groups. For weights that are *used* in unions of groups, `latent_group_norm`.

    Parameters
    ----------
    groups : list of lists of rows, or a dict of them
        By position, or by the names of features: [["age", "sex"], ["weight"]], or {"who": ["age", "sex"], ...}.
        Not empty. Rows in no group are not penalised.
    weights : number or array a (number of groups,), >= 0, default all 1
        What each group costs; sqrt(len(g)) is a common choice. A group of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a row is twice in a group, is negative or beyond the argument's rows; where a group is empty; where
        a weight is negative or not finite, or there is not one weight per group.

    Notes
    -----
    prox: W[g] -> (1 - step a_g / ||W[g]||_F)_+ W[g]. Dual norm: max ||Z[g]||_F / a_g, +inf unless Z is 0 on
    unpenalised rows.
    Source: Yuan and Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68
    (2006); of groups that overlap, Jenatton, Audibert and Bach, "Structured variable selection with sparsity-inducing norms", JMLR 12
    (2011).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.0], [0.0, 4.0], [0.6, 0.8]])
    >>> norm = GroupNorm([[0, 1], [2]])
    >>> norm.value(W)
    6.0
    >>> norm.prox(W, 2.5)
    array([[1.5, 0. ], [0. , 2. ], [0. , 0. ]])
    """

    groups: list[list[int]] = field(metadata={"names": "rows"})
    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "group_norm"
    meaning: ClassVar[str] = "the sum over groups $g$ of rows of their Frobenius norms"
    formula: ClassVar[str] = r"\sum_g \|{}_{g\cdot}\|_F"
    weighted_formula: ClassVar[str] = r"\sum_g a_g \|{}_{g\cdot}\|_F"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "groups", _checked_groups(self.groups))
        if isinstance(self.weights, np.ndarray) and self.weights.shape != (len(self.groups),):
            raise ModelError(
                f"group_norm: there are {self.weights.size} weights for {len(self.groups)} groups"
            )

    @classmethod
    def examples(cls):
        return [
            cls([[0, 1], [2, 3, 4]]),
            cls([[4, 0], [2], [1, 3]], weights=np.array([1.0, 0.5, 2.0])),
            cls([[3, 0], [1]]),
            cls([[0, 1], [2, 3, 4]], weights=np.array([0.0, 1.0])),
        ]

    @cached_property
    def parts(self):
        return row_groups(self.groups)

    @property
    def scales(self):
        return self.parts

    def check(self, shape):
        beyond = self.rows.max()
        if beyond >= shape[0]:
            return f"row {beyond} is in a group, but the argument has {shape[0]} rows (0 to {shape[0] - 1})"
        return None

    def latex(self, argument):
        formula = self.formula if self.weights is None else self.weighted_formula
        return formula.replace("{}", in_parentheses(argument))

    @cached_property
    def rows(self) -> np.ndarray:
        """The penalised rows, group after group."""
        return np.concatenate(self.groups).astype(np.intp)

    @cached_property
    def labels(self) -> np.ndarray:
        """The group of every one of `rows`."""
        return np.repeat(np.arange(len(self.groups)), [len(group) for group in self.groups])

    @property
    def absorbs(self) -> bool:
        # The number of rows of the argument is not known here. Rows 0 to the largest named are what the
        # groups can cover; an argument with more rows than that gets dual_gauge = +inf, which is right and
        # merely costs a bound.
        return super().absorbs and self.rows.size == self.rows.max() + 1

    def stated(self, shape):
        """With a group of the rows that are in none, which is not penalised."""
        free = np.setdiff1d(np.arange(shape[0]), self.rows)
        if not free.size:
            return self
        weights = np.append(
            np.broadcast_to(1.0 if self.weights is None else self.weights, len(self.groups)), 0.0
        )
        return GroupNorm([*self.groups, free.tolist()], weights)

    def row_groups(self, shape):
        if self.rows.size != shape[0]:
            return None
        owner = np.empty(shape[0], dtype=np.intp)
        owner[self.rows] = self.labels
        return owner, np.broadcast_to(1.0 if self.weights is None else self.weights, len(self.groups))

    def cell_norms(self, W):
        squares = np.einsum("rc,rc->r", W, W)
        return np.sqrt(np.bincount(self.labels, weights=squares[self.rows], minlength=len(self.groups)))

    def spread(self, per_cell, shape, elsewhere=0.0):
        column = np.full((shape[0], 1), elsewhere)
        column[self.rows, 0] = np.broadcast_to(per_cell, len(self.groups))[self.labels]
        return column

    def prox(self, W, step):
        factors = shrinkage(self.cell_norms(W), self.thresholds(step))
        return W * self.spread(factors, W.shape, elsewhere=1.0)

    def dual_gauge(self, Z):
        unpenalised = np.ones(len(Z), dtype=bool)
        unpenalised[self.rows] = False
        return np.inf if np.any(Z[unpenalised]) else super().dual_gauge(Z)

    def dual_project(self, Z):
        kept = self.spread(1.0 if self.weights is None else self.weights, Z.shape) > 0
        return Z if kept.all() else np.where(kept, Z, 0.0)


@register
@dataclass(frozen=True, eq=False)
class FrobeniusNorm(Norm):
    r"""The Frobenius norm ||W||_F = sqrt(sum of squared entries), not squared.

    One group that holds all of W (p, q): zero as a whole, or not at all.

    Notes
    -----
    prox: W -> (1 - step / ||W||_F)_+ W. Its own dual norm. For the squared norm, 1/2 ||W||_F^2, use `ridge`.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.0], [0.0, 4.0]])
    >>> FrobeniusNorm().value(W)
    5.0
    >>> FrobeniusNorm().prox(W, 2.5)
    array([[1.5, 0. ], [0. , 2. ]])
    """

    name: ClassVar[str] = "frobenius_norm"
    meaning: ClassVar[str] = "the Frobenius norm"
    formula: ClassVar[str] = r"\|{}\|_F"
    separable: ClassVar[str] = "matrix"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    @property
    def scales(self):
        return MATRIX

    def value(self, W):
        return float(np.linalg.norm(W))

    def prox(self, W, step):
        norm = np.linalg.norm(W)
        return W * (1.0 - step / norm) if norm > step else np.zeros_like(W)

    def dual_gauge(self, Z):
        return float(np.linalg.norm(Z))

    def nearest_in_ball(self, W, radius):
        return W * (radius / np.linalg.norm(W))


def _checked_groups(groups) -> tuple[tuple[int, ...], ...]:
    listed = as_list(groups)
    if listed is None:
        raise ModelError(
            "groups is a list of lists of rows, such as [[0, 1], [2, 3]], or of names of features",
            term=f"group_norm(..., groups={quoted(groups)})",
        )
    checked, owner = [], {}
    for g, group in enumerate(listed):
        rows = as_list(group)
        if rows is None:
            raise ModelError(
                f"group_norm: group {g} is {quoted(group)}",
                write_instead="write a list a group, such as [[0, 1], [2, 3]]",
            )
        if not rows:
            raise ModelError(f"group_norm: group {g} is empty")
        for row in rows:
            if as_whole(row) is None:
                raise ModelError(
                    f"group_norm: group {g} holds {quoted(row)}; rows are names, or whole numbers from 0"
                )
            if row < 0:
                raise ModelError(
                    f"group_norm: group {g} holds row {row}; row indices are counted from 0 upwards"
                )
            if rows.count(row) > 1:
                raise ModelError(f"group_norm: row {row} is twice in group {g}; the groups must be disjoint")
            if row in owner:
                raise ModelError(
                    f"group_norm: row {row} is in groups {owner[row]} and {g}; the groups must be disjoint"
                )
            owner[row] = g
        checked.append(tuple(int(row) for row in rows))
    if not checked:
        raise ModelError("group_norm: there are no groups")
    return tuple(checked)
