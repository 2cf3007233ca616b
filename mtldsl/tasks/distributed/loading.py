"""The rows of a partition, checked where they are, as tasks that are told apart by keys: which tasks there are is known after the first pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.system.threads import on_one_blas_thread
from mtldsl.tasks.distributed.checksum import checksum
from mtldsl.tasks.distributed.parts import Part
from mtldsl.tasks.distributed.sums import aligned
from mtldsl.tasks.ids import labels_of
from mtldsl.tasks.inputs import as_rows, as_targets, as_weights
from mtldsl.tasks.names import numbered
from mtldsl.tasks.stacked import csr_of, stack
from mtldsl.tasks.tasks import Tasks
from mtldsl.values.names import plain

__all__ = ["Loaded", "Places", "Rows", "load", "placed"]


class Rows(NamedTuple):
    """What a partition holds, as given: a table (Y with a column a task, NaN where there is no label), or a long table (y and ids)."""

    X: Any  # (n, d), dense or sparse, or a data frame
    Y: Any  # (n, m) or (n,)
    ids: Any = None  # (n,) the task of every row; None: Y is a table
    weights: Any = None  # (n,) or (n, m)
    exact: bool = (
        True  # False: X may lack columns at its end that other partitions have, as those of LIBSVM files do
    )


@dataclass(frozen=True, eq=False)
class Loaded:
    """Rows of one partition as tasks; None where no row has a label. The tasks are called by keys: columns of Y, or ids."""

    tasks: Tasks | None
    keys: tuple
    checksum: int
    n_rows: int
    n_features: int
    n_columns: int | None  # of Y, where it is a table
    columns: tuple[str, ...] | None  # names of X's columns, where it has some
    labels: tuple[str, ...] | None  # names of Y's columns, where it has some
    largest: (
        np.ndarray | None
    )  # (d,) of every column the largest absolute value; not where checks are left out
    exact: bool
    is_weighted: bool

    def __sizeof__(self) -> int:
        return 64 if self.tasks is None else Part(self.tasks, np.arange(self.tasks.n_tasks)).__sizeof__()


@on_one_blas_thread
def load(rows: Any, index: int, name: str, check: bool = True) -> Loaded:
    """DataError, which begins with the partition's name, for what cannot be tasks: NaN and infinities in X, lengths, weights, ids."""
    try:
        return _load(Rows(*aligned(tuple(as_given(rows)))), check)
    except DataError as error:
        raise error.within(name) from None


def as_given(given: Any) -> Rows:
    """What a loader returned: `Rows`, or (X, Y), (X, y, task_ids), (X, y, task_ids, weights)."""
    if isinstance(given, Rows):
        return given
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4:
        raise DataError(
            f"the loader returned a {type(given).__name__}",
            write_instead="return (X, Y), or (X, y, task_ids) for a long table, and sample weights as a fourth",
        )
    return Rows(*given)


def _load(rows: Rows, check: bool) -> Loaded:
    X, columns, largest = _inputs(rows.X, check)
    Y, labels = as_targets(rows.Y, "Y", columns=rows.ids is None)
    if X.shape[0] != Y.shape[0]:
        raise DataError(
            f"X has {X.shape[0]} rows but Y has {Y.shape[0]}",
            write_instead="give one row of labels per row of inputs",
        )
    weights = None if rows.weights is None else as_weights(rows.weights, Y.shape, "sample_weights")
    ids: Any = None if rows.ids is None else np.asarray(rows.ids)
    mark = checksum(X, Y, ids, weights)
    made = _table(X, Y, weights) if rows.ids is None else _long_table(X, Y, rows.ids, weights)
    tasks, keys = made
    n, d = X.shape
    n_columns = Y.shape[1] if rows.ids is None else None
    return Loaded(
        tasks, keys, mark, n, d, n_columns, columns or None, labels or None, largest, rows.exact, weights is not None
    )  # fmt: skip


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
    kept = ~np.isnan(Y)
    here = np.flatnonzero(kept.any(axis=0))
    if not here.size:
        return None, ()
    kept = kept[:, here]
    tasks = Tasks(
        shared=X,
        targets=[Y[own, i] for own, i in zip(kept.T, here, strict=True)],
        mask=None if kept.all() else kept,
        sample_weights=None if weights is None else [weights[own, i] for own, i in zip(kept.T, here, strict=True)],
        task_names=tuple(map(str, here)),
        feature_names=tuple(numbered("x", X.shape[1])),
    )  # fmt: skip
    return tasks, tuple(here.tolist())


def _long_table(X, y, task_ids, weights) -> tuple[Tasks | None, tuple]:
    ids, index = labels_of(task_ids, X.shape[0])
    rows = np.flatnonzero(~np.isnan(y))
    if not rows.size:
        return None, ()
    labelled = np.bincount(index[rows], minlength=len(ids))
    here = np.flatnonzero(labelled)
    rows = rows[np.argsort(index[rows], kind="stable")]
    in_order = rows.size == y.size and bool((rows[1:] > rows[:-1]).all())
    ends = np.cumsum(labelled[here])
    tasks = Tasks(
        stacked=X if in_order else stack([(X, rows)]),
        counts=labelled[here],
        targets=y[rows],
        sample_weights=None if weights is None else weights[rows],
        task_names=tuple(map(str, here)),
        feature_names=tuple(numbered("x", X.shape[1])),
        source_rows=[rows[a:b] for a, b in zip(ends - labelled[here], ends, strict=True)],
        one_table=True,
    )
    return tasks, tuple(plain(ids[k]) for k in here)


@dataclass(frozen=True, eq=False)
class Places:
    """What the first pass found: where every task is among all, and what each partition was."""

    places: dict  # key -> position
    task_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    checksums: dict[int, int]
    first_rows: list[int]


def placed(loaded: Loaded, index: int, name: str, places: Places) -> Part | None:
    """The part, or None without a label. DataError where the partition is not what it was in the first pass."""
    if loaded.checksum != places.checksums[index]:
        raise DataError(
            "its numbers are not those of the first pass: it was changed, or is not computed in the same way each time",
            term=name,
            write_instead="read from files that stay as they are, give random numbers a seed, or write keep=True",
        )
    tasks = loaded.tasks
    if tasks is None:
        return None
    which = np.array([places.places[key] for key in loaded.keys])
    X: Any = aligned(tasks.X if tasks.is_shared else tasks.stacked)
    if X.shape[1] < len(places.feature_names):
        X = csr_of(X.data, X.indices, X.indptr, len(places.feature_names))
    own = Tasks(
        **({"shared": X} if tasks.is_shared else {"stacked": X}),
        mask=tasks.mask, counts=tasks.counts, targets=aligned(tasks.targets), sample_weights=aligned(tasks.sample_weights),
        task_names=tuple(places.task_names[i] for i in which), feature_names=places.feature_names, source_rows=tasks.source_rows,
        one_table=tasks.one_table,
    )  # fmt: skip
    return Part(own, which, index, places.first_rows[index])
