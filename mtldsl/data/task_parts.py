"""Construction of `Tasks` from one table, lists or one long table: checks, and cuts into tasks without the rows that have no label."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mtldsl.data.input_checks import (
    as_design,
    as_names,
    as_rows,
    as_targets,
    as_weights,
    labels_of,
    refuse_shuffled,
    refuse_turned,
    require_same_rows,
    require_visible,
    warn_of_spellings,
)
from mtldsl.data.row_storage import stack
from mtldsl.data.task_data import fields_of_table
from mtldsl.errors import DataError
from mtldsl.utils.validation import as_list, quoted


def of_table(X, Y, sample_weights, task_names, feature_names) -> dict:
    """`Tasks.shared`."""
    refuse_shuffled({"X": X, "Y": Y, "sample_weights": sample_weights})
    refuse_turned(Y, sample_weights, "sample_weights")
    X, x_names = as_design(X, "X")
    require_visible(X, x_names, "X")
    Y, y_names = as_targets(Y, "Y", columns=True)
    require_same_rows(X, Y, "Y")
    weights = None if sample_weights is None else as_weights(sample_weights, Y.shape, "sample_weights")
    return {
        "shared": X,
        **fields_of_table(Y, weights),
        "task_names": as_names(task_names, y_names or None, Y.shape[1], "task_names", "task"),
        "feature_names": _feature_names(feature_names, x_names, X),
    }


def of_lists(inputs, targets, sample_weights, task_names, feature_names) -> dict:
    """`Tasks.separate`: DataError names the task. All inputs become CSR where one of them is sparse."""
    inputs, targets = _listed(inputs, "inputs"), _listed(targets, "targets")
    weights = None if sample_weights is None else _listed(sample_weights, "sample_weights")
    if not inputs:
        raise DataError("at least one task is needed", term="Tasks.separate([], ...)")
    if len(inputs) != len(targets):
        raise DataError(
            f"{len(inputs)} input matrices but {len(targets)} label vectors",
            write_instead="give one of each per task",
        )
    if weights is not None and len(weights) != len(inputs):
        raise DataError(
            f"sample_weights: {len(weights)} vectors for {len(inputs)} tasks", write_instead="give one a task"
        )
    names = as_names(task_names, None, len(inputs), "task_names", "task")
    designs, labels, kept = [], [], []
    columns: tuple[str, ...] | None = None
    for i, (name, X, y) in enumerate(zip(names, inputs, targets, strict=True)):
        own = {"X": X, "y": y, "sample_weights": None if weights is None else weights[i]}
        refuse_shuffled(own, f"task {name!r}: ")
        X, fixed, its_columns = as_rows(X, f"X of task {name!r}")
        require_visible(X, its_columns, f"X of task {name!r}")
        y, _ = as_targets(y, f"y of task {name!r}", columns=False)
        require_same_rows(X, y, "y", f"task {name!r}")
        if designs and X.shape[1] != designs[0].shape[1]:
            raise DataError(
                f"task {name!r} has {X.shape[1]} features, but task {names[0]!r} has {designs[0].shape[1]}; "
                "all tasks need the same columns"
            )
        columns = columns or its_columns
        if its_columns is not None and columns is not None and its_columns != columns:
            j = next(
                j for j, (mine, first) in enumerate(zip(its_columns, columns, strict=True)) if mine != first
            )
            raise DataError(
                f"task {name!r}: its column {j} is named {its_columns[j]!r}, not {columns[j]!r} as in the tasks before; "
                "all tasks need the same columns in the same order"
            )
        designs.append(X)
        labels.append(y)
        kept.append(~np.isnan(y))
    if weights is not None:
        given = zip(names, weights, labels, kept, strict=True)
        weights = [as_weights(s, y.shape, f"sample_weights of task {name!r}")[k] for name, s, y, k in given]
    complete = [bool(k.all()) for k in kept]
    if len(designs) == 1 and fixed and complete[0]:
        stacked = designs[0]
    else:
        rows = [None if all_of_it else np.flatnonzero(k) for k, all_of_it in zip(kept, complete, strict=True)]
        stacked = stack(list(zip(designs, rows, strict=True)))
    return {
        "stacked": stacked,
        "targets": [y[k] for y, k in zip(labels, kept, strict=True)],
        "sample_weights": weights,
        "task_names": names,
        "feature_names": _feature_names(feature_names, columns, designs[0]),
        "source_rows": None if all(complete) else [np.flatnonzero(k) for k in kept],
    }


def of_long_table(X, y, task_ids, sample_weights, feature_names) -> dict:
    """`Tasks.grouped`: rows sorted by task once, where they are not already; read-only X in that order is not copied."""
    refuse_shuffled({"X": X, "y": y, "task_ids": task_ids, "sample_weights": sample_weights})
    X, fixed, x_names = as_rows(X, "X")
    require_visible(X, x_names, "X")
    y, _ = as_targets(y, "y", columns=False)
    require_same_rows(X, y, "y")
    ids, index = labels_of(task_ids, X.shape[0])
    if not ids:
        raise DataError("Tasks.grouped: X has no rows; at least one task is needed")
    warn_of_spellings(ids, "Tasks.grouped: task_ids")
    weights = None if sample_weights is None else as_weights(sample_weights, y.shape, "sample_weights")
    names = as_names(None, ids, len(ids), "task_names")
    fields = fields_of_long_table(X, fixed, y, index, len(ids), weights)
    return {**fields, "task_names": names, "feature_names": _feature_names(feature_names, x_names, X)}


def fields_of_long_table(X, fixed: bool, y: np.ndarray, index: np.ndarray, n_tasks: int, weights) -> dict:
    """The constructor's fields of the rows that have a label, sorted by their tasks (index). fixed: X can be kept as it is."""
    rows = np.flatnonzero(~np.isnan(y))
    # radix sort where the positions of the tasks fit 16 bits, ten times as fast
    key = index[rows].astype(np.uint16 if n_tasks <= 1 << 16 else int)
    in_order = rows.size == y.size and bool((key[1:] >= key[:-1]).all())
    rows = rows if in_order else rows[np.argsort(key, kind="stable")]
    counts = np.bincount(key, minlength=n_tasks)
    ends = np.cumsum(counts)
    return {
        "stacked": X if in_order and fixed else stack([(X, None if in_order else rows)]),
        "counts": counts,
        "targets": y if in_order else y[rows],
        "sample_weights": weights if weights is None or in_order else weights[rows],
        # rows of the long table, for messages
        "source_rows": [rows[a:b] for a, b in zip(ends - counts, ends, strict=True)],
        "one_table": True,
    }


def _feature_names(given, found, X):
    return as_names(given, found or None, X.shape[1], "feature_names", "x")


def _listed(given, what: str) -> list:
    """One entry a task."""
    if isinstance(given, Mapping):
        raise DataError(
            "give lists of inputs and targets, in the same order; the keys of a dict go to task_names=list(keys)"
        )
    listed = as_list(given)
    if listed is None:
        raise DataError(
            f"Tasks.separate: {what}={quoted(given)}", write_instead="give a list with one array a task"
        )
    return listed
