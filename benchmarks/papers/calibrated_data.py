"""Data of the calibrated experiment: partitions of School and SARCOS, their standardisation, and the error that its tables show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl import Tasks, datasets

__all__ = ["FOLDS", "GIVEN", "SIZES", "Preparation", "folds", "nmse", "part", "pooled_nmse", "sizes_of"]

#: The rows to train on: for School, per cent of each school's rows; for SARCOS, their number.
SIZES = {"school": (10, 20, 30), "sarcos": (100, 200, 300)}

FOLDS = 5

#: SARCOS' rows follow each other in time: every fifth of so many blocks of neighbours is tested, the training rows are of the others.
N_BLOCKS = 15


#: Tasks of the user, by name.
GIVEN: dict[str, Tasks] = {}


def sizes_of(data: str) -> tuple[int, ...]:
    """What the training parts are called by: rows for SARCOS, else per cent of the rows."""
    return SIZES.get(data, (20, 40, 60))


def part(data: str, size: int, number: int) -> tuple[Tasks, Tasks]:
    """(training, test) rows of a partition: the same number, the same rows in every process."""
    rng = np.random.default_rng([size, number])
    if data in GIVEN:
        return _given(GIVEN[data], size, rng)
    return _school(size, rng) if data == "school" else _sarcos(size, number, rng)


def _given(tasks, percent, rng):
    """Rows of shared inputs at random, or rows of every task; at least two to train and two to test on."""
    if not tasks.is_shared:
        return _each_task(tasks, percent, rng)
    order, kept = rng.permutation(len(tasks.X)), round(percent * len(tasks.X) / 100)
    return tasks.take_rows(np.sort(order[:kept])), tasks.take_rows(np.sort(order[kept:]))


def _school(percent, rng):
    return _each_task(datasets.load_school(), percent, rng)


def _each_task(tasks, percent, rng):
    train, test = [], []
    for count in tasks.counts:
        order, kept = rng.permutation(count), min(max(round(percent * count / 100), 2), count - 2)
        if count < 4:
            raise SystemExit(f"a task has {count} rows; 4 are needed to train and to test on")
        train.append(np.sort(order[:kept]))
        test.append(np.sort(order[kept:]))
    return tasks.take_rows(train), tasks.take_rows(test)


def _sarcos(rows, number, rng):
    tasks = datasets.load_sarcos()
    blocks = np.array_split(np.arange(tasks.X.shape[0]), N_BLOCKS)
    test = np.concatenate(blocks[number % 5 :: 5])
    others = np.setdiff1d(np.arange(tasks.X.shape[0]), test)
    return tasks.take_rows(np.sort(rng.choice(others, rows, replace=False))), tasks.take_rows(test)


def folds(tasks: Tasks, seed: int, count: int = FOLDS) -> list[tuple[Tasks, list[int], Tasks]]:
    """(training rows, tasks that are validated, their validation rows) of every fold. Shared inputs: fifths of neighbouring rows; separate ones: every task's rows dealt at random.

    A task of two rows keeps one in every training part, and is validated in two folds only.
    """
    rng = np.random.default_rng([seed, 5])
    if tasks.is_shared:
        held = np.array_split(np.arange(tasks.X.shape[0]), count)
        everywhere, every_row = list(range(tasks.n_tasks)), np.arange(tasks.X.shape[0])
        return [
            (tasks.take_rows(np.setdiff1d(every_row, rows)), everywhere, tasks.take_rows(rows))
            for rows in held
        ]
    fold_of = [(rng.permutation(n) + rng.integers(count)) % count for n in tasks.counts]
    found = []
    for k in range(count):
        seen = [i for i, of_task in enumerate(fold_of) if (of_task == k).any()]
        train = tasks.take_rows([np.flatnonzero(of_task != k) for of_task in fold_of])
        validation = tasks.select(seen).take_rows([np.flatnonzero(fold_of[i] == k) for i in seen])
        found.append((train, seen, validation))
    return found


@dataclass(frozen=True)
class Preparation:
    """Inputs in standard deviations of the training rows (all tasks' together), labels about a centre in a unit of theirs.

    separate inputs (School)  : centre and unit of the labels are those of all tasks' training rows together
    shared inputs (SARCOS)    : every task has a centre of its own; the unit is its standard deviation ("a unit a task") or that of
                                all labels about their centres ("one unit"), which leaves the tasks' scales as they are
    A column that is constant in the training rows stays as it is: School's column of ones is an intercept, penalised as the rest.
    """

    mean: np.ndarray
    scale: np.ndarray
    center: np.ndarray  # (m,)
    unit: np.ndarray  # (m,)
    deviation: np.ndarray  # (m,) of the labels: what errors are measured in while choosing

    @classmethod
    def of(cls, tasks: Tasks, way: str) -> Preparation:
        X = tasks.X if tasks.is_shared else np.vstack(list(tasks.inputs))
        mean, scale = X.mean(axis=0), X.std(axis=0)
        constant = np.ptp(X, axis=0) == 0
        mean[constant], scale[constant] = 0.0, 1.0
        labels = tasks.per_task(tasks.targets)
        if not tasks.is_shared:
            ones = np.ones(tasks.n_tasks)
            deviation = tasks.targets.std() * ones
            return cls(mean, scale, tasks.targets.mean() * ones, deviation, deviation)
        center, deviation = np.array([y.mean() for y in labels]), np.array([y.std() for y in labels])
        together = np.full(tasks.n_tasks, np.sqrt(np.mean(deviation**2)))
        return cls(mean, scale, center, deviation if way == "a unit a task" else together, deviation)

    def apply(self, tasks: Tasks) -> Tasks:
        """The tasks as the models see them."""
        labels = tasks.per_task(tasks.targets)
        scaled = [(y - c) / u for y, c, u in zip(labels, self.center, self.unit, strict=True)]
        if tasks.is_shared:
            return Tasks.shared((tasks.X - self.mean) / self.scale, np.column_stack(scaled))
        return Tasks.separate([(X - self.mean) / self.scale for X in tasks.inputs], scaled)

    def predict(self, W: np.ndarray, tasks: Tasks, which=None) -> list[np.ndarray]:
        """Predictions of a task's rows each, in the units of the labels as published; `which`: the tasks that these are of all."""
        which = range(W.shape[1]) if which is None else which
        return [
            ((X - self.mean) / self.scale) @ W[:, i] * self.unit[i] + self.center[i]
            for i, X in zip(which, tasks.inputs, strict=True)
        ]


def nmse(predictions: list, tasks: Tasks) -> np.ndarray:
    """(m,) mean squared error of every task over the variance of its labels, both on these rows."""
    pairs = zip(predictions, tasks.per_task(tasks.targets), strict=True)
    return np.array([np.mean((z - y) ** 2) / np.var(y) for z, y in pairs])


def pooled_nmse(predictions: list, tasks: Tasks) -> float:
    """Squared error over the squared deviations of all tasks' labels about their common mean."""
    y = tasks.targets
    return float(np.sum((np.concatenate(predictions) - y) ** 2) / np.sum((y - y.mean()) ** 2))
