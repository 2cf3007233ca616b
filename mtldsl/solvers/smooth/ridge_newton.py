"""Newton's method for a smooth loss under a ridge, all tasks at once: conjugate gradients on the Hessians, preconditioned by factors of
earlier ones.

Where all slopes curve alike - at constant predictions, the start - one Gram matrix gives every task's Hessian. Its factors serve as long
as conjugate gradients come through with few products; then the tasks have new ones of their own.
Source: Dembo, Eisenstat and Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal. 19 (1982).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtldsl.solvers.smooth.bordered import Bordered
from mtldsl.solvers.smooth.samples import SmoothLoss

__all__ = ["RidgeNewton", "RidgeState"]

_MOST_PRODUCTS = 200  # of conjugate gradients in one step
_FORCING = 0.1
_DESCENT, _SHORTEST, _ROUNDING = 1e-4, 2.0**-20, 1e-14
_LEAST_CURVATURE, _MOST_DAMPING = 1e-6, 1.0
_JITTER = 1e-13
_SURELY = 0.1  # of the target: an estimate below it need not be made finer


class RidgeState:
    """V (m, d + 1), the last column being the intercepts (zero where there are none), flat predictions, and the loss there."""

    def __init__(self, loss: SmoothLoss, V, z):
        self.loss, self.V = loss, V
        self.move_to(z, loss.values(z))

    def move_to(self, z, values) -> None:
        self.z, self.values = z, values
        self.u, self.curvature = self.loss.slope(z), self.loss.curvature(z)


class RidgeNewton:
    """Minimises loss + 1/2 sum ridge V^2, ridge (m, d + 1), zero at intercepts. `report(state, steps)` as a look pays; True ends the run."""

    def __init__(self, loss: SmoothLoss, inputs: Bordered, ridge, tol: float):
        self.loss, self.inputs, self.ridge, self.target = loss, inputs, ridge, 0.8 * tol
        self.factors: Callable[[np.ndarray], np.ndarray] | None = None
        self.products, self.damping = 0, _LEAST_CURVATURE
        self.unit = loss.largest_curvature()

    def run(self, V, max_iter: int, report: Callable[[RidgeState, int], bool], expired: Callable[[], bool]):
        z = self.inputs.forward(V)
        state, steps, reported, stuck = RidgeState(self.loss, V, z), 0, 0, False
        while True:
            slope = self.inputs.pull(state.u) + self.ridge * V
            gaps = self._gaps(state, slope)
            objective = float(state.values.sum()) + 0.5 * float(np.vdot(self.ridge * V, V))
            scale = max(abs(objective), np.finfo(float).tiny)
            gap = float(gaps.sum()) / scale
            if _SURELY * self.target < gap <= self.target and self.inputs.centred:
                gap = self._balanced_gap(state) / scale
            done = steps >= max_iter or expired() or stuck
            if gap <= self.target or done or steps >= 2 * reported + 50:
                reached, reported = gap <= self.target, steps
                if report(state, steps) or done:
                    return state
                self.target = min(0.3 * self.target, 0.1 * gap) if reached else self.target
            steps += 1
            # a task that is within its share of the target has arrived
            open_ = gaps > 0.3 * self.target * scale / len(gaps)
            goal = np.sqrt(0.1 * self.target * scale / len(gaps) / np.maximum(gaps, np.finfo(float).tiny))
            step = self._newton(state, np.where(open_[:, None], slope, 0.0), np.clip(goal, 1e-4, _FORCING))
            stuck = not self._move(state, step, slope)
            V = state.V

    def _balanced_gap(self, state: RidgeState) -> float:
        """With the slopes balanced, as intercepts ask of a dual point: exact but for third orders, at the price of a product."""
        sums, totals = self.loss.sums(state.u), self.loss.sums(state.curvature)
        slope = self.inputs.pull(self.loss.balanced(state.u, state.curvature)) + self.ridge * state.V
        held = self.ridge > 0
        paid = np.divide(sums**2, totals, out=np.zeros_like(sums), where=totals > 0)
        return 0.5 * float(np.sum(slope[held] ** 2 / self.ridge[held]) + np.sum(paid))

    def _gaps(self, state: RidgeState, slope) -> np.ndarray:
        """Every task's duality gap with the slopes as dual point; what intercepts would still bring is estimated."""
        held = self.ridge > 0
        gaps = 0.5 * np.sum(np.divide(slope**2, self.ridge, out=np.zeros_like(slope), where=held), axis=1)
        free = np.where(held, 0.0, slope)
        if free.any():
            totals = self.loss.sums(self._curved(state))
            gaps = gaps + np.sum(free**2, axis=1) / totals
        return gaps

    # ----------------------------------------------------------------------------------------------- steps

    def _curved(self, state: RidgeState) -> np.ndarray:
        """The slopes' curvature, damped: of a loss that is flat wherever the samples are (a Huber loss far from its targets), by what it may be at most."""
        largest = float(state.curvature.max(initial=0.0))
        return np.maximum(state.curvature, self.damping * (largest if largest > 0.0 else self.unit))

    def _newton(self, state: RidgeState, slope, goal) -> np.ndarray:
        """- H^-1 slope, within `goal` of the preconditioned residual's norm, task by task."""
        D = self._curved(state)
        if self.factors is None or self.products > self.inputs.products_worth_factors:
            self.factors = self.inputs.factors(D, self.ridge, _JITTER, self.factors is not None)
        solve = self._conjugate_gradients_of_one if len(slope) == 1 else self._conjugate_gradients
        step = solve(D, slope, goal)
        self.inputs.made.serve(self.products)
        return step

    def _conjugate_gradients(self, D, slope, goal) -> np.ndarray:
        assert self.factors is not None
        x, r = np.zeros_like(slope), -slope
        y = self.factors(r)
        p, size = y.copy(), np.einsum("ij,ij->i", r, y)
        enough, self.products = goal**2 * size, 0
        while self.products < _MOST_PRODUCTS:
            self.products += 1
            Hp = self.inputs.pull(D * self.inputs.forward(p)) + self.ridge * p
            along = np.einsum("ij,ij->i", p, Hp)
            t = np.divide(size, along, out=np.zeros_like(size), where=along > 0)
            x += t[:, None] * p
            r -= t[:, None] * Hp
            y = self.factors(r)
            before, size = size, np.einsum("ij,ij->i", r, y)
            if np.all(size <= enough):
                break
            share = np.divide(size, before, out=np.zeros_like(size), where=before > 0)
            p = y + np.where(size > enough, share, 0.0)[:, None] * p
            p[size <= enough] = 0.0
        return x

    def _conjugate_gradients_of_one(self, D, slope, goal) -> np.ndarray:
        """The same for one task, of which numbers are numbers: half the calls."""
        assert self.factors is not None
        x, r = np.zeros_like(slope), -slope
        y = self.factors(r)
        p, size = y, float(np.vdot(r, y))
        enough, self.products = float(goal[0]) ** 2 * size, 0
        while self.products < _MOST_PRODUCTS:
            self.products += 1
            Hp = self.inputs.pull(D * self.inputs.forward(p)) + self.ridge * p
            along = float(np.vdot(p, Hp))
            if along <= 0.0:
                break
            x += (size / along) * p
            r -= (size / along) * Hp
            y = self.factors(r)
            before, size = size, float(np.vdot(r, y))
            if size <= enough:
                break
            p = y + (size / before) * p
        return x

    def _move(self, state: RidgeState, step, slope) -> bool:
        """As far as each task's objective falls as promised; whether any moved."""
        dz = self.inputs.forward(step)
        promised = np.einsum("ij,ij->i", slope, step)
        linear = np.einsum("ij,ij->i", self.ridge * state.V, step)
        square = 0.5 * np.einsum("ij,ij->i", self.ridge * step, step)
        fraction = np.where(promised < 0, 1.0, 0.0)
        while True:
            z = state.z + (dz if fraction.min() == 1.0 else self.loss.spread(fraction) * dz)
            values = self.loss.values(z)
            change = values - state.values + fraction * (linear + fraction * square)
            allowed = _DESCENT * fraction * promised + _ROUNDING * np.abs(state.values)
            fails = ~(change <= allowed) & (fraction > 0)
            if not fails.any():
                break
            fraction = np.where(fails, 0.5 * fraction, fraction)
            fraction[fraction < _SHORTEST] = 0.0
        if not fraction.any():
            return False
        smallest = float(fraction[promised < 0].min())
        if smallest == 1.0:
            self.damping = max(0.1 * self.damping, _LEAST_CURVATURE)
        elif smallest < 0.3:
            self.damping = min(max(10.0 * self.damping, 1e-3), _MOST_DAMPING)
        state.V = state.V + fraction[:, None] * step
        state.move_to(z, values)
        return True
