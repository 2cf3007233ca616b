"""Base classes of norms: the conjugate is the indicator of the dual ball, and most are weighted sums over cells."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ROUNDING_SHARE, broadcasts, in_parentheses
from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.atoms.prox import shrinkage
from mtldsl.atoms.prox.shrinkage import weighted_water_level
from mtldsl.errors import ModelError
from mtldsl.utils.arrays import read_dense
from mtldsl.utils.validation import quoted

# --------------------------------------------------------------------------------------------------------------
# Weights of a regularizer: checked once when the atom is made, then trusted.

_KINDS = {
    1: "a number or a one-dimensional array",
    2: "a number or an array that broadcasts to the shape of the argument",
}


def checked_weights(weights, word: str, ndim: int) -> float | np.ndarray | None:
    """None, a float, or a read-only float64 copy with at most `ndim` axes; ModelError where an entry is
    negative or not finite.
    """
    if weights is None:
        return None
    typed = f"{word}(..., weights={quoted(weights)})"
    checked = read_dense(weights, f"{typed}: the weights are not numbers; write {_KINDS[ndim]}", ModelError)
    if checked.ndim > ndim:
        raise ModelError(
            f"the weights have {checked.ndim} axes", term=typed, write_instead=f"write {_KINDS[ndim]}"
        )
    bad = ~(np.isfinite(checked) & (checked >= 0))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at {place[0] if len(place) == 1 else place}" if place else ""
        raise ModelError(
            f"the weight{where} is {checked[place]}; weights must be finite and >= 0 "
            "(0 leaves its part unpenalised)",
            term=typed,
        )
    if checked.ndim == 0:
        return float(checked)
    checked.flags.writeable = False
    return checked


def checked_group_weights(weights, word: str, n_groups: int) -> float | np.ndarray | None:
    """The same of groups: a number, or one a group."""
    checked = checked_weights(weights, word, 1)
    if isinstance(checked, np.ndarray) and len(checked) != n_groups:
        raise ModelError(f"{word}: there are {checked.size} weights for {n_groups} groups")
    return checked


def check_length(weights, length: int, what: str) -> str | None:
    """The sentence for one weight per row, column or group where their number is wrong."""
    if isinstance(weights, np.ndarray) and weights.shape != (length,):
        return f"there are {weights.size} weights for {length} {what}"
    return None


def check_broadcast(weights, shape: tuple[int, int]) -> str | None:
    """The sentence for weights per entry that do not broadcast to the argument."""
    if weights is None or broadcasts(weights, shape):
        return None
    return f"weights of shape {weights.shape} do not broadcast to the argument's shape {tuple(shape)}"


def transposed_weights(weights):
    """Weights that broadcast to the shape of W, as weights that broadcast to that of its transpose."""
    return np.atleast_2d(weights).T if isinstance(weights, np.ndarray) else weights


class Norm(Regularizer):
    """A norm or seminorm g: g* is the indicator of {Z : dual_gauge(Z) <= 1}."""

    norm: ClassVar[bool] = True

    def dual_gauge(self, Z) -> float:
        """The dual norm; a class that does not give it has it from its prox."""
        return shrinkage.dual_norm(self, Z)

    def conjugate(self, Z) -> float:
        return 0.0 if self.dual_gauge(Z) <= 1.0 + ROUNDING_SHARE else np.inf

    def ball(self, radius: float) -> NormBall:
        return NormBall(self, radius)

    def nearest_in_ball(self, W, radius: float) -> np.ndarray:
        """The nearest point of {g <= radius} to a W outside of it: here by the prox alone."""
        return shrinkage.nearest_in_ball(self, W, radius, self.dual_gauge(self.dual_project(W)))


class WeightedNorm(Norm):
    """sum over cells c of w_c N(W_c), the cells being disjoint parts of W and N a norm.

    A subclass has a field `weights` and gives `cell_norms` (N of every cell), `cell_dual_norms` (its dual
    norm) and `spread` (one number per cell -> an array that broadcasts against W of that shape). A cell of
    weight 0 is unpenalised: its multiplier is 0.
    """

    weights: float | np.ndarray | None
    weights_add: ClassVar[bool] = True
    weight_axes: ClassVar[int] = 1
    weighted_formula: ClassVar[str] = ""

    def __post_init__(self):
        object.__setattr__(self, "weights", checked_weights(self.weights, self.name, self.weight_axes))

    def cell_norms(self, W) -> np.ndarray:
        raise NotImplementedError

    def cell_dual_norms(self, Z) -> np.ndarray:
        return self.cell_norms(Z)

    def latex(self, argument: str) -> str:
        if self.weights is None:
            return super().latex(argument)
        return self.weighted_formula.replace("{}", in_parentheses(argument))

    @property
    def absorbs(self) -> bool:
        return self.weights is None or bool(np.all(self.weights))

    def thresholds(self, step):
        """step * w_c: a number where all cells share it."""
        return step if self.weights is None else step * self.weights

    def prox(self, W, step) -> np.ndarray:
        """Block soft threshold, where N is the Euclidean length of a cell."""
        return W * self.spread(shrinkage.shrinkage(self.cell_norms(W), self.thresholds(step)), W.shape)

    def value(self, W) -> float:
        norms = self.cell_norms(W)
        return float(norms.sum() if self.weights is None else (self.weights * norms).sum())

    def dual_gauge(self, Z) -> float:
        kept = self.dual_project(Z)
        if kept is not Z and np.any(kept != Z):
            return np.inf
        norms = self.cell_dual_norms(Z)
        if self.weights is None:
            return float(norms.max())
        weights = np.broadcast_to(self.weights, norms.shape)
        held = weights > 0
        return float(np.max(norms[held] / weights[held], initial=0.0))

    def nearest_in_ball(self, W, radius):
        if type(self).cell_dual_norms is not WeightedNorm.cell_dual_norms:  # N is not the length of a cell
            return super().nearest_in_ball(W, radius)
        norms = self.cell_norms(W)
        weights = 1.0 if self.weights is None else np.broadcast_to(self.weights, norms.shape)
        # below zero only by rounding, when W is outside by no more: zeros must stay zeros
        return self.prox(W, max(weighted_water_level(norms, weights, radius), 0.0))

    def column_gauges(self, Z) -> np.ndarray | None:
        if self.separable not in ("entries", "columns"):
            return None
        norms = self.cell_dual_norms(Z)
        if self.weights is not None:
            free = np.where(norms > 0, np.inf, 0.0)
            weights = np.broadcast_to(self.weights, norms.shape)
            norms = np.divide(norms, weights, out=free, where=weights > 0)
        return norms.reshape(-1, Z.shape[1]).max(axis=0)

    def dual_project(self, Z) -> np.ndarray:
        if self.absorbs:
            return Z
        return np.where(self.spread(self.weights, Z.shape) == 0, 0.0, Z)
