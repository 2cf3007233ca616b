"""Structured hinges in score space: one exact proximal step a task, and its derivative as sums of rows of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.errors import SolverError

__all__ = ["StructuredScores"]


class StructuredScores:
    """sum_i c_i G_i(z_i): at scores z with multipliers u and penalties s the new multipliers are s (t - prox(t)) = -2 c y p, t = z + u / s,
    with p the flip probabilities of the step c / s at t.
    """

    def __init__(self, loss: Any, ids: np.ndarray | None = None):
        self.loss = loss
        self.ids = np.arange(loss.tasks.n_tasks) if ids is None else ids
        self.apart = [loss.tasks_apart[i] for i in self.ids]
        sizes = [len(y) for _, _, _, y, _ in self.apart]
        ends = np.cumsum(sizes)
        self.rows = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        self.at: list[Any] = [None] * len(self.apart)  # (t, step, what was found there), of every task
        self.near: list[Any] = [None] * len(self.apart)

    def on(self, keep: np.ndarray, flat: np.ndarray) -> StructuredScores:
        """The same of some of its tasks."""
        part = StructuredScores(self.loss, self.ids[keep])
        part.near = [self.near[k] for k in keep]
        return part

    def multipliers(self, z: np.ndarray, u: np.ndarray, penalties: np.ndarray) -> np.ndarray:
        """New multipliers; penalties are one a sample, equal within a task."""
        t = z + u / penalties
        new = np.empty_like(t)
        for k, (rows, (_, c, metric, y, classes)) in enumerate(zip(self.rows, self.apart, strict=True)):
            own, step = t[rows], c / float(penalties[rows.start])
            last = self.at[k]
            if last is None or last[1] != step or not np.array_equal(last[0], own):
                found = metric.score_step(own, classes, step, self.near[k])
                if found is None:
                    raise SolverError(f"a proximal step of {self.loss.typed} is not exact in float64")
                self.at[k], self.near[k] = (own, step, found), found.flips
            new[rows] = (-2.0 * c) * y * self.at[k][2].flips
        return new

    def parts(self, y: np.ndarray, designs: Any) -> list[Any]:
        """Every task's I - D where `multipliers` gave y."""
        return [found.tangent for _, _, found in self.at]

    def values(self, z: np.ndarray, designs: Any = None) -> np.ndarray:
        """(m,) the loss of every task."""
        return np.array(
            [
                c * metric.most_violated(z[rows], y, classes).value
                for rows, (_, c, metric, y, classes) in zip(self.rows, self.apart, strict=True)
            ]
        )

    def conjugates(self, u: np.ndarray, designs: Any = None) -> np.ndarray:
        """(m,) c G*(u / c) of every task."""
        return np.array(
            [
                c * metric.conjugate(metric.dual_project(u[rows] / c, y), y)
                for rows, (_, c, metric, y, _) in zip(self.rows, self.apart, strict=True)
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
