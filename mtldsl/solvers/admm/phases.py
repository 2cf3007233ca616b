"""When ADMM hands over to the method of multipliers, how that raises its penalties, and when it hands back."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.admm.newton import MethodOfMultipliers, Standing
from mtldsl.solvers.linear_algebra.curvature import curvature_kind
from mtldsl.solvers.linear_algebra.split import Copy, Split

__all__ = ["STEP", "NewtonPhase"]

_FIRST = 100  # iterations of ADMM before its pace is judged
_TYPICAL_STEPS = 30  # Newton steps that a well-begun run takes
STEP = 10.0  # price of a Newton step in iterations of ADMM
_STEP_WITH_PRODUCTS = 100.0  # the same with conjugate gradients
_LARGE = 2e8  # multiplications in a Newton step from which on each one is worth a look at the certificate
_RAISE = 3.0  # penalties, where disagreement fell by less than _SLOW
_SLOW = 0.3
_FINE = 0.01  # disagreement below this times tol needs no higher penalty
_LOWER = 0.5  # penalties, where Newton took _MANY_STEPS
_MANY_STEPS = 30
_CAP, _CAP_WITH_PRODUCTS = 1e7, 10.0  # no penalty rises more than that
_NEWTON_STEPS = 50  # of one outer step
_PATIENCE = 8  # outer steps in which disagreement must fall by half


class NewtonPhase:
    """The method of multipliers for one run of ADMM."""

    def __init__(self, split: Split, update, target, tol: float):
        self.split, self.tol = split, tol
        self.residuals: list[float] = []  # the smallest so far, iteration by iteration
        self.check = np.inf
        if split.size and hasattr(update, "newton_solver"):
            self.method = MethodOfMultipliers(split, update, target)
            self.check = _FIRST
            self.price = _TYPICAL_STEPS * sum(_price(copy) for copy in split.copies)
            work = sum(loss.tasks.n_samples * loss.tasks.n_features**2 for loss in split.form.losses)
            self.is_large = work > _LARGE

    def is_due(self, residual: float) -> bool:
        """Whether ADMM, at its pace over the last half of its iterations, needs longer than Newton steps would."""
        self.residuals.append(min(residual, self.residuals[-1]) if self.residuals else residual)
        done = len(self.residuals)
        if done < self.check:
            return False
        self.check = 1.5 * done
        now = self.residuals[-1]
        if not 0.0 < now < np.inf:  # nothing is missing, or nothing is known
            return False
        gained = np.log(self.residuals[done // 2] / now)
        missing = np.log(max(now / (0.1 * self.tol), 1.0))
        return missing * (done / 2) > self.price * gained

    def run(self, at: Standing, penalties: np.ndarray, accuracy: float, iteration: int, report):
        """Outer steps from `at` until `report(standing, penalties, iteration)` says stop or progress ends.

        Returns (stopped, standing, penalties of its multipliers, iteration).
        """
        largest = penalties * np.where(self.method.has_parts, _CAP, _CAP_WITH_PRODUCTS)
        smallest = penalties
        began, best, best_at, last = iteration, np.inf, 0, None
        for outer in range(10_000):
            for steps, (here, is_near) in enumerate(self.method.newton_steps(at, penalties, accuracy)):
                at, iteration = here, iteration + 1
                if is_near or steps == _NEWTON_STEPS:
                    break
                if self.is_large and report(at, penalties, iteration):
                    return True, at, penalties, iteration
            if report(at, penalties, iteration):
                return True, at, penalties, iteration
            apart = self._disagreement(at)
            worst = float(apart.max())
            if worst < 0.5 * best:
                best, best_at = worst, outer
            if outer - best_at >= _PATIENCE or (steps == 0 and outer > best_at + 2):
                break
            if last is not None:
                slow = (apart > _SLOW * last) & (apart > _FINE * self.tol)
                factor = _LOWER if steps >= _MANY_STEPS else np.where(slow, _RAISE, 1.0)
                changed = np.clip(factor * penalties, smallest, largest)
                at.u = at.u * self.split.metric(penalties) / self.split.metric(changed)
                penalties = changed
            last = apart
            accuracy = max(min(accuracy, 0.2 * worst), 1e-14)
        self.check = len(self.residuals) + 2 * (iteration - began) + _FIRST
        return False, at, penalties, iteration

    def _disagreement(self, at: Standing) -> np.ndarray:
        """||K x + k - w|| relative to the copies' size: losses together, functions together; one number a copy."""
        apart = np.zeros(len(self.split.copies))
        for kind in (True, False):
            rows = [copy.rows for copy in self.split.copies if copy.is_loss is kind]
            if not rows:
                continue
            difference = np.sqrt(sum(np.square(at.image[r] - at.w[r]).sum() for r in rows))
            size = np.sqrt(sum(max(np.square(at.image[r]).sum(), np.square(at.w[r]).sum()) for r in rows))
            for j, copy in enumerate(self.split.copies):
                if copy.is_loss is kind:
                    apart[j] = difference / max(size, np.finfo(float).tiny)
        return apart


def _price(copy: Copy) -> float:
    """What the copy's curvature costs: a loss's Gram matrices, the differences of a prox, or conjugate gradients."""
    kind = curvature_kind(copy)
    if kind is None:
        return _STEP_WITH_PRODUCTS
    if copy.is_loss:
        tasks = copy.term.tasks
        return STEP + 0.25 * min(tasks.n_features, int(tasks.counts.max()))
    return {"entries": STEP, "columns": STEP + copy.shape[0], "rows": STEP + copy.shape[1]}[kind]
