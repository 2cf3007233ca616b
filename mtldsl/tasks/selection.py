"""Some of the tasks, some of their rows, or some of their features."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.system.memory import require_memory
from mtldsl.tasks.data import T, TaskData
from mtldsl.tasks.derived import changed, label_table
from mtldsl.tasks.stacked import csr_of, require_room
from mtldsl.values.listing import as_list, as_positions
from mtldsl.values.number import as_whole, quoted

__all__ = ["chosen", "select", "select_features", "take_rows"]


def select(tasks: T, which) -> T:
    """See `Tasks.select`."""
    index = chosen(which, tasks.task_names, "select", "task")
    if not tasks.is_shared:
        return _of_lists(tasks, [slice(None)] * len(index), index)
    Y, S = _tables(tasks)
    return _of_tables(tasks, tasks.X, Y[:, index], None if S is None else S[:, index], index)


def take_rows(tasks: T, rows) -> T:
    """See `Tasks.take_rows`."""
    if not tasks.is_shared:
        listed = as_list(rows)
        if listed is None or len(listed) != tasks.n_tasks:
            raise DataError(
                "these tasks have separate inputs",
                term=f"take_rows({quoted(rows)})",
                write_instead=f"give a list with the rows of each of the {tasks.n_tasks} tasks",
            )
        named = zip(tasks.task_names, listed, tasks.counts.tolist(), strict=True)
        each = [as_positions(one, n, f"take_rows: task {name!r}", DataError) for name, one, n in named]
        return _of_lists(tasks, each, range(tasks.n_tasks))
    Y, S = _tables(tasks)
    rows = as_positions(rows, len(Y), "take_rows", DataError)
    return _of_tables(
        tasks, tasks.X[rows], Y[rows], None if S is None else S[rows], range(tasks.n_tasks), rows
    )


def select_features(tasks: T, which) -> T:
    """See `Tasks.select_features`."""
    index = chosen(which, tasks.feature_names, "select_features", "feature")
    inputs = {"shared": tasks.X} if tasks.is_shared else {"stacked": tasks.stacked}
    return changed(
        tasks,
        **{layout: _columns(X, index) for layout, X in inputs.items()},
        feature_names=tuple(tasks.feature_names[j] for j in index),
        **_what_made_them(tasks, index),
    )


def _what_made_them(tasks: TaskData, index: np.ndarray) -> dict:
    """How these features are made of new inputs. The statistics beside kernels are those of what goes into the kernels, which stays."""
    if tasks.kernel_map is not None:
        return {"kernel_map": tasks.kernel_map.of_columns(index)}
    return {
        "scaling": None if tasks.scaling is None else tasks.scaling.of_columns(index),
        "imputation": None if tasks.imputation is None else tasks.imputation.of_columns(index),
    }


def _columns(X, index: np.ndarray):
    """Those columns of a matrix, copied, in float64, read-only where sparse (`Tasks` sees to dense ones)."""
    n, advice = X.shape[0], "select fewer features"
    if not sparse.issparse(X):
        require_memory(8.0 * n * len(index), f"a copy of {len(index):,} columns", advice, DataError)
        return np.take(X, index, axis=1)
    require_memory(X.nnz * (8.0 + X.indices.itemsize), f"a copy of {len(index):,} columns", advice, DataError)
    X = sparse.csr_array(X[:, index], dtype=float)
    X.sort_indices()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return csr_of(X.data, X.indices, X.indptr, X.shape[1])


def chosen(which, names: tuple[str, ...], word: str, what: str) -> np.ndarray:
    """The positions of what is named: names, positions, a slice, or a mask of booleans. DataError for none, unknown or repeated ones."""
    if isinstance(which, slice) or (
        isinstance(which, np.ndarray) and which.ndim == 1 and which.dtype.kind in "iu"
    ):
        index = as_positions(which, len(names), word, DataError)
    else:
        listed = as_list(which)
        listed = [which] if listed is None else listed
        if listed and all(isinstance(one, bool | np.bool_) for one in listed):
            if len(listed) != len(names):
                raise DataError(
                    f"a mask of {len(listed)} booleans for {len(names)} {what}s",
                    term=word,
                    write_instead=f"give one a {what}",
                )
            index = np.flatnonzero(listed)
        else:
            places = {name: k for k, name in enumerate(names)}
            index = np.array([_position(one, names, places, word, what) for one in listed], dtype=int)
    if not index.size:
        raise DataError(f"no {what} is selected; at least one is needed", term=word)
    times = np.bincount(index)
    if times.max() > 1:
        raise DataError(
            f"the {what} {names[times.argmax()]!r} is named twice; every {what} can be selected once",
            term=word,
        )
    return index


def _position(one, names: tuple[str, ...], places: dict[str, int], word: str, what: str) -> int:
    if isinstance(one, str):
        if one in places:
            return places[one]
        near = difflib.get_close_matches(one, names, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"the {what}s are {', '.join(map(repr, names[:8]))}{', ...' * (len(names) > 8)}"
        )
        raise DataError(f"{word}({one!r}): there is no such {what}; {hint}")
    if as_whole(one) is None or not -len(names) <= one < len(names):
        raise DataError(
            f"{word}({quoted(one)}): write a {what}'s name or its position, 0 to {len(names) - 1}"
        )
    return int(one) % len(names)


def _tables(tasks: TaskData):
    """Labels and sample weights as (n, m) tables."""
    weights = tasks.sample_weights
    return label_table(tasks, tasks.targets), None if weights is None else label_table(tasks, weights)


def _of_tables(tasks: T, X, Y, S, index, rows: Any = slice(None)) -> T:
    labelled = ~np.isnan(Y)
    return type(tasks)(
        shared=X,
        targets=[y[kept] for y, kept in zip(Y.T, labelled.T, strict=True)],
        mask=None if labelled.all() else labelled,
        sample_weights=None if S is None else [s[kept] for s, kept in zip(S.T, labelled.T, strict=True)],
        task_names=tuple(tasks.task_names[i] for i in index),
        feature_names=tasks.feature_names,
        scaling=tasks.scaling,
        kernel_map=tasks.kernel_map,
        imputation=None if tasks.imputation is None else tasks.imputation.of_rows(rows),
        description=tasks.description,
    )


def _of_lists(tasks: T, rows, index) -> T:
    y = tasks.per_task(tasks.targets)
    s = None if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    pairs = list(zip(index, rows, strict=True))
    require_room(tasks.stacked, sum(y[i][r].size for i, r in pairs))
    return type(tasks)(
        inputs=[tasks.inputs[i][r] for i, r in pairs],
        targets=[y[i][r] for i, r in pairs],
        sample_weights=None if s is None else [s[i][r] for i, r in pairs],
        task_names=tuple(tasks.task_names[i] for i in index),
        feature_names=tasks.feature_names,
        scaling=tasks.scaling,
        source_rows=None if tasks.source_rows is None else [tasks.source_rows[i][r] for i, r in pairs],
        one_table=tasks.one_table,
        kernel_map=tasks.kernel_map,
        imputation=None
        if tasks.imputation is None
        else tasks.imputation.of_rows(_stacked_rows(tasks, pairs)),
        description=tasks.description,
    )


def _stacked_rows(tasks: TaskData, pairs) -> np.ndarray:
    """The rows of all tasks, task after task, that (task, rows of it) pairs take."""
    return np.concatenate([np.arange(tasks.offsets[i], tasks.offsets[i + 1])[r] for i, r in pairs])
