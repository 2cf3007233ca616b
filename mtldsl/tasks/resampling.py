"""Rows drawn again: with replacement, of the table or within every task, or whole groups of them."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.data import TaskData
from mtldsl.tasks.dealing import units_of
from mtldsl.values.number import as_float, as_whole, quoted

__all__ = ["checked_level", "checked_times", "drawn", "units_of_rows"]


def units_of_rows(tasks: TaskData, groups, typed: str) -> np.ndarray | None:
    """(n,) the unit of every row of the shared X, or of every labelled row, task after task; None without groups."""
    units = units_of(groups, tasks.X.shape[0] if tasks.is_shared else tasks.n_samples, typed)
    if units is not None and units.max() == 0:
        raise DataError(
            "all rows are of one group", term=typed, write_instead="give groups of fewer rows, or none"
        )
    return units


def drawn(tasks: TaskData, units: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """(n,) how often each row is drawn: as many rows as there are, or as many groups; within every task where inputs are separate.

    >>> from mtldsl.tasks import Tasks
    >>> drawn(Tasks.shared([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), None, np.random.default_rng(0)).tolist()
    [0, 2, 1]
    """
    if units is not None:
        return _times(int(units.max()) + 1, rng)[units]
    if tasks.is_shared:
        return _times(tasks.X.shape[0], rng)
    return np.concatenate([_times(int(n), rng) for n in tasks.counts])


def _times(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.bincount(rng.integers(0, n, n), minlength=n)


def checked_times(n, typed: str) -> int:
    """How often to draw; typed is such as "bootstrap(n"."""
    number = as_whole(n)
    if number is None or number < 2:
        raise DataError(term=f"{typed}={quoted(n)})", write_instead="write a whole number of at least 2")
    return number


def checked_level(level, typed: str) -> float:
    share = as_float(level)
    if share is None or not 0.0 < share < 1.0:
        raise DataError(
            term=f"{typed}={quoted(level)})", write_instead="write a share between 0 and 1, such as 0.95"
        )
    return share
