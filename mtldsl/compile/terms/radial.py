"""A loss that is a function of the norm of every task's residuals: all tasks at once, by their norms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.atoms.function import Loss
from mtldsl.compile.loss_term import LossTerm, register_term

if TYPE_CHECKING:
    from mtldsl.tasks import Tasks

__all__ = ["RadialTerm"]


@register_term
@dataclass(frozen=True, eq=False)
class RadialTerm(LossTerm):
    """sum over tasks i of coefficients[i] * h(t_i), t_i = ||sqrt(s) (z_i - y_i)||, h = `atom.value_of_norm`."""

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return loss.radial and not loss.separable

    def _sums(self, per_sample) -> np.ndarray:
        """The sums over every task's samples: (m,)."""
        return np.add.reduceat(per_sample, self.tasks.offsets[:-1])

    def _spread(self, per_task) -> np.ndarray:
        return np.repeat(per_task, self.tasks.counts)

    def _norms(self, residuals) -> np.ndarray:
        s = self.tasks.sample_weights
        return np.sqrt(self._sums(residuals**2 if s is None else s * residuals**2))

    def _dual_norms(self, u) -> np.ndarray:
        """||u_i / sqrt(s)|| / coefficient."""
        s = self.tasks.sample_weights
        return np.sqrt(self._sums(u**2 if s is None else u**2 / s)) / self.coefficients

    def value(self, z) -> float:
        return float(self.coefficients @ self.atom.value_of_norm(self._norms(z - self.tasks.targets)))

    def gradient(self, z) -> np.ndarray:
        weights = self.atom.weight_of_norm(self._norms(z - self.tasks.targets))
        weights = np.where(np.isfinite(weights), weights, 0.0)  # at a kink 0 is a subgradient
        return self.weighted_residuals(z, self.coefficients * weights)

    def weighted_residuals(self, z, weights) -> np.ndarray:
        """weights[i] * s * (z_i - y_i), with one number a task: the gradient of a quadratic in every task's residuals."""
        r, s = z - self.tasks.targets, self.tasks.sample_weights
        return self._spread(weights) * (r if s is None else s * r)

    @property
    def takes_steps_by_task(self) -> bool:
        return True

    def prox(self, z, step) -> np.ndarray:
        step = step if np.ndim(step) == 0 else np.asarray(step)[self.tasks.offsets[:-1]]
        # an equation for every task, unless the loss says that it is the norm itself
        if self.tasks.sample_weights is not None or getattr(self.atom, "eps", None) != 0.0:
            steps = iter(np.broadcast_to(step, self.coefficients.shape))
            return self._map_tasks(lambda rows, c, y, s: self.atom.prox(z[rows], y, next(steps) * c, s))
        r = z - self.tasks.targets
        norms = self._norms(r)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.maximum(1.0 - step * self.coefficients / norms, 0.0)
        return self.tasks.targets + self._spread(np.where(norms > 0, kept, 0.0)) * r

    def conjugate(self, u) -> float:
        inner = float(np.dot(u, self.tasks.targets))
        return inner + float(self.coefficients @ self.atom.conjugate_of_norm(self._dual_norms(u)))

    def dual_project(self, u) -> np.ndarray:
        u = np.asarray(u, float)
        return u / self._spread(np.maximum(self._dual_norms(u), 1.0))
