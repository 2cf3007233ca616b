"""Exclusive lasso: the squared l1 norms of rows, or of groups of rows, in which entries compete."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ROWS, register, row_groups
from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.atoms.prox.shrinkage import squared_sum_threshold
from mtldsl.atoms.regularizers.group_norms import check_lines, checked_family


@register
@dataclass(frozen=True, eq=False)
class ExclusiveLasso(Regularizer):
    r"""The exclusive lasso: sum over rows j of (sum_i |W_ji|)^2, the squared l1 norm of every row; no 1/2.

    Tasks compete for each feature: a row has few entries that are not zero, but rarely none. Where
    `l21_norm` shares features between tasks, this divides them up. With groups of rows, all entries of a
    group compete.

    Parameters
    ----------
    groups : list of lists of rows, or a dict of them, default every row apart
        By position, or by the names of features. Disjoint; every row is in one.

    Raises
    ------
    ModelError
        Where a row is in two groups or in none, or beyond the argument's; where a group is empty.

    Notes
    -----
    prox: the entries of a group are soft thresholded at 2 step S, S the l1 norm that results: the largest of
    (the sum of the k largest sizes) / (1 + 2 step k). Conjugate: 1/4 sum over groups of max |Z_g|^2.
    Source: Zhou, Jin and Hoi, "Exclusive lasso for multi-task feature selection", AISTATS 2010, eq. (3); with
    groups of features, Kong, Fujimaki, Liu, Nie and Ding, "Exclusive feature learning on arbitrary structures
    via l1,2-norm", NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -1.0], [0.0, 2.0]])
    >>> ExclusiveLasso().value(W)
    20.0
    >>> ExclusiveLasso().prox(W, 0.5)
    array([[1.5, 0. ], [0. , 1. ]])
    >>> ExclusiveLasso([[0, 1]]).value(W)
    36.0
    """

    groups: list[list[int]] | None = field(default=None, metadata={"names": "rows"})

    name: ClassVar[str] = "exclusive_lasso"
    meaning: ClassVar[str] = "the sum over rows, or groups $g$ of rows, of their squared l1 norms"
    formula: ClassVar[str] = r"\sum_g \|{}_{g\cdot}\|_1^2"
    finite_dual: ClassVar[bool] = True
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    def __post_init__(self):
        if self.groups is not None:
            groups = checked_family(self.groups, self.name, "groups", disjoint=True)
            object.__setattr__(self, "groups", groups)

    @classmethod
    def examples(cls):
        return [cls(), cls([[0, 1], [2, 3, 4]]), cls([[4, 0], [2], [3, 1]]), cls([[0, 1, 2, 3, 4]])]

    @property
    def separable(self) -> str | None:
        return "rows" if self.groups is None else None

    @property
    def parts(self):
        return ROWS if self.groups is None else row_groups(self.groups)

    def check(self, shape):
        if self.groups is None:
            return None
        held = sum(map(len, self.groups))
        beyond = check_lines(self.groups, shape[0], "row")
        if beyond is None and held < shape[0]:
            return f"the groups hold {held} rows, but the argument has {shape[0]}; give every row a group"
        return beyond

    def _of_groups(self, W) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return [(rows (groups, size), the sizes of their entries (groups, entries))], groups of one size together."""
        if self.groups is None:
            stacks = [np.arange(len(W))[:, None]]
        else:
            lengths = sorted({len(group) for group in self.groups})
            stacks = [np.array([group for group in self.groups if len(group) == n]) for n in lengths]
        return [(rows, np.abs(W[rows]).reshape(len(rows), -1)) for rows in stacks]

    def value(self, W):
        return sum(float(np.square(sizes.sum(axis=1)).sum()) for _, sizes in self._of_groups(W))

    def prox(self, W, step):
        thresholds = np.empty((len(W), 1))
        for rows, sizes in self._of_groups(W):
            thresholds[rows] = squared_sum_threshold(-np.sort(-sizes, axis=1), 2.0 * step)[:, None, None]
        return W - np.clip(W, -thresholds, thresholds)

    def conjugate(self, Z):
        return 0.25 * sum(float(np.square(sizes.max(axis=1)).sum()) for _, sizes in self._of_groups(Z))
