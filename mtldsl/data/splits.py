"""Splits of rows into training and test, folds for cross-validation, and resampling by rows or groups."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mtldsl.data.derived import filled_pair, label_table, take_rows
from mtldsl.data.task_data import T, TaskData
from mtldsl.errors import DataError
from mtldsl.utils.memory import require_memory
from mtldsl.utils.validation import as_count, as_flag, as_float, as_list, generator, is_missing, quoted

# --------------------------------------------------------------------------------------------------------------
# How rows are dealt to parts so that what they carry is spread evenly: iterative stratification, whole groups at a time.


def stratified_folds(labels: np.ndarray, k: int, stratify: bool, units: np.ndarray | None, rng) -> np.ndarray:
    """The fold, 0 to k - 1, of every row of a table of labels (n, m), NaN where one is missing.

    stratify : by iterative stratification over what can be there: a task's label, and where labels are -1 and +1 either of them
    units    : (n,) the unit of every row, 0, 1, ...; the rows of a unit stay together

    >>> stratified_folds(np.array([[1.0], [1.0], [-1.0], [-1.0]]), 2, True, None, np.random.default_rng(0)).tolist()
    [0, 1, 0, 1]
    """
    n = len(labels)
    units = np.arange(n) if units is None else units
    traits = traits_of(labels) if stratify else np.empty((n, 0))
    return deal(traits, units, np.full(k, 1.0 / k), rng)


def traits_of(labels: np.ndarray) -> np.ndarray:
    """(n, traits) of 0 and 1: of every task whether the label is there, by class where these are -1 and +1."""
    columns = []
    for y in labels.T:
        there = ~np.isnan(y)
        if np.isin(y[there], (-1.0, 1.0)).all():
            columns += [y == 1.0, y == -1.0]
        else:
            columns.append(there)
    kept = [column for column in columns if column.any()]
    return np.stack(kept, axis=1).astype(float) if kept else np.empty((len(labels), 0))


def deal(traits: np.ndarray, units: np.ndarray, shares: np.ndarray, rng, at_least: float = 0.0) -> np.ndarray:
    """The part of every row, 0 to len(shares) - 1; the rows of a unit get the same.

    traits   : (n, traits) what every row carries, as numbers >= 0
    shares   : (parts,) how much of everything each part is to have; they sum to one
    at_least : how much of every trait each part is to have in any case, as far as there is enough of it

    The trait that is rarest among the rows not dealt yet is dealt first, each of its units to the part that still wants most of that
    trait, then to the part that wants most of all that the unit carries, rare traits weighing more, then to the part that wants most
    rows; ties are broken at random. Large units go first, while there is room.
    Source: Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD 2011, algorithm 1; the second question is ours.
    """
    n_units = int(units.max()) + 1 if units.size else 0
    sizes = np.bincount(units, minlength=n_units).astype(float)
    counts = np.zeros((n_units, traits.shape[1]))
    np.add.at(counts, units, traits)
    total = counts.sum(axis=0)
    part = np.full(n_units, -1)
    wanted_rows = shares * sizes.sum()
    wanted = shares[:, None] * total
    if at_least:
        lowest = np.minimum(at_least, total / len(shares))
        wanted = np.maximum(wanted, lowest)
        wanted *= total / wanted.sum(axis=0)
    shuffled = rng.permutation(n_units)
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    left = total.copy()
    rarity = 1.0 / np.maximum(total, 1.0)

    def place(unit, want) -> None:
        best = np.flatnonzero(want >= want.max() - 1e-9)
        for want_next in (wanted @ (counts[unit] * rarity), wanted_rows):
            if len(best) > 1:
                best = best[want_next[best] >= want_next[best].max() - 1e-9]
        chosen = best[0] if len(best) == 1 else rng.choice(best)
        part[unit] = chosen
        wanted_rows[chosen] -= sizes[unit]
        wanted[chosen] -= counts[unit]
        left[:] -= counts[unit]

    while (left > 0).any():
        trait = int(np.argmin(np.where(left > 0, left, np.inf)))
        for unit in order[(part[order] < 0) & (counts[order, trait] > 0)]:
            place(unit, wanted[:, trait])
    for unit in order[part[order] < 0]:
        place(unit, wanted_rows)
    return part[units]


def group_ids(groups, n: int, typed: str) -> np.ndarray | None:
    """(n,) a number for the group of every row, 0, 1, ...; None for None. DataError for another length and missing groups."""
    if groups is None:
        return None
    ids = groups.tolist() if isinstance(groups, np.ndarray) and groups.ndim == 1 else as_list(groups)
    if ids is None or len(ids) != n:
        said = "groups are not a list" if ids is None else f"there are {len(ids)} groups"
        raise DataError(
            f"{said}, and there are {n} rows", term=typed, argument="groups",
            write_instead=f"give ({n},), the group of every row",
        )  # fmt: skip
    numbers: dict = {}
    for row, one in enumerate(ids):
        if is_missing(one):
            raise DataError(
                f"the group of row {row} is missing", term=typed, argument="groups", write_instead="give every row a group"
            )  # fmt: skip
        numbers.setdefault(one, len(numbers))
    return np.array([numbers[one] for one in ids], dtype=int)


# --------------------------------------------------------------------------------------------------------------
# Folds that keep every task's labels, and both classes of each, on all sides as evenly as they can be.


def folds(tasks: T, k: int = 5, stratify: bool = True, groups=None, random_state=0) -> list[tuple[T, T]]:
    """k pairs (train, test), every row in one test part: shared inputs are dealt by rows, separate ones within every task.

    stratify : spread every task's labels, and both classes of each, as evenly as can be over the folds (iterative stratification)
    groups   : (n,) the group of every row of X, or of every labelled row, task after task, of separate inputs; the rows of a group
               are never on both sides
    A fold need not have both classes of a task that has fewer rows of one than folds. DataError where a task would have no row at all
    on a side (`problem.cross_validate` leaves such a task out of the fold), for groups that are missing or too few, and for more
    folds than rows.

    Source: Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD 2011.

    >>> from mtldsl.data.tasks import Tasks
    >>> tasks = Tasks.shared([[1.0], [2.0], [3.0], [4.0]], [1.0, 1.0, -1.0, -1.0])
    >>> [test.targets.tolist() for train, test in tasks.folds(2)]
    [[1.0, -1.0], [1.0, -1.0]]
    """
    numbers = fold_numbers(tasks, k, stratify, groups, random_state)
    _require_all_tasks(tasks, numbers, k)
    return [_sides(tasks, numbers == fold) for fold in range(k)]


def _sides(tasks: T, held_out: np.ndarray) -> tuple[T, T]:
    """(train, test) by a mask of the rows that are numbered as in `fold_numbers`."""
    return filled_pair(*(take_rows(tasks, rows_of_parts(tasks, side)) for side in (~held_out, held_out)))


def fold_numbers(
    tasks: TaskData, k: int, stratify: bool = True, groups=None, random_state=0, typed: str = "folds(k"
) -> np.ndarray:
    """The fold, 0 to k - 1, of every row of the shared X, or of every labelled row, task after task, of separate inputs.

    A task of separate inputs may have fewer rows than there are folds: then it is not in all of them.
    typed : the call as it was written, up to the number of folds
    """
    k = as_count(k, typed, 2)
    stratify = as_flag(stratify, "folds(k, stratify")
    rng = generator(random_state, "folds")
    n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
    units = group_ids(groups, n, "folds(k, groups)")
    require_units(n, units, k, typed)
    if tasks.is_shared or units is not None:
        return stratified_folds(labels_by_row(tasks), k, stratify, units, rng)
    parts = [stratified_folds(y[:, None], k, stratify, None, rng) for y in tasks.per_task(tasks.targets)]
    return np.concatenate(parts)


def require_units(n: int, units: np.ndarray | None, k: int, typed: str) -> None:
    """DataError where there are fewer rows, or groups of them, than folds; `typed` as in `fold_numbers`."""
    n_units, argument = n if units is None else int(units.max()) + 1, re.split(r"\W+", typed)[-1]
    if n_units < k:
        raise DataError(
            f"there are {n_units} {'rows' if units is None else 'groups'}",
            term=f"{typed}={k})",
            write_instead=f"write {argument} = 2 to {n_units}" if n_units >= 2 else "give more data",
            argument=argument,
        )


def labels_by_row(tasks: TaskData) -> np.ndarray:
    """(n, m) of the rows of the shared X, or of the labelled rows, task after task, each with the label of its own task alone."""
    if tasks.is_shared:
        return label_table(tasks, tasks.targets)
    n, m = tasks.n_samples, tasks.n_tasks
    require_memory(24.0 * n * m, f"a table of {n:,} rows and {m:,} tasks", "fold without groups", DataError)
    table = np.full((n, m), np.nan)
    table[np.arange(n), tasks.task_of] = tasks.targets
    return table


def rows_of_parts(tasks: TaskData, chosen: np.ndarray):
    """Return what `take_rows` takes, from a mask of the rows that are numbered as in `fold_numbers`."""
    if tasks.is_shared:
        return np.flatnonzero(chosen)
    return [np.flatnonzero(part) for part in tasks.per_task(chosen)]


def refuse_overlap(k: int, train: np.ndarray, test: np.ndarray, typed: str, argument: str = "") -> None:
    """DataError where fold k, of positions or masks of all rows, scores rows that it learns from."""
    both = (train & test).any() if train.dtype == bool else np.intersect1d(train, test).size
    if both:
        raise DataError(f"fold {k} tests rows that it trains on", term=typed, argument=argument)


def _require_all_tasks(tasks: TaskData, numbers: np.ndarray, k: int) -> None:
    """DataError where a task has labels in one fold alone, which leaves none to train on, or has none in a fold."""
    labelled = tasks.mask if tasks.is_shared else None
    parts = [numbers] * tasks.n_tasks if tasks.is_shared else tasks.per_task(numbers)
    for i, part in enumerate(parts):
        here = part if labelled is None else part[labelled[:, i]]
        missing = k - len(np.unique(here))
        if missing:
            raise DataError(
                f"task {tasks.task_names[i]!r} has {len(here)} labelled rows, and none in {missing} of the {k} folds",
                term=f"folds(k={k})",
                write_instead="write fewer folds, or leave the task out; problem.cross_validate leaves it out of these folds alone",
            )


# --------------------------------------------------------------------------------------------------------------
# Training and test parts, and seeded subsamples, that keep every task usable.


@dataclass(frozen=True)
class SplitSettings:
    """Limit of trials: `random_trials` plain random splits, before the rows of rare classes are dealt out first."""

    random_trials: int = 20


SETTINGS = SplitSettings()


def split(
    tasks: T, test_size: float = 0.25, random_state=None, *, stratify: bool = False, groups=None
) -> tuple[T, T]:
    """(train, test): shared inputs are split by rows, once for all tasks; separate ones within every task.

    stratify : spread every task's labels, and both classes of each, by the same shares (iterative stratification, as in `folds`);
               separate inputs without groups are split class by class in any case
    groups   : as in `folds`; the rows of a group are never on both sides, so that test_size is met as far as their sizes allow
    Both sides keep a labelled row of every task, and both classes where the labels are -1 and +1; DataError where that is
    impossible.
    """
    test_size = checked_level(test_size, "split(test_size", "0.25")
    stratify = as_flag(stratify, "split(test_size, stratify")
    rng = generator(random_state, "split")
    if groups is not None or tasks.is_shared:  # separate inputs are split class by class anyway
        return _sides(tasks, _split_units(tasks, test_size, rng, stratify, groups))
    targets = zip(tasks.per_task(tasks.targets), tasks.task_names, strict=True)
    return _sides(tasks, np.concatenate([_split_one(y, test_size, rng, name) for y, name in targets]))


def _split_units(tasks: TaskData, test_size, rng, stratify: bool, groups) -> np.ndarray:
    """(n,) whether a row is tested, of rows as `labels_by_row` has them: whole groups, both sides with every class of every task."""
    typed = f"split(test_size={test_size})"
    labels = labels_by_row(tasks)
    units = group_ids(groups, len(labels), "split(test_size, groups)")
    what = "rows" if units is None else "groups"
    units = np.arange(len(labels)) if units is None else units
    needed = [(said, np.unique(units[rows]), rows) for said, rows in _of_table(labels, tasks.task_names)]
    for said, where, _ in needed:
        if where.size < 2:
            raise DataError(
                f"{said} in a single {what[:-1]}, which cannot be on both sides",
                term=typed if stratify or groups is not None else "split()",
                write_instead="leave the task out",
            )
    traits, shares = traits_of(labels), np.array([1.0 - test_size, test_size])
    for attempt in range(2 * SETTINGS.random_trials):
        # at random first, where no more is asked for; then with a unit of every class on either side
        plain = not stratify and attempt < SETTINGS.random_trials
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


def _of_table(labels: np.ndarray, names) -> list[tuple[str, np.ndarray]]:
    """(description, rows) of every task's labels, class by class where they are -1 and +1."""
    groups = []
    for name, y in zip(names, labels.T, strict=True):
        classes = np.unique(y[~np.isnan(y)]) if _is_sign(y) else [None]
        for c in classes:
            what = f"task {name!r} has " + ("labels" if c is None else f"the label {c:+g}")
            groups.append((what, np.flatnonzero(~np.isnan(y) if c is None else y == c)))
    return groups


def _split_one(y, test_size, rng, name) -> np.ndarray:
    """(n,) whether a row of one task is tested, class by class where the labels are -1 and +1."""
    in_test = np.zeros(y.size, dtype=bool)
    for said, rows in _of_table(y[:, None], [name]):
        if rows.size < 2:
            raise DataError(
                f"{said} in a single row, which cannot be on both sides",
                term="split()",
                write_instead="leave the task out",
            )
        in_test[rng.permutation(rows)[: _n_test(test_size, rows.size)]] = True
    return in_test


def _n_test(test_size, n) -> int:
    return min(max(round(test_size * n), 1), n - 1)


def _is_sign(y) -> bool:
    return bool(np.isin(y[~np.isnan(y)], (-1.0, 1.0)).all())


def subsample(tasks: T, rows: int, random_state=None) -> T:
    """At most `rows` seeded rows (of each task, where inputs are separate), with both classes kept."""
    number = as_count(rows, "subsample(rows")
    rng = generator(random_state, "subsample")
    if not tasks.is_shared:
        return take_rows(tasks, [_sample(y, number, rng) for y in tasks.per_task(tasks.targets)])
    n = tasks.X.shape[0]
    if number >= n:
        return tasks
    # one row of every group, so that no task and no class is lost
    groups = _of_table(label_table(tasks, tasks.targets), tasks.task_names)
    needed = np.unique([rng.choice(members) for _, members in groups])
    others = rng.permutation(np.setdiff1d(np.arange(n), needed))
    return take_rows(tasks, np.sort(np.concatenate([needed, others[: max(number - needed.size, 0)]])))


def _sample(y, rows, rng) -> np.ndarray:
    if rows >= y.size:
        return np.arange(y.size)
    needed = [rng.choice(np.flatnonzero(y == c)) for c in np.unique(y)] if _is_sign(y) else []
    others = rng.permutation(np.setdiff1d(np.arange(y.size), needed))
    return np.sort(np.concatenate([np.array(needed, dtype=int), others[: max(rows - len(needed), 0)]]))


# --------------------------------------------------------------------------------------------------------------
# Rows drawn again: with replacement, of the table or within every task, or whole groups of them.


def units_of_rows(tasks: TaskData, groups, typed: str) -> np.ndarray | None:
    """(n,) the unit of every row of the shared X, or of every labelled row, task after task; None without groups."""
    units = group_ids(groups, tasks.X.shape[0] if tasks.is_shared else tasks.n_samples, typed)
    if units is not None and units.max() == 0:
        raise DataError(
            "all rows are of one group", term=typed, write_instead="give groups of fewer rows, or none"
        )
    return units


def draw_counts(tasks: TaskData, units: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """(n,) how often each row is drawn: as many rows as there are, or as many groups; within every task where inputs are separate.

    >>> from mtldsl.data.tasks import Tasks
    >>> draw_counts(Tasks.shared([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]), None, np.random.default_rng(0)).tolist()
    [0, 2, 1]
    """
    if units is not None:
        return _times(int(units.max()) + 1, rng)[units]
    if tasks.is_shared:
        return _times(tasks.X.shape[0], rng)
    return np.concatenate([_times(int(n), rng) for n in tasks.counts])


def _times(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.bincount(rng.integers(0, n, n), minlength=n)


def checked_level(level, typed: str, such_as: str = "0.95") -> float:
    """Return a share above 0 and below 1; `typed` is such as "split(test_size"."""
    share = as_float(level)
    if share is None or not 0.0 < share < 1.0:
        raise DataError(
            term=f"{typed}={quoted(level)})",
            write_instead=f"write a share between 0 and 1, such as {such_as}",
        )
    return share
