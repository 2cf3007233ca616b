"""Penalties that coordinate descent takes: absolute values, lengths of rows, squares and W >= 0, all of which a row of W feels by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.atom import is_same_along_rows
from mtldsl.atoms.matrix_function import MatrixFunction
from mtldsl.normal_form.form import FunctionTerm
from mtldsl.utils.caching import cached_property
from mtldsl.utils.memory import require_memory


def _is_nonnegativity(atom: MatrixFunction) -> bool:
    if atom.interval is None:
        return False
    low, high = atom.interval
    return not np.any(low) and bool(np.all(np.isposinf(high)))


def _weighted(coefficient: float, weights) -> np.ndarray:
    return np.asarray(weights, dtype=float) * coefficient


def unsupported_reason(functions: tuple[FunctionTerm, ...], shape: tuple[int, int]) -> str | None:
    """None where `RowPenalty.of` takes these functions of one matrix, else one sentence."""
    for f in functions:
        profile = f.atom.profile
        if profile is None:
            if not _is_nonnegativity(f.atom):
                return f"{f.typed} is not an l1 or l21 norm, a ridge, or a bound W >= 0."
        elif not is_same_along_rows(_or_zero(profile.square)):
            return f"{f.typed} weighs the entries of one row differently."
    penalty = RowPenalty.of(functions, shape)
    if not np.any(penalty.l1) and not np.any(penalty.l21):
        return "no l1_norm or l21_norm makes the solution sparse."
    if np.any((penalty.l1.min(axis=0) == 0) & (penalty.l21 + penalty.ridge == 0)):
        return "a weight of 0 leaves some entries without any penalty."
    return None


@dataclass(frozen=True)
class RowPenalty:
    """sum_ij l1_ij |W_ij| + sum_j l21_j ||row j|| + 1/2 sum_j ridge_j ||row j||^2, and perhaps W >= 0.

    Arrays are transposed as in the kernels: tasks first, (m, d); l21 and ridge are (d,).
    """

    l1: np.ndarray
    l21: np.ndarray
    ridge: np.ndarray
    nonneg: bool

    @classmethod
    def of(cls, functions: tuple[FunctionTerm, ...], shape: tuple[int, int]) -> RowPenalty:
        d, m = shape
        require_memory(
            8.0 * d * m, f"a model with {d:,} x {m:,} unknowns", "select features, or take fewer tasks"
        )
        l1, l21, ridge, nonneg = np.zeros((m, d)), np.zeros(d), np.zeros(d), False
        for f in functions:
            profile = f.atom.profile
            if profile is None:
                nonneg = True
                continue
            if profile.absolute is not None:
                weights = _weighted(f.coefficient, profile.absolute)
                l1 += weights[:, None] if weights.ndim == 1 else weights.T
            if profile.length is not None:
                l21 += _weighted(f.coefficient, profile.length)
            if profile.square is not None:
                ridge += np.broadcast_to(_weighted(f.coefficient, profile.square), shape)[:, 0]
        return cls(l1, l21, ridge, nonneg)

    def on(self, rows) -> RowPenalty:
        """The same on some rows, contiguous for the kernels."""
        if len(rows) == len(self.l21) and (rows == np.arange(len(rows))).all():
            return self
        return RowPenalty(
            np.ascontiguousarray(self.l1[:, rows]), self.l21[rows], self.ridge[rows], self.nonneg
        )

    def of_task(self, i: int) -> RowPenalty:
        return RowPenalty(self.l1[i : i + 1], self.l21, self.ridge, self.nonneg)

    def value(self, W) -> float:
        """inf where W < 0 is not allowed."""
        if self.nonneg and W.min(initial=0.0) < 0:
            return np.inf
        absolute = float((self.l1 * np.abs(W)).sum())
        norms = np.sqrt(np.einsum("ij,ij->j", W, W))
        return absolute + float(norms @ (self.l21 + 0.5 * self.ridge * norms))

    @cached_property
    def plain(self) -> bool:
        """The l21 norm alone: the whole gradient is its business."""
        return not (self.nonneg or np.any(self.l1))

    def remainder(self, pull) -> np.ndarray:
        """Return what the l1 norm and the bound leave of a negative gradient (m, p): its soft threshold."""
        if self.plain:
            return pull
        if self.nonneg:
            return np.maximum(pull - self.l1, 0.0)
        return pull - np.clip(pull, -self.l1, self.l1)

    def inspect(self, pull) -> RowInspection:
        """Look at a negative gradient (m, p) from which the ridge's own gradient has been taken."""
        left = self.remainder(pull)
        norms = np.sqrt(np.einsum("ij,ij->j", left, left))
        over = np.maximum(norms - self.l21, 0.0)
        grouped = (self.l21 > 0) & (self.ridge == 0)
        gauge = 1.0 + float(np.max(over[grouped] / self.l21[grouped], initial=0.0))
        alone = (self.l21 == 0) & (self.ridge == 0)
        if alone.any():
            gauge = max(gauge, 1.0 + float(np.max(np.abs(left[:, alone]) / self.l1[:, alone], initial=0.0)))
        return RowInspection(left, norms, over, gauge)

    def multipliers(self, pull) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Shares (m, p) of such a gradient of the absolute values, the lengths and the bound; the ridge takes up what is left."""
        seen = self.inspect(pull)
        bound = np.minimum(pull + self.l1, 0.0) if self.nonneg else np.zeros_like(pull)
        l1, l21 = pull - seen.left - bound, seen.left
        alone = (self.l21 == 0) & (self.ridge == 0)
        held = (self.ridge > 0) & (seen.over > 0)
        l1[:, alone] += l21[:, alone]
        factors = np.where(alone, 0.0, 1.0)
        factors[held] = self.l21[held] / seen.norms[held]
        return l1, l21 * factors, bound


@dataclass(frozen=True)
class RowInspection:
    """left: what is left for the l21 norm and the ridge, norms of its rows, over: by how much these exceed l21.
    gauge: the smallest t >= 1 such that t times the dual balls hold what no ridge takes up."""

    left: np.ndarray
    norms: np.ndarray
    over: np.ndarray
    gauge: float


def function_duals(functions: tuple[FunctionTerm, ...], penalty: RowPenalty, pull, W) -> list:
    """Every function's multiplier (d, m). pull (m, d): minus the losses' gradient; W (d, m)."""
    of_absolute, of_length, of_bound = (share.T for share in penalty.multipliers(pull - penalty.ridge * W.T))
    absolute, length = penalty.l1.T, penalty.l21[:, None]
    bounded = False
    duals = []
    for f in functions:
        profile, parts = f.atom.profile, []
        if profile is None:  # said twice, it is one bound
            parts.append(np.zeros(W.shape) if bounded else of_bound)
            bounded = True
        else:
            if profile.absolute is not None:
                parts.append(_share(_weighted(f.coefficient, profile.absolute), absolute) * of_absolute)
            if profile.length is not None:
                weights = _weighted(f.coefficient, profile.length)
                parts.append(_share(weights[:, None] if weights.ndim else weights, length) * of_length)
            if profile.square is not None:
                parts.append(np.broadcast_to(_weighted(f.coefficient, profile.square), W.shape) * W)
        duals.append(sum(parts[1:], parts[0]))
    return duals


def _share(weights, total) -> np.ndarray:
    """Return what functions of one kind have of their common multiplier: by their weights."""
    return np.divide(weights, total, out=np.zeros(total.shape), where=total > 0)


def _or_zero(weights):
    return 0.0 if weights is None else weights
