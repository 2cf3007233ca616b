"""Tasks made of tasks: some of them, some of their rows, or all of them on another scale."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.memory import require_memory
from mtldsl.tasks.scaling import Scaling
from mtldsl.values.listing import as_list, as_positions
from mtldsl.values.number import as_whole, quoted

if TYPE_CHECKING:
    from mtldsl.tasks.tasks import Tasks

__all__ = ["label_table", "refuse_kernels", "scaled_by", "select", "take_rows", "with_inputs", "with_targets"]


def label_table(tasks: Tasks, flat) -> np.ndarray:
    """(n, m) from a flat vector of shared tasks; NaN where there is no label."""
    if tasks.mask is None:
        return flat.reshape(tasks.n_tasks, -1).T
    table = np.full(tasks.mask.T.shape, np.nan)
    table[tasks.mask.T] = flat
    return table.T


def select(tasks: Tasks, which) -> Tasks:
    """See `Tasks.select`."""
    index = _positions(tasks, which)
    if not tasks.is_shared:
        return _of_lists(tasks, [slice(None)] * len(index), index)
    Y, S = _tables(tasks)
    return _of_tables(tasks, tasks.X, Y[:, index], None if S is None else S[:, index], index)


def take_rows(tasks: Tasks, rows) -> Tasks:
    """See `Tasks.take_rows`."""
    if not tasks.is_shared:
        listed = as_list(rows)
        if listed is None or len(listed) != tasks.n_tasks:
            raise DataError(
                f"take_rows({quoted(rows)}): these tasks have separate inputs; give a list with the rows of each of the {tasks.n_tasks} tasks"
            )
        named = zip(tasks.task_names, listed, tasks.counts.tolist(), strict=True)
        each = [as_positions(one, n, f"take_rows: task {name!r}", DataError) for name, one, n in named]
        return _of_lists(tasks, each, range(tasks.n_tasks))
    Y, S = _tables(tasks)
    rows = as_positions(rows, len(Y), "take_rows", DataError)
    return _of_tables(tasks, tasks.X[rows], Y[rows], None if S is None else S[rows], range(tasks.n_tasks))


def scaled_by(tasks: Tasks, scaling: Scaling) -> Tasks:
    """See `Tasks.scaled_by`."""
    if not isinstance(scaling, Scaling):
        raise DataError(
            f"scaled_by({quoted(scaling)}): give the scaling of standardised tasks, train.scaling"
        )
    refuse_kernels(tasks, "scaled_by")
    if tasks.scaling is not None:
        raise DataError("scaled_by(): these tasks are standardised already")
    if scaling.mean.size != tasks.n_features:
        raise DataError(
            f"scaled_by(): statistics of {scaling.mean.size} features for tasks with {tasks.n_features}"
        )
    if not tasks.is_shared:
        _require_room(tasks, tasks.n_samples)
    inputs = [tasks.X] if tasks.is_shared else tasks.inputs
    return with_inputs(tasks, [scaling.apply(X) for X in inputs], scaling=scaling)


def with_inputs(tasks: Tasks, inputs: list, **changed) -> Tasks:
    """The same rows, labels and names with other numbers in place of the inputs: one matrix where they are shared, else one a task."""
    kept = {
        "targets": tasks.per_task(tasks.targets),
        "mask": tasks.mask,
        "sample_weights": None if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights),
        "task_names": tasks.task_names,
        "feature_names": tasks.feature_names,
        "scaling": tasks.scaling,
        "source_rows": tasks.source_rows,
        "one_table": tasks.one_table,
        "kernel_map": tasks.kernel_map,
    }
    where = {"shared": inputs[0]} if tasks.is_shared else {"inputs": inputs}
    return type(tasks)(**where, **(kept | changed))


def with_targets(tasks: Tasks, flat) -> Tasks:
    """The same inputs and names with other labels."""
    where = {"shared": tasks.X} if tasks.is_shared else {"stacked": tasks.stacked}
    kept = (
        "mask", "counts", "sample_weights", "task_names", "feature_names", "scaling", "source_rows", "one_table", "kernel_map",
    )  # fmt: skip
    return type(tasks)(targets=flat, **where, **{name: getattr(tasks, name) for name in kept})


def _positions(tasks: Tasks, which) -> list[int]:
    m = tasks.n_tasks
    if isinstance(which, slice):
        chosen = as_positions(which, m, "select", DataError).tolist()
    else:
        listed = as_list(which)
        which = [which] if listed is None else listed
        if which and all(isinstance(one, bool | np.bool_) for one in which):
            if len(which) != m:
                raise DataError(f"select: a mask of {len(which)} booleans for {m} tasks; give one a task")
            which = np.flatnonzero(which).tolist()
        chosen = [_position(tasks, one) for one in which]
    if not chosen:
        raise DataError("select: no task is selected; at least one is needed")
    return chosen


def _position(tasks: Tasks, one) -> int:
    names = tasks.task_names
    if isinstance(one, str):
        if one in names:
            return names.index(one)
        near = difflib.get_close_matches(one, names, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"the tasks are {', '.join(map(repr, names[:8]))}{', ...' * (len(names) > 8)}"
        )
        raise DataError(f"select({one!r}): there is no such task; {hint}")
    if as_whole(one) is None or not -len(names) <= one < len(names):
        raise DataError(f"select({quoted(one)}): write a task's name or its position, 0 to {len(names) - 1}")
    return int(one) % len(names)


def _tables(tasks: Tasks):
    """Labels and sample weights as (n, m) tables."""
    weights = tasks.sample_weights
    return label_table(tasks, tasks.targets), None if weights is None else label_table(tasks, weights)


def _of_tables(tasks: Tasks, X, Y, S, index) -> Tasks:
    _refuse_repeated(index)
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
    )


def _of_lists(tasks: Tasks, rows, index) -> Tasks:
    _refuse_repeated(index)
    y = tasks.per_task(tasks.targets)
    s = None if tasks.sample_weights is None else tasks.per_task(tasks.sample_weights)
    pairs = list(zip(index, rows, strict=True))
    _require_room(tasks, sum(y[i][r].size for i, r in pairs))
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
    )


def _require_room(tasks: Tasks, n: int) -> None:
    """DataError where a copy of n rows of average length, made task by task and then put together, would not fit into memory."""
    X = tasks.stacked
    one = X.nnz * (8.0 + X.indices.itemsize) if sparse.issparse(X) else 8.0 * X.size
    advice = "take fewer: subsample(rows), or a smaller share of them"
    require_memory(2.0 * one * n / max(X.shape[0], 1), f"a copy of {n:,} rows", advice, DataError)


def refuse_kernels(tasks: Tasks, word: str) -> None:
    """DataError for what must come before kernels: afterwards it would change what their features are."""
    if tasks.kernel_map is not None:
        raise DataError(
            f"{word}(): the features of these tasks are those of kernels; {word}() first, then with_kernels()"
        )


def _refuse_repeated(index) -> None:
    if len(set(index)) < len(index):
        raise DataError("select: a task is named twice; every task can be selected once")
