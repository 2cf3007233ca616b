"""Best points of tasks that are not tied: weights with the lowest objective, multipliers with the highest bound."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.augmented_lagrangian.interior_point import InteriorPoint
from mtldsl.solvers.augmented_lagrangian.outer_loop import OuterLoop
from mtldsl.solvers.design.task_design import Designs


class BestTasks:
    """v (d, m), b (m,), u flat; multipliers are scaled task by task: one common scale would be the worst of all."""

    def __init__(self, designs: Designs, scores, part):
        self.offsets = designs.offsets
        m, d = designs.n_tasks, len(part.unit)
        self.v, self.b, self.u = np.zeros((d, m)), np.zeros(m), np.zeros(designs.offsets[-1])
        self.objectives, self.bounds = np.full(m, np.inf), np.full(m, -np.inf)

    def see(self, outer: OuterLoop | InteriorPoint, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Keep what is best of where the run of the tasks `live` stands."""
        designs, scores, part, at = outer.designs, outer.scores, outer.part, outer.at
        u = scores.balanced(at.u, designs) if designs.has_intercepts else at.u
        t, conjugates = part.dual(-designs.adjoint(u))
        promised = -t * scores.conjugates(u, designs)
        # squares beside the norm: a smaller scale s proves s promised - s^2 conjugates, and more where multipliers are far too large
        shrinkage = np.where(promised < 0.0, 0.0, 1.0)
        np.divide(
            promised, 2.0 * conjugates, out=shrinkage, where=(promised > 0) & (promised < 2.0 * conjugates)
        )
        t, bounds = shrinkage * t, shrinkage * (promised - shrinkage * conjugates)
        objectives = scores.values(designs.forward(at.v, at.b), designs) + part.values(at.v)
        for k, i in enumerate(live):
            rows = slice(self.offsets[i], self.offsets[i + 1])
            if bounds[k] > self.bounds[i]:
                self.bounds[i], self.u[rows] = (
                    bounds[k],
                    t[k] * u[designs.offsets[k] : designs.offsets[k + 1]],
                )
            if objectives[k] < self.objectives[i]:
                self.objectives[i], self.v[:, i], self.b[i] = objectives[k], at.v[:, k], at.b[k]
        return objectives, bounds

    def within(self, tol: float) -> bool:
        """Tell whether the gaps of all tasks together say so."""
        objective = self.objectives.sum()
        return bool(objective - self.bounds.sum() <= tol * abs(objective))

    def are_done(self, live: np.ndarray, tol: float) -> np.ndarray:
        """Tell whether a task's gap is at most its part of tol times the objective of all."""
        gaps = self.objectives[live] - self.bounds[live]
        return gaps <= tol * abs(self.objectives.sum()) / len(self.objectives)
