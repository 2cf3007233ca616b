"""Proximal Newton steps on working sets: rows of W that matter, until they are solved for; a look at all rows; those that are missing.

What is estimated of the gap here steers; the proof is the certificate's, outside.
Sources: Massias, Vaiter, Gramfort and Salmon, "Dual extrapolation for sparse generalized linear models", JMLR 21 (2020) (working sets);
Yuan, Ho and Lin, "An improved GLMNET for l1-regularized logistic regression", JMLR 13 (2012) (the second-order model, descended by
coordinates).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.smooth.designs import Design
from mtldsl.solvers.smooth.model import minimised
from mtldsl.solvers.smooth.samples import SmoothLoss

__all__ = ["State", "WorkingNewton"]

_NEAR = 0.2  # rows whose gradient is this near to what would move them stay in the working set
_PRECISION = 0.1  # of a model, relative to the violation at its start
_MOST_STEPS = 8  # Newton steps on one working set
_DESCENT = 1e-4  # of the decrease that the slopes promise
_SHORTEST = 2.0**-20
_ROUNDING = 1e-14
_LEAST_CURVATURE = 1e-6  # of the largest: where the loss is flat, the model stays bounded
_MOST_DAMPING = 1.0


class State:
    """W (m, d), b (m,), flat predictions z; the loss's values (m,), slopes u and curvatures there."""

    def __init__(self, loss: SmoothLoss, W, b, z):
        self.loss, self.W, self.b = loss, W, b
        self.move_to(z, loss.values(z))

    def move_to(self, z, values) -> None:
        self.z, self.values = z, values
        self.u, self.curvature = self.loss.slope(z), self.loss.curvature(z)


class WorkingNewton:
    """Minimises loss + penalty. `report(state, pull, steps)` is called where a look at the certificate pays; True ends the run."""

    def __init__(self, loss: SmoothLoss, design: Design, penalty: RowPenalty, centred: bool, tol: float):
        self.loss, self.design, self.penalty, self.centred = loss, design, penalty, centred
        self.target = 0.8 * tol
        self.apart = not penalty.l21.any()  # tasks have nothing in common: each has a step length of its own
        self.damping, self.steps = _LEAST_CURVATURE, 0

    def run(
        self,
        W,
        b,
        max_iter: int,
        report: Callable[[State, np.ndarray, int], bool],
        expired: Callable[[], bool],
    ) -> State:
        loss = self.loss
        rows = np.flatnonzero(W.any(axis=0))
        columns = self.design.columns(self._all() if self.design.prefers_all_rows else rows)
        z = columns.forward(W[:, columns.rows]) + loss.spread(b)
        state = State(loss, W, b, z)
        reported, stuck = 0, 0
        while True:
            pull = -self.design.pull(state.u)
            gap, excess = self._gap(state, pull, self._all())
            done = self.steps >= max_iter or expired() or stuck >= 3
            if gap <= self.target or done or self.steps >= 2 * reported + 50:
                reached, reported = gap <= self.target, self.steps
                if report(state, pull, self.steps) or done:
                    return state
                self.target *= 0.3 if reached else 1.0
            rows = self._next_rows(columns.rows, state, excess)
            if rows is not None:
                columns = self.design.columns(rows, columns)
            moved = self._descend(state, columns, max(0.3 * self.target, 0.3 * gap), max_iter, expired)
            stuck = 0 if moved else stuck + 1

    def _all(self) -> np.ndarray:
        return np.arange(self.design.n_features)

    def _next_rows(self, known, state: State, excess) -> np.ndarray | None:
        """The next working set: the support, what is near it, the worst violators; None where the present one holds all."""
        d = self.design.n_features
        if len(known) == d:
            return None
        inside = np.zeros(d, dtype=bool)
        inside[known] = True
        new = np.flatnonzero((excess > 0) & ~inside)
        if new.size == 0:
            return None if len(known) else np.array([int(excess.argmax())])
        used = state.W.any(axis=0)
        most = max(2 * int(math.sqrt(self.design.n_tasks * d)), 2 * int(used.sum()), 10)
        if new.size > most:
            new = np.sort(new[np.argpartition(-excess[new], most)[:most]])
        level = self.penalty.l21 if not self.apart else self.penalty.l1.max(axis=0)
        keep = inside & (used | (excess > -_NEAR * level))
        keep[new] = True
        return np.flatnonzero(keep)

    def _gap(self, state: State, pull, rows) -> tuple[float, np.ndarray]:
        """(the relative gap on these rows, about, with the slopes as dual point; by how much every row violates optimality)."""
        penalty = self.penalty if len(rows) == self.design.n_features else self.penalty.on(rows)
        W = state.W if penalty is self.penalty else state.W[:, rows]
        held, square = penalty.ridge > 0, 0.0
        own = penalty.ridge * W if held.any() else np.zeros(1)
        seen = penalty.inspect(pull - own)
        if held.any():
            share = np.divide(seen.over, seen.norms, out=np.zeros_like(seen.over), where=seen.norms > 0)
            taken = (own + share * seen.left)[:, held]
            square = float(np.sum(np.square(taken) / penalty.ridge[held]))
        t, value, penalised = 1.0 / seen.gauge, float(state.values.sum()), penalty.value(W)
        gap = penalised - t * float(np.vdot(pull, W)) + 0.5 * t * t * square + (1.0 - t) ** 2 * abs(value)
        if self.centred:  # what the intercepts would still bring
            sums, totals = self.loss.sums(state.u), self.loss.sums(state.curvature)
            gap += float(np.sum(np.divide(sums**2, totals, out=np.zeros_like(sums), where=totals > 0)))
        scale = max(abs(value + penalised), np.finfo(float).tiny)
        if not self.apart:
            return gap / scale, seen.norms - penalty.l21
        size = pull - own
        return gap / scale, np.max((size if penalty.nonneg else np.abs(size)) - penalty.l1, axis=0)

    # ------------------------------------------------------------------------------------------- on rows

    def _descend(self, state: State, columns, target: float, max_iter: int, expired) -> bool:
        """Newton steps on the working set; whether any was taken."""
        loss, rows = self.loss, columns.rows
        penalty = self.penalty.on(rows)
        moved = False
        for step in range(1 if len(rows) == self.design.n_features else _MOST_STEPS):
            if step and (
                self._gap(state, -columns.pull(state.u), rows)[0] <= target
                or self.steps >= max_iter
                or expired()
            ):
                break
            self.steps += 1
            own = state.W[:, rows]
            curvature = np.maximum(state.curvature, self.damping * state.curvature.max(initial=1e-300))
            dW, db = minimised(
                columns,
                penalty,
                own,
                state.u,
                curvature,
                self.centred,
                loss.sums,
                _PRECISION,
                0.3 * self.target,
            )
            dz = columns.forward(dW) + loss.spread(db)
            if not self._step(state, penalty, rows, own, dW, db, dz):
                break
            moved = True
        return moved

    def _step(self, state: State, penalty: RowPenalty, rows, own, dW, db, dz) -> bool:
        """Along the step as far as the objective falls as promised; False where it does not."""
        loss = self.loss
        before = self._penalised(penalty, own)
        promised = self._together(loss.sums(state.u * dz)) + self._penalised(penalty, own + dW) - before
        start = self._together(state.values) + before
        fraction = np.ones(len(promised))
        while True:
            t = np.broadcast_to(fraction, len(own))
            W = own + t[:, None] * dW
            z = state.z + (fraction[0] * dz if len(set(fraction)) == 1 else loss.spread(t) * dz)
            values = loss.values(z)
            reached = self._together(values) + self._penalised(penalty, W)
            allowed = start + _DESCENT * fraction * promised + _ROUNDING * np.abs(start)
            fails = ~(reached <= allowed) & (fraction > 0)
            if not fails.any():
                break
            fraction = np.where(fails, 0.5 * fraction, fraction)
            fraction[fraction < _SHORTEST] = 0.0
        smallest = float(fraction.min())
        if smallest == 1.0:
            self.damping = max(0.1 * self.damping, _LEAST_CURVATURE)
        elif smallest < 0.3:
            self.damping = min(max(10.0 * self.damping, 1e-3), _MOST_DAMPING)
        if not fraction.any():
            return False
        state.W[:, rows] = W
        state.b = state.b + t * db
        state.move_to(z, values)
        return True

    def _together(self, per_task) -> np.ndarray:
        return per_task if self.apart else per_task.sum()[None]

    def _penalised(self, penalty: RowPenalty, W) -> np.ndarray:
        """The penalty task by task where they are apart, else one number."""
        if not self.apart:
            return np.array([penalty.value(W)])
        return np.einsum("ij,ij->i", penalty.l1, np.abs(W)) + 0.5 * (W * W) @ penalty.ridge
