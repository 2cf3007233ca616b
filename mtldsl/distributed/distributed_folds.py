"""Splits of rows elsewhere: folds, test sets and samples, with the facts of their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mtldsl.data.derived import label_table
from mtldsl.data.labels import LABEL_KINDS, of_one_label
from mtldsl.data.row_storage import stack
from mtldsl.data.splits import checked_level
from mtldsl.data.task_data import TaskData, fields_of_table
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.partitions import PartitionTasks
from mtldsl.errors import DataError
from mtldsl.utils.validation import as_count, as_flag, generator

# --------------------------------------------------------------------------------------------------------------
# What must be known of all labels before a model is stated: found in one pass, so that no label has to be moved.

_KINDS = tuple(LABEL_KINDS)

#: Statistics that are summed over parts, and those of a task without labels.
_LABEL_SUMS = (
    "counts",
    "total",
    "deviations",
    "weights",
    "weighted_total",
    "weighted_squares",
    "not_01",
    "parts",
)
_NOTHING = dict.fromkeys(_LABEL_SUMS, 0.0) | {"minimum": np.inf, "maximum": -np.inf, "unfit": np.nan}


@dataclass(frozen=True, eq=False)
class LabelFacts:
    """Facts of the labels of some tasks, told apart by keys, (k,) each; `+` puts those of an earlier and a later part together, tasks in
    order of first appearance.

    rows           : of the parts
    counts, total  : how many labels, and their sum;  deviations : sum of squares of what they differ from their mean by
    weights        : sum of sample weights (of ones, where there are none);  weighted_total, weighted_squares : sums of s y and s y^2
    not_01         : how many labels are neither 0 nor 1;  parts : how many parts have labels of the task
    unfit          : (k, kinds, 3) partition, row and label of the first that is not of the kind; NaN where all are
    """

    keys: tuple
    rows: int
    counts: np.ndarray
    total: np.ndarray
    deviations: np.ndarray
    weights: np.ndarray
    weighted_total: np.ndarray
    weighted_squares: np.ndarray
    not_01: np.ndarray
    parts: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    unfit: np.ndarray

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in _NOTHING}

    def __add__(self, other: LabelFacts) -> LabelFacts:
        """Squared deviations are those from the mean of both (Chan, Golub and LeVeque, eq. 2.1)."""
        keys = tuple(dict.fromkeys((*self.keys, *other.keys)))
        left, right = self.on(keys), other.on(keys)
        n, k = left.counts.astype(float), right.counts.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            between = n * k / (n + k) * (right.total / k - left.total / n) ** 2
        sums = {name: getattr(left, name) + getattr(right, name) for name in _LABEL_SUMS}
        sums["deviations"] += np.where((n > 0) & (k > 0), between, 0.0)
        return LabelFacts(
            keys, left.rows + right.rows, **sums, minimum=np.minimum(left.minimum, right.minimum),
            maximum=np.maximum(left.maximum, right.maximum), unfit=np.where(np.isnan(left.unfit), right.unfit, left.unfit),
        )  # fmt: skip

    def on(self, keys: tuple) -> LabelFacts:
        """The same on these keys, which have all of its own; nothing is known of the others."""
        if keys == self.keys:
            return self
        place, found = {key: k for k, key in enumerate(keys)}, {}
        for name, array in self._arrays().items():
            found[name] = np.full((len(keys), *array.shape[1:]), _NOTHING[name], array.dtype)
            found[name][[place[key] for key in self.keys]] = array
        return LabelFacts(keys, self.rows, **found)

    def chosen(self, index: np.ndarray) -> LabelFacts:
        """Those of some tasks, in that order, which are their keys."""
        arrays = {name: array[index] for name, array in self._arrays().items()}
        return LabelFacts(tuple(range(len(index))), self.rows, **arrays)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays().values())

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

    def require_kind(self, kind: str, typed: str, task_names, partitions) -> None:
        """`Tasks.require_kind`; DataError names partition, row and task."""
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

    def require(self, kind: str, typed: str, task_names, partitions) -> None:
        """`Tasks.require_labels`."""
        self.require_kind(kind, typed, task_names, partitions)
        one_class = np.flatnonzero(self.distinct < 2)
        if kind == "sign" and one_class.size:
            i = int(one_class[0])
            raise of_one_label(task_names[i], self.counts[i], self.minimum[i], typed)


def facts_of(part: PartitionTasks) -> LabelFacts:
    """Those of one part; the keys are positions of tasks."""
    return facts_of_tasks(part.tasks, tuple(part.which.tolist()), part.index)


def facts_of_tasks(tasks: TaskData, keys: tuple, index: int) -> LabelFacts:
    """Those of in-memory tasks that are called by these keys elsewhere."""
    y, starts = tasks.targets, tasks.offsets[:-1]
    s = np.ones_like(y) if tasks.sample_weights is None else tasks.sample_weights
    away = y - np.repeat(np.add.reduceat(y, starts) / tasks.counts, tasks.counts)
    others = ((y != 0.0) & (y != 1.0)).astype(float)
    total, deviations, weights, weighted_total, weighted_squares, not_01 = (
        np.add.reduceat(one, starts) for one in (y, away * away, s, s * y, s * y * y, others)
    )
    unfit = np.full((len(keys), len(_KINDS), 3), np.nan)
    for k, known in enumerate(LABEL_KINDS.values()):
        wrong = np.flatnonzero(known.unfit(y))
        _, first = np.unique(tasks.task_of[wrong], return_index=True)
        for flat in wrong[first].tolist():
            task, row = tasks.place(flat)
            unfit[task, k] = index, row, y[flat]
    return LabelFacts(
        keys, tasks.X.shape[0] if tasks.is_shared else tasks.n_samples,
        np.asarray(tasks.counts, int), total, deviations, weights, weighted_total, weighted_squares, not_01, np.ones(len(keys)),
        np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts), unfit,
    )  # fmt: skip


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


# --------------------------------------------------------------------------------------------------------------
# Some of the tasks or features of every part.


def with_tasks(part: PartitionTasks, index: np.ndarray) -> PartitionTasks | None:
    """The part with these of all tasks, which are then called by their positions in `index`; None where it has none of them."""
    place = {int(i): k for k, i in enumerate(index)}
    local = [k for k, i in enumerate(part.which.tolist()) if i in place]
    if not local:
        return None
    which = np.array([place[int(part.which[k])] for k in local])
    order = np.argsort(which)
    return replace(part, tasks=part.tasks.select([local[k] for k in order]), which=which[order])


def with_features(part: PartitionTasks, index: np.ndarray) -> PartitionTasks:
    """The part with these features, in that order."""
    return replace(part, tasks=part.tasks.select_features(index))


# --------------------------------------------------------------------------------------------------------------
# Rows that are elsewhere, dealt to folds or to two sides where they are: one pass says what every side holds, and no row moves.
#
# Within a partition rows are put in the order of what they carry - the task of a long table, the classes of a table's labels, rare ones first, and
# random within these - and dealt in turn from a random start, so that every side gets of every kind the same number but one. The random numbers
# depend on the seed and the partition alone.


@dataclass(frozen=True)
class FoldSettings:
    """Limit of the order of rows: `ordering_columns` of a table, the rarest classes first."""

    ordering_columns: int = 32


SETTINGS = FoldSettings()


class FoldAssignment(NamedTuple):
    """Assignment of rows: to `k` folds in turn, or with a share of them for the second of two sides.

    signs : (m,) whether the labels of a task are -1 and +1, which are then spread class by class; None: nothing is spread
    """

    seed: int
    k: int
    share: float | None
    signs: np.ndarray | None


def sides_of(part: PartitionTasks, dealt: FoldAssignment) -> np.ndarray:
    """(n,) the side, 0 to k - 1, of every row of the table, or of every labelled row, task after task."""
    tasks = part.tasks
    rng = np.random.default_rng([dealt.seed, part.index])
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    order = np.lexsort([rng.random(n), *_carried(part, dealt.signs)])
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    if dealt.share is None:
        return (place + rng.integers(dealt.k)) % dealt.k
    start = rng.random()
    return (np.floor((place + 1) * dealt.share + start) > np.floor(place * dealt.share + start)).astype(np.int64)  # fmt: skip


def _carried(part: PartitionTasks, signs) -> list[np.ndarray]:
    """Return what rows are ordered by, the last the most important."""
    if signs is None:
        return []
    tasks, own = part.tasks, signs[part.which]
    if not tasks.is_shared:
        return [np.where(own[tasks.task_of], tasks.targets > 0, 0), tasks.task_of]
    kinds = []
    for y, two in zip(label_table(tasks, tasks.targets).T, own, strict=True):
        there = ~np.isnan(y)
        kinds.append(np.where(there & two & (y > 0), 2, there).astype(np.int8))
    least = [min((np.sum(kind == one) for one in np.unique(kind)), default=0) for kind in kinds]
    return [kinds[i] for i in np.argsort(least, kind="stable")[: SETTINGS.ordering_columns]][::-1]


def side(part: PartitionTasks, dealt: FoldAssignment, fold: int, inside: bool) -> PartitionTasks | None:
    """The rows of one fold, or those of all others."""
    return take_rows(part, (sides_of(part, dealt) == fold) == inside)


def take_rows(part: PartitionTasks, chosen: np.ndarray) -> PartitionTasks | None:
    """The part with these (n,) rows of the table, or labelled rows, task after task, and the tasks that have some; None without any."""
    tasks, rows = part.tasks, np.flatnonzero(chosen)
    if tasks.is_shared:
        there = np.full(tasks.n_tasks, rows.size > 0) if tasks.mask is None else tasks.mask[rows].any(axis=0)
        own: Any = rows
    else:
        own = [np.flatnonzero(one) for one in tasks.per_task(chosen)]
        there = np.array([one.size > 0 for one in own])
        own = [one for one in own if one.size]
    if not there.any():
        return None
    return replace(part, tasks=tasks.select(there).take_rows(own), which=part.which[there])


def _facts_of_sides(part: PartitionTasks, dealt: FoldAssignment) -> tuple[tuple[LabelFacts | None, ...], ...]:
    """(of the rows to learn on, of the rows held out) for every fold."""
    folds = range(dealt.k) if dealt.share is None else (1,)
    sides = [[side(part, dealt, fold, held) for held in (False, True)] for fold in folds]
    return tuple(tuple(None if one is None else facts_of(one) for one in pair) for pair in sides)


def make_side(
    tasks: Any, dealt: FoldAssignment, fold: int, inside: bool, facts: LabelFacts, *, index=None, keep: bool
) -> Any:
    """One side as tasks; index: some of its tasks. Unless kept, its rows are taken from the others at each pass."""
    parts, names = tasks.parts.mapped(side, dealt, fold, inside), tasks.task_names
    if index is not None:
        parts = parts.mapped(with_tasks, index)
        facts, names = facts.on(tuple(range(tasks.n_tasks))).chosen(index), tuple(names[i] for i in index)
    if not keep and hasattr(parts, "keep"):
        parts.keep = False
    return tasks._with(parts, facts=facts, task_names=names)


def deal_folds(tasks: Any, k, stratify, groups, random_state, typed: str) -> tuple[FoldAssignment, tuple]:
    """(how rows are dealt, the facts of every fold's two sides), in one pass. DataError for groups, which are not known here."""
    k = as_count(k, f"{typed}k", 2)
    _refuse_groups(groups, typed)
    signs = _signs(tasks) if as_flag(stratify, f"{typed}k, stratify") else None
    dealt = FoldAssignment(int(generator(random_state, "folds").integers(2**63)), k, None, signs)
    return dealt, tasks.parts.run(_facts_of_sides, dealt)


def folds(tasks: Any, k=5, stratify=True, groups=None, random_state=0) -> Any:
    """See `Tasks.folds`: dealt within every partition; one pass for all folds. Their rows are taken anew at each pass, not kept."""
    dealt, found = deal_folds(tasks, k, stratify, groups, random_state, "folds(")
    for pair in found:
        _require(tasks, pair, f"folds(k={k})", False)
    return [
        tuple(make_side(tasks, dealt, fold, inside, pair[inside], keep=False) for inside in (False, True))
        for fold, pair in enumerate(found)
    ]  # type: ignore[return-value]


def split(tasks: Any, test_size=0.25, random_state=None, *, stratify=False, groups=None) -> Any:
    """See `Tasks.split`: within every partition, class by class and task by task in any case; a pass. The rows stay where they are."""
    share, typed = checked_level(test_size, "split(test_size", "0.25"), f"split(test_size={test_size})"
    _refuse_groups(groups, "split(test_size, ")
    as_flag(stratify, "split(test_size, stratify")
    dealt = FoldAssignment(int(generator(random_state, "split").integers(2**63)), 2, share, _signs(tasks))
    (pair,) = tasks.parts.run(_facts_of_sides, dealt)
    _require(tasks, pair, typed, True)
    train, test = (make_side(tasks, dealt, 1, inside, pair[inside], keep=True) for inside in (False, True))
    return train, test


def _signs(tasks: Any) -> np.ndarray:
    """(m,) whether the labels of a task are -1 and +1."""
    return tasks.label_facts.are("sign")


def _refuse_groups(groups, typed: str) -> None:
    if groups is not None:
        raise DataError(
            "groups are a list as long as the rows, and these rows are in parts elsewhere", term=f"{typed}groups=...)",
            argument="groups", write_instead="leave them out, or give each group's rows to a task of their own: task=...",
        )  # fmt: skip


def _require(tasks: Any, pair: tuple, typed: str, both: bool) -> None:
    """DataError for a task without a label on a side; `both`: of a class, too."""
    for said, facts in zip(("to learn on", "held out"), pair, strict=True):
        known = None if facts is None else facts.on(tuple(range(tasks.n_tasks)))
        for i, name in enumerate(tasks.task_names):
            low, high = (np.inf, -np.inf) if known is None else (known.minimum[i], known.maximum[i])
            signs = both and _signs(tasks)[i] and tasks.label_facts.distinct[i] > 1
            if low > high or (signs and low == high):
                what = "labelled row" if low > high else f"label {-low:+g}"
                raise DataError(
                    f"task {name!r} has {tasks.counts[i]} labelled rows, and no {what} among the rows {said}",
                    term=typed, write_instead="leave the task out, or deal in another way",
                )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------
# A seeded sample of rows, drawn where they are: every row has a random number of its own, and those with the smallest are taken.


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows with the smallest numbers so far: `wanted` of the table, or of each task of a long one; and one of every class of every task.

    Y : (r, m) where it is a table, else (r, 1) with the task of every row in `task`
    """

    wanted: int
    X: Any
    Y: np.ndarray
    weights: np.ndarray | None
    task: np.ndarray | None
    numbers: np.ndarray  # (r,) in [0, 1)
    place: np.ndarray  # (r, 2) partition and row

    def __add__(self, other: RowSample) -> RowSample:
        stacked = sparse.vstack if sparse.issparse(self.X) else np.vstack
        pairs = [
            (getattr(self, name), getattr(other, name))
            for name in ("Y", "weights", "task", "numbers", "place")
        ]
        joined: list[Any] = [None if a is None else np.concatenate([a, b]) for a, b in pairs]
        return RowSample(self.wanted, stacked([self.X, other.X]), *joined).smallest()

    def smallest(self) -> RowSample:
        """Only the rows that can still be among those taken at the end."""
        keep = np.zeros(len(self.numbers), dtype=bool)
        for rows, needed in self._groups():
            keep[rows[: self.wanted]] = keep[needed] = True
        return self if keep.all() else self._only(np.flatnonzero(keep))

    def taken(self) -> RowSample:
        """The rows taken: `wanted` of them, or as many more as it takes to have every class of every task."""
        keep = np.zeros(len(self.numbers), dtype=bool)
        for rows, needed in self._groups():
            keep[needed] = True
            others = rows[~keep[rows]]
            keep[others[: max(self.wanted - needed.size, 0)]] = True
        return self._only(np.flatnonzero(keep))

    def _groups(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(rows in the order of their numbers, the first of every class) of the table, or of each task of a long one."""
        order = np.argsort(self.numbers, kind="stable")
        groups = [order]
        if self.task is not None:
            own = order[np.argsort(self.task[order], kind="stable")]
            groups = np.split(own, np.flatnonzero(np.diff(self.task[own])) + 1)
        return [(rows, np.unique([rows[k] for y in self.Y[rows].T for k in _firsts(y)])) for rows in groups]

    def _only(self, rows) -> RowSample:
        arrays = (self.X, self.Y, self.weights, self.task, self.numbers, self.place)
        taken: list[Any] = [None if one is None else one[rows] for one in arrays]
        X, *rest = taken
        return RowSample(self.wanted, sparse.csr_array(X) if sparse.issparse(X) else X, *rest)

    @property
    def nbytes(self) -> int:
        X = self.X
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes
        return size + self.Y.nbytes + self.numbers.nbytes + self.place.nbytes


def _firsts(y) -> list[int]:
    """Return where the first label is; where labels are -1 and +1, the first of each."""
    there = np.flatnonzero(~np.isnan(y))
    if np.isin(y[there], (-1.0, 1.0)).all():
        return [int(there[y[there] == c][0]) for c in np.unique(y[there])]
    return [int(there[0])]


def draw_candidates(part: PartitionTasks, wanted: int, seed: int, n_tasks: int) -> RowSample:
    """The candidates of one part. Its numbers depend on the seed and the partition, not on the worker."""
    tasks = part.tasks
    rng = np.random.default_rng([seed, part.index])
    if tasks.is_shared:
        n = tasks.X.shape[0]
        Y, S = np.full((n, n_tasks), np.nan), None
        Y[:, part.which] = label_table(tasks, tasks.targets)
        if tasks.sample_weights is not None:
            S = np.full((n, n_tasks), np.nan)
            S[:, part.which] = label_table(tasks, tasks.sample_weights)
        place = np.column_stack([np.full(n, part.index), np.arange(n)])
        return RowSample(wanted, tasks.X, Y, S, None, rng.random(n), place).smallest()
    n = tasks.n_samples
    rows = np.arange(n) if tasks.source_rows is None else np.concatenate(tasks.source_rows)
    S = None if tasks.sample_weights is None else tasks.sample_weights[:, None]
    task = part.which[tasks.task_of]
    place = np.column_stack([np.full(n, part.index), rows])
    return RowSample(wanted, tasks.stacked, tasks.targets[:, None], S, task, rng.random(n), place).smallest()


# --------------------------------------------------------------------------------------------------------------
# Drawn rows as ordinary tasks in this process.


def tasks_of(drawn: RowSample, task_names, feature_names, scaling) -> Tasks:
    """In the order of partitions and rows; of a long table, task after task."""
    drawn = drawn.taken()
    names = {"task_names": task_names, "feature_names": feature_names, "scaling": scaling}
    partition, row = drawn.place.T
    if drawn.task is None:
        order = np.lexsort((row, partition))
        fields = fields_of_table(drawn.Y[order], None if drawn.weights is None else drawn.weights[order])
        return Tasks(shared=stack([(drawn.X, order)]), **fields, **names)
    order = np.lexsort((row, partition, drawn.task))
    return Tasks(
        stacked=stack([(drawn.X, order)]),
        counts=np.bincount(drawn.task, minlength=len(task_names)),
        targets=drawn.Y[order, 0],
        sample_weights=None if drawn.weights is None else drawn.weights[order, 0],
        **names,
    )
