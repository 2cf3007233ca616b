"""Structured hinges in score space: one exact proximal step a task, and its derivative as sums of rows of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.atoms.metrics.batch import Batch
from mtldsl.errors import SolverError

__all__ = ["StructuredScores"]

#: relative gap of a step near the last one up to which one of Newton's method is enough in a method that comes back to it: measured, from
#: 1e-6 to .1 ADMM takes as many iterations as with exact steps, and at .01 and .1 these are evaluated once instead of three times
_ROUGH = 1e-2


class StructuredScores:
    """sum_i c_i G_i(z_i): at scores z with multipliers u and penalties s the new multipliers are s (t - prox(t)) = -2 c y p, t = z + u / s,
    with p the flip probabilities of the step c / s at t.
    """

    def __init__(self, loss: Any, ids: np.ndarray | None = None):
        self.loss = loss
        self.ids = np.arange(loss.tasks.n_tasks) if ids is None else ids
        self.apart = [loss.tasks_apart[i] for i in self.ids]
        sizes = np.array([len(y) for _, _, _, y, _ in self.apart])
        ends = np.cumsum(sizes)
        self.starts = ends - sizes
        self.rows = [slice(a, b) for a, b in zip(self.starts.tolist(), ends.tolist(), strict=True)]
        self.coefficients = np.array([c for _, c, *_ in self.apart])
        self.slopes = np.concatenate([(-2.0 * c) * y for _, c, _, y, _ in self.apart])
        self.at: list[Any] = [None] * len(
            self.apart
        )  # what was found at the last scores, of every task: (steps, its place there)
        self.last: Any = None  # (those scores, steps)
        self.flips, self.warm = np.zeros(len(self.slopes)), np.zeros(len(self.apart), np.int64)
        self._all: Any = None

    def on(self, keep: np.ndarray, flat: np.ndarray) -> StructuredScores:
        """The same of some of its tasks."""
        part = StructuredScores(self.loss, self.ids[keep])
        part.flips, part.warm = self.flips[flat], self.warm[keep]
        return part

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample, equal within a task."""
        t, steps = z + u / penalties, self.coefficients / penalties[self.starts]
        moved = np.arange(len(self.apart))
        if self.last is not None:
            same = np.logical_and.reduceat(t == self.last[0], self.starts) & (steps == self.last[1])
            moved = np.flatnonzero(~same)
        if moved.size:
            self.flips = self.flips.copy()  # what was found before keeps its own
            for found, chosen in self._steps(t, steps, moved):
                for i, k in enumerate(chosen):
                    self.at[k] = found, i
        self.last = t, steps
        return self.slopes * self.flips

    def near_multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """The same by steps that follow the last ones to first order, where these are near: for a method that comes back to them."""
        self.last = None
        for _ in self._steps(
            z + u / penalties, self.coefficients / penalties[self.starts], np.arange(len(self.apart)), _ROUGH
        ):
            pass
        return self.slopes * self.flips

    def _steps(self, t, steps, moved, rough: float = 0.0):
        """(what was found, the tasks that it is of), metric by metric; their flip probabilities are in `flips` then."""
        for metric, chosen, batch in self._batches_of(moved):
            found = metric.score_steps(t, batch, steps[chosen], self.flips, self.warm[chosen], rough)
            if isinstance(found, list) and None in found:
                raise SolverError(f"a proximal step of {self.loss.typed} is not exact in float64")
            yield found, chosen
        self.warm[moved] = 1

    def _batches_of(self, chosen: np.ndarray) -> list[tuple[Any, list[int], Batch]]:
        """These tasks by metric, as compiled loops read them."""
        if len(chosen) == len(self.apart) and self._all is not None:
            return self._all
        by_metric: dict[int, list[int]] = {}
        for k in chosen.tolist():
            by_metric.setdefault(id(self.apart[k][2]), []).append(k)
        batches = [
            (
                self.apart[of[0]][2],
                of,
                Batch([self.apart[k][4] for k in of], [self.rows[k].start for k in of]),
            )
            for of in by_metric.values()
        ]
        if len(chosen) == len(self.apart):
            self._all = batches
        return batches

    def parts(self, y: np.ndarray, designs: Any) -> list[Any]:
        """Every task's I - D where `multipliers` gave y."""
        return [found[i].tangent for found, i in self.at]

    def values(self, z: np.ndarray, designs: Any = None) -> np.ndarray:
        """(m,) the loss of every task."""
        values = np.empty(len(self.apart))
        for metric, chosen, batch in self._batches_of(np.arange(len(self.apart))):
            apart = [(self.rows[k], *self.apart[k][3:]) for k in chosen]
            values[chosen], _ = metric.highest_planes(z, batch, apart, np.zeros(len(z)))
        return self.coefficients * values

    def conjugates(self, u: np.ndarray, designs: Any = None) -> np.ndarray:
        """(m,) c G*(u / c) of every task, u inside the domain."""
        flips = np.clip(u / self.slopes, 0.0, 1.0)
        return np.array(
            [
                -c * metric._promised(flips[rows][classes.positive], flips[rows][classes.negative])
                for rows, (_, c, metric, _, classes) in zip(self.rows, self.apart, strict=True)
            ]
        )

    def balanced(self, u: np.ndarray, designs: Any = None) -> np.ndarray:
        """u with a zero sum in every task: the class whose flips are more probable gets fewer."""
        new = u.copy()
        for rows, (_, _, _, _, classes) in zip(self.rows, self.apart, strict=True):
            own = new[rows]
            down, up = own[classes.positive], own[classes.negative]
            a, b = -float(down.sum()), float(up.sum())
            if a > b:
                own[classes.positive] *= b / a
            elif b > 0.0:
                own[classes.negative] *= a / b
        return new

    def spread_of_scores(self, designs: Any = None) -> np.ndarray:
        """(m,) how far apart scores lie: positives within so much of zero may be flipped."""
        return np.array([1.0 / len(classes.positive) for *_, classes in self.apart])

    def sizes(self, designs: Any = None) -> np.ndarray:
        """(m,) the size of the multipliers of samples that are flipped."""
        return np.array([2.0 * c for _, c, *_ in self.apart])

    def duals(self, u: np.ndarray) -> np.ndarray:
        """What a point shows."""
        return u
