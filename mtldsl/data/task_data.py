"""Data of m tasks: inputs, labels and which of them are missing, names, and where every row came from.

`Tasks` adds how they are made, and what is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from scipy import sparse

from mtldsl.data.row_storage import SETTINGS, TransposedRows, row_views, stack
from mtldsl.data.scaling import Scaling
from mtldsl.data.table_description import NOTHING_KNOWN, DataDescription
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.utils.caching import cached_property
from mtldsl.utils.parallel import runs

if TYPE_CHECKING:
    from mtldsl.data.kernel_map import KernelMap
    from mtldsl.data.scaling import Imputation


#: what is made of tasks is of their class
T = TypeVar("T", bound="TaskData")


class TaskData:
    """The numbers and names of m tasks, read-only. All other files of this folder take it; only `Tasks` is built on top of them."""

    #: whether this process holds the rows; without them nothing here is as long as the data
    in_memory: ClassVar[bool] = True

    imputation: Imputation | None = None
    description: DataDescription = NOTHING_KNOWN

    def __new__(cls, *typed, **parts):
        if typed or (parts and "targets" not in parts):  # nothing at all: a copy, or a pickle
            raise DataError(
                f"{cls.__name__}(...) is not called by itself",
                write_instead="write Tasks.shared(X, Y) for a column of Y a task, Tasks.separate([X1, X2], [y1, y2]) for tasks with rows of "
                "their own, or Tasks.grouped(X, y, task_ids) for one long table",
            )
        return super().__new__(cls)

    def __init__(
        self, *, targets, task_names, feature_names, shared=None, inputs=None, mask=None, sample_weights=None,
        scaling=None, source_rows=None, one_table=False, kernel_map=None, stacked=None, counts=None, imputation=None,
        description=NOTHING_KNOWN,
    ):  # fmt: skip
        self.is_shared: bool = shared is not None
        self._shared: Any = _frozen(shared)
        # the inputs of tasks that have their own, held once: `inputs` are views of its rows
        self._stacked: Any = _frozen(
            stack([(X, None) for X in inputs]) if stacked is None and inputs else stacked
        )
        self.mask: np.ndarray | None = _frozen(mask)
        # labels and weights: a list, one vector a task; or, with counts, one vector of all
        flat = counts is not None
        self.counts = _frozen(np.array(counts if flat else [len(y) for y in targets], dtype=int))
        self.offsets = _frozen(np.concatenate([[0], np.cumsum(self.counts)]))
        self.targets = _frozen(targets if flat else np.concatenate(targets))
        if sample_weights is not None and not flat:
            sample_weights = np.concatenate(sample_weights)
        self.sample_weights = _frozen(sample_weights)
        self.is_weighted = sample_weights is not None
        self.n_tasks = len(self.counts)
        self.n_samples = int(self.offsets[-1])
        first: Any = shared if self.is_shared else self._stacked
        self.n_features = int(first.shape[1])
        self.is_sparse = sparse.issparse(first)
        self.task_names: tuple[str, ...] = task_names
        self.feature_names: tuple[str, ...] = feature_names
        self.scaling: Scaling | None = scaling
        self.source_rows: Any = source_rows  # None, or of every task, the rows of what the user gave for it
        self.one_table: bool = one_table  # source_rows are those of one table, told apart by task ids
        self.kernel_map: KernelMap | None = kernel_map  # what made the features, where kernels did
        self.imputation = imputation  # where inputs were missing, and what stands there
        self.description: DataDescription = description  # of the table that these were made of
        require_labelled(task_names, self.counts)
        self._sealed = True

    def __setattr__(self, name, value):
        if "_sealed" in self.__dict__:
            raise AttributeError(f"Tasks never change: make new ones in place of setting tasks.{name}")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict:
        """Without what is computed from the rest, which may be several times as large."""
        computed = {name for name in self.__dict__ if isinstance(getattr(type(self), name, None), cached_property)}  # fmt: skip
        return {name: value for name, value in self.__dict__.items() if name not in computed}

    def __sizeof__(self) -> int:
        """Bytes of the arrays: what Dask goes by where it sends them."""
        X = self._shared if self.is_shared else self._stacked
        arrays = [*((X.data, X.indices, X.indptr) if self.is_sparse else (X,)), self.targets, self.sample_weights, self.mask]  # fmt: skip
        return sum(one.nbytes for one in arrays if one is not None)

    @property
    def X(self) -> Any:
        """The shared inputs (n, d). DataError where every task has its own."""
        if not self.is_shared:
            raise DataError(
                "these tasks have separate inputs, so there is no one X", write_instead="use tasks.inputs[i]"
            )
        return self._shared

    @property
    def stacked(self) -> Any:
        """(N, d) the labelled rows of all tasks, task after task: dense or CSR, read-only. DataError where one X is shared.

        Float64; float32 only where such CSR data are memory-mapped. CSR indices have 32 or 64 bits; the row pointers may have 64
        beside indices of 32, from 2^31 entries on.
        """
        if self.is_shared:
            raise DataError(
                "these tasks share their inputs, so their rows are not stacked", write_instead="use tasks.X"
            )
        return self._stacked

    @property
    def matrix(self) -> Any:
        """The inputs as they are held: the shared X, or the rows of all tasks, task after task."""
        return self.X if self.is_shared else self.stacked

    @property
    def matrices(self) -> list:
        """The inputs without the rows that tasks share twice: the shared X alone, or those of every task."""
        return [self.X] if self.is_shared else self.inputs

    @cached_property
    def inputs(self) -> list:
        """X_i (n_i, d) of every task: the rows that carry its labels. Views of `stacked`, where inputs are separate."""
        if not self.is_shared:
            return row_views(self._stacked, self.offsets)
        if self.mask is None:
            return [self._shared] * self.n_tasks
        return [self._shared[self.mask[:, i]] for i in range(self.n_tasks)]

    @cached_property
    def by_features(self) -> TransposedRows:
        """X^T, of shared sparse inputs."""
        return TransposedRows(self.X)

    @cached_property
    def task_of(self) -> np.ndarray:
        """(N,) the task of every flat sample."""
        return np.repeat(np.arange(self.n_tasks), self.counts)

    @cached_property
    def column_lengths(self) -> np.ndarray:
        """(d, m) the Euclidean length of every feature's column in every task's inputs."""

        def lengths(X):
            squares = X.power(2).sum(axis=0) if sparse.issparse(X) else np.einsum("ij,ij->j", X, X)
            return np.sqrt(np.asarray(squares).ravel())

        if self.is_shared and self.is_sparse:
            lengths_of_all = np.sqrt(self.by_features.squares)
            return np.broadcast_to(lengths_of_all[:, None], (self.n_features, self.n_tasks))
        if self.is_shared:
            return np.broadcast_to(lengths(self.X)[:, None], (self.n_features, self.n_tasks))
        return np.column_stack([lengths(X) for X in self.inputs])

    @property
    def entries_a_row(self) -> float:
        """Stored numbers of a row, in the mean: n_features where inputs are dense."""
        X = self.matrix
        return X.nnz / max(X.shape[0], 1) if self.is_sparse else float(self.n_features)

    @property
    def n_missing(self) -> int:
        return 0 if self.mask is None else int(self.mask.size - self.mask.sum())

    @property
    def views(self) -> dict[str, slice]:
        """{name of a kernel: its columns} where the features are those of kernels, else {}."""
        return {} if self.kernel_map is None else self.kernel_map.views

    def place(self, flat: int) -> tuple[int, int]:
        """(task, row of what the user gave for it) of a flat sample."""
        task = int(self.task_of[flat])
        row = flat - int(self.offsets[task])
        if self.mask is not None:
            return task, int(np.flatnonzero(self.mask[:, task])[row])
        return task, row if self.source_rows is None else int(self.source_rows[task][row])

    @cached_property
    def positives(self) -> np.ndarray:
        """(m,) how many labels of every task are above zero."""
        return np.array([int(np.sum(y > 0)) for y in self.per_task(self.targets)])

    @cached_property
    def totals(self) -> np.ndarray:
        """(m,) the sum of every task's sample weights; its samples where there are none."""
        weights = self.sample_weights
        return self.counts if weights is None else self.sums(weights)

    def per_task(self, flat) -> list[np.ndarray]:
        """m views of a flat vector."""
        ends = self.offsets.tolist()
        return [flat[first:last] for first, last in pairwise(ends)]

    def sums(self, flat) -> np.ndarray:
        """(m,) the sums of a flat vector over every task's samples."""
        return np.add.reduceat(flat, self.offsets[:-1])

    def sums_of(self, function: Callable[..., np.ndarray], *flats: np.ndarray) -> np.ndarray:
        """(m,) the sums of an elementwise function of flat vectors, some samples at a time: what it makes of them stays in the cache."""
        found = np.zeros(self.n_tasks)
        for tasks, samples, starts in self._pieces:
            found[tasks] += np.add.reduceat(function(*(flat[samples] for flat in flats)), starts)
        return found

    def shift(self, flat: np.ndarray, by: np.ndarray) -> np.ndarray:
        """The flat vector itself, to which every task's number of (m,) has been added."""
        for tasks, samples, starts in self._pieces:
            shifts = by[tasks]
            flat[samples] += shifts[0] if len(starts) == 1 else np.repeat(shifts, self.counts[tasks])
        return flat

    @cached_property
    def _pieces(self) -> list[tuple[slice, slice, np.ndarray]]:
        """(tasks, their samples, where each of the tasks begins among these): whole tasks together up to `SETTINGS.piece_samples` samples, parts of a longer one."""
        found, ends = [], self.offsets
        for first, last in runs(ends, SETTINGS.piece_samples):
            tasks, begin, end = slice(first, last), int(ends[first]), int(ends[last])
            if last > first + 1:
                found.append((tasks, slice(begin, end), ends[first:last] - begin))
            else:
                found += [
                    (tasks, slice(a, min(a + SETTINGS.piece_samples, end)), ends[:1])
                    for a in range(begin, end, SETTINGS.piece_samples)
                ]
        return found


def fields_of_table(Y: np.ndarray, weights: np.ndarray | None) -> dict[str, Any]:
    """The constructor's fields of labels (n, m), NaN where there is none, and of their weights."""
    kept = ~np.isnan(Y)
    labels, own = (
        None if table is None else [column[there] for column, there in zip(table.T, kept.T, strict=True)]
        for table in (Y, weights)
    )
    return {"targets": labels, "mask": None if kept.all() else kept, "sample_weights": own}


def require_labelled(task_names: Iterable[str], counts: Iterable[int]) -> None:
    """DataError for a task without a label."""
    for name, count in zip(task_names, counts, strict=True):
        if count == 0:
            raise DataError(
                f"task {name!r} has no labelled row", write_instead="leave the task out, or give it data"
            )


def require_in_memory(
    tasks: TaskData, why: str, typed: str, error: type[MTLError] = ModelError, rows: str = "the rows", write_instead: str = ""
) -> None:  # fmt: skip
    """Raise the error, which says why, for tasks whose rows this process does not hold."""
    if not tasks.in_memory:
        raise error(f"{rows} are elsewhere, and {why}", term=typed, write_instead=write_instead)


def _frozen(array) -> Any:
    """The array, read-only, so that a shared Tasks cannot change under a solver that cached its products."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array
