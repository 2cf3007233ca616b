"""The latent group norm: weights as a sum of parts, each of which is zero outside of one group of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ROWS, Separability, in_parentheses, register
from mtldsl.atoms.regularizers.group_norms import check_lines, checked_family
from mtldsl.atoms.regularizers.norm_base import Norm, checked_group_weights
from mtldsl.errors import ModelError


@dataclass(frozen=True)
class LatentGroupSettings:
    """Limits of Newton's method for the sizes of groups.

    slope_share     : slope that is zero, relative to what it is a difference of
    ridge_share     : ridge of curvatures of one: where several groups hold the same rows, their sizes are not unique
    short_row_ratio : length of rows that are added by themselves: sizes so far apart are none that Newton's method finds
    excess_share    : excess of a group's cost over what it brings, relative to all
    newton_steps    : more steps than Newton's method takes
    """

    slope_share: float = 1e-14
    ridge_share: float = 1e-13
    short_row_ratio: float = 1e-14
    excess_share: float = 1e-17
    newton_steps: int = 300


SETTINGS = LatentGroupSettings()


@register
@dataclass(frozen=True, eq=False)
class LatentGroupNorm(Norm):
    r"""Latent group norm: the least sum over groups g of a_g ||V_g||_F, where W is the sum of the V_g and V_g is zero outside of the rows g.

    Groups may overlap. Rows are used in unions of groups; `group_norm` on the same groups leaves out unions of groups instead.

    Parameters
    ----------
    groups : list of lists of rows, or a dict of them
        By position, or by the names of features. Every row is in one or more of them.
    weights : number or array a (number of groups,), > 0, default all 1
        What each group costs; sqrt(len(g)) is a common choice.

    Raises
    ------
    ModelError
        Where a row is in no group, is twice in one, or is beyond the argument's rows; where a group is empty; where a weight is not
        positive, or there is not one weight a group.

    Notes
    -----
    Dual norm: max ||Z[g, :]||_F / a_g. With sizes l_g >= 0 of the groups and L_j the sum of those that hold row j, it is the least
    1/2 sum_g a_g^2 l_g + 1/2 sum_j ||W_j||^2 / L_j; the prox of step t maps W_j to W_j L_j / (L_j + t), l being the least of the same sum
    with L_j + t in the place of L_j. Both by Newton's method in l, on dense arrays (rows, groups).
    Source: Obozinski, Jacob and Vert, "Group lasso with overlaps: the latent group lasso approach", arXiv:1110.0413 (2011).

    Examples
    --------
    >>> import numpy as np
    >>> norm = LatentGroupNorm([[0, 1], [1, 2]])
    >>> norm.value(np.array([[3.0], [4.0], [0.0]]))
    5.0
    >>> round(norm.value(np.array([[1.0], [1.0], [1.0]])), 9)  # (1, 1/2, 0) and (0, 1/2, 1)
    2.236067977
    >>> norm.dual_norm(np.array([[3.0], [4.0], [1.0]]))
    5.0
    """

    groups: list[list[int]] = field(metadata={"names": "rows"})
    weights: float | np.ndarray | None = None

    scales: ClassVar[Separability] = ROWS
    name: ClassVar[str] = "latent_group_norm"
    meaning: ClassVar[str] = "the least sum of norms of parts $V_g$, each of one group of rows"
    formula: ClassVar[str] = r"\min_{\sum_g V_g = {}} \sum_g a_g \|V_g\|_F"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True
    accuracy: ClassVar[float] = 1e-11

    def __post_init__(self):
        object.__setattr__(self, "groups", checked_family(self.groups, self.name, "groups"))
        weights = checked_group_weights(self.weights, self.name, len(self.groups))
        object.__setattr__(self, "weights", weights)
        if np.any(self._costs == 0):
            raise ModelError(f"{self.name}: a weight is 0, and its group would make all its rows free")

    @classmethod
    def examples(cls):
        return [
            cls([[0, 1, 2], [2, 3, 4]]),
            cls([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]], weights=np.array([1.0, 0.5, 2.0, 1.0, 0.7])),
            cls([[0, 1, 2, 3, 4], [3], [0, 4], [4]], weights=0.8),
            cls([[4, 0], [2], [1, 3]], weights=np.array([1.0, 0.5, 2.0])),
        ]

    def check(self, shape):
        wrong, free = check_lines(self.groups, shape[0], "row"), set(range(shape[0])).difference(*self.groups)
        if wrong is None and free:
            row = min(free)
            return f"row {row} is in no group, and could never be used; give it a group of its own, [{row}]"
        return wrong

    def latex(self, argument):
        a = "" if self.weights is None else "a_g "
        return rf"\min_{{\sum_g V_g = {in_parentheses(argument)}}} \sum_g {a}\|V_g\|_F"

    @cached_property
    def _costs(self) -> np.ndarray:
        return np.broadcast_to(1.0 if self.weights is None else self.weights, len(self.groups))

    @cached_property
    def _members(self) -> np.ndarray:
        """(rows, groups) 1 where the group holds the row."""
        members = np.zeros((max(map(max, self.groups)) + 1, len(self.groups)))
        for g, group in enumerate(self.groups):
            members[list(group), g] = 1.0
        return members

    def dual_gauge(self, Z):
        squares = np.einsum("rc,rc->r", Z, Z) @ self._members
        return float(np.max(np.sqrt(squares) / self._costs))

    def value(self, W):
        lengths = np.sqrt(np.einsum("rc,rc->r", W, W))
        size = float(lengths.max(initial=0.0))
        if size == 0.0:
            return 0.0
        some = lengths > SETTINGS.short_row_ratio * size
        squares, B, c = np.square(lengths[some] / size), self._members[some], self._costs**2
        sizes = _least_sizes(c, squares, B, 0.0)
        cheapest = np.where(self._members > 0, self._costs, np.inf).min(axis=1)
        short = float(lengths[~some] @ cheapest[~some])  # by the triangle inequality never too small
        return size * float(np.sqrt((c @ sizes) * np.sum(squares / (B @ sizes)))) + short

    def prox(self, W, step):
        squares = np.einsum("rc,rc->r", W, W)
        if step == 0.0 or not squares.any():
            return np.array(W, dtype=float)
        sizes = _least_sizes((step * self._costs) ** 2, squares, self._members, 1.0)
        held = self._members @ sizes
        return W * (held / (1.0 + held))[:, None]


def _least_sizes(c, squares, B, shift: float) -> np.ndarray:
    """The l >= 0 with the least c^T l + sum_j squares_j / (shift + (B l)_j).

    Projected Newton steps: Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM Journal on Control
    and Optimization 20 (1982).
    """
    used = squares @ B > 0.0
    if not used.all():
        sizes = np.zeros(len(c))
        sizes[used] = _least_sizes(c[used], squares, B[:, used], shift)
        return sizes
    of_groups = np.sqrt(squares @ B / c)  # right where groups are apart
    sizes, ridge = np.maximum(of_groups - shift, 0.0) / B.sum(axis=1).max(), SETTINGS.ridge_share
    value, slopes = _at(sizes, c, squares, B, shift)
    for _ in range(SETTINGS.newton_steps):
        room = SETTINGS.slope_share * (c + np.abs(slopes - c))
        if np.all((slopes >= -room) & ((slopes <= room) | (sizes * slopes <= SETTINGS.excess_share * value))):
            break
        curvature = 2.0 * squares / (shift + B @ sizes) ** 3
        diagonal = np.maximum(curvature @ B, np.finfo(float).tiny)
        stays = (slopes > 0.0) & (
            sizes <= slopes / diagonal
        )  # a step of its own would take it to zero, whatever its scale
        direction = -slopes / diagonal
        free = ~stays
        if free.any():
            roots = np.sqrt(diagonal[free])
            H = (B[:, free].T * curvature) @ B[:, free] / np.outer(roots, roots)
            H[np.diag_indices_from(H)] += ridge
            direction[free] = np.linalg.solve(H, -slopes[free] / roots) / roots
        found = _searched(sizes, direction, value, slopes, (c, squares, B, shift))
        if found is not None:
            (sizes, value, slopes), ridge = found, max(0.1 * ridge, SETTINGS.ridge_share)
        elif ridge < 1.0:
            ridge *= 1e3
        else:
            break
    return sizes


def _at(sizes, c, squares, B, shift) -> tuple[float, np.ndarray]:
    held = shift + B @ sizes
    if not np.all(held > 0.0):
        return np.inf, np.full_like(c, -np.inf)  # a row with weights in no group of a positive size
    return float(c @ sizes + np.sum(squares / held)), c - (squares / held**2) @ B


def _searched(sizes, direction, value, slopes, data):
    """(sizes, value, slopes) after a part of the step that lets the value fall; None where rounding is all that is left."""
    share = 1.0
    while share > 1e-7:
        # without a shift a row whose groups have no size costs infinitely much: none goes to zero in one step
        new = np.maximum(sizes + share * direction, 0.0 if data[-1] else 0.1 * sizes)
        found, new_slopes = _at(new, *data)
        fall = float(slopes @ (sizes - new))
        if found <= value - 1e-4 * fall and (found < value or fall == 0.0):
            return new, found, new_slopes
        if abs(found - value) <= 4e-15 * abs(value) and _residual(new, new_slopes) < _residual(sizes, slopes):
            return new, found, new_slopes
        share *= 0.5
    return None


def _residual(sizes, slopes) -> float:
    return float(np.linalg.norm(sizes - np.maximum(sizes - slopes, 0.0)))
