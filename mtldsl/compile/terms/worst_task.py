"""The largest of the tasks' losses in a model: a proximal step and a conjugate by shares of the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.atoms.calculus.shares import level_shares
from mtldsl.atoms.function import Loss, SeparableLoss
from mtldsl.atoms.losses.worst_task import WorstTaskLoss
from mtldsl.compile.loss_term import LossTerm, register_term
from mtldsl.system.kept import cached_property

if TYPE_CHECKING:
    from mtldsl.tasks import Tasks

__all__ = ["WorstTaskTerm"]

#: relative step of the differences that tell how a conjugate falls with a share
_DIFFERENCE = 1e-5


@register_term
@dataclass(frozen=True, eq=False)
class WorstTaskTerm(LossTerm):
    """max over tasks i of coefficients[i] * f(X_i map(x)_i + intercept_i), which is max over p in the simplex of sum_i p_i f_i.

    With p at its best, the proximal step is that of the sum with the weights p; f_i(z_i) is then one level for all tasks with p_i > 0.
    Conjugate: the least over p in the simplex of sum_i p_i f_i*(u_i / p_i); for any p that is an upper bound of it, so that what is
    proven holds however nearly p is the best one.
    """

    atom: Any  # a WorstTaskLoss

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return isinstance(loss, WorstTaskLoss)

    @property
    def sums_tasks(self) -> bool:
        return False

    @cached_property
    def each(self) -> LossTerm:
        """The sum of the tasks' losses."""
        return LossTerm(self.atom.of, self.coefficients, self.tasks, self.map, self.intercepts, self.typed)

    @cached_property
    def _loss(self) -> SeparableLoss:
        return self.atom.of

    @cached_property
    def _weights(self) -> np.ndarray:
        """(N,) coefficient times sample weight."""
        scale = self.each.scale
        return np.ones(self.tasks.n_samples) if scale is None else scale

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """(N,) the ends of every multiplier's interval where its task has the share 1; zero lies between."""
        return self.each.dual_interval()

    def _spread(self, of_tasks) -> np.ndarray:
        return np.repeat(of_tasks, self.tasks.counts)

    def _sums(self, values) -> np.ndarray:
        return np.add.reduceat(values, self.tasks.offsets[:-1])

    def values_of_tasks(self, z) -> np.ndarray:
        """(m,) the tasks' losses, of which the largest is the value."""
        return self._sums(self._weights * self._loss.pointwise(z, self.tasks.targets))

    def value(self, z) -> float:
        return float(self.values_of_tasks(z).max())

    def gradient(self, z) -> np.ndarray:
        """A subgradient: the gradient of the largest loss, of the first where several are."""
        own = np.zeros(self.tasks.n_tasks)
        own[int(np.argmax(self.values_of_tasks(z)))] = 1.0
        return self._spread(own) * self._weights * self._loss.slope(z, self.tasks.targets)

    def _step(self, z, step, p) -> np.ndarray:
        found = np.array(z, dtype=float)
        moving = self._spread(p) > 0.0
        steps = (self._spread(p) * self._weights)[moving] * step
        found[moving] = self._loss.pointwise_prox(found[moving], self.tasks.targets[moving], steps)
        return found

    def prox(self, z, step) -> np.ndarray:
        z, step = np.asarray(z, float), float(step)

        def losses(p) -> np.ndarray:
            return self.values_of_tasks(self._step(z, step, p))

        return self._step(z, step, level_shares(losses, np.zeros(self.tasks.n_tasks)))

    # ------------------------------------------------------------------------------------------------ multipliers

    def _least_shares(self, u) -> np.ndarray:
        """(m,) the least share of every task with which u_i lies in its domain."""
        low, high = self._ends
        needed = np.zeros(u.size)
        up, down = u > 0, u < 0
        with np.errstate(divide="ignore"):
            needed[up] = u[up] / high[up]
            needed[down] = u[down] / low[down]
        return np.maximum.reduceat(needed, self.tasks.offsets[:-1])

    def dual_project(self, u) -> np.ndarray:
        """u without what no share allows, and scaled where shares of sum 1 do not suffice."""
        low, high = self._ends
        u = np.array(u, dtype=float)
        u[(u > 0) & (high <= 0.0)] = 0.0
        u[(u < 0) & (low >= 0.0)] = 0.0
        total = float(self._least_shares(u).sum())
        return u if total <= 1.0 else u / total

    def conjugate(self, u) -> float:
        u = np.asarray(u, float)
        least = self._least_shares(u)
        if not float(least.sum()) <= 1.0 + 1e-12:
            return np.inf
        return float(self._parts(u, self._best_shares(u, least)).sum())

    def shares(self, u) -> np.ndarray:
        """(m,) the shares whose sum of conjugates is the conjugate, at multipliers in its domain."""
        u = np.asarray(u, float)
        return self._best_shares(u, self._least_shares(u))

    def _best_shares(self, u, least) -> np.ndarray:
        own = self._sums(np.abs(u)) > 0.0
        least = least / max(1.0, float(least.sum()))
        quadratic = self._loss.dual_quadratic(self.tasks.targets[:1])
        if quadratic is not None:
            bend = 0.5 * quadratic[1] * self._sums(u * u / self._weights)
            floor = np.where(own & (least == 0.0), 1e-12 / own.size, least)

            def falls(p):
                return np.divide(bend, p * p, out=np.zeros(p.size), where=p > 0)

            return level_shares(falls, floor / max(1.0, float(floor.sum())))
        floor = least + np.where(own, (1.0 - float(least.sum())) * 1e-9 / own.size, 0.0)

        def slopes(p):
            step = _DIFFERENCE * np.maximum(p, 1e-9)
            return -(self._parts(u, p + step) - self._parts(u, p)) / step

        return level_shares(slopes, floor)

    def _parts(self, u, p) -> np.ndarray:
        """(m,) p_i f_i*(u_i / p_i)."""
        shares = self._spread(p) * self._weights
        v = np.divide(u, shares, out=np.zeros(u.size), where=shares > 0)
        inside, _ = self._loss.within(v, self.tasks.targets)
        return self._sums(shares * self._loss.pointwise_conjugate(inside, self.tasks.targets))

    def balanced(self, u) -> np.ndarray:
        """u with every task's sum zero: the parts of one sign scaled down to those of the other."""
        u = np.array(self.dual_project(u))
        up, down = self._sums(np.maximum(u, 0.0)), self._sums(np.maximum(-u, 0.0))
        common = np.minimum(up, down)
        for sums, side in ((up, u > 0), (down, u < 0)):
            share = np.divide(common, sums, out=np.ones(sums.size), where=sums > 0)
            u[side] *= self._spread(share)[side]
        return u
