"""Columns of dense inputs that lie far from zero against their width, moved there: beside an intercept the model is the same.

The subtraction is exact, by Sterbenz' lemma: numbers of one sign within a factor of two of each other have an exact difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.data.derived import with_fields
from mtldsl.data.row_storage import is_mapped
from mtldsl.data.task_data import T
from mtldsl.utils.memory import available_memory


@dataclass(frozen=True)
class ColumnShiftSettings:
    """Limits of what counts as a column far from zero.

    centre_ratio : middle of a far column over half its width, at least; from three on subtractions are exact
    sampled_rows : rows, of all tasks or of each, in which most columns are seen not to be far
    """

    centre_ratio: float = 10.0
    sampled_rows: int = 8


SETTINGS = ColumnShiftSettings()


def columns_near_zero(tasks: T) -> tuple[T, np.ndarray, np.ndarray] | None:
    """(tasks whose far columns are near zero, the columns (k,), what they lack (k, m)); None where there are none.

    Tasks with inputs of their own have distances of their own. Sparse inputs and those of kernels stay, and so do inputs in a file and those
    that memory does not hold twice.
    """
    X = tasks.matrix
    if tasks.is_sparse or tasks.kernel_map is not None or is_mapped(X):
        return None
    counts = np.array([len(X)]) if tasks.is_shared else tasks.counts
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    low = high = X[starts]
    for k in range(1, SETTINGS.sampled_rows):
        row = X[starts + np.minimum(k, counts - 1)]
        low, high = np.minimum(low, row), np.maximum(high, row)
    columns = np.flatnonzero(_is_far_from_zero(low, high).any(axis=0))
    if not columns.size:
        return None
    own = X[:, columns]
    low, high = np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)
    far = _is_far_from_zero(low, high)
    is_far = far.any(axis=0)
    if not is_far.any() or available_memory() < X.nbytes:
        return None
    with np.errstate(over="ignore"):
        means = np.clip(np.add.reduceat(own / counts.repeat(counts)[:, None], starts), low, high)
    centres, columns = np.where(far, means, 0.0)[:, is_far], columns[is_far]
    near = np.array(X, order="C")
    near[:, columns] = own[:, is_far] - centres.repeat(counts, axis=0)
    return (
        with_fields(tasks, near, scaling=None),
        columns,
        np.broadcast_to(centres.T, (columns.size, tasks.n_tasks)),
    )


def _is_far_from_zero(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell whether columns with these ends are far from zero; constant ones are, but for zeros."""
    middle = np.abs(0.5 * low + 0.5 * high)
    return (low * np.sign(high) > 0.0) & (middle > SETTINGS.centre_ratio * (0.5 * high - 0.5 * low))
