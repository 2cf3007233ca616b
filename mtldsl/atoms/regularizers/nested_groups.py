"""The norm of a tree of groups: groups of rows, or of columns within every row, each inside another or apart from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import in_parentheses
from mtldsl.atoms.calculus.shrinkage import shrinkage
from mtldsl.atoms.function import register
from mtldsl.atoms.parts import ENTRIES, ROWS
from mtldsl.atoms.regularizers.families import Groups, checked_family, crossing, indices, levels
from mtldsl.atoms.regularizers.norm import Norm
from mtldsl.atoms.regularizers.weights import checked_weights
from mtldsl.errors import ModelError

__all__ = ["TreeNorm"]


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
        object.__setattr__(self, "weights", checked_weights(self.weights, self.name, 1))
        if isinstance(self.weights, np.ndarray) and self.weights.shape != (len(self.groups),):
            raise ModelError(
                f"{self.name}: there are {self.weights.size} weights for {len(self.groups)} groups"
            )
        crossed = crossing(self.groups)
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
        beyond, kind = max(map(max, self.groups)), ("row", "column")[self.axis]
        if beyond >= shape[self.axis]:
            n = shape[self.axis]
            return f"{kind} {beyond} is in a group, but the argument has {n} {kind}s (0 to {n - 1})"
        return None

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
        return [(self._costs[level], *indices(self.groups, level)) for level in levels(self.groups) or []]

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
