"""A loss whose rows are elsewhere: values, gradients and multipliers by one pass over the data a point, summed where the rows are.

No vector as long as the data comes here. Predictions are the weights that make them (`LazyScores`); multipliers are the gradients there, known by
what the proof asks of them (`DistributedDual`): sums over the rows, for those above and below zero apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.dual_statistics import DualStatistics
from mtldsl.distributed.partitions import TaskSum
from mtldsl.normal_form.term import Blocks, LinearMap, LossTerm, MapEntry, register_term
from mtldsl.normal_form.terms.row_statistics import factors_of, moments_here

if TYPE_CHECKING:
    from mtldsl.distributed.partitions import PartitionTasks, RowParts


@dataclass(frozen=True)
class DistributedTermSettings:
    """Size of memory: the sums of `remembered_points` are remembered."""

    remembered_points: int = 4


SETTINGS = DistributedTermSettings()


@dataclass(frozen=True, eq=False)
class LazyScores:
    """The predictions X_i v_i + b_i, not written out.

    V : (d, m);  b : (m,);  term : whose they are
    """

    V: np.ndarray
    b: np.ndarray
    term: DistributedTerm

    @cached_property
    def seen(self) -> Mapping[str, np.ndarray]:
        """Return what a pass over the data tells of this point."""
        return self.term.look(self.V, self.b)


@dataclass(frozen=True, eq=False)
class DistributedDual:
    """Multipliers u of a loss: those that a pass has seen, each kind multiplied by a number in [0, 1] a task.

    seen  : where there is an intercept, of two kinds of multipliers, those above zero and the others, else of one kind: `adjoint` (k, d, m), X^T u;
            and (k, m) each `conjugate`, of u, and `at_zero`, of 0 on the same samples; `sums`; `labels`, <|u|, |y|>; `squares`; `work`,
            <|u|, max(|z|, |y|)>
    share : (k, m). A conjugate is convex, so that between 0 and u it is at most what lies on the line: no further pass
    """

    seen: Mapping[str, np.ndarray]
    share: np.ndarray

    @classmethod
    def of(cls, seen: Mapping[str, np.ndarray]) -> DistributedDual:
        """Multipliers as a pass has seen them."""
        return cls(seen, np.ones_like(seen["sums"]))

    def __rmul__(self, t: float) -> DistributedDual:
        if not 0.0 <= t <= 1.0:
            raise ValueError(f"proven multipliers can be scaled by a number in [0, 1], not by {t}")
        return self if t == 1.0 else replace(self, share=t * self.share)

    @cached_property
    def adjoint(self) -> np.ndarray:
        """(d, m) X_i^T u_i."""
        return np.einsum("km,kdm->dm", self.share, self.seen["adjoint"])

    def total(self, name: str) -> np.ndarray:
        """(m,) a sum that is linear in u, over both sides."""
        return np.einsum("km,km->m", self.share, self.seen[name])

    @property
    def conjugate(self) -> float:
        """At most the conjugate of these multipliers; where nothing is scaled, the conjugate."""
        ends = self.share * self.seen["conjugate"] + (1.0 - self.share) * self.seen["at_zero"]
        return float(ends.sum())

    @property
    def length(self) -> np.ndarray:
        """(m,) ||u_i||."""
        return np.sqrt(np.einsum("km,km->m", self.share**2, self.seen["squares"]))


@register_term
class DistributedTerm(LossTerm):
    """sum over tasks i of coefficients[i] * atom(X_i v_i + b_i), with the rows in the parts of `tasks`."""

    tasks: Any  # DistributedTasks

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return not tasks.in_memory

    shifts_apart = has_cheap_lines = is_shared_complete = False  # type: ignore[assignment]

    def _remembered(self, V: np.ndarray, b: np.ndarray) -> LazyScores:
        last: list[LazyScores] = self.__dict__.setdefault("_scores", [])
        for one in last:
            if np.array_equal(one.V, V) and np.array_equal(one.b, b):
                return one
        last.insert(0, LazyScores(V.copy(), b.copy(), self))
        del last[SETTINGS.remembered_points :]
        return last[0]

    def look(self, V: np.ndarray, b: np.ndarray) -> Mapping[str, np.ndarray]:
        """`LazyScores.seen` (`seen_of`)."""
        at = V, b, bool(self.intercepts)
        return self.tasks.parts.run(seen_of, self.tasks.n_tasks, self.atom, self.coefficients, *at)

    def constant_statistics(self) -> LossTerm | None:
        """Return a loss of two rows a task, or one; None where sums of labels do not tell the best constants."""
        tasks, facts, d = self.tasks, self.tasks.label_facts, self.tasks.n_features
        names = {"task_names": tasks.task_names, "feature_names": tasks.feature_names}
        if self.atom.labels == "sign":
            sides = (
                np.stack([facts.weights + facts.weighted_total, facts.weights - facts.weighted_total]) / 2.0
            )
            here = Tasks.separate(
                [np.zeros((2, d))] * tasks.n_tasks,
                [[1.0, -1.0]] * tasks.n_tasks,
                sample_weights=list(sides.T),
                **names,
            )
        elif self.atom.quadratic is not None or self.atom.radial:
            means = facts.weighted_total / facts.weights
            here = Tasks.separate([np.zeros((1, d))] * tasks.n_tasks, list(means[:, None]), **names)
        else:
            return None
        return LossTerm(self.atom, self.coefficients, here, self.map, self.intercepts, self.typed)

    def known(self, x: Blocks, seen: Mapping[str, np.ndarray]) -> None:
        """A pass has told the value at this point: it need not be asked for."""
        self.predictions(x).__dict__["seen"] = seen

    def predictions(self, x: Blocks) -> LazyScores:  # type: ignore[override]
        b = np.zeros(self.tasks.n_tasks)
        for name in self.intercepts:
            b = b + x[name][0]
        return self._remembered(self.map.forward(x), b)

    @property
    def has_one_slope_at_zero(self) -> bool:
        return self.atom.smooth

    def offset_predictions(self) -> LazyScores | None:  # type: ignore[override]
        return (
            None
            if self.map.offset is None
            else self._remembered(self.map.offset, np.zeros(self.tasks.n_tasks))
        )

    def value(self, z: LazyScores) -> float:
        if "seen" not in z.__dict__ and self.atom.separable and self.atom.labels == "sign" and not z.V.any():
            return self._at_constants(z.b)
        return float(z.seen["value"].sum())

    def _at_constants(self, b: np.ndarray) -> float:
        """The value where all predictions of a task are one number, of labels -1 and +1: their weights tell it, without a pass."""
        facts, labels = self.tasks.label_facts, np.array([[1.0], [-1.0]])
        sides = (facts.weights + labels * facts.weighted_total) / 2.0  # (2, m)
        z, y = np.broadcast_to(b, sides.shape), np.broadcast_to(labels, sides.shape)
        return self.atom.value(z.ravel(), y.ravel(), (self.coefficients * sides).ravel())

    @property
    def _is_of_norms(self) -> bool:
        """Tell whether it is a function of the norms of every task's residuals, which sums over the rows tell at any weights."""
        return self.atom.quadratic is not None or self.atom.radial

    def claim(self, x: Blocks) -> float:
        """The value, from sums that are known where these tell it: what a solve on few rows says that it is."""
        if not (self._is_of_norms and self.tasks.__dict__.get("_factors")):
            return self.value_at(x)
        return self.of_squares(self.residual_squares(x))

    def claim_of(self, parts: RowParts, x: Blocks) -> tuple[float, float]:
        """(the value of the rows in some of the parts, made as solvers make it; how far rounding may have moved it)."""
        z, sent = self.predictions(x), (self.tasks.n_tasks, self.atom, self.coefficients)
        if not self._is_of_norms:
            seen = parts.run(seen_of, *sent, z.V, z.b, False)
            return 0.0 if seen is None else float(seen["value"].sum()), 0.0
        found = parts.run(_squares_of, z.V, z.b, bool(self.intercepts))
        if found is None:  # parts without a labelled row
            return 0.0, 0.0
        squares, off = found.of_all(self.tasks.n_tasks).T
        here, high = self.of_squares(squares), self.of_squares(squares + off)
        return here, max(high - here, here - self.of_squares(squares - off))

    def gradient(self, z: LazyScores) -> DistributedDual:  # type: ignore[override]
        return DistributedDual.of(z.seen)

    def dual_project(self, u: DistributedDual) -> DistributedDual:  # type: ignore[override]
        return u

    def no_multipliers(self) -> DistributedDual:  # type: ignore[override]
        weights, b = np.zeros(self.map.shape), np.zeros((1, self.tasks.n_tasks))
        zero = self.predictions(dict.fromkeys(self.map.blocks, weights) | dict.fromkeys(self.intercepts, b))
        return 0.0 * self.gradient(zero)

    def conjugate(self, u: DistributedDual) -> float:
        return u.conjugate

    @cached_property
    def conjugate_at_zero(self) -> float:
        return self.no_multipliers().conjugate

    def add_adjoint(self, u: DistributedDual, into: Blocks) -> None:  # type: ignore[override]
        self.map.add_adjoint(u.adjoint, into)
        for name in self.intercepts:
            into[name] += self.sums(u)[None, :]

    def sums(self, u: DistributedDual) -> np.ndarray:  # type: ignore[override]
        return u.total("sums")

    def absolute_sums(self, u: DistributedDual) -> np.ndarray:  # type: ignore[override]
        return np.einsum("km,km->m", u.share, np.abs(u.seen["sums"]))

    def balanced(self, u: DistributedDual) -> DistributedDual:  # type: ignore[override]
        """In every task the side with the larger sum is scaled down to the other's: towards zero, and so within every domain."""
        sides = u.share * np.abs(u.seen["sums"])
        smaller = sides.min(axis=0)
        shrunk = np.divide(smaller, sides, out=np.ones_like(sides), where=sides > smaller)
        return replace(u, share=u.share * shrunk)

    def absolute_adjoint(self, u: DistributedDual) -> np.ndarray:  # type: ignore[override]
        """Return what |X_i|^T |u_i| is at most, by Cauchy and Schwarz: without a pass."""
        return self.column_lengths * u.length

    def shown_at(self, x: Blocks, given) -> None:
        return None  # as long as the data

    def work(self, u: DistributedDual, x: Blocks) -> np.ndarray:  # type: ignore[override]
        return u.total("work")

    def residual_squares(self, x: Blocks) -> np.ndarray:
        b = sum((x[name][0] for name in self.intercepts), np.zeros(self.tasks.n_tasks))
        return factors_of(self.tasks).residual_squares(self.map.forward(x), b)

    def along(self, u: DistributedDual, z: LazyScores) -> float:  # type: ignore[override]
        return float(np.vdot(u.adjoint, z.V) + self.sums(u) @ z.b)

    def magnitude(self, u: DistributedDual, x: Blocks) -> float:  # type: ignore[override]
        total = float((self.column_lengths * u.length * np.abs(self.map.forward(x))).sum())
        total += float(u.total("labels").sum())
        for name in self.intercepts:
            total += float(self.absolute_sums(u) @ np.abs(x[name][0]))
        return total


def step_between(loss: LossTerm, x: Blocks, y: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """(by how much the weights (d, m) of a loss move from y to x, by how much the intercepts (m,) do)."""
    b = sum(((x[name] - y[name])[0] for name in loss.intercepts), np.zeros(loss.tasks.n_tasks))
    return loss.map.forward(x) - loss.map.forward(y), b


def intercepts_beside(
    loss: LossTerm, x: Blocks, y: Blocks, sums: np.ndarray, centres: np.ndarray, totals: np.ndarray
) -> Blocks:
    """The best ones beside new weights x, of squares around y with the slopes `sums`, sums of weights, and means (d, m) of the rows."""
    moved = loss.map.forward(x) - loss.map.forward(y)
    step = -sums / totals - np.einsum("dm,dm->m", centres, moved)
    return {name: y[name] + step[None, :] for name in loss.intercepts}


def term_of(part: PartitionTasks, atom, coefficients) -> LossTerm:
    """The loss of one part's rows, as a function of the weights of its tasks."""
    shape = (part.tasks.n_features, len(part.which))
    return LossTerm(atom, coefficients[part.which], part.tasks, LinearMap((MapEntry("W"),), shape), (), "")


def seen_of(
    part: PartitionTasks, n_tasks: int, atom, coefficients, V, b, by_sign: bool, u=None
) -> dict[str, np.ndarray]:
    """`DistributedDual.seen` of multipliers u, None the gradient, and `value` (m,) at weights V and intercepts b, over one part's rows."""
    sums = DualStatistics(part, n_tasks, atom, coefficients, V, b, by_sign)
    for slab in sums.slabs():
        sums.add(slab, atom.gradient(slab.z, slab.y, slab.s) if u is None else u[slab.flat])
    return sums.seen()


def _squares_of(part: PartitionTasks, V, b, centred: bool) -> TaskSum:
    """(k, 2) squared residuals of a part's rows by their moments, and how far rounding may have moved them."""
    factors, V = moments_here(part.tasks).factors(), part.columns(V)
    squares = factors.residual_squares(V, b[part.which])
    return TaskSum(part.which, np.stack([squares, factors.rounding(V, squares, centred)], axis=1))
