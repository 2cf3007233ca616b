"""A smooth loss of flat predictions: values task by task, slopes and curvatures sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.compile.single_block import SingleBlock, single_block

__all__ = ["SmoothLoss", "one_smooth_loss"]


def one_smooth_loss(form: NormalForm) -> SingleBlock | str:
    """The facts of a form with one smooth loss that is a sum over samples, not quadratic, of one matrix; else a sentence."""
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    loss = facts.loss
    if not (loss.atom.smooth and loss.atom.separable) or loss.atom.quadratic is not None:
        return f"{loss.typed} is not a smooth sum over samples, or it is quadratic."
    if loss.map.offset is not None:
        return f"{loss.typed} is a loss of a matrix plus a constant."
    return facts


class SmoothLoss:
    """sum_j s_j l(z_j, y_j) on the samples of some tasks, one task after the other at `offsets`."""

    def __init__(self, atom: Any, targets, scale, offsets):
        self.atom, self.targets, self.scale = atom, targets, scale
        self.offsets = np.asarray(offsets)
        self.counts, self.n_tasks = np.diff(self.offsets), len(self.offsets) - 1

    @classmethod
    def of(cls, loss: LossTerm) -> SmoothLoss:
        return cls(loss.atom, loss.tasks.targets, loss.scale, loss.tasks.offsets)

    @classmethod
    def of_task(cls, loss: LossTerm, i: int) -> SmoothLoss:
        a, b = loss.tasks.offsets[i], loss.tasks.offsets[i + 1]
        scale = None if loss.scale is None else loss.scale[a:b]
        return cls(loss.atom, loss.tasks.targets[a:b], scale, np.array([0, b - a]))

    def sums(self, flat) -> np.ndarray:
        """(m,) over the samples of every task."""
        return flat.sum()[None] if self.n_tasks == 1 else np.add.reduceat(flat, self.offsets[:-1])

    def spread(self, per_task) -> np.ndarray:
        return np.repeat(per_task, self.counts)

    def means(self, flat) -> np.ndarray:
        """Every task's mean, at all of its samples."""
        return self.spread(self.sums(flat) / self.counts)

    def _weighted(self, flat) -> np.ndarray:
        return flat if self.scale is None else self.scale * flat

    def values(self, z) -> np.ndarray:
        """(m,)."""
        with np.errstate(over="ignore"):  # a step may lead far out, and is not taken then
            return self.sums(self._weighted(self.atom.pointwise(z, self.targets)))

    def slope(self, z) -> np.ndarray:
        return self._weighted(self.atom.slope(z, self.targets))

    def curvature(self, z) -> np.ndarray:
        return self._weighted(self.atom.second_slope(z, self.targets))
