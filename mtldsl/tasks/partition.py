"""Training and test parts, and seeded subsamples, that keep every task usable."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.tasks.data import T, TaskData
from mtldsl.tasks.dealing import deal, traits_of, units_of
from mtldsl.tasks.derived import label_table
from mtldsl.tasks.folding import labels_by_row, rows_of_parts
from mtldsl.tasks.imputation import filled_pair
from mtldsl.tasks.selection import take_rows
from mtldsl.values.number import as_float, as_whole, quoted
from mtldsl.values.option import as_flag
from mtldsl.values.seed import generator

__all__ = ["split", "subsample"]

#: plain random splits tried before the rows of rare classes are dealt out first
_TRIES = 20


def split(tasks: T, test_size: float, random_state, stratify=False, groups=None) -> tuple[T, T]:
    """See `Tasks.split`."""
    share = as_float(test_size)
    if share is None or not 0 < share < 1:
        raise DataError(
            term=f"split(test_size={quoted(test_size)})",
            write_instead="write a fraction between 0 and 1, such as 0.25",
        )
    test_size = share
    stratify = as_flag(stratify, "split(test_size, stratify")
    rng = generator(random_state, "split")
    if groups is not None or (
        stratify and tasks.is_shared
    ):  # separate inputs are split class by class anyway
        in_test = _split_units(tasks, test_size, rng, stratify, groups)
        return filled_pair(*(take_rows(tasks, rows_of_parts(tasks, side)) for side in (~in_test, in_test)))
    if tasks.is_shared:
        train, test = _split_table(tasks, test_size, rng)
        return filled_pair(take_rows(tasks, train), take_rows(tasks, test))
    targets = zip(tasks.per_task(tasks.targets), tasks.task_names, strict=True)
    parts = [_split_one(y, test_size, rng, name) for y, name in targets]
    return filled_pair(
        take_rows(tasks, [train for train, _ in parts]), take_rows(tasks, [test for _, test in parts])
    )


def _split_units(tasks: TaskData, test_size, rng, stratify: bool, groups) -> np.ndarray:
    """(n,) whether a row is tested, of rows as `labels_by_row` has them: whole groups, both sides with every class of every task."""
    typed = f"split(test_size={test_size})"
    labels = labels_by_row(tasks)
    units = units_of(groups, len(labels), "split(test_size, groups)")
    what = "rows" if units is None else "groups"
    units = np.arange(len(labels)) if units is None else units
    needed = [(said, np.unique(units[rows]), rows) for said, rows in _of_table(labels, tasks.task_names)]
    for said, where, _ in needed:
        if where.size < 2:
            raise DataError(
                f"{said} in a single {what[:-1]}, which cannot be on both sides",
                term=typed,
                write_instead="leave the task out",
            )
    traits, shares = traits_of(labels), np.array([1.0 - test_size, test_size])
    for attempt in range(2 * _TRIES):
        # at random first, where no more is asked for; then with a unit of every class on either side
        plain = not stratify and attempt < _TRIES
        in_test = (
            _random_units(units, test_size, rng)
            if plain
            else deal(traits, units, shares, rng, at_least=1.0) == 1
        )
        if all(in_test[rows].any() and not in_test[rows].all() for _, _, rows in needed):
            return in_test
    said, where, _ = min(needed, key=lambda one: one[1].size)
    raise DataError(
        f"no split of {units.max() + 1} {what} was found that leaves every task its labels on both sides; the rarest: {said} "
        f"in {where.size} {what} - leave that task out, or choose another test_size",
        term=typed,
    )


def _random_units(units, test_size, rng) -> np.ndarray:
    """(n,) whether a row is tested: units in a random order, until as near as they come to the number of rows wanted."""
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    wanted = _n_test(test_size, len(units))
    taken = np.argmin(np.abs(np.cumsum(sizes[order[:-1]]) - wanted)) + 1
    return np.isin(units, order[:taken])


def _split_table(tasks: TaskData, test_size, rng) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the shared inputs. Both sides must meet every group: the rows of one task, or of one of its two classes."""
    groups = _groups(tasks)
    for what, rows in groups:
        if rows.size < 2:
            raise DataError(
                f"{what} in a single row, which cannot be on both sides",
                term="split()",
                write_instead="leave the task out",
            )
    n = tasks.X.shape[0]
    n_test = _n_test(test_size, n)
    for _ in range(_TRIES):
        in_test = np.zeros(n, dtype=bool)
        in_test[rng.permutation(n)[:n_test]] = True
        if all(in_test[rows].any() and not in_test[rows].all() for _, rows in groups):
            return np.flatnonzero(~in_test), np.flatnonzero(in_test)
    for _ in range(_TRIES):
        in_test = _deal(groups, n, n_test, rng)
        if in_test is not None:
            return np.flatnonzero(~in_test), np.flatnonzero(in_test)
    rarest = min(groups, key=lambda group: group[1].size)
    raise DataError(
        f"no split of {n} rows was found that leaves every task its labels on both sides; "
        f"the rarest: {rarest[0]} in {rarest[1].size} rows - leave that task out, or choose another test_size",
        term=f"split(test_size={test_size})",
    )


def _deal(groups, n, n_test, rng) -> np.ndarray | None:
    """A row of every group to either side, the rarest group first, then the other rows at random; None where that fails."""
    side = np.zeros(n, dtype=int)  # 0: not dealt yet, 1: test, -1: train
    for _, rows in sorted(groups, key=lambda group: group[1].size):
        for which in (1, -1):
            if (side[rows] == which).any():
                continue
            free = rows[side[rows] == 0]
            if free.size == 0:
                return None
            side[rng.choice(free)] = which
    free = rng.permutation(np.flatnonzero(side == 0))
    wanted = n_test - int((side == 1).sum())
    if not 0 <= wanted <= free.size:
        return None
    side[free[:wanted]] = 1
    return side == 1


def _groups(tasks: TaskData) -> list[tuple[str, np.ndarray]]:
    """(description, rows) of every task's labels, class by class where they are -1 and +1."""
    return _of_table(label_table(tasks, tasks.targets), tasks.task_names)


def _of_table(labels: np.ndarray, names) -> list[tuple[str, np.ndarray]]:
    groups = []
    for name, y in zip(names, labels.T, strict=True):
        classes = np.unique(y[~np.isnan(y)]) if _is_sign(y) else [None]
        for c in classes:
            what = f"task {name!r} has " + ("labels" if c is None else f"the label {c:+g}")
            groups.append((what, np.flatnonzero(~np.isnan(y) if c is None else y == c)))
    return groups


def _split_one(y, test_size, rng, name) -> tuple[np.ndarray, np.ndarray]:
    """Row indices of one task, class by class where the labels are -1 and +1."""
    groups = [np.flatnonzero(y == c) for c in np.unique(y)] if _is_sign(y) else [np.arange(y.size)]
    train, test = [], []
    for rows in groups:
        if rows.size < 2:
            what = f"the label {y[rows[0]]:+g}" if len(groups) > 1 else "labels"
            raise DataError(
                f"task {name!r} has {what} in a single row, which cannot be on both sides",
                term="split()",
                write_instead="leave the task out",
            )
        order = rng.permutation(rows)
        k = _n_test(test_size, rows.size)
        test.append(order[:k])
        train.append(order[k:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def _n_test(test_size, n) -> int:
    return min(max(round(test_size * n), 1), n - 1)


def _is_sign(y) -> bool:
    return bool(np.isin(y[~np.isnan(y)], (-1.0, 1.0)).all())


def subsample(tasks: T, rows: int, random_state) -> T:
    """See `Tasks.subsample`."""
    number = as_whole(rows)
    if number is None or number < 1:
        raise DataError(
            term=f"subsample(rows={quoted(rows)})", write_instead="write a whole number of at least 1"
        )
    rng = generator(random_state, "subsample")
    if not tasks.is_shared:
        return take_rows(tasks, [_sample(y, number, rng) for y in tasks.per_task(tasks.targets)])
    n = tasks.X.shape[0]
    if number >= n:
        return tasks
    # one row of every group, so that no task and no class is lost
    needed = np.unique([rng.choice(members) for _, members in _groups(tasks)])
    others = rng.permutation(np.setdiff1d(np.arange(n), needed))
    return take_rows(tasks, np.sort(np.concatenate([needed, others[: max(number - needed.size, 0)]])))


def _sample(y, rows, rng) -> np.ndarray:
    if rows >= y.size:
        return np.arange(y.size)
    needed = [rng.choice(np.flatnonzero(y == c)) for c in np.unique(y)] if _is_sign(y) else []
    others = rng.permutation(np.setdiff1d(np.arange(y.size), needed))
    return np.sort(np.concatenate([np.array(needed, dtype=int), others[: max(rows - len(needed), 0)]]))
