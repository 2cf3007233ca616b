"""Rows of partitions checked where they are, and the tasks and facts that a first pass over them finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mtldsl.data.derived import with_fields
from mtldsl.data.input_checks import (
    as_names,
    as_rows,
    as_targets,
    as_weights,
    labels_of,
    number_columns,
    refuse_invisible,
    refuse_shuffled,
    refuse_turned,
    require_same_rows,
)
from mtldsl.data.row_storage import csr_of
from mtldsl.data.task_data import fields_of_table
from mtldsl.data.task_parts import fields_of_long_table
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.distributed_folds import LabelFacts, facts_of_tasks
from mtldsl.distributed.partitions import PartitionTasks, add, align_arrays
from mtldsl.errors import DataError
from mtldsl.utils.arrays import digest
from mtldsl.utils.parallel import on_one_blas_thread
from mtldsl.utils.validation import plain

# --------------------------------------------------------------------------------------------------------------
# The rows of a partition, checked where they are, as tasks that are told apart by keys: which tasks there are is known after the first pass.


class PartitionRows(NamedTuple):
    """Rows of a partition, as given: a table (Y with a column a task, NaN where there is no label), or a long table (y and ids)."""

    X: Any  # (n, d), dense or sparse, or a data frame
    Y: Any  # (n, m) or (n,)
    ids: Any = None  # (n,) the task of every row; None: Y is a table
    weights: Any = None  # (n,) or (n, m)
    exact: bool = (
        True  # False: X may lack columns at its end that other partitions have, as those of LIBSVM files do
    )
    feature_names: Any = None  # of an X without names of its own
    task_names: Any = None  # of the columns of such a Y


@dataclass(frozen=True)
class PartitionSummary:
    """Facts of a partition beside its numbers."""

    checksum: str  # of its numbers: read again at every pass over data that are not kept
    n_features: int
    n_columns: int | None  # of Y, where it is a table
    columns: str | None  # a digest of the names of X's columns, where it has some
    labels: str | None  # of those of Y's columns, where it is a table with names
    exact: bool
    is_sparse: bool
    is_weighted: bool
    size: int


@dataclass(frozen=True, eq=False)
class LoadedPartition:
    """Rows of one partition as tasks; None where no row has a label. The tasks are called by keys: columns of Y, or ids."""

    tasks: Tasks | None
    keys: tuple
    found: PartitionFindings  # of this partition alone

    def __sizeof__(self) -> int:
        return next(iter(self.found.parts.values())).size


@on_one_blas_thread
def load(rows: Any, index: int, name: str, check: bool = True) -> LoadedPartition:
    """DataError, which begins with the partition's name, for what cannot be tasks: NaN and infinities in X, lengths, weights, ids."""
    try:
        return _load(PartitionRows(*align_arrays(tuple(as_given(rows)))), index, check)
    except DataError as error:
        raise error.within(name) from None


def as_given(given: Any) -> PartitionRows:
    """Return what a loader returned: `PartitionRows`, or (X, Y), (X, y, task_ids), (X, y, task_ids, weights)."""
    if isinstance(given, PartitionRows):
        return given
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4:
        raise DataError(
            f"the loader returned a {type(given).__name__}",
            write_instead="return (X, Y), or (X, y, task_ids) for a long table, and sample weights as a fourth",
        )
    return PartitionRows(*given)


def _plain_ids(ids: Any):
    """Ids as `digest` takes them: numbers and text as they are, others by their names."""
    found = np.asarray(ids)
    return found if found.dtype.kind in "iufbSU" else repr(found.tolist())


def _load(rows: PartitionRows, index: int, check: bool) -> LoadedPartition:
    refuse_shuffled({"X": rows.X, "Y": rows.Y, "task_ids": rows.ids, "sample_weights": rows.weights})
    refuse_turned(rows.Y, rows.weights, "sample_weights")
    X, columns, largest = _inputs(rows.X, check)
    Y, labels = as_targets(rows.Y, "Y", columns=rows.ids is None)
    require_same_rows(X, Y, "Y")
    weights = None if rows.weights is None else as_weights(rows.weights, Y.shape, "sample_weights")
    if rows.feature_names is not None:
        columns = as_names(rows.feature_names, None, X.shape[1], "feature_names")
    if rows.task_names is not None and rows.ids is None:
        labels = as_names(rows.task_names, None, Y.shape[1], "task_names")
    tasks, keys = _table(X, Y, weights) if rows.ids is None else _long_table(X, Y, rows.ids, weights)
    summary = PartitionSummary(
        checksum=digest(X, Y, None if rows.ids is None else _plain_ids(rows.ids), weights),
        n_features=X.shape[1],
        n_columns=Y.shape[1] if rows.ids is None else None,
        columns=digest(columns) if columns else None,
        labels=digest(labels) if labels and rows.ids is None else None,
        exact=rows.exact,
        is_sparse=tasks is not None and tasks.is_sparse,
        is_weighted=weights is not None,
        size=64 if tasks is None else tasks.__sizeof__(),
    )
    facts = None if tasks is None or not check else facts_of_tasks(tasks, keys, index)
    found = PartitionFindings({index: summary}, facts, largest, columns or None, labels or None)
    return LoadedPartition(tasks, keys, found)


def _inputs(given, check: bool) -> tuple[Any, Any, np.ndarray | None]:
    """(X in float64, names of its columns or None, the largest absolute value of each)."""
    plain_array = isinstance(given, np.ndarray) and given.dtype.kind == "f" and given.ndim == 2
    X, names = (given, None) if plain_array and not check else as_rows(given, "X")[::2]
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X, dtype=float)
        largest = np.maximum(X.max(axis=0), -X.min(axis=0)) if check and X.shape[0] else None
        return X, names, largest
    X = sparse.csr_array(X, dtype=float)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    X = csr_of(X.data, X.indices, X.indptr, X.shape[1])
    largest = np.asarray(abs(X).max(axis=0).toarray()).ravel() if check and X.shape[0] else None
    return X, names, largest


def _table(X, Y, weights) -> tuple[Tasks | None, tuple]:
    here = np.flatnonzero(~np.isnan(Y).all(axis=0))
    if not here.size:
        return None, ()
    fields = fields_of_table(Y[:, here], None if weights is None else weights[:, here])
    return Tasks(shared=X, **fields, **_numbered(here, X)), tuple(here.tolist())


def _long_table(X, y, task_ids, weights) -> tuple[Tasks | None, tuple]:
    ids, index = labels_of(task_ids, X.shape[0])
    here = np.unique(index[~np.isnan(y)])
    if not here.size:
        return None, ()
    fields = fields_of_long_table(X, True, y, np.searchsorted(here, index), here.size, weights)
    return Tasks(**fields, **_numbered(here, X)), tuple(plain(ids[k]) for k in here)


def _numbered(here: np.ndarray, X) -> dict[str, tuple[str, ...]]:
    """Names until those of all partitions are known."""
    return {"task_names": tuple(map(str, here)), "feature_names": tuple(number_columns("x", X.shape[1]))}


@dataclass(frozen=True, eq=False)
class TaskPlaces:
    """Findings of the first pass: the place of every task among all, and a summary of each partition."""

    places: dict  # key -> position
    task_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    checksums: dict[int, str]


def place_part(loaded: LoadedPartition, index: int, name: str, sent: Any) -> PartitionTasks | None:
    """The part, or None without a label. sent: a constant of `TaskPlaces`. DataError where the partition is not what it was in the first pass."""
    places: TaskPlaces = sent.value
    if loaded.found.parts[index].checksum != places.checksums[index]:
        raise DataError(
            "its numbers are not those of the first pass: it was changed, or is not computed in the same way each time",
            term=name,
            write_instead="read from files that stay as they are, give random numbers a seed, or write keep=True",
        )
    tasks = loaded.tasks
    if tasks is None:
        return None
    which = np.array([places.places[key] for key in loaded.keys])
    X: Any = align_arrays(tasks.X if tasks.is_shared else tasks.stacked)
    if X.shape[1] < len(places.feature_names):
        X = csr_of(X.data, X.indices, X.indptr, len(places.feature_names))
    own = with_fields(
        tasks,
        X,
        **align_arrays({"targets": tasks.targets, "sample_weights": tasks.sample_weights}),
        task_names=tuple(places.task_names[i] for i in which),
        feature_names=places.feature_names,
    )
    return PartitionTasks(own, which, index)


# --------------------------------------------------------------------------------------------------------------
# What the first pass over the partitions finds: the tasks that there are, facts of their labels, and whether the partitions go together.


@dataclass(frozen=True, eq=False)
class PartitionFindings:
    """The sum of what was found in partitions, the earlier ones first.

    facts, largest : of the labels, and of every column the largest absolute value; None where checks are left out
    columns, labels : names of the columns of X and Y, where there are some
    """

    parts: dict[int, PartitionSummary]
    facts: LabelFacts | None
    largest: np.ndarray | None
    columns: tuple[str, ...] | None
    labels: tuple[str, ...] | None

    def __add__(self, other: PartitionFindings) -> PartitionFindings:
        both = self.parts | other.parts, add(self.facts, other.facts), _larger(self.largest, other.largest)
        return PartitionFindings(*both, self.columns or other.columns, self.labels or other.labels)

    @property
    def nbytes(self) -> int:
        return 64 * len(self.parts) + (0 if self.facts is None else self.facts.nbytes)


def _larger(a, b):
    if a is None or b is None:
        return b if a is None else a
    if a.size < b.size:
        a, b = b, a
    largest = a.copy()
    largest[: b.size] = np.maximum(a[: b.size], b)
    return largest


def places_of(found: PartitionFindings, names: tuple[str, ...], task_names, feature_names) -> TaskPlaces:
    """DataError, which names the partition, where it does not go with the first."""
    parts = [found.parts[k] for k in range(len(names))]
    _refuse_unlike(parts, names)
    if found.facts is None:
        raise DataError("no row of any partition has a label", write_instead="give at least one row per task")
    d = max(part.n_features for part in parts)
    features = as_names(feature_names, found.columns, d, "feature_names", "x")
    if found.largest is not None:  # a column may be small in one partition and not in another
        refuse_invisible(found.largest, features.__getitem__, "X")
    m = parts[0].n_columns
    keys: Any = found.facts.keys if m is None else tuple(range(m))
    typed: Any = keys if m is None else found.labels
    tasks = as_names(task_names, typed, len(keys), "task_names", "task")
    checksums = {k: part.checksum for k, part in enumerate(parts)}
    return TaskPlaces({key: i for i, key in enumerate(keys)}, tasks, features, checksums)


def _refuse_unlike(parts: list[PartitionSummary], names) -> None:
    first = parts[0]
    d = max(part.n_features for part in parts)
    for name, part in zip(names, parts, strict=True):
        if (part.n_columns is None) != (first.n_columns is None):
            raise DataError(
                f"one has task ids, but {names[0]} has not, or the other way round",
                term=name, write_instead="give ids in every partition, or a column of Y per task in every one",
            )  # fmt: skip
        if part.n_columns != first.n_columns:
            raise DataError(f"Y has {part.n_columns} columns, but {first.n_columns} in {names[0]}", term=name)
        if part.exact and part.n_features != d:
            raise DataError(
                f"X has {part.n_features} columns, but {d} in {names[[p.n_features for p in parts].index(d)]}",
                term=name,
            )
        if part.is_weighted != first.is_weighted:
            raise DataError(
                f"sample weights are in one of {names[0]} and {name} alone",
                write_instead="give them in every partition",
            )
    _refuse_renamed("X", [part.columns for part in parts], names)
    _refuse_renamed("Y", [part.labels for part in parts], names)


def _refuse_renamed(what: str, marks: list[str | None], names) -> None:
    """DataError where partitions name their columns unlike the first that names any."""
    named = [(name, mark) for name, mark in zip(names, marks, strict=True) if mark is not None]
    other = next((name for name, mark in named if mark != named[0][1]), None)
    if other is not None:
        raise DataError(
            f"the columns of {what} have other names, or another order, than in {named[0][0]}", term=other,
            write_instead="give every partition the same columns in the same order",
        )  # fmt: skip
