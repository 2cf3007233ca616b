"""Design of a smooth loss of flat predictions: values task by task, slopes and curvatures sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mtldsl.normal_form.form import LossTerm, NormalForm, SingleBlock, single_block


@dataclass(frozen=True)
class DesignSettings:
    """Constants of designs.

    min_loop_samples      : of every task, above which a loop over tasks costs nothing
    max_gram_share        : entries of matrices of the features' size, together, of those of a large sparse X
    chunk_entries         : of the inputs of tasks that are worked on together: their products stay in a cache
    min_curvature_share   : of the largest second derivative, that samples on a flat part of their loss keep
    """

    min_loop_samples: int = 10_000
    max_gram_share: float = 0.25
    chunk_entries: int = 1_000_000
    min_curvature_share: float = 1e-3


SETTINGS = DesignSettings()


def one_smooth_loss(form: NormalForm, quadratic: bool = False) -> SingleBlock | str:
    """The facts of a form with one smooth loss of one matrix that is a sum over samples, quadratic or not as asked; else a sentence."""
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    loss = facts.loss
    if (loss.atom.quadratic is not None) is not quadratic:
        return f"{loss.typed} is {'not ' if quadratic else ''}quadratic."
    if not (loss.atom.smooth and loss.atom.separable):
        return f"{loss.typed} is not a smooth sum over samples."
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
        """Every task's number at all of its samples; where there is one task, just that."""
        return per_task if self.n_tasks == 1 else np.repeat(per_task, self.counts)

    def balanced(self, slope, curvature) -> np.ndarray:
        """The slopes, a step along the curvatures away, so that every task's sum to zero, as intercepts ask of a dual point.

        A sample moves as its slope would with its prediction, and stays inside the conjugate's domain; one number taken off them all would
        push those that are near its end beyond it.
        """
        totals = self.sums(curvature)
        shares = np.divide(self.sums(slope), totals, out=np.zeros(self.n_tasks), where=totals > 0)
        return slope - self.spread(shares) * curvature

    def values(self, z) -> np.ndarray:
        """(m,)."""
        with np.errstate(over="ignore"):  # a step may lead far out, and is not taken then
            if self.counts.min() > SETTINGS.min_loop_samples:  # some samples at a time
                parts = (slice(a, b) for a, b in pairwise(self.offsets.tolist()))
                s = self.scale
                return np.array(
                    [self.atom.value(z[p], self.targets[p], None if s is None else s[p]) for p in parts]
                )
            flat = self.atom.pointwise(z, self.targets)
            return self.sums(flat if self.scale is None else self.scale * flat)

    def slope(self, z) -> np.ndarray:
        return self.atom.gradient(z, self.targets, self.scale)

    def curvature(self, z) -> np.ndarray:
        if self.atom.quadratic is None:
            return self.atom.hessian(z, self.targets, self.scale)
        return self.atom.quadratic * (np.ones(len(z)) if self.scale is None else self.scale)

    def largest_curvature(self) -> float:
        """A bound on the curvature of any sample; 1 where there is none."""
        bound = float(self.atom.curvature)
        if not 0.0 < bound < np.inf:
            return 1.0
        return bound if self.scale is None else bound * max(float(np.max(self.scale)), np.finfo(float).tiny)


class LossState:
    """Weights W with intercepts b, their flat predictions z, and the loss there: its values (m,), slopes u and curvatures, and the sums of the
    slopes task by task."""

    def __init__(self, loss: SmoothLoss, z, W, b: Any = None):
        self.loss, self.W, self.b = loss, W, b
        self.move_to(z, loss.values(z))

    def move_to(self, z, values) -> None:
        self.z, self.values = z, values
        self.u, self.curvature = self.loss.slope(z), self.loss.curvature(z)
        self.sums = self.loss.sums(self.u)
