"""When ADMM hands over to the method of multipliers, how that raises its penalties, and when it hands back."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.admm_newton import MethodOfMultipliers, Standing
from mtldsl.solvers.admm_split import Split

__all__ = ["NewtonPhase"]

_FIRST = 100  # iterations of ADMM before Newton's turn where all curvature comes in parts
_FIRST_WITH_PRODUCTS = 250  # and where conjugate gradients are needed
_RAISE = 3.0  # penalties where disagreement fell by less than _SLOW
_SLOW = 0.3
_CAP, _CAP_WITH_PRODUCTS = 1e7, 10.0  # no penalty rises more than that
_NEWTON_STEPS = 50  # of one outer step
_PATIENCE = 8  # outer steps in which disagreement must fall by half


class NewtonPhase:
    """The method of multipliers for one run of ADMM; `next` is the iteration at which it takes over."""

    def __init__(self, split: Split, update, target):
        self.split = split
        self.method = None
        self.next = np.inf
        if split.size and hasattr(update, "newton_solver"):
            self.method = MethodOfMultipliers(split, update, target)
            self.next = _FIRST if all(self.method.has_parts) else _FIRST_WITH_PRODUCTS

    def run(self, at: Standing, penalties: np.ndarray, accuracy: float, iteration: int, report):
        """Outer steps from `at` until `report(standing, penalties, iteration)` says stop or progress ends.

        Returns (stopped, standing, penalties of its multipliers, iteration).
        """
        largest = penalties * np.where(self.method.has_parts, _CAP, _CAP_WITH_PRODUCTS)
        began, best, best_at, last = iteration, np.inf, 0, None
        for outer in range(10_000):
            at, steps = self.method.outer_step(at, penalties, accuracy, _NEWTON_STEPS)
            iteration += 1 + steps
            if report(at, penalties, iteration):
                return True, at, penalties, iteration
            apart = self._disagreement(at)
            worst = float(apart.max())
            if worst < 0.5 * best:
                best, best_at = worst, outer
            if outer - best_at >= _PATIENCE or (steps == 0 and outer > best_at + 2):
                break
            if last is not None:
                raised = np.where(apart > _SLOW * last, _RAISE, 1.0)
                raised = np.minimum(raised * penalties, largest)
                at.u = at.u * self.split.metric(penalties) / self.split.metric(raised)
                penalties = raised
            last = apart
            accuracy = max(min(accuracy, 0.2 * worst), 1e-14)
        self.next = iteration + 2 * (iteration - began) + _FIRST
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
