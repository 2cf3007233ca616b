"""A structured hinge whose rows are elsewhere: its highest planes, exactly, with the scores of a whole task on one worker.

A look is two passes over the rows with an exchange between them: scores go to where one worker has all of a task's, the oracle in memory finds the
labelling (or ranking), and this goes back to the rows, which tell its slope in the weights. A plane is known here by d + 1 slopes and a few sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.atoms.loss import Loss
from mtldsl.atoms.losses.structured_hinge import StructuredHinge
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.distributed_term import DistributedTerm, LazyScores
from mtldsl.distributed.dual_statistics import adjoints_of
from mtldsl.distributed.partitions import ByTask, TaskSum, cut_by_task, join_tasks
from mtldsl.normal_form.term import LinearMap, MapEntry, register_term
from mtldsl.normal_form.terms.structured_term import StructuredTerm

if TYPE_CHECKING:
    from mtldsl.distributed.partitions import PartitionTasks


#: columns of what is told of a plane
_TOLD = ("value", "promised", "sums", "sizes", "squares", "work")


@dataclass(frozen=True, eq=False)
class PlaneDual:
    """Multipliers u of every task, a mixture of labellings, as a proof sees them.

    adjoint  : (d, m) X_i^T u_i
    sums     : (m,) of u_i;  sizes : of |u_i|;  work : of |u_ij| max(|z_ij|, 1);  length : ||u_i||, or more
    promised : (m,) c_i times the expected Delta, at most -c_i f_i*(u_i / c_i). f* is convex and f*(0) <= 0: scaled, mixtures promise as much less
    """

    adjoint: np.ndarray
    sums: np.ndarray
    sizes: np.ndarray
    work: np.ndarray
    length: np.ndarray
    promised: np.ndarray

    __array_ufunc__ = None  # numpy numbers on the left defer to __rmul__

    def __rmul__(self, t: float) -> PlaneDual:
        if not 0.0 <= t <= 1.0:
            raise ValueError(f"proven multipliers can be scaled by a number in [0, 1], not by {t}")
        if t == 0.0:  # nothing is proven of a labelling that the metric forbids, but for t = 0
            return PlaneDual(*(np.zeros_like(getattr(self, one.name)) for one in fields(self)))
        return PlaneDual(*(t * getattr(self, one.name) for one in fields(self)))

    def mixed(self, other: PlaneDual, share: np.ndarray) -> PlaneDual:
        """(1 - share_i) u_i + share_i v_i."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return PlaneDual(*((1.0 - share) * a + share * b for a, b in pairs))

    def total(self, name: str) -> np.ndarray:
        """(m,) <|u|, |y|>, with labels of -1 and +1."""
        return {"labels": self.sizes, "sums": self.sums, "work": self.work}[name]


@register_term
class DistributedStructuredTerm(DistributedTerm):
    """sum over tasks i of coefficients[i] * f_i(X_i v_i + b_i), f_i the structured hinge of task i's metric."""

    atom: Any  # StructuredHinge

    @staticmethod
    def handles(loss: Loss, tasks: Tasks) -> bool:
        return not tasks.in_memory and StructuredTerm.handles(loss, tasks)

    def metric(self, i: int) -> Any:
        return self.atom.of_task(i).metric

    def look(self, V: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
        return self.looks([(V, b)])[0]

    def looks(self, points: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """At each of some points (V, b): the highest planes, `value` and what `PlaneDual` is made of, without coefficients. Two passes for all
        of them."""
        parts, m = self.tasks.parts, self.tasks.n_tasks
        Vs, bs = [V for V, _ in points], [b for _, b in points]
        columns, _ = parts.run(_scores, Vs, bs, stateful=True)
        columns, told = parts.exchanged(columns, m, _highest, self.atom, len(points))
        slopes = parts.run(_pulled, state=columns).of_all(m)
        told = told.of_all(m)
        found = []
        for q in range(len(points)):
            seen = {name: told[:, q, k] for k, name in enumerate(_TOLD)}
            found.append(seen | {"adjoint": np.ascontiguousarray(slopes[:, q].T)})
        return found

    def plane(self, seen: dict[str, np.ndarray]) -> PlaneDual:
        """The planes of a look as multipliers."""
        c, length = self.coefficients, np.sqrt(seen["squares"])
        names = ("adjoint", "sums", "sizes", "work")
        return PlaneDual(*(c * one for one in (*(seen[name] for name in names), length, seen["promised"])))

    @cached_property
    def has_one_slope_at_zero(self) -> bool:  # type: ignore[override]
        """Tell whether one labelling of every task is the highest plane where all scores are zero."""
        if self.intercepts or self.map.offset is not None:
            return False
        known = [self.metric(i).at_constants(p, n, True) for i, (p, n) in enumerate(self._sizes)]
        return all(one is not None and np.ptp(one.positive) == 0.0 == np.ptp(one.negative) for one in known)

    @cached_property
    def _sizes(self) -> list[tuple[int, int]]:
        """(positives, negatives) of every task."""
        positives = self.tasks.positives
        return list(zip(positives.tolist(), (self.tasks.counts - positives).tolist(), strict=True))

    def constant_statistics(self) -> None:
        return None

    def value(self, z: LazyScores) -> float:
        return float(self.coefficients @ z.seen["value"])

    def claim_of(self, parts: Any, x: Any) -> tuple[float, float]:
        """The claim of all rows, whatever the parts: a task is whole."""
        return self.claim(x), 0.0

    def gradient(self, z: LazyScores) -> PlaneDual:  # type: ignore[override]
        return self.plane(dict(z.seen))

    def no_multipliers(self) -> PlaneDual:  # type: ignore[override]
        d, m = self.tasks.n_features, self.tasks.n_tasks
        return PlaneDual(np.zeros((d, m)), *(np.zeros(m) for _ in range(5)))

    def conjugate(self, u: PlaneDual) -> float:  # type: ignore[override]
        return 0.0 - float(u.promised.sum())

    conjugate_at_zero = 0.0  # type: ignore[assignment]

    def sums(self, u: PlaneDual) -> np.ndarray:  # type: ignore[override]
        return u.sums

    def absolute_sums(self, u: PlaneDual) -> np.ndarray:  # type: ignore[override]
        return u.sizes

    def work(self, u: PlaneDual, x) -> np.ndarray:  # type: ignore[override]
        return u.work

    def balanced(self, u: PlaneDual) -> PlaneDual:  # type: ignore[override]
        """u with every task's sum moved to zero by mixing in the labelling that has one class wrong, whose sum has the other sign."""
        down, up = self._one_class_wrong
        above = u.sums > 0.0
        other = down.mixed(up, np.where(above, 0.0, 1.0))
        allowed = np.where(above, *self._allowed)
        labellings = np.array([self.metric(i).labellings for i in range(self.tasks.n_tasks)])
        off = labellings & (np.abs(u.sums) > 1e-15 * u.sizes)  # slopes of rankings sum to zero
        gone = u.sums - other.sums
        share = np.divide(u.sums, gone, out=np.zeros_like(gone), where=off & (gone != 0.0))
        mixed = u.mixed(other, np.where(allowed, share, 0.0))
        return mixed.mixed(self.no_multipliers(), np.where(off & ~allowed, 1.0, 0.0))

    @cached_property
    def _allowed(self) -> tuple[np.ndarray, np.ndarray]:
        """(m,) whether all positives may be labelled -1, and whether all negatives may be labelled +1."""
        down, up = self._deltas_of_one_class
        return np.isfinite(down), np.isfinite(up)

    @cached_property
    def _deltas_of_one_class(self) -> list[np.ndarray]:
        return [
            np.array([
                self.metric(i).table([n * k], [p * (1 - k)], p, n)[0] if self.metric(i).labellings else 0.0
                for i, (p, n) in enumerate(self._sizes)
            ])
            for k in (0, 1)
        ]  # fmt: skip

    @cached_property
    def _one_class_wrong(self) -> tuple[PlaneDual, PlaneDual]:
        """(all positives labelled -1, all negatives labelled +1): a pass, the first time. They promise nothing of what the metric forbids."""
        tasks, c = self.tasks, self.coefficients
        sums = tasks.__dict__.get("_class_sums")
        if sums is None:
            sums = tasks.__dict__["_class_sums"] = tasks.parts.run(_class_sums).of_all(tasks.n_tasks)
        found = []
        for k, sign in enumerate((-2.0, 2.0)):
            n = (tasks.counts - tasks.positives if k else tasks.positives).astype(float)
            deltas = self._deltas_of_one_class[k]
            promised = c * np.where(np.isfinite(deltas), deltas, 0.0)
            size, slopes = 2.0 * c * n, sign * c * sums[:, k].T
            found.append(PlaneDual(slopes, sign * c * n, size, size, 2.0 * c * np.sqrt(n), promised))
        return found[0], found[1]


def _scores(part: PartitionTasks, _, Vs, bs) -> tuple[ByTask, None]:
    """The scores at every point, and which labels are +1."""
    tasks = part.tasks
    if tasks.is_shared and tasks.mask is None and len(Vs) > 1:  # one product for all points
        weights = np.hstack([part.columns(V) for V in Vs])
        table = np.asarray(tasks.X @ weights).T.reshape(len(Vs), len(part.which), -1)
        scores = [(own + b[part.which, None]).ravel() for own, b in zip(table, bs, strict=True)]
    else:
        scores = [
            tasks.forward(part.columns(V)) + np.repeat(b[part.which], tasks.counts)
            for V, b in zip(Vs, bs, strict=True)
        ]
    return cut_by_task(part.which, tasks.offsets, (*scores, tasks.targets > 0.0)), None


def _highest(columns: ByTask, atom: StructuredHinge, q: int) -> tuple[ByTask, TaskSum]:
    """The planes of whole tasks: flips of labellings, or slopes, and what is told of each at every point."""
    which, k = np.array([*columns]), len(columns)
    if isinstance(atom.metric, tuple):
        atom = StructuredHinge(tuple(atom.metric[i] for i in which))
    *scores, positive = join_tasks(columns, which)
    tasks = Tasks(
        stacked=np.empty((len(positive), 0)), counts=[len(own[-1]) for own in columns.values()],
        targets=np.where(positive, 1.0, -1.0), task_names=tuple(map(str, which)), feature_names=(),
    )  # fmt: skip
    # a function of the scores, coefficients of one
    term = StructuredTerm(atom, np.ones(k), tasks, LinearMap((MapEntry("W"),), (0, k)), (), atom.name)
    only_labels = all(metric.labellings for _, _, metric, _, _ in term.tasks_apart)
    told, back = np.empty((k, q, len(_TOLD))), []
    for at, z in enumerate(scores):
        term.value(z)  # where the metric is a user's own, this checks its oracle
        found = term.highest(z)
        u = found.slopes
        size = np.abs(u)
        sums = map(tasks.sums, (u, size, u * u, size * np.maximum(np.abs(z), 1.0)))
        told[:, at] = np.stack([found.values, found.deltas, *sums], axis=1)
        back.append(u != 0.0 if only_labels else u)
    return cut_by_task(which, tasks.offsets, back), TaskSum(which, told)


def _pulled(part: PartitionTasks, columns: ByTask) -> TaskSum:
    """(k, q, d) X_i^T u_i of every plane."""
    tasks, slopes = part.tasks, -2.0 * part.tasks.targets
    planes = [
        np.where(one, slopes, 0.0) if one.dtype == bool else one for one in join_tasks(columns, part.which)
    ]
    return TaskSum(part.which, np.ascontiguousarray(adjoints_of(tasks, np.stack(planes)).transpose(2, 0, 1)))


def _class_sums(part: PartitionTasks) -> TaskSum:
    """(k, 2, d) the sums of the rows of positives and of negatives."""
    y = part.tasks.targets
    sides = np.stack([y > 0.0, y < 0.0]).astype(float)
    return TaskSum(part.which, adjoints_of(part.tasks, sides).transpose(2, 0, 1))
