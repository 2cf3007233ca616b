"""`DistributedTasks`: tasks whose rows are in parts elsewhere, with the hooks of `Tasks` overridden."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mtldsl.data.derived import chosen, refuse_standardizing, require_scaling
from mtldsl.data.labels import leave_out
from mtldsl.data.products import gram
from mtldsl.data.scaling import Scaling, squared_deviations
from mtldsl.data.summary import count_labels, several
from mtldsl.data.task_data import require_labelled
from mtldsl.data.tasks import Tasks
from mtldsl.distributed import (
    distributed_folds,
    distributed_structured_term,  # noqa: F401  (types of terms register themselves)
)
from mtldsl.distributed.distributed_folds import (
    LabelFacts,
    constant_scores,
    draw_candidates,
    facts_of,
    take_rows,
    tasks_of,
    with_features,
    with_tasks,
)
from mtldsl.distributed.partitions import PartitionTasks, RowParts, TaskSum
from mtldsl.errors import DataError
from mtldsl.utils.caching import cached_property
from mtldsl.utils.validation import as_count, as_flag, generator

# --------------------------------------------------------------------------------------------------------------
# In-memory tasks cut into parts, in this process.


def cut_parts(tasks: Tasks, n_parts: int) -> RowParts:
    """Rows in their order, as many in every part as can be: of X where it is shared, else of all tasks one after another."""
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    parts, ends = [], [n * k // n_parts for k in range(n_parts + 1)]
    for k, (first, last) in enumerate(pairwise(ends)):
        whole = PartitionTasks(tasks, np.arange(tasks.n_tasks), k)
        parts.append(take_rows(whole, (np.arange(n) >= first) & (np.arange(n) < last)))
    return RowParts(parts)


# --------------------------------------------------------------------------------------------------------------
# Means and spreads of columns in one pass: what parts know of their own rows is put together without loss of digits.


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """n rows with these means of columns, and sums of squared deviations from them.

    Source: Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983), eq. 2.1.
    """

    n: int
    mean: np.ndarray
    squares: np.ndarray

    def __add__(self, other: ColumnStatistics) -> ColumnStatistics:
        n, step = self.n + other.n, other.mean - self.mean
        mean = self.mean + step * (other.n / n)
        return ColumnStatistics(n, mean, self.squares + other.squares + step**2 * (self.n * (other.n / n)))

    @property
    def nbytes(self) -> int:
        return 2 * self.mean.nbytes + 8


def moments_of(part: PartitionTasks) -> ColumnStatistics:
    """Those of the rows of one part, each counted once where tasks share it."""
    X: Any = part.tasks.X if part.tasks.is_shared else part.tasks.stacked
    mean = np.asarray(X.sum(axis=0)).ravel() / X.shape[0]
    return ColumnStatistics(X.shape[0], mean, squared_deviations(X, mean))


def scale_rows(part: PartitionTasks, scaling: Scaling) -> PartitionTasks:
    """The same rows, scaled."""
    return replace(part, tasks=part.tasks.scaled_by(scaling))


# --------------------------------------------------------------------------------------------------------------
# Sums over the rows of a part that are as small as weights are: what `DistributedTasks` answers in one pass.


def gram_of(part: PartitionTasks, same: bool) -> TaskSum:
    """(k, d, d) X_i^T X_i of its tasks; (1, d, d) where they are all the `same`."""
    if same:
        return TaskSum(np.zeros(1, dtype=int), gram(part.tasks.inputs[0])[None])
    return TaskSum(part.which, np.stack([gram(X) for X in part.tasks.inputs]))


def adjoint_products(part: PartitionTasks) -> TaskSum:
    """(k, d) X_i^T y_i."""
    return TaskSum(part.which, part.tasks.cross().T)


def column_squares(part: PartitionTasks) -> TaskSum:
    """(k, d) squares of the lengths of columns, of rows with a label of the task."""
    tasks = part.tasks
    if tasks.mask is None:
        return TaskSum(part.which, tasks.column_lengths.T**2)
    squares = tasks.X.power(2) if tasks.is_sparse else tasks.X**2
    return TaskSum(part.which, np.asarray(tasks.mask.T.astype(float) @ squares))


def fingerprint_of(part: PartitionTasks) -> dict[int, str]:
    """{partition: its fingerprint}."""
    own = hashlib.sha256(part.tasks.fingerprint().encode() + part.which.astype(np.int64).tobytes())
    return {part.index: own.hexdigest()}


_SOME = "write tasks.subsample(rows) to have some of them here"
_SUM = "write tasks.parts.run(function, ...) for a sum over all rows"


class _AbsentAttribute:
    """An attribute or a method that needs rows, which are not here: DataError says what to write instead."""

    def __init__(self, write_instead: str = _SOME, arguments: str = ""):
        self.write_instead, self.arguments = write_instead, arguments

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, tasks: DistributedTasks | None, owner: type) -> Any:
        if tasks is None:
            return self
        raise tasks._elsewhere(self.name + self.arguments, self.write_instead)


# --------------------------------------------------------------------------------------------------------------
# Tasks whose rows are not in this process: what solvers need of them is asked of their parts.


class DistributedTasks(Tasks):
    """m tasks over d features whose rows are in `parts`. Made by `Tasks.from_dask` and its siblings; it never changes.

    What is as long as the data - labels, inputs, predictions - is not here: DataError says what to write instead. Sums over all rows
    are `parts.run(function, ...)`; what is known of the labels is `label_facts`.
    """

    in_memory = False

    def __new__(cls, *typed, **parts):
        return object.__new__(cls)  # `Tasks` itself is not called

    def __init__(
        self, parts: RowParts, *, task_names: tuple[str, ...], feature_names: tuple[str, ...], facts: LabelFacts | None = None,
        keys: tuple | None = None, is_weighted=False, is_sparse=False, is_table=False,
        scaling: Scaling | None = None,
    ):  # fmt: skip
        """facts : what was found already; None: one pass over the parts finds it. keys: those of the tasks in it, in their order."""
        found: LabelFacts = parts.run(facts_of) if facts is None else facts
        places = tuple(range(len(task_names)))
        found = replace(found.on(keys or places), keys=places)
        self.parts = parts
        self.label_facts = found
        self.counts = found.counts
        self.offsets = np.concatenate([[0], np.cumsum(self.counts)])
        for array in (self.counts, self.offsets):
            array.flags.writeable = False
        self.n_tasks, self.n_samples, self.n_features = (
            len(task_names),
            int(self.offsets[-1]),
            len(feature_names),
        )
        self.n_rows = (
            found.rows
        )  # of all partitions; with a table of labels, a row may have those of several tasks
        self.task_names, self.feature_names = task_names, feature_names
        self.is_shared, self.is_sparse, self.is_weighted = False, is_sparse, is_weighted
        self.is_table = is_table  # one X and a column of labels per task, as in Tasks.shared
        self.mask = self.source_rows = self.kernel_map = None
        self.one_table = not is_table
        self.scaling = scaling
        require_labelled(task_names, self.counts)
        self._sealed = True

    @classmethod
    def cut(cls, tasks: Tasks, n_parts: int) -> DistributedTasks:
        """In-memory tasks with their rows cut into parts, in this process: for tests, and to see what a cluster would do."""
        return cls(
            cut_parts(tasks, n_parts), task_names=tasks.task_names, feature_names=tasks.feature_names,
            is_weighted=tasks.is_weighted, is_sparse=tasks.is_sparse, is_table=tasks.is_shared, scaling=tasks.scaling,
        )  # fmt: skip

    # ------------------------------------------------------------------------------ what is where the rows are

    def _elsewhere(self, what: str, write_instead: str) -> DataError:
        return DataError(
            f"the rows of these tasks are in {self.parts.n_parts} parts ({self.parts.where}), so there is no tasks.{what} here",
            write_instead=write_instead,
        )

    X: Any = _AbsentAttribute()
    stacked: Any = _AbsentAttribute()
    inputs: Any = _AbsentAttribute()
    by_features: Any = _AbsentAttribute()
    task_of: Any = _AbsentAttribute()
    targets: Any = _AbsentAttribute(
        "write tasks.label_facts for their range and sums, or tasks.subsample(rows)"
    )
    place: Any = _AbsentAttribute(_SOME, "(flat)")
    per_task: Any = _AbsentAttribute(_SOME, "(flat)")
    take_rows: Any = _AbsentAttribute(_SOME, "(rows)")
    forward: Any = _AbsentAttribute(_SUM, "(W)")
    adjoint: Any = _AbsentAttribute(_SUM, "(u)")
    with_targets: Any = _AbsentAttribute("change the labels before Tasks.from_dask", "(flat)")
    with_kernels: Any = _AbsentAttribute(
        "map the features before Tasks.from_dask, such as by random features", "()"
    )

    @property
    def sample_weights(self) -> None:  # type: ignore[override]
        if self.is_weighted:
            raise self._elsewhere("sample_weights", "write tasks.label_facts.weights")

    @cached_property
    def column_lengths(self) -> np.ndarray:
        """(d, m) the Euclidean length of every feature's column in every task's inputs: a pass over the rows."""
        return np.sqrt(self._total(column_squares)).T

    @property
    def positives(self) -> np.ndarray:  # type: ignore[override]
        """(m,) how many labels -1 or +1 are +1; of other labels, nothing that is of use."""
        return self.label_facts.positives

    @property
    def totals(self) -> np.ndarray:  # type: ignore[override]
        """(m,) the sum of every task's sample weights; its samples where there are none."""
        return self.label_facts.weights if self.is_weighted else self.counts

    split = distributed_folds.split
    folds = distributed_folds.folds

    # --------------------------------------------------------------------------------------- sums over the rows

    def gram(self, scale=None) -> np.ndarray:
        """(m, d, d) X_i^T X_i: a pass. Read-only, and one matrix for all tasks where every row has all labels."""
        if scale is not None:
            raise self._elsewhere("gram(scale)", _SUM)
        same = self.is_table and not self.n_missing
        shape = (self.n_tasks, self.n_features, self.n_features)
        return (
            np.broadcast_to(self.parts.run(gram_of, True).values, shape)
            if same
            else self._total(gram_of, False)
        )

    def cross(self) -> np.ndarray:
        """(d, m): column i is X_i^T y_i: a pass."""
        return self._total(adjoint_products).T

    def _total(self, function: Callable, *broadcast) -> np.ndarray:
        """(m, ...) sums that a function tells of the tasks of every part."""
        return self.parts.run(function, *broadcast).of_all(self.n_tasks)

    # -------------------------------------------------------------------------------- other tasks from these

    def _with(self, parts: RowParts, **fields) -> DistributedTasks:
        """These tasks with other parts. Without `facts`, a pass finds them."""
        kept = "task_names", "feature_names", "is_weighted", "is_sparse", "is_table", "scaling"
        known: dict[str, Any] = {name: getattr(self, name) for name in kept} | {"facts": self.label_facts}
        return type(self)(parts, **(known | fields))

    def standardize(self, center: bool = True, scale: bool = True) -> DistributedTasks:
        """See `Tasks.standardize`: a pass finds the statistics, and every part is scaled where it is."""
        center, scale = as_flag(center, "standardize(center"), as_flag(scale, "standardize(scale")
        refuse_standardizing(self, center)
        found: ColumnStatistics = self.parts.run(moments_of)
        return self.scaled_by(Scaling.of_moments(found.n, found.mean, found.squares, center, scale))

    def scaled_by(self, scaling: Scaling) -> DistributedTasks:
        """See `Tasks.scaled_by`."""
        require_scaling(self, scaling)
        return self._with(self.parts.mapped(scale_rows, scaling), scaling=scaling)

    def select(self, tasks) -> DistributedTasks:
        """See `Tasks.select`."""
        index = chosen(tasks, self.task_names, "select", "task")
        fields: dict = {"facts": self.label_facts.chosen(index)}
        if self.is_table:  # rows of partitions that have none of them no longer count
            fields = {"facts": None}
        names = tuple(self.task_names[i] for i in index)
        return self._with(self.parts.mapped(with_tasks, index), task_names=names, **fields)

    def without_one_class(self) -> DistributedTasks:
        """See `Tasks.without_one_class`."""
        one = self.label_facts.distinct < 2
        return leave_out(self, one) if one.any() else self

    def select_features(self, features) -> DistributedTasks:
        """See `Tasks.select_features`."""
        index = chosen(features, self.feature_names, "select_features", "feature")
        names = tuple(self.feature_names[j] for j in index)
        scaling = None if self.scaling is None else self.scaling.of_columns(index)
        return self._with(self.parts.mapped(with_features, index), feature_names=names, scaling=scaling)

    def subsample(self, rows: int, random_state=None) -> Tasks:
        """At most `rows` seeded rows (of each task, where one table has the rows of all), in this process, with every class of every task.

        They are drawn where they are, in one pass; the same seed draws the same rows, whatever the workers.
        """
        number = as_count(rows, "subsample(rows")
        seed = int(generator(random_state, "subsample").integers(2**63))
        found = self.parts.run(draw_candidates, number, seed, self.n_tasks)
        return tasks_of(found, self.task_names, self.feature_names, self.scaling)

    @property
    def n_missing(self) -> int:
        return self.n_tasks * self.n_rows - self.n_samples if self.is_table else 0

    def require_kind(self, kind: str, typed: str) -> None:
        """See `Tasks.require_kind`. The error names partition, row and task."""
        self.label_facts.require_kind(kind, typed, self.task_names, self.parts.names)

    def require_labels(self, kind: str, typed: str) -> None:
        """See `Tasks.require_labels`. The error names partition, row and task."""
        self.label_facts.require(kind, typed, self.task_names, self.parts.names)

    def refuse_01(self, typed: str) -> None:
        """See `Tasks.refuse_01`."""
        if not self.label_facts.not_01.any() and self.label_facts.minimum.min() == 0.0:
            self.require_labels("sign", typed)

    # ---------------------------------------------------------------------------------------------------- hooks

    def apply_scoring(self, function: Callable, solution: Any, measure: Any, method: str) -> Any:
        """See `Tasks.apply_scoring`: sums of the parts, in one pass."""
        from mtldsl.distributed.distributed_scoring import named_elsewhere, scores_elsewhere
        from mtldsl.solution.measures import Measure

        apply = named_elsewhere if isinstance(measure, str | Measure) else scores_elsewhere
        return apply(solution, self, measure, method)

    def apply_solving(self, function: Callable, form: Any, warm_start: Any, how: dict[str, Any]) -> Any:
        """Return the outcome of a solve, which function(form, warm_start, how) makes of a form as it is: with a forecast, a checkpoint, and on few
        rows where squares allow it. how: the other arguments of `solve`."""
        from mtldsl.distributed.distributed_run import solve_distributed

        return solve_distributed(function, form, warm_start, how)

    def statement_check(self, form: Any, term: Any, point: Any) -> Any:
        """See `Tasks.statement_check`: over the parts, or some of them."""
        from mtldsl.distributed.distributed_check import PartsCheck

        return PartsCheck(form, term, point)

    def presolved(self, form: Any) -> Any:
        """Return the form of a few rows that takes the place of this one in every solve, where squares allow it; None: the form itself."""
        from mtldsl.distributed.distributed_run import on_few_rows

        return on_few_rows(form)

    def apply_tuning(self, function: Callable, solution: Any, metric: Any, typed: str) -> np.ndarray:
        """See `Tasks.apply_tuning`: all scores of a task, on one worker."""
        from mtldsl.distributed.distributed_scoring import thresholds_elsewhere

        return thresholds_elsewhere(solution, self, metric, typed)

    def constant_scores(self, function: Callable, train: Any, classes: np.ndarray) -> np.ndarray:
        """See `Tasks.constant_scores`."""
        return constant_scores(train.label_facts, self.label_facts, bool(classes.all()))

    def cv_folds(
        self, folds, stratify, groups, random_state, two: bool, one_class: str, typed: str
    ) -> list | None:
        """See `Tasks.cv_folds`: dealt where the rows are, in one pass."""
        from mtldsl.distributed.distributed_scoring import parts_elsewhere

        return parts_elsewhere(self, folds, stratify, groups, random_state, two, one_class, typed)

    def sample_for_check(self, rows: int, random_state) -> tuple[Tasks, Tasks]:
        """See `Tasks.sample_for_check`: drawn where the rows are, and cut into parts here."""
        some = self.subsample(rows, random_state)
        return some, self.cut(some, 4)

    def storage_facts(self) -> dict[str, Any]:
        """See `Tasks.storage_facts`."""
        parts = self.parts
        return {
            "parts": parts.n_parts,
            "names": list(parts.names),
            "workers": parts.n_workers,
            "passes": parts.passes,
            "bytes_moved": parts.bytes_moved,
        }

    def storage_note(self, loss: Any, form: Any) -> str:
        """See `Tasks.storage_note`."""
        from mtldsl.distributed.distributed_solver import whereabouts

        return whereabouts(loss, form)

    # ---------------------------------------------------------------------------------------------------- about

    def fingerprint(self) -> str:
        """SHA-256 of the fingerprints of the parts: a pass. Other partitions of the same rows have another."""
        found = self.parts.run(fingerprint_of)
        return hashlib.sha256(
            "\n".join(f"{k} {one}" for k, one in sorted(found.items())).encode()
        ).hexdigest()

    def describe(self) -> dict:
        """See `Tasks.describe`."""
        where = {"inputs": "distributed", "parts": self.parts.n_parts, "where": self.parts.where}
        return super().describe() | where

    @property
    def has_signs(self) -> bool:
        """See `Tasks.has_signs`."""
        return bool(self.label_facts.are("sign").all())

    def label_sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """See `Tasks.label_sums`."""
        facts = self.label_facts
        return facts.total, facts.deviations, facts.minimum, facts.maximum

    def __repr__(self) -> str:
        sparse = "sparse " if self.is_sparse else ""
        missing = f" ({self.n_missing} missing)" if self.n_missing else ""
        sizes = f"{several(self.n_tasks, 'task')}, {several(self.n_features, 'feature')}"
        where = f"{sparse}rows in {several(self.parts.n_parts, 'part')} ({self.parts.where})"
        return f"<Tasks: {sizes}, {where}, {count_labels(self)} labelled rows{missing}>"

    def __sizeof__(self) -> int:
        """Bytes that Dask moves with these tasks: no rows."""
        return 64
