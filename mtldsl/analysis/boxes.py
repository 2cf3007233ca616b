"""Slopes that lie in a box, task by task, with sums that are given: those of hinge, absolute and quantile losses at their kinks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import LossTerm
from mtldsl.compile.terms.structured import StructuredTerm

__all__ = ["Boxes", "flips", "two_lines"]

#: A part of a sum below this part of it is rounding.
_ROUNDING = 1e-12

#: Bins of a round of a selection.
_BINS = 512


class Boxes:
    """u between low and low + width, sample by sample; where its sum over every task is given, that too.

    losses     : those that share an intercept
    low, width : (n,) of every loss, flat
    sums       : (m,) the sums over tasks, 0 where intercepts balance them; None: not given
    """

    def __init__(
        self,
        losses: Sequence[LossTerm],
        low: Sequence[np.ndarray],
        width: Sequence[np.ndarray],
        typed: str,
        sums: np.ndarray | None,
    ):
        self.losses, self.typed, self.sums = losses, typed, sums
        self.cuts = np.cumsum([one.size for one in low])[:-1]
        self.order = _by_task(losses)  # several losses: their samples side by side, task after task
        self.low, self.width = self._together(low), self._together(width)
        self.starts = np.sum([loss.tasks.offsets for loss in losses], axis=0).astype(np.int64)
        if sums is not None:
            from mtldsl.analysis.box_kernels import totals  # numba is imported where it is used

            self.found = np.empty((self.starts.size - 1, 3))
            totals(self.low, self.width, self.starts, self.found)
            lowest, total, count = self.found.T
            self.room = np.clip(sums - lowest, 0.0, total)
            # a sum that leaves no choice: all kinks at one end, or one kink in the task
            is_point = (count <= 1) | (np.minimum(self.room, total - self.room) <= _ROUNDING * total)
            if is_point.all():
                self.typed = ""

    def middle(self) -> list[np.ndarray]:
        if self.sums is None:
            return self._apart(self.low + 0.5 * self.width)
        share = self.room / np.maximum(self.found[:, 1], 1e-300)
        return self._apart(self.low + np.repeat(share, np.diff(self.starts)) * self.width)

    def highest(self, scores: list[np.ndarray]) -> tuple[list[np.ndarray], float]:
        """The highest sum gives the room there is to the kinks with the highest scores (a fractional knapsack). The point returned rounds that
        step off, over as many units of the scores as they spread: a corner of the box says little of the other samples."""
        z = self._together(scores)
        if self.sums is None:
            u = self.low + np.where(z > 0, self.width, 0.0)
            return self._apart(u), float(u @ z)
        from mtldsl.analysis.box_kernels import upwards

        u, most = np.empty_like(self.low), np.zeros(1)
        upwards(z, self.low, self.width, self.starts, self.room, self.found, np.empty(_BINS), u, most)
        return self._apart(u), float(most[0])

    def _together(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        flat = np.ascontiguousarray(parts[0]) if self.order is None else np.concatenate(parts)[self.order]
        return flat if flat.flags.writeable else flat.copy()  # the loops are compiled for what may be written

    def _apart(self, flat: np.ndarray) -> list[np.ndarray]:
        if self.order is None:
            return [flat]
        back = np.empty_like(flat)
        back[self.order] = flat
        return np.split(back, self.cuts)


def _by_task(losses: Sequence[LossTerm]) -> np.ndarray | None:
    if len(losses) == 1:
        return None
    tasks = [np.repeat(np.arange(loss.tasks.n_tasks), loss.tasks.counts) for loss in losses]
    return np.argsort(np.concatenate(tasks), kind="stable")


def two_lines(loss: LossTerm, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, width) of the slopes at predictions z of a loss of two lines a sample; the width is zero away from the kinks.

    z : (N,), without weights: one number a task where the weights have no offset, so that two labels are two slopes.
    """
    atom: Any = loss.atom
    y, offsets = loss.tasks.targets, loss.tasks.offsets.tolist()
    rows = [slice(a, b) for a, b in pairwise(offsets)]
    low, width = np.empty(z.size), np.empty(z.size)
    if atom.labels == "sign" and loss.map.offset is None:
        labels = np.repeat([[1.0], [-1.0]], len(rows), axis=1)
        lows, widths = _ends(z[offsets[:-1]], atom.dual_quadratic(labels)[0], *atom.dual_interval(labels))
        for i, own in enumerate(rows):
            positive = y[own] > 0
            low[own] = np.where(positive, *lows[:, i])
            width[own] = np.where(positive, *widths[:, i])
    else:
        kinks = np.broadcast_to(np.asarray(atom.dual_quadratic(y)[0], float), y.shape)
        ends = [np.broadcast_to(end, y.shape) for end in atom.dual_interval(y)]
        for own in rows:  # a task at a time stays in the cache
            low[own], width[own] = _ends(z[own], kinks[own], ends[0][own], ends[1][own])
    if loss.scale is not None:
        low *= loss.scale
        width *= loss.scale
    return low, width


def flips(term: StructuredTerm) -> tuple[np.ndarray, np.ndarray]:
    """(low, width) of the slopes that its metrics know of the best constants."""
    low, width = np.empty(term.tasks.n_samples), np.empty(term.tasks.n_samples)
    for (own, c, _, y, _), known in zip(term.tasks_apart, term.at_constants or (), strict=True):
        positive = y > 0
        (up, up_end), (down, down_end) = known.positive, known.negative
        low[own] = np.where(positive, c * up, c * down)
        width[own] = np.where(positive, c * (up_end - up), c * (down_end - down))
    return low, width


def _ends(z, kinks, low, high) -> tuple[np.ndarray, np.ndarray]:
    met = np.abs(z - kinks) <= _ROUNDING * (np.abs(z) + np.abs(kinks))
    return np.where(met | (z < kinks), low, high), np.where(met, high - low, 0.0)
