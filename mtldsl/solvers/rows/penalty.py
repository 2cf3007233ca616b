"""What coordinate descent can penalise: l1 and l21 norms, ridges and W >= 0, all of which a row of W feels by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtldsl.atoms.function import MatrixFunction
from mtldsl.compile.normal_form import FunctionTerm

__all__ = ["RowPenalty", "function_duals", "why_not"]


def _weights(f: FunctionTerm) -> np.ndarray:
    return np.asarray(1.0 if f.atom.weights is None else f.atom.weights, dtype=float) * f.coefficient


def _is_nonnegativity(atom: MatrixFunction) -> bool:
    return atom.name == "at_least" and not np.any(atom.bound)


def why_not(functions: tuple[FunctionTerm, ...], shape: tuple[int, int]) -> str | None:
    """None where `RowPenalty.of` takes these functions of one matrix, else one sentence."""
    for f in functions:
        if f.atom.name not in ("l1_norm", "l21_norm", "ridge") and not _is_nonnegativity(f.atom):
            return f"{f.typed} is not an l1 or l21 norm, a ridge, or a bound W >= 0."
        if f.atom.name == "ridge":
            weights = np.broadcast_to(_weights(f), shape)
            if np.any(weights != weights[:, :1]):
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
        l1, l21, ridge, nonneg = np.zeros((1, d)), np.zeros(d), np.zeros(d), False
        for f in functions:
            if f.atom.name == "l1_norm":
                weights = _weights(f)
                l1 = l1 + (np.broadcast_to(weights, shape).T if weights.ndim else weights)
            elif f.atom.name == "l21_norm":
                l21 = l21 + _weights(f)
            elif f.atom.name == "ridge":
                ridge = ridge + np.broadcast_to(_weights(f), shape)[:, 0]
            else:
                nonneg = True
        return cls(np.broadcast_to(l1, (m, d)), l21, ridge, nonneg)

    def scaled(self, factor: float) -> RowPenalty:
        return RowPenalty(factor * self.l1, factor * self.l21, factor * self.ridge, self.nonneg)

    def on(self, rows) -> RowPenalty:
        """The same on some rows, contiguous for the kernels."""
        return RowPenalty(
            np.ascontiguousarray(self.l1[:, rows]), self.l21[rows], self.ridge[rows], self.nonneg
        )

    def of_task(self, i: int) -> RowPenalty:
        return RowPenalty(self.l1[i : i + 1], self.l21, self.ridge, self.nonneg)

    def value(self, W) -> float:
        """inf where W < 0 is not allowed."""
        if self.nonneg and W.min(initial=0.0) < 0:
            return np.inf
        norms = np.sqrt(np.einsum("ij,ij->j", W, W))
        return float((self.l1 * np.abs(W)).sum() + norms @ (self.l21 + 0.5 * self.ridge * norms))

    @cached_property
    def plain(self) -> bool:
        """The l21 norm alone: the whole gradient is its business."""
        return not (self.nonneg or np.any(self.l1))

    def remainder(self, pull) -> np.ndarray:
        """What the l1 norm and the bound leave of a negative gradient (m, p): its soft threshold."""
        if self.plain:
            return pull
        if self.nonneg:
            return np.maximum(pull - self.l1, 0.0)
        return pull - np.clip(pull, -self.l1, self.l1)

    def inspect(self, pull) -> Inspection:
        """Look at a negative gradient (m, p) from which the ridge's own gradient has been taken."""
        left = self.remainder(pull)
        norms = np.sqrt(np.einsum("ij,ij->j", left, left))
        over = np.maximum(norms - self.l21, 0.0)
        grouped = (self.l21 > 0) & (self.ridge == 0)
        gauge = 1.0 + float(np.max(over[grouped] / self.l21[grouped], initial=0.0))
        alone = (self.l21 == 0) & (self.ridge == 0)
        if alone.any():
            gauge = max(gauge, 1.0 + float(np.max(np.abs(left[:, alone]) / self.l1[:, alone], initial=0.0)))
        return Inspection(left, norms, over, gauge)

    def multipliers(self, pull) -> dict[str, np.ndarray]:
        """Shares of such a gradient (m, p) by word: "l1_norm", "l21_norm", "at_least"; the ridge takes up what is left."""
        seen = self.inspect(pull)
        bound = np.minimum(pull + self.l1, 0.0) if self.nonneg else np.zeros_like(pull)
        l1, l21 = pull - seen.left - bound, seen.left
        alone = (self.l21 == 0) & (self.ridge == 0)
        held = (self.ridge > 0) & (seen.over > 0)
        l1[:, alone] += l21[:, alone]
        factors = np.where(alone, 0.0, 1.0)
        factors[held] = self.l21[held] / seen.norms[held]
        return {"l1_norm": l1, "l21_norm": l21 * factors, "at_least": bound}


@dataclass(frozen=True)
class Inspection:
    """left: what is left for the l21 norm and the ridge, norms of its rows, over: by how much these exceed l21.
    gauge: the smallest t >= 1 such that t times the dual balls hold what no ridge takes up."""

    left: np.ndarray
    norms: np.ndarray
    over: np.ndarray
    gauge: float


def function_duals(functions: tuple[FunctionTerm, ...], penalty: RowPenalty, pull, W, factor=1.0) -> list:
    """Every function's multiplier (d, m). pull (m, d): minus the losses' gradient, divided by `factor` as the penalty was;
    W (d, m)."""
    shares = penalty.multipliers(pull - penalty.ridge * W.T)
    totals = {"l1_norm": factor * penalty.l1.T, "l21_norm": factor * penalty.l21[:, None]}
    bounded = False
    duals = []
    for f in functions:
        if f.atom.name == "ridge":
            duals.append(np.broadcast_to(_weights(f), W.shape) * W)
        elif f.atom.name == "at_least":  # said twice, it is one bound
            duals.append(np.zeros(W.shape) if bounded else factor * shares["at_least"].T)
            bounded = True
        else:  # norms of one kind share by their weights
            weights = _weights(f)
            weights = weights[:, None] if f.atom.name == "l21_norm" and weights.ndim else weights
            total = totals[f.atom.name]
            part = np.divide(weights, total, out=np.zeros(total.shape), where=total > 0)
            duals.append(part * (factor * shares[f.atom.name].T))
    return duals
