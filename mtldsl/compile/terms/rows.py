"""A loss of all classes of a row together in a model: tables of scores, weights of rows, multipliers on simplices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.atoms.function import Loss
from mtldsl.atoms.losses.rows import less_own, on_simplex, plus_own
from mtldsl.compile.loss_term import LossTerm, register_term
from mtldsl.system.kept import cached_property

if TYPE_CHECKING:
    from mtldsl.tasks import Tasks

__all__ = ["RowTerm"]


@register_term
@dataclass(frozen=True, eq=False)
class RowTerm(LossTerm):
    """sum over rows j of weights_j * f_j(scores of row j), f_j the atom's function of one row; the tasks are the classes."""

    atom: Any  # a RowLoss

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return loss.labels == "classes"

    @cached_property
    def weights(self) -> np.ndarray:
        """(n,) coefficient times weight of every row; one task's are all others'."""
        n, own = int(self.tasks.counts[0]), self.tasks.sample_weights
        return self.coefficients[0] * (np.ones(n) if own is None else np.asarray(own[:n], float))

    @cached_property
    def own(self) -> np.ndarray:
        """(n,) the class of every row."""
        return self.atom.own(self.tasks.targets)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(K,) what the rows of every class weigh."""
        return np.bincount(self.own, weights=self.weights, minlength=self.tasks.n_tasks)

    def value(self, z) -> float:
        return float(self.weights @ self.atom.value_of_rows(self.atom.table(z), self.own))

    def gradient(self, z) -> np.ndarray:
        return self._multipliers(self.atom.points_of_rows(self.atom.table(z), self.own))

    def _multipliers(self, P) -> np.ndarray:
        return self.atom.flat(self.weights[:, None] * less_own(P, self.own))

    def _points(self, u) -> np.ndarray:
        """p of u = weights (p - e)."""
        return plus_own(self.atom.table(u) / self.weights[:, None], self.own)

    def prox(self, z, step) -> np.ndarray:
        Z, steps = self.atom.table(z), float(step) * self.weights
        return self.atom.flat(Z - steps[:, None] * self.atom.prox_slopes(Z, self.own, steps))

    def conjugate(self, u) -> float:
        P = self._points(u)
        inside = on_simplex(P)
        # multipliers are moved by rounding where they are made stationary
        if np.abs(P - inside).max(initial=0.0) > 1e-9:
            return np.inf
        return float(self.weights @ self.atom.conjugate_of_points(inside, self.own))

    def dual_project(self, u) -> np.ndarray:
        return self._multipliers(on_simplex(self._points(np.asarray(u, float))))

    def balanced(self, u) -> np.ndarray:
        """u with a sum of zero in every class: p mixed with one point for all rows, as little of it as fills up what a class lacks."""
        P = self._points(u)
        sums = self.weights @ P
        share = float(np.min(self.sizes / np.maximum(sums, np.finfo(float).tiny), initial=1.0))
        if share >= 1.0:
            return u
        rest = self.sizes - share * sums  # >= 0, and zero for the class that sets the share
        return self._multipliers(share * P + rest / self.weights.sum())

    def best_constants(self) -> np.ndarray:
        """(K,) where weights are zero."""
        return self.atom.best_constants(self.sizes)
