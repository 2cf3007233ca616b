"""Operator splitting: first penalties, their balance, and projections on intersections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.normal_form.form import Blocks, NormalForm

if TYPE_CHECKING:
    from mtldsl.solvers.linear_systems.task_matrices import SplitForm


@dataclass(frozen=True)
class SplittingSettings:
    """Constants that splittings share.

    relaxation_factor    : of over-relaxation
    penalty_range_factor : a penalty stays within it of its scale on either side; a loss that is all but flat balances at none, and steps overflow
    """

    relaxation_factor: float = 1.6
    penalty_range_factor: float = 1e9


SETTINGS = SplittingSettings()


def first_penalties(split: SplitForm, mean_quadratic: float, diagonals: list[float]) -> np.ndarray:
    """One penalty a copy, from scales alone.

    A loss: size of its multipliers over size of its predictions, both guessed at zero. A function: the mean curvature that the
    losses and their copies put on the unknowns, so that neither side of the x-update outweighs the other.
    """
    penalties = np.ones(len(split.copies))
    curvature = mean_quadratic
    for j, copy in enumerate(split.copies):
        if not copy.is_loss:
            continue
        loss = copy.term
        constant = loss.offset_predictions()
        z = np.zeros(loss.tasks.n_samples) if constant is None else constant
        distance = _rms(loss.tasks.targets - z) if loss.atom.labels == "real" else 1.0
        penalties[j] = _rms(loss.gradient(z)) / distance if distance > 0 else 1.0
        penalties[j] = penalties[j] if penalties[j] > 0 else 1.0
        curvature += penalties[j] * diagonals[j]
    lifted = [j for j, copy in enumerate(split.copies) if hasattr(copy.term.atom, "natural_penalty")]
    for j in lifted:
        penalties[j] = split.copies[j].term.atom.natural_penalty()
        curvature += penalties[j] * diagonals[j]
    for j, copy in enumerate(split.copies):
        if not copy.is_loss and j not in lifted:
            penalties[j] = curvature if curvature > 0 else 1.0
    return penalties


def _rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


class ResidualBalance:
    """Residual balancing at growing intervals: a penalty rises where the copies disagree more (relative to their size) than the
    multipliers still move (relative to theirs), and falls in the opposite case, by the square root of the quotient.

    Source: Wohlberg, "ADMM penalty parameter selection by residual balancing", arXiv:1704.06209 (2017).
    """

    def __init__(self, split: SplitForm, factor: float = 5.0):
        self.split, self.factor = split, factor
        self.next, self.interval, self.changes = 10, 10, 0

    def is_due(self, iteration: int) -> bool:
        return iteration >= self.next

    def quotients(self, w, w_next, image, multipliers, metric) -> np.ndarray:
        """(relative primal residual) / (relative dual residual) of the copies together: losses apart from functions."""
        quotients = np.ones(len(self.split.copies))
        for kind in (True, False):
            rows = [copy.rows for copy in self.split.copies if copy.is_loss is kind]
            if not rows:
                continue
            pick = np.r_[tuple(rows)]
            root = np.sqrt(metric[pick])
            primal = np.linalg.norm(root * (image[pick] - w[pick]))
            moved = np.linalg.norm(root * (w_next[pick] - w[pick]))
            primal /= max(np.linalg.norm(root * image[pick]), np.linalg.norm(root * w[pick]), 1e-300)
            # where the multipliers are zero, any move is large against them
            moved /= max(np.linalg.norm(multipliers[pick] / root), 1e-300 * moved, 1e-300)
            value = primal / moved if primal > 0 and moved > 0 else 1.0
            for j, copy in enumerate(self.split.copies):
                if copy.is_loss is kind:
                    quotients[j] = value
        return quotients

    def update(self, iteration: int, penalties, quotients) -> np.ndarray | None:
        """New penalties, None where the old ones stay."""
        self.next = iteration + self.interval
        off = (quotients > self.factor) | (quotients < 1.0 / self.factor)
        if not off.any():
            self.interval = min(2 * self.interval, 1000)
            return None
        self.changes += 1
        self.interval = int(1.3 * self.interval) + 1
        return penalties * np.where(off, np.clip(np.sqrt(quotients), 0.1, 10.0), 1.0)


# --------------------------------------------------------------------------------------------------------------
# Projections on the intersection of several sets.


def dykstra(sets, array: np.ndarray, rounds: int = 100) -> np.ndarray:
    """The projection on an intersection, by Dykstra's alternating projections (stopped where it is inside to rounding)."""
    corrections = [np.zeros_like(array) for _ in sets]
    size = 1.0 + np.abs(array).max(initial=0.0)
    for _ in range(rounds):
        for i, one in enumerate(sets):
            moved = array + corrections[i]
            array = one.project(moved)
            corrections[i] = moved - array
        if max(one.violation(array) for one in sets) <= 1e-13 * size:
            break
    return array


def project_blocks(form: NormalForm, x: Blocks) -> Blocks:
    """Each block in the sets that bind it by itself."""
    moved = dict(x)
    for name in x:
        sets = [f.atom for f in form.constraints if f.map.identity_of == name]
        if sets:
            moved[name] = dykstra(sets, np.array(x[name]))
    return moved
