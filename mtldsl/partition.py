"""Training and test parts, and seeded subsamples, that keep every task usable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError

if TYPE_CHECKING:
    from mtldsl.tasks import Tasks

__all__ = ["split", "subsample"]

#: permutations tried before a split that keeps every class of every task is called impossible
_TRIES = 200


def split(tasks: Tasks, test_size: float, random_state) -> tuple[Tasks, Tasks]:
    """See `Tasks.split`."""
    if not 0 < test_size < 1:
        raise DataError(f"split(test_size={test_size!r}): write a fraction between 0 and 1, such as 0.25")
    rng = np.random.default_rng(random_state)
    if not tasks.is_shared:
        parts = [
            _split_one(y, test_size, rng, name)
            for y, name in zip(tasks.per_task(tasks.targets), tasks.task_names, strict=True)
        ]
        return tasks.take_rows([train for train, _ in parts]), tasks.take_rows([test for _, test in parts])
    n = tasks.X.shape[0]
    Y = tasks._table(tasks.targets)
    n_test = min(max(int(round(test_size * n)), 1), n - 1)
    if n < 2:
        raise DataError("split(): at least two rows are needed")
    lacking = None
    for _ in range(_TRIES):
        order = rng.permutation(n)
        test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
        lacking = _lacking(tasks, Y, Y[train]) or _lacking(tasks, Y, Y[test])
        if lacking is None:
            return tasks.take_rows(train), tasks.take_rows(test)
    raise DataError(
        f"split(test_size={test_size}): in {_TRIES} random splits {lacking}; the task is too rare for this split - "
        "leave it out, or choose another test_size"
    )


def _split_one(y, test_size, rng, name) -> tuple[np.ndarray, np.ndarray]:
    """Row indices of one task, class by class where the labels are -1 and +1."""
    groups = [np.flatnonzero(y == c) for c in (-1.0, 1.0)] if _is_sign(y) else [np.arange(y.size)]
    groups = [g for g in groups if g.size]
    train, test = [], []
    for rows in groups:
        if rows.size < 2:
            raise DataError(
                f"split(): task {name!r} has a single row" + (" of one class" if len(groups) > 1 else "")
            )
        order = rng.permutation(rows)
        k = min(max(int(round(test_size * rows.size)), 1), rows.size - 1)
        test.append(order[:k])
        train.append(order[k:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def _is_sign(y) -> bool:
    return bool(np.isin(y[~np.isnan(y)], (-1.0, 1.0)).all())


def _lacking(tasks: Tasks, Y, part) -> str | None:
    """What a part of the rows lacks: a label of some task, or one of its two classes."""
    for i, name in enumerate(tasks.task_names):
        if np.isnan(part[:, i]).all():
            return f"task {name!r} had no labelled row on one side"
        if _is_sign(Y[:, i]):
            for c in np.unique(Y[~np.isnan(Y[:, i]), i]):
                if not (part[:, i] == c).any():
                    return f"task {name!r} had no label {c:+g} on one side"
    return None


def subsample(tasks: Tasks, rows: int, random_state) -> Tasks:
    """See `Tasks.subsample`."""
    if rows < 1:
        raise DataError(f"subsample(rows={rows}): write a positive number of rows")
    rng = np.random.default_rng(random_state)
    if not tasks.is_shared:
        return tasks.take_rows([_sample(y, rows, rng) for y in tasks.per_task(tasks.targets)])
    Y = tasks._table(tasks.targets)
    if rows >= len(Y):
        return tasks
    needed = []  # one row per class (or one row) of every task, so that no task is lost
    for y in Y.T:
        classes = np.unique(y[~np.isnan(y)]) if _is_sign(y) else [None]
        for c in classes:
            candidates = np.flatnonzero(~np.isnan(y) if c is None else y == c)
            needed.append(rng.choice(candidates))
    needed = np.unique(needed)
    others = rng.permutation(np.setdiff1d(np.arange(len(Y)), needed))
    return tasks.take_rows(np.sort(np.concatenate([needed, others[: max(rows - needed.size, 0)]])))


def _sample(y, rows, rng) -> np.ndarray:
    if rows >= y.size:
        return np.arange(y.size)
    needed = [rng.choice(np.flatnonzero(y == c)) for c in np.unique(y)] if _is_sign(y) else []
    others = rng.permutation(np.setdiff1d(np.arange(y.size), needed))
    return np.sort(np.concatenate([np.array(needed, dtype=int), others[: max(rows - len(needed), 0)]]))
