"""Lists of inputs and targets, one of each per task, as checked arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError
from mtldsl.inputs import as_design, as_names, as_targets, as_weights

__all__ = ["Lists", "as_lists"]


@dataclass(frozen=True, eq=False)
class Lists:
    """What is left of every task when its rows without a label are gone; `kept` says which rows those are."""

    names: tuple[str, ...]
    inputs: list
    targets: list[np.ndarray]
    sample_weights: list[np.ndarray] | None
    kept: list[np.ndarray]
    feature_names: tuple[str, ...] | None


def as_lists(inputs, targets, sample_weights, task_names) -> Lists:
    """DataError, naming the task, for what does not fit together. All inputs become CSR where one of them is sparse."""
    if isinstance(inputs, dict) or isinstance(targets, dict):
        raise DataError(
            "give lists of inputs and targets, in the same order; the keys of a dict go to task_names=list(keys)"
        )
    inputs, targets = list(inputs), list(targets)
    weights = None if sample_weights is None else list(sample_weights)
    if not inputs:
        raise DataError("Tasks.separate([], ...): at least one task is needed")
    if len(inputs) != len(targets):
        raise DataError(
            f"{len(inputs)} input matrices but {len(targets)} label vectors; give one of each per task"
        )
    if weights is not None and len(weights) != len(inputs):
        raise DataError(f"sample_weights: {len(weights)} vectors for {len(inputs)} tasks; give one a task")
    names = as_names(task_names, [f"task{i}" for i in range(len(inputs))], len(inputs), "task_names")
    designs, labels, kept, columns = [], [], [], None
    for name, X, y in zip(names, inputs, targets, strict=True):
        X, its_columns = as_design(X, f"X of task {name!r}")
        y, _ = as_targets(y, f"y of task {name!r}", columns=False)
        if X.shape[0] != y.shape[0]:
            raise DataError(f"task {name!r}: X has {X.shape[0]} rows but y has {y.shape[0]} labels")
        if designs and X.shape[1] != designs[0].shape[1]:
            raise DataError(
                f"task {name!r} has {X.shape[1]} features, but task {names[0]!r} has {designs[0].shape[1]}; "
                "all tasks need the same columns"
            )
        columns = columns or its_columns
        if its_columns is not None and its_columns != columns:
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
    if any(map(sparse.issparse, designs)):
        designs = [sparse.csr_array(X) for X in designs]
    return Lists(
        names=names,
        inputs=[X if k.all() else X[k] for X, k in zip(designs, kept, strict=True)],
        targets=[y[k] for y, k in zip(labels, kept, strict=True)],
        sample_weights=weights,
        kept=kept,
        feature_names=columns,
    )
