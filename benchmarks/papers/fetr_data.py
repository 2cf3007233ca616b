"""Data of the FETR experiment: contiguous blocks of SARCOS, folds of School, and the errors that its Table 1 shows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mtldsl import Tasks, datasets

__all__ = ["N_BLOCKS", "Part", "errors", "given_part", "sarcos_part", "school_part", "thinned"]

#: SARCOS' rows follow each other in time; blocks of neighbours stay together.
N_BLOCKS = 15

FOLDS = 10


@dataclass(frozen=True)
class Part:
    """Rows to train on, to choose on, to test on, those that the chosen setting is fitted on, and every task's variance."""

    train: Tasks
    validation: Tasks
    test: Tasks
    final: Tasks
    variances: (
        np.ndarray
    )  # (m,) over all rows of a task: a fold of School has 2 to 25 rows a task, too few to tell


def sarcos_part(number: int) -> Part:
    """Partition number 0 to 4 of the 4,449-row subsample: 9 blocks to train on, 3 to choose on, 3 to test; every row is tested once."""
    tasks = datasets.load_sarcos()
    blocks = np.array_split(np.arange(tasks.X.shape[0]), N_BLOCKS)
    test, validation = blocks[number % 5 :: 5], blocks[(number + 2) % 5 :: 5]
    held = np.concatenate([*test, *validation])
    train = tasks.take_rows(np.setdiff1d(np.arange(tasks.X.shape[0]), held))
    # not refitted with the validation rows: networks need them to stop, and all methods shall see the same rows
    return Part(
        train,
        tasks.take_rows(np.concatenate(validation)),
        tasks.take_rows(np.concatenate(test)),
        train,
        _variances(tasks),
    )


def thinned(part: Part, rows: int) -> Part:
    """So many of the training rows of shared inputs, evenly spaced; the same rows to choose and to test on."""
    kept = np.linspace(0, part.train.X.shape[0] - 1, rows).round().astype(int)
    train = part.train.take_rows(kept)
    return replace(part, train=train, final=train)


def school_part(number: int) -> Part:
    """Fold number 0 to 9: each school's rows, shuffled once, in ten parts; one to test, the next to choose on, eight to train on."""
    tasks = datasets.load_school()
    rng = np.random.default_rng(0)
    parts = [np.array_split(rng.permutation(count), FOLDS) for count in tasks.counts]
    test, validation = number % FOLDS, (number + 1) % FOLDS

    def rows(*kept):
        return tasks.take_rows([np.sort(np.concatenate([of_task[k] for k in kept])) for of_task in parts])

    others = [k for k in range(FOLDS) if k not in (test, validation)]
    return Part(rows(*others), rows(validation), rows(test), rows(*others, validation), _variances(tasks))


def given_part(tasks: Tasks, number: int) -> Part:
    """A partition of tasks of the user: of shared inputs' rows, or of every task's rows, 60 % to train on, 20 % to choose on, 20 % to test."""
    rng = np.random.default_rng([number, 60])
    if tasks.is_shared:
        parts = _thirds(len(tasks.X), rng)
        train, validation, test = (tasks.take_rows(rows) for rows in parts)
        return Part(train, validation, test, train, _variances(tasks))
    parts = [_thirds(count, rng) for count in tasks.counts]
    train, validation, test = (tasks.take_rows([of_task[k] for of_task in parts]) for k in range(3))
    both = tasks.take_rows([np.sort(np.concatenate(of_task[:2])) for of_task in parts])
    return Part(train, validation, test, both, _variances(tasks))


def _thirds(count: int, rng) -> list[np.ndarray]:
    """(60 %, 20 %, 20 %) of the rows, at least one in each."""
    if count < 5:
        raise SystemExit(f"a task has {count} rows; 5 are needed to train, to choose and to test")
    held = max(1, round(0.2 * count))
    order = rng.permutation(count)
    return [np.sort(order[2 * held :]), np.sort(order[:held]), np.sort(order[held : 2 * held])]


def _variances(tasks: Tasks) -> np.ndarray:
    return np.array([y.var() for y in tasks.per_task(tasks.targets)])


def errors(predictions: list, tasks: Tasks) -> np.ndarray:
    """Mean squared error of every task, in the units of its labels squared."""
    pairs = zip(predictions, tasks.per_task(tasks.targets), strict=True)
    return np.array([np.mean((z - y) ** 2) for z, y in pairs])
