"""Working sets of features: the best weights of every task that is tied to no other, solved on the features that matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mtldsl.solvers.augmented_lagrangian.interior_point import InteriorPoint
from mtldsl.solvers.augmented_lagrangian.outer_loop import OuterLoop, first_state
from mtldsl.solvers.augmented_lagrangian.semismooth_newton import NewtonState
from mtldsl.solvers.design.task_design import Designs

__all__ = [
    "BestTasks",
    "FeatureTask",
]


# --------------------------------------------------------------------------------------------------------------
# What is best of every task, where tasks are not tied: weights with the lowest objective, multipliers with the highest bound.


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


# --------------------------------------------------------------------------------------------------------------
# Many features under an l1 norm: every task by itself, on a working set of features that grows by what the multipliers say is missing.


@dataclass(frozen=True)
class FeatureSetSettings:
    """Constants of working sets of features.

    initial_features    : features of the first set; every later one may grow by as many
    growth_factor       : times its features, to which a larger set may grow
    gap_share           : gap on the set, of the gap on all features, at which the set is looked at anew
    max_stiffness_ratio : penalties that the next set begins with, over the first ones: stiffer ones were for a smaller set's last digits
    max_outer_steps     : outer steps on one set
    """

    initial_features: int = 30
    growth_factor: float = 2.0
    gap_share: float = 0.1
    max_stiffness_ratio: float = 30.0
    max_outer_steps: int = 60


SETTINGS = FeatureSetSettings()


class FeatureTask:
    """One task: its best weights `v` (d,), intercept `b` of the columns as given, multipliers `u` (n,), and what they prove.

    stops_at : features in the set from which on it is of no use
    """

    def __init__(self, designs: Designs, i: int, scores, part, stops_at: float = np.inf):
        self.stops_at = stops_at
        self.loss, self.i, self.whole = designs.loss, i, part
        self.X, self.part = designs.inputs_of(i), part.of_task(i)
        self.scores = scores.on(np.array([i]), np.arange(designs.offsets[i], designs.offsets[i + 1]))
        self.has_intercepts = designs.has_intercepts
        none = self._designs(np.empty(0, int))
        self.v, self.b = np.zeros(self.X.shape[1]), 0.0
        self.objective = float(self.scores.values(np.zeros(none.offsets[-1]), none)[0])
        self.bound, self.steps = -np.inf, 0
        # multipliers of a score between the kinks: none stands at its own
        side = np.where(self.scores.kink > self.scores.kink.mean(), self.scores.low, self.scores.high)
        self.u = np.zeros(len(side))
        self.rows = np.empty(0, int)
        self.state: NewtonState | None = None
        self._prove(side, none)

    @property
    def wanted(self) -> float:
        """The share of all features that the last multipliers ask for."""
        return float(np.mean(self.excess > 1.0))

    def solve(self, tol: float, most: int, expired) -> bool:
        """Tell whether it is proven to a relative gap of tol, within about so many Newton steps more."""
        end, share = self.steps + most, SETTINGS.gap_share
        while self.objective - self.bound > tol * abs(self.objective):
            if self.steps >= end or expired():
                return False
            self._grow()
            if self.is_outgrown:
                return False
            outer = self._outer()
            before = self.objective - self.bound
            for _ in range(SETTINGS.max_outer_steps):
                self.steps += max(outer.step(end - self.steps), 1)
                inside = self._see(outer)
                gap = self.objective - self.bound
                if gap <= tol * abs(self.objective) or expired() or self.steps >= end:
                    break
                if inside <= max(share * gap, share * tol * abs(self.objective)) or outer.is_stalled:
                    break
            self.state, self.penalties = outer.at, outer.penalties
            if outer.is_stalled and not self.objective - self.bound < 0.9 * before:
                return False
        return True

    @property
    def is_outgrown(self) -> bool:
        """Tell whether a system of the rows is smaller than one of the set, and interior points of all features take it."""
        return len(self.rows) > self.stops_at

    def _designs(self, rows: np.ndarray) -> Designs:
        X = self.X[:, rows]
        X = X.toarray() if sparse.issparse(X) else X
        return Designs(self.loss, np.array([self.i]), columns=[X])

    def _grow(self) -> None:
        """Features whose multipliers are too large join, the largest first."""
        excess = self.excess.copy()
        excess[self.rows] = 0.0
        few = SETTINGS.initial_features
        room = max(few, int((SETTINGS.growth_factor - 1.0) * len(self.rows)))
        wanted = np.flatnonzero(excess > 1.0) if len(self.rows) else np.argsort(-excess, kind="stable")[:few]
        new = wanted[np.argsort(-excess[wanted], kind="stable")[:room]]
        rows = np.sort(np.concatenate([self.rows, new]))
        if self.state is not None:
            at, old = self.state, np.searchsorted(rows, self.rows)
            W, P = np.zeros((len(rows), 1)), np.zeros((len(rows), 1))
            W[old], P[old] = at.W, at.P
            P[np.searchsorted(rows, np.sort(new)), 0] = self.pull[np.sort(new)]
            self.state = NewtonState(W, at.b, at.z, at.u, P, W.copy())
        self.rows = rows

    def _outer(self) -> OuterLoop:
        designs = self._designs(self.rows)
        part = self.whole.of_task(self.i, self.rows)
        if self.state is None:
            W = np.zeros((len(self.rows), 1))
            return OuterLoop(designs, self.scores, part, first_state(designs, W, np.zeros(1), None, None))
        run = OuterLoop(designs, self.scores, part, self.state)
        first, p, ratio = run.penalties, self.penalties, SETTINGS.max_stiffness_ratio
        # what was raised for the last digits of a smaller set is too stiff for new features
        run.penalties = type(p)(
            np.minimum(p.loss, ratio * first.loss),
            np.minimum(p.regularizer, ratio * first.regularizer),
            np.maximum(p.proximal, first.proximal / ratio),
        )
        return run

    def _see(self, outer: OuterLoop) -> float:
        """Look at where a run stands; its gap on its own features."""
        designs, at, part = outer.designs, outer.at, outer.part
        objective = float(self.scores.values(designs.forward(at.v, at.b), designs)[0] + part.values(at.v)[0])
        if objective < self.objective:
            self.objective, self.b = objective, float(designs.intercepts(at.v, at.b)[0])
            self.v = np.zeros(self.X.shape[1])
            self.v[self.rows] = at.v[:, 0]
        inside = self._prove(at.u, designs)
        return objective - inside

    def _prove(self, u: np.ndarray, designs: Designs) -> float:
        """The bound that u proves, on all features and on those of the set, which is returned."""
        u = self.scores.balanced(u, designs) if self.has_intercepts else u
        pull = -np.asarray(self.X.T @ u)
        conjugate = float(self.scores.conjugates(u, designs)[0])
        t, g = self.part.dual(pull[:, None])
        value = -t[0] * conjugate - g[0]
        if value > self.bound:
            self.bound, self.u = value, t[0] * u
        self.pull, self.excess = pull, self.part.excess(pull[:, None])[:, 0]
        t, g = self.whole.of_task(self.i, self.rows).dual(pull[self.rows, None])
        return float(-t[0] * conjugate - g[0])
