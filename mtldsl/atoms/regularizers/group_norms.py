"""Norms of groups of rows and of trees of groups, and the Frobenius norm, with their proximal steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.atom import (
    ENTRIES,
    MATRIX,
    REGISTRY,
    ROWS,
    Separability,
    in_parentheses,
    register,
    row_groups,
)
from mtldsl.atoms.prox.shrinkage import shrinkage
from mtldsl.atoms.regularizers.norm_base import Norm, WeightedNorm, checked_group_weights
from mtldsl.errors import ModelError
from mtldsl.utils.validation import as_list, as_whole, groups_of_labels, plain, quoted

# --------------------------------------------------------------------------------------------------------------
# Families of groups of rows or columns: read, told apart where they are nested, and split into families that are.

Groups = tuple[tuple[int, ...], ...]


def checked_family(groups, word: str, parameter: str, disjoint: bool = False) -> Groups:
    """Groups, which may overlap unless `disjoint`, as tuples of positions; ModelError for what is not a list of lists of whole numbers from 0.

    >>> checked_family([[0, 1], [1, 2]], "tree_norm", "rows")
    ((0, 1), (1, 2))
    """
    kind, names = ("column", "tasks") if parameter == "columns" else ("row", "features")
    such = "[[0, 1], [2, 3]]" if disjoint else "[[0, 1], [0, 1, 2]]"
    listed = as_list(groups)
    if listed is None:
        raise ModelError(
            f"{parameter} is a list of lists of {kind}s, such as {such}, or of names of {names}",
            term=f"{word}(..., {parameter}={quoted(groups)})",
        )
    checked, owner = [], {}
    for g, group in enumerate(listed):
        lines = as_list(group)
        if lines is None:
            raise ModelError(
                f"{word}: group {g} is {quoted(plain(group))}",
                write_instead=f"write a list per group, such as {such}" + groups_of_labels(listed),
            )
        if not lines:
            raise ModelError(f"{word}: group {g} is empty")
        wholes: dict[int, None] = {}  # in their order, each once
        for line in lines:
            whole = as_whole(line)
            if whole is None:
                raise ModelError(
                    f"{word}: group {g} holds {quoted(line)}; {kind}s are names, or whole numbers from 0"
                )
            if whole < 0:
                raise ModelError(
                    f"{word}: group {g} holds {kind} {whole}; {kind} indices are counted from 0 upwards"
                )
            if whole in wholes:
                raise ModelError(f"{word}: {kind} {whole} is twice in group {g}")
            wholes[whole] = None
        for whole in wholes if disjoint else ():
            if owner.setdefault(whole, g) != g:
                raise ModelError(
                    f"{word}: {kind} {whole} is in groups {owner[whole]} and {g}; the groups must be disjoint"
                )
        checked.append(tuple(wholes))
    if not checked:
        raise ModelError(f"{word}: there are no groups")
    return tuple(checked)


def check_lines(groups: Sequence[Sequence[int]], length: int, kind: str) -> str | None:
    """The sentence for groups of rows or columns that an argument of this length has not."""
    beyond = max(map(max, groups))
    if beyond >= length:
        return f"{kind} {beyond} is in a group, but the argument has {length} {kind}s (0 to {length - 1})"
    return None


def find_crossing_groups(groups: Groups) -> tuple[int, int] | None:
    """Two groups that overlap while neither holds the other, by position; None where the family is nested."""
    top: dict[int, int] = {}  # line -> the largest group so far that holds it
    for g in _by_size(groups):
        other = _find_cut(g, top, groups)
        if other is not None:
            return min(g, other), max(g, other)
        top.update(dict.fromkeys(groups[g], g))
    return None


def nested_families(groups: Groups) -> list[list[int]]:
    """Positions of groups in as few nested families as a greedy choice finds: each group joins the first family that it fits.

    >>> nested_families(((0, 1), (1, 2), (2, 3), (0, 1, 2, 3)))
    [[0, 2, 3], [1]]
    """
    families: list[list[int]] = []
    tops: list[dict[int, int]] = []
    for g in _by_size(groups):
        place = next((k for k, top in enumerate(tops) if _find_cut(g, top, groups) is None), len(tops))
        if place == len(tops):
            families.append([])
            tops.append({})
        families[place].append(g)
        tops[place].update(dict.fromkeys(groups[g], g))
    return sorted(sorted(family) for family in families)


def _find_cut(g: int, top: dict[int, int], groups: Groups) -> int | None:
    """Return a group of a family that this one touches and does not hold; None where there is none."""
    held = Counter(top[line] for line in groups[g] if line in top)
    return next((other for other, count in held.items() if count < len(groups[other])), None)


def _by_size(groups: Groups) -> list[int]:
    """Smallest first; as they stand among equals."""
    return sorted(range(len(groups)), key=lambda g: len(groups[g]))


def levels(groups: Groups) -> list[list[int]]:
    """Positions of nested groups, level by level from the leaves to the roots: those of a level are disjoint, and a group comes after all
    that it holds.

    >>> levels(((0, 1, 2, 3), (0, 1), (2, 3), (2,)))
    [[1, 3], [2], [0]]
    """
    height: dict[int, int] = {}  # line -> how many levels hold it so far
    found: list[list[int]] = []
    for g in _by_size(groups):
        level = max(height.get(line, 0) for line in groups[g])
        if level == len(found):
            found.append([])
        found[level].append(g)
        height.update(dict.fromkeys(groups[g], level + 1))
    return [sorted(level) for level in found]


def indices(groups: Groups, which: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lines, starts, sizes) of these groups one after the other, as `np.add.reduceat` and `np.repeat` want them."""
    lines = np.concatenate([groups[g] for g in which]).astype(np.intp)
    sizes = np.array([len(groups[g]) for g in which])
    return lines, np.cumsum(sizes) - sizes, sizes


# --------------------------------------------------------------------------------------------------------------
# Norms on groups of rows, and on all of W at once.


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
        object.__setattr__(self, "groups", checked_family(self.groups, self.name, "groups", disjoint=True))
        weights = checked_group_weights(self.weights, self.name, len(self.groups))
        object.__setattr__(self, "weights", weights)

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
        return check_lines(self.groups, shape[0], "row")

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

    def of_transpose(self, shape):
        stated = self.stated(shape[::-1])
        column_group_norm: Any = REGISTRY["column_group_norm"]  # whose file imports this one
        return column_group_norm(stated.groups, stated.weights)

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

    scales: ClassVar[Separability] = MATRIX
    name: ClassVar[str] = "frobenius_norm"
    meaning: ClassVar[str] = "the Frobenius norm"
    formula: ClassVar[str] = r"\|{}\|_F"
    transpose_invariant: ClassVar[bool] = True
    separable: ClassVar[str] = "matrix"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    def value(self, W):
        return float(np.linalg.norm(W))

    def prox(self, W, step):
        norm = np.linalg.norm(W)
        return W * (1.0 - step / norm) if norm > step else np.zeros_like(W)

    def dual_gauge(self, Z):
        return float(np.linalg.norm(Z))

    def nearest_in_ball(self, W, radius):
        return W * (radius / np.linalg.norm(W))


# --------------------------------------------------------------------------------------------------------------
# The norm of a tree of groups: groups of rows, or of columns within every row, each inside another or apart from it.


@register
@dataclass(frozen=True, eq=False)
class TreeNorm(Norm):
    r"""Norm of the groups of a tree: sum over groups g of a_g ||W[g, :]||_F, or, of columns, sum over rows j and groups g of a_g ||W[j, g]||_2.

    Any two groups are apart, or one holds the other. A group that is zero takes all groups inside it along: with a tree of tasks
    (`columns`), a feature is used by all tasks below a node or by none of them, unless a smaller group keeps it; with a tree of
    features (`rows`), whole subtrees of features are left out.

    Parameters
    ----------
    rows : list of lists of rows (features), by position or name, or a dict of them
        Or a tree, {node: its parent}: the groups are then the nodes, each with the leaves below it.
    columns : the same, of columns (tasks); one of the two is given
    weights : number or array a (number of groups,), >= 0, default all 1
        What each group costs, of a tree in the order in which its nodes are first named. A group of weight 0 is not penalised, nor is
        a row or column in no group.

    Raises
    ------
    ModelError
        Where both rows and columns are given, or neither; where two groups overlap and neither holds the other; where a group is empty;
        where a parent is a node's own descendant; where a weight is negative or not finite, or there is not one weight a group.

    Notes
    -----
    prox: the proxes of the groups' norms one after the other, from the leaves to the roots. Dual norm: by Newton's method on the prox.
    Source: Kim and Xing, "Tree-guided group lasso for multi-task regression with structured sparsity", ICML 2010, of trees of tasks;
    Jenatton, Mairal, Obozinski and Bach, "Proximal methods for hierarchical sparse coding", JMLR 12 (2011), Theorem 1 and of trees of
    features.

    Examples
    --------
    >>> import numpy as np
    >>> norm = TreeNorm(columns=[[0], [1], [2], [0, 1], [0, 1, 2]])
    >>> W = np.array([[3.0, 4.0, 12.0], [0.0, 0.0, 2.0]])
    >>> norm.value(W)  # 3 + 4 + 12 + 5 + 13, and 2 + 0 + 2
    41.0
    >>> norm.prox(W, 2.0).round(3)
    array([[0.084, 0.169, 8.001],
           [0.   , 0.   , 0.   ]])
    """

    rows: list[list[int]] | None = field(default=None, metadata={"names": "rows", "tree": True})
    columns: list[list[int]] | None = field(default=None, metadata={"names": "columns", "tree": True})
    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "tree_norm"
    instead_of_transpose: ClassVar[str] = (
        "tree_norm({0}, columns=groups), which takes groups of columns row by row"
    )
    meaning: ClassVar[str] = "the sum over groups $g$ of a tree of the norms of their weights"
    formula: ClassVar[str] = r"\sum_g a_g \|{}_g\|"
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        if (self.rows is None) == (self.columns is None):
            raise ModelError(
                f"{self.name} needs groups, of rows (features) or of columns (tasks)",
                write_instead=f"write {self.name}(W, columns=[[0], [1], [0, 1]]), or rows=...",
            )
        along = "columns" if self.rows is None else "rows"
        object.__setattr__(self, along, checked_family(getattr(self, along), self.name, along))
        weights = checked_group_weights(self.weights, self.name, len(self.groups))
        object.__setattr__(self, "weights", weights)
        crossed = find_crossing_groups(self.groups)
        if crossed:
            g, h = crossed
            raise ModelError(
                f"{self.name}: groups {g} and {h} overlap, and neither holds the other",
                write_instead="write overlapping_group_norm, which takes any groups",
            )

    @classmethod
    def examples(cls):
        return [
            cls(columns=[[0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2, 3]]),
            cls(columns=[[0, 2, 3], [3, 0], [1]], weights=np.array([1.0, 0.5, 2.0])),
            cls(rows=[[0, 1, 2, 3, 4], [0, 1], [3], [3, 4]], weights=np.array([0.7, 1.0, 0.3, 0.5])),
            cls(rows=[[3, 0], [0]]),
            cls(columns=[[0, 1, 2, 3], [0, 1]], weights=np.array([0.0, 1.5])),
            cls(rows=[[1, 2], [3, 4, 0], [4]], weights=2.0),
        ]

    @cached_property
    def groups(self) -> Groups:
        return self.columns if self.rows is None else self.rows  # type: ignore[return-value]

    @property
    def axis(self) -> int:
        """0 where rows are grouped, 1 where columns are."""
        return 1 if self.rows is None else 0

    def check(self, shape):
        return check_lines(self.groups, shape[self.axis], ("row", "column")[self.axis])

    def latex(self, argument):
        W, a = in_parentheses(argument), "" if self.weights is None else "a_g "
        if self.axis == 0:
            return rf"\sum_g {a}\|{W}_{{g\cdot}}\|_F"
        return rf"\sum_j \sum_g {a}\|{W}_{{jg}}\|_2"

    @property
    def order_preserving(self) -> bool:
        return self.axis == 0

    @property
    def parts(self):
        return super().parts if self.axis == 0 else ROWS

    @property
    def scales(self):
        return ROWS if self.axis == 0 else ENTRIES

    @property
    def absorbs(self) -> bool:
        # the number of lines of the argument is not known here: up to the largest that is named, as in `group_norm`
        return bool(self._penalised(max(map(max, self.groups)) + 1).all())

    @cached_property
    def _costs(self) -> np.ndarray:
        """The weight of every group."""
        return np.broadcast_to(1.0 if self.weights is None else self.weights, len(self.groups))

    @cached_property
    def _levels(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """(weights, lines, starts, sizes) of the groups of every level, leaves first."""
        return [(self._costs[level], *indices(self.groups, level)) for level in levels(self.groups)]

    def _penalised(self, n_lines: int) -> np.ndarray:
        held = np.zeros(n_lines, dtype=bool)
        for group, cost in zip(self.groups, self._costs, strict=True):
            held[list(group)] |= cost > 0
        return held

    def _squares(self, W) -> np.ndarray:
        """(one for columns the number of rows, number of lines): squares of what the groups are sums of."""
        return np.einsum("rc,rc->r", W, W)[None, :] if self.axis == 0 else np.square(W)

    def value(self, W):
        squares = self._squares(W)
        norms = (
            np.sqrt(np.add.reduceat(squares[:, lines], starts, axis=1)) @ costs
            for costs, lines, starts, _ in self._levels
        )
        return float(sum(part.sum() for part in norms))

    def prox(self, W, step):
        squares = self._squares(W)
        factors = np.ones_like(squares)
        for costs, lines, starts, sizes in self._levels:
            norms = np.sqrt(np.add.reduceat(squares[:, lines], starts, axis=1))
            shrunk = np.repeat(shrinkage(norms, step * costs), sizes, axis=1)
            factors[:, lines] *= shrunk
            squares[:, lines] *= shrunk**2
        return W * (factors.T if self.axis == 0 else factors)

    def dual_gauge(self, Z):
        kept = self.dual_project(Z)
        return np.inf if np.any(kept != Z) else super().dual_gauge(Z)

    def dual_project(self, Z):
        held = self._penalised(Z.shape[self.axis])
        return Z if held.all() else np.where(held[:, None] if self.axis == 0 else held, Z, 0.0)
