"""Losses in score space: the prox of a loss with kinks, and its derivative as rows of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import LossTerm
from mtldsl.solvers.multipliers.designs import Designs

__all__ = ["Bend", "KinkedScores", "Part", "SmoothScores", "is_piecewise_linear"]


@dataclass
class Part:
    """I - D of one task, D the derivative of the prox at its scores: the identity on the samples `rows`, which stand at a kink.

    A loss that is not a sum over samples gives an object with `half(X)` instead: F with F^T F = X^T (I - D) X.
    """

    rows: np.ndarray


def is_piecewise_linear(loss: LossTerm) -> bool:
    """Whether l*(u) = b u on a bounded interval, so that l(z) is low (z - b) below b and high (z - b) above it."""
    if not loss.atom.separable:
        return False
    atom: Any = loss.atom  # a sum over samples, which has it
    quadratic = atom.dual_quadratic(loss.tasks.targets)
    if quadratic is None or quadratic[1] != 0.0:
        return False
    low, high = loss.dual_interval()
    return bool(np.all(np.isfinite(low)) and np.all(np.isfinite(high)))


class KinkedScores:
    """sum_j max(low_j (z_j - kink_j), high_j (z_j - kink_j)) with low <= 0 <= high: the prox is one clip.

    At scores z with multipliers u and penalties s the new multipliers s (t - prox(t)), t = z + u / s, are
    clip(u + s (z - kink), low, high).
    """

    def __init__(self, loss: LossTerm):
        atom: Any = loss.atom
        kink, _ = atom.dual_quadratic(loss.tasks.targets)
        low, high = loss.dual_interval()
        self.kink = np.broadcast_to(kink, low.shape) - 0.0
        self.low, self.high = np.array(low), np.array(high)

    def on(self, ids: np.ndarray, flat: np.ndarray) -> KinkedScores:
        """The same of some tasks, whose samples are `flat`."""
        part = object.__new__(KinkedScores)
        part.kink, part.low, part.high = self.kink[flat], self.low[flat], self.high[flat]
        return part

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample."""
        new = z - self.kink
        new *= penalties
        new += u
        return np.clip(new, self.low, self.high, out=new)

    def parts(self, y: np.ndarray, designs: Designs) -> list[Part]:
        """Every task's I - D where `multipliers` gave y."""
        free = (y > self.low) & (y < self.high)
        return [
            Part(np.flatnonzero(free[a:b])) for a, b in zip(designs.starts, designs.offsets[1:], strict=True)
        ]

    def values(self, z: np.ndarray, designs: Designs) -> np.ndarray:
        """(m,) the loss of every task."""
        r = z - self.kink
        return designs.sums(np.maximum(self.low * r, self.high * r))

    def conjugates(self, u: np.ndarray, designs: Designs) -> np.ndarray:
        """(m,) l*(u) of every task, u inside the interval."""
        return designs.sums(u * self.kink)

    def balanced(self, u: np.ndarray, designs: Designs) -> np.ndarray:
        """u with sum zero in every task: the larger of its two sides is scaled, which leaves no interval around zero."""
        above = np.maximum(u, 0.0)
        up, down = designs.sums(above), designs.sums(above - u)
        least = np.minimum(up, down)
        grow = least / np.maximum(up, 1e-300), least / np.maximum(down, 1e-300)
        return np.where(
            u > 0, u * designs.spread(np.minimum(grow[0], 1.0)), u * designs.spread(np.minimum(grow[1], 1.0))
        )

    def duals(self, u: np.ndarray) -> np.ndarray:
        """As a point carries them."""
        return u

    def spread_of_scores(self, designs: Designs) -> np.ndarray:
        """(m,) how far apart scores lie, guessed from the kinks alone: their deviation."""
        means = designs.sums(self.kink) / designs.counts
        return np.sqrt(designs.sums((self.kink - designs.spread(means)) ** 2) / designs.counts)

    def sizes(self, designs: Designs) -> np.ndarray:
        """(m,) the mean size of the multipliers."""
        return designs.sums(self.high - self.low) / designs.counts


@dataclass
class Bend:
    """I - D of one task as one number a sample, the square of `root`."""

    root: np.ndarray

    @property
    def rank(self) -> int:
        return self.root.size

    def half(self, X) -> np.ndarray:
        """F with F^T F = X^T (I - D) X."""
        return self.root[:, None] * (X.toarray() if sparse.issparse(X) else X)


class SmoothScores:
    """A loss of samples that has a gradient and an exact prox."""

    def __init__(self, loss: LossTerm):
        self.loss = loss

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample."""
        middle = z + u / penalties
        self.nearest = self.loss.prox(middle, 1.0 / penalties)
        self.penalties = penalties
        return penalties * (middle - self.nearest)

    def parts(self, y: np.ndarray, designs: Designs) -> list[Bend]:
        """Every task's I - D where `multipliers` gave y, the last time."""
        atom: Any = self.loss.atom
        bend = atom.hessian(self.nearest, self.loss.tasks.targets, self.loss.scale) / self.penalties
        root = np.sqrt(bend / (1.0 + bend))
        return [Bend(root[a:b]) for a, b in zip(designs.starts, designs.offsets[1:], strict=True)]

    def values(self, z: np.ndarray, designs: Designs) -> np.ndarray:
        """The loss of all tasks together."""
        return np.array([self.loss.value(z)])

    def duals(self, u: np.ndarray) -> np.ndarray:
        """As a point carries them."""
        return u

    def spread_of_scores(self, designs: Designs) -> np.ndarray:
        """(m,) how far apart scores lie, guessed from the labels alone."""
        return np.sqrt(designs.sums(self.loss.tasks.targets**2) / designs.counts)

    def sizes(self, designs: Designs) -> np.ndarray:
        """(m,) the mean size of the multipliers."""
        return designs.sums(np.abs(self.loss.gradient(np.zeros(designs.offsets[-1])))) / designs.counts
