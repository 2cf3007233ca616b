"""Terms of losses that join samples: of residual norms, of risk sets, of rows over all tasks, and of the worst task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses.cox import CoxLoss, RiskSets
from mtldsl.atoms.losses.multiclass import less_own, on_simplex, plus_own
from mtldsl.atoms.losses.worst_task import WorstTaskLoss
from mtldsl.atoms.prox.shrinkage import level_shares
from mtldsl.normal_form.term import Blocks, LossTerm, register_term
from mtldsl.utils.caching import cached_property

if TYPE_CHECKING:
    from mtldsl.data.tasks import Tasks

# --------------------------------------------------------------------------------------------------------------
# A loss that is a function of the norm of every task's residuals: all tasks at once, by their norms.


@register_term
@dataclass(frozen=True, eq=False)
class RadialTerm(LossTerm):
    """sum over tasks i of coefficients[i] * h(t_i), t_i = ||sqrt(s) (z_i - y_i)||, h = `atom.value_of_norm`."""

    takes_steps_by_task: ClassVar[bool] = True

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return loss.radial and not loss.separable

    def _spread(self, per_task) -> np.ndarray:
        return np.repeat(per_task, self.tasks.counts)

    def _norms(self, residuals) -> np.ndarray:
        s = self.tasks.sample_weights
        return np.sqrt(self.tasks.sums(residuals**2 if s is None else s * residuals**2))

    def _dual_norms(self, u) -> np.ndarray:
        """||u_i / sqrt(s)|| / coefficient."""
        s = self.tasks.sample_weights
        return np.sqrt(self.tasks.sums(u**2 if s is None else u**2 / s)) / self.coefficients

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

    def prox(self, z, step) -> np.ndarray:
        step = step if np.ndim(step) == 0 else np.asarray(step)[self.tasks.offsets[:-1]]
        steps = iter(np.broadcast_to(step, self.coefficients.shape))
        return self._map_tasks(lambda rows, c, y, s: self.atom.prox(z[rows], y, next(steps) * c, s))

    def conjugate(self, u) -> float:
        inner = float(np.dot(u, self.tasks.targets))
        return inner + float(self.coefficients @ self.atom.conjugate_of_norm(self._dual_norms(u)))

    def dual_project(self, u) -> np.ndarray:
        u = np.asarray(u, float)
        return u / self._spread(np.maximum(self._dual_norms(u), 1.0))


# --------------------------------------------------------------------------------------------------------------
# Cox's partial likelihood in a model: the times are sorted once.


@register_term
@dataclass(frozen=True, eq=False)
class CoxTerm(LossTerm):
    """sum over tasks i of coefficients[i] * the partial likelihood of task i, whose risk sets are kept."""

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return isinstance(loss, CoxLoss) and tasks.in_memory

    @cached_property
    def _tasks(self) -> list[tuple[slice, float, RiskSets]]:
        return [(rows, float(c), RiskSets(y, s)) for rows, c, y, s in self._tasks_apart()]

    def _each(self, function) -> np.ndarray:
        return np.concatenate([function(*own) for own in self._tasks])

    def value(self, z) -> float:
        return float(sum(c * sets.value(z[rows]) for rows, c, sets in self._tasks))

    def gradient(self, z) -> np.ndarray:
        return self._each(lambda rows, c, sets: c * sets.gradient(z[rows]))

    def prox(self, z, step) -> np.ndarray:
        return self._each(lambda rows, c, sets: sets.prox(z[rows], step * c))

    def conjugate(self, u) -> float:
        return float(sum(c * sets.conjugate(u[rows] / c) for rows, c, sets in self._tasks))

    def magnitude(self, u, x: Blocks) -> float:
        """Beside multipliers times predictions, the logarithms and predictions that events take the difference of."""
        z = self.predictions(x)
        sizes = [
            c * sets.deaths.sum() * (1.0 + np.log(sets.weights.size) + np.abs(z[rows]).max())
            for rows, c, sets in self._tasks
        ]
        return super().magnitude(u, x) + float(sum(sizes))

    def dual_project(self, u) -> np.ndarray:
        u = np.asarray(u, float)
        return self._each(lambda rows, c, sets: c * sets.dual_project(u[rows] / c))


# --------------------------------------------------------------------------------------------------------------
# A loss of all classes of a row together in a model: tables of scores, weights of rows, multipliers on simplices.


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


# --------------------------------------------------------------------------------------------------------------
# The largest of the tasks' losses in a model: a proximal step and a conjugate by shares of the tasks.


#: Relative step of the differences that tell how a conjugate falls with a share.
STEP_SHARE = 1e-5


@register_term
@dataclass(frozen=True, eq=False)
class WorstTaskTerm(LossTerm):
    """max over tasks i of coefficients[i] * f(X_i map(x)_i + intercept_i), which is max over p in the simplex of sum_i p_i f_i.

    With p at its best, the proximal step is that of the sum with the weights p; f_i(z_i) is then one level for all tasks with p_i > 0.
    Conjugate: the least over p in the simplex of sum_i p_i f_i*(u_i / p_i); for any p that is an upper bound of it, so that what is
    proven holds however nearly p is the best one.
    """

    atom: Any  # a WorstTaskLoss

    sums_tasks: ClassVar[bool] = False

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return isinstance(loss, WorstTaskLoss)

    @cached_property
    def each(self) -> LossTerm:
        """The sum of the tasks' losses."""
        return LossTerm(self.atom.of, self.coefficients, self.tasks, self.map, self.intercepts, self.typed)

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

    def values_of_tasks(self, z) -> np.ndarray:
        """(m,) the tasks' losses, of which the largest is the value."""
        return self.tasks.sums(self._weights * self.atom.of.pointwise(z, self.tasks.targets))

    def value(self, z) -> float:
        return float(self.values_of_tasks(z).max())

    def gradient(self, z) -> np.ndarray:
        """A subgradient: the gradient of the largest loss, of the first where several are."""
        own = np.zeros(self.tasks.n_tasks)
        own[int(np.argmax(self.values_of_tasks(z)))] = 1.0
        return self._spread(own) * self._weights * self.atom.of.slope(z, self.tasks.targets)

    def _step(self, z, step, p) -> np.ndarray:
        found = np.array(z, dtype=float)
        moving = self._spread(p) > 0.0
        steps = (self._spread(p) * self._weights)[moving] * step
        found[moving] = self.atom.of.pointwise_prox(found[moving], self.tasks.targets[moving], steps)
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
        own = self.tasks.sums(np.abs(u)) > 0.0
        least = least / max(1.0, float(least.sum()))
        quadratic = self.atom.of.dual_quadratic(self.tasks.targets[:1])
        if quadratic is not None:
            bend = 0.5 * quadratic[1] * self.tasks.sums(u * u / self._weights)
            floor = np.where(own & (least == 0.0), 1e-12 / own.size, least)

            def falls(p):
                return np.divide(bend, p * p, out=np.zeros(p.size), where=p > 0)

            return level_shares(falls, floor / max(1.0, float(floor.sum())))
        floor = least + np.where(own, (1.0 - float(least.sum())) * 1e-9 / own.size, 0.0)

        def slopes(p):
            step = STEP_SHARE * np.maximum(p, 1e-9)
            return -(self._parts(u, p + step) - self._parts(u, p)) / step

        return level_shares(slopes, floor)

    def _parts(self, u, p) -> np.ndarray:
        """(m,) p_i f_i*(u_i / p_i)."""
        shares = self._spread(p) * self._weights
        v = np.divide(u, shares, out=np.zeros(u.size), where=shares > 0)
        inside, _ = self.atom.of.within(v, self.tasks.targets)
        return self.tasks.sums(shares * self.atom.of.pointwise_conjugate(inside, self.tasks.targets))

    def balanced(self, u) -> np.ndarray:
        """u with every task's sum zero: the parts of one sign scaled down to those of the other."""
        u = np.array(self.dual_project(u))
        up, down = self.tasks.sums(np.maximum(u, 0.0)), self.tasks.sums(np.maximum(-u, 0.0))
        common = np.minimum(up, down)
        for sums, side in ((up, u > 0), (down, u < 0)):
            share = np.divide(common, sums, out=np.ones(sums.size), where=sums > 0)
            u[side] *= self._spread(share)[side]
        return u
