"""The same rows of the same tasks, with other inputs, labels or scales in place of theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.errors import DataError, Spelled
from mtldsl.tasks.data import T, TaskData
from mtldsl.tasks.scaling import Scaling
from mtldsl.tasks.stacked import Widened, require_room
from mtldsl.values.number import quoted
from mtldsl.values.option import as_flag

__all__ = [
    "changed",
    "label_table",
    "refuse_standardizing",
    "require_scaling",
    "scaled_by",
    "standardize",
    "with_inputs",
    "with_targets",
]

_FIELDS = (
    "mask", "counts", "targets", "sample_weights", "task_names", "feature_names", "scaling", "source_rows", "one_table",
    "kernel_map", "imputation", "description",
)  # fmt: skip


def changed(tasks: T, **fields) -> T:
    """The same tasks but for these fields, which are the constructor's; labels and weights are flat."""
    inputs = {"shared": tasks.X} if tasks.is_shared else {"stacked": tasks.stacked}
    return type(tasks)(**({name: getattr(tasks, name) for name in _FIELDS} | inputs | fields))


def with_targets(tasks: T, flat) -> T:
    """See `Tasks.with_targets`."""
    return changed(tasks, targets=flat)


def with_inputs(tasks: T, inputs: list, **fields) -> T:
    """Other numbers in place of the inputs: one matrix where they are shared, else one a task. Gaps of the old ones are forgotten."""
    where = {"shared": inputs[0]} if tasks.is_shared else {"stacked": None, "inputs": inputs}
    return changed(tasks, **where, **({"imputation": None} | fields))


def standardize(tasks: T, center, scale, each_fold=False) -> T:
    """See `Tasks.standardize`."""
    center, scale = as_flag(center, "standardize(center"), as_flag(scale, "standardize(scale")
    each_fold = as_flag(each_fold, "standardize(each_fold")
    refuse_standardizing(tasks, center)
    inputs = [tasks.X] if tasks.is_shared else Widened(tasks.inputs)
    return scaled_by(
        tasks, replace(Scaling.of(inputs, center, scale), each_fold=(center, scale) if each_fold else None)
    )


def refuse_standardizing(tasks: TaskData, center: bool) -> None:
    """DataError for tasks that cannot be standardised, or are already."""
    _refuse_kernels(tasks, "standardize")
    if tasks.is_sparse and center:
        raise DataError(
            "standardize(): centering would make sparse inputs dense",
            write_instead="write " + Spelled("standardize(center=False)", "standardize = {center = false}"),
        )
    if tasks.scaling is not None:
        raise DataError("these tasks are standardised already", term="standardize()")


def scaled_by(tasks: T, scaling: Scaling) -> T:
    """See `Tasks.scaled_by`."""
    require_scaling(tasks, scaling)
    if not tasks.is_shared:
        require_room(tasks.stacked, tasks.n_samples)
    inputs = [tasks.X] if tasks.is_shared else tasks.inputs
    return with_inputs(
        tasks, [scaling.apply(X) for X in inputs], scaling=scaling, imputation=tasks.imputation
    )


def require_scaling(tasks: TaskData, scaling) -> None:
    """DataError unless these statistics can be applied to the tasks."""
    if not isinstance(scaling, Scaling):
        raise DataError(
            term=f"scaled_by({quoted(scaling)})",
            write_instead="give the scaling of standardised tasks, train.scaling",
        )
    _refuse_kernels(tasks, "scaled_by")
    if tasks.scaling is not None:
        raise DataError("these tasks are standardised already", term="scaled_by()")
    if scaling.mean.size != tasks.n_features:
        raise DataError(
            f"statistics of {scaling.mean.size} features for tasks with {tasks.n_features}",
            term="scaled_by()",
        )


def label_table(tasks: TaskData, flat) -> np.ndarray:
    """(n, m) from a flat vector of shared tasks; NaN where there is no label."""
    if tasks.mask is None:
        return flat.reshape(tasks.n_tasks, -1).T
    table = np.full(tasks.mask.T.shape, np.nan)
    table[tasks.mask.T] = flat
    return table.T


def _refuse_kernels(tasks: TaskData, word: str) -> None:
    """DataError for what must come before kernels: afterwards it would change what their features are."""
    if tasks.kernel_map is not None:
        raise DataError(
            f"{word}(): the features of these tasks are those of kernels; {word}() first, then with_kernels()"
        )
