"""What must be known of all labels before a model is stated: found in one pass, so that no label has to be moved."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from mtldsl.errors import DataError, Spelled
from mtldsl.tasks.data import TaskData
from mtldsl.tasks.distributed.parts import Part
from mtldsl.tasks.labels import LABEL_KINDS

__all__ = ["Facts", "LabelFacts", "constant_scores", "facts_of", "facts_of_tasks"]

#: columns of `Facts.sums`
_SUMS = ("counts", "total", "deviations", "weights", "weighted_total", "weighted_squares", "not_01", "parts")
_KINDS = tuple(LABEL_KINDS)


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of some tasks, told apart by keys; `+` puts those of an earlier and a later part together, tasks in order of first appearance."""

    keys: tuple
    sums: np.ndarray  # (k, len(_SUMS))
    lowest: np.ndarray  # (k,)
    highest: np.ndarray  # (k,)
    unfit: (
        np.ndarray
    )  # (k, kinds, 3) partition, row and label of the first that is not of the kind; NaN where all are
    rows: int

    def __add__(self, other: Facts) -> Facts:
        keys = self.keys if self.keys == other.keys else tuple(dict.fromkeys((*self.keys, *other.keys)))
        left, right = self.on(keys), other.on(keys)
        return Facts(
            keys,
            _added(left.sums, right.sums),
            np.minimum(left.lowest, right.lowest),
            np.maximum(left.highest, right.highest),
            np.where(np.isnan(left.unfit), right.unfit, left.unfit),
            left.rows + right.rows,
        )

    def on(self, keys: tuple) -> Facts:
        """The same on these keys, which have all of its own; nothing is known of the others."""
        if keys == self.keys:
            return self
        place = {key: k for k, key in enumerate(keys)}
        at = [place[key] for key in self.keys]
        sums, unfit = np.zeros((len(keys), len(_SUMS))), np.full((len(keys), len(_KINDS), 3), np.nan)
        low, high = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
        sums[at], low[at], high[at], unfit[at] = self.sums, self.lowest, self.highest, self.unfit
        return Facts(keys, sums, low, high, unfit, self.rows)

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes + self.lowest.nbytes + self.highest.nbytes + self.unfit.nbytes


def _added(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sums of both; squared deviations are those from the mean of both (Chan, Golub and LeVeque, eq. 2.1)."""
    total = left + right
    (n, first), (k, second) = left.T[:2], right.T[:2]
    both = (n > 0) & (k > 0)
    apart = np.divide(second, k, out=np.zeros_like(k), where=both) - np.divide(
        first, n, out=np.zeros_like(n), where=both
    )
    total[:, 2] += np.divide(n * k, n + k, out=np.zeros_like(n), where=both) * apart**2
    return total


def facts_of(part: Part) -> Facts:
    """Those of one part; the keys are positions of tasks."""
    return facts_of_tasks(part.tasks, tuple(part.which.tolist()), part.index)


def facts_of_tasks(tasks: TaskData, keys: tuple, index: int) -> Facts:
    """Those of in-memory tasks that are called by these keys elsewhere."""
    y, starts = tasks.targets, tasks.offsets[:-1]
    s = np.ones_like(y) if tasks.sample_weights is None else tasks.sample_weights
    away = y - np.repeat(np.add.reduceat(y, starts) / tasks.counts, tasks.counts)
    columns = (np.ones_like(y), y, away * away, s, s * y, s * y * y, (y != 0.0) & (y != 1.0))
    unfit = np.full((len(keys), len(_KINDS), 3), np.nan)
    for k, known in enumerate(LABEL_KINDS.values()):
        wrong = np.flatnonzero(known.unfit(y))
        _, first = np.unique(tasks.task_of[wrong], return_index=True)
        for flat in wrong[first].tolist():
            task, row = tasks.place(flat)
            unfit[task, k] = index, row, y[flat]
    return Facts(
        keys,
        np.column_stack(
            [*(np.add.reduceat(np.asarray(one, dtype=float), starts) for one in columns), np.ones(len(keys))]
        ),
        np.minimum.reduceat(y, starts),
        np.maximum.reduceat(y, starts),
        unfit,
        tasks.X.shape[0] if tasks.is_shared else tasks.n_samples,
    )


@dataclass(frozen=True, eq=False)
class LabelFacts:
    """What is known of the labels of all tasks, (m,) each: how many, the smallest and largest, sums, and the same with sample weights.

    deviations     : sum of squares of what labels differ from their mean by
    weights        : sum of sample weights (of ones, where there are none)
    weighted_total : sum of s y; `weighted_squares`: sum of s y^2
    """

    counts: np.ndarray
    total: np.ndarray
    deviations: np.ndarray
    weights: np.ndarray
    weighted_total: np.ndarray
    weighted_squares: np.ndarray
    not_01: np.ndarray  # how many labels are neither 0 nor 1
    parts: np.ndarray  # how many parts have labels of the task
    minimum: np.ndarray
    maximum: np.ndarray
    unfit: np.ndarray  # see `Facts`

    @classmethod
    def of(cls, facts: Facts, keys: tuple) -> LabelFacts:
        """In the order of these keys, which may be of tasks without any label, too."""
        there = facts.on(keys)
        columns = dict(zip(_SUMS, there.sums.T, strict=True)) | {"counts": there.sums[:, 0].astype(int)}
        return cls(minimum=there.lowest, maximum=there.highest, unfit=there.unfit, **columns)

    @property
    def squares(self) -> np.ndarray:
        """(m,) sum of y^2, where its size is all that counts."""
        return self.deviations + self.total**2 / self.counts

    @property
    def distinct(self) -> np.ndarray:
        """(m,) 1 where all labels of the task are the same, else 2."""
        return np.where(self.minimum < self.maximum, 2, 1)

    @property
    def positives(self) -> np.ndarray:
        """(m,) how many labels -1 or +1 are +1; of other labels, nothing that is of use."""
        return np.rint((self.counts + self.total) / 2).astype(int)

    def are(self, kind: str) -> np.ndarray:
        """(m,) whether all labels of the task are of this kind (`LABEL_KINDS`)."""
        return np.isnan(self.unfit[:, _KINDS.index(kind), 0])

    def chosen(self, index: np.ndarray) -> LabelFacts:
        """Those of some tasks, in that order."""
        return LabelFacts(**{one.name: getattr(self, one.name)[index] for one in fields(self)})

    def require(self, kind: str, typed: str, task_names, partitions) -> None:
        """`Tasks.require_labels`; DataError names partition, row and task."""
        if kind not in LABEL_KINDS:
            raise ValueError(f"kind={kind!r}: one of {', '.join(map(repr, LABEL_KINDS))}")
        unfit = self.unfit[:, _KINDS.index(kind)]
        bad = np.flatnonzero(~np.isnan(unfit[:, 0]))
        if bad.size:
            task = int(bad[np.lexsort((unfit[bad, 1], unfit[bad, 0]))[0]])
            part, row, label = unfit[task].tolist()
            hint = LABEL_KINDS[kind].must_be
            if kind == "sign" and not self.not_01[task]:
                hint += "; for labels 0/1 write 2 * Y - 1"
            raise DataError(
                f"label {label:g} in task {task_names[task]!r}, {partitions[int(part)]}, row {int(row)}",
                term=typed,
                write_instead=hint,
            )
        one_class = np.flatnonzero(self.distinct < 2)
        if kind == "sign" and one_class.size:
            i = int(one_class[0])
            raise DataError(
                f"task {task_names[i]!r} has one class only (all {self.counts[i]} labels are {self.minimum[i]:+g})",
                term=typed,
                write_instead="leave the task out"
                + Spelled(" (tasks.without_one_class() leaves out all such)", "")
                + ", or give it labels of both classes",
            )


def constant_scores(train: LabelFacts, facts: LabelFacts, classes: bool) -> np.ndarray:
    """(m,) what a constant learned on the training rows scores, from what is known of the labels: its accuracy, or its R^2."""
    learned, n = train.total / train.counts, facts.counts
    if classes:
        share = facts.positives / n
        return np.where(learned > 0, share, 1.0 - share)
    spread = facts.deviations
    there = facts.distinct > 1
    lost = spread + n * (facts.total / n - learned) ** 2
    return np.where(there, 1.0 - lost / np.where(there, spread, 1.0), np.nan)
