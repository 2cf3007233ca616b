"""Folds: rows to learn on and rows to score, which tasks can be learned there, and how a solution on them is scored."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.data.derived import filled_anew, in_units_of, label_table, rows_filled, scaled_anew
from mtldsl.data.labels import OneClassWarning, listed_tasks
from mtldsl.data.splits import rows_of_parts
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError, MTLError
from mtldsl.normal_form.statement import Statement
from mtldsl.solution.measures import Measure, Needs
from mtldsl.solution.predictors import predictor_of, require_suited
from mtldsl.solution.score import Score, evaluate
from mtldsl.solution.solution import Solution

#: what becomes of a task whose training labels are all of one class
ONE_CLASS = ("skip", "constant", "error")


def data_of(statement: Statement, typed: str) -> Tasks:
    """The Tasks of a model, all of them where every loss has tasks of its own. ModelError where its losses are of several otherwise."""
    if statement.shares is not None:
        return statement.data
    found = {
        id(term.source or term.tasks): term.source or term.tasks
        for term in statement.objective.terms
        if term.is_loss
    }
    if len(found) > 1:
        raise ModelError(
            f"this model uses {len(found)} different Tasks, so it is not clear which to divide", term=typed
        )
    (tasks,) = found.values()
    assert tasks is not None
    return tasks


def needs_two_classes(statement: Statement) -> bool:
    """Tell whether a loss refuses tasks of one class."""
    return any(
        term.is_loss and getattr(term.atom, "labels", "") in ("sign", "classes")
        for term in statement.objective.terms
    )


def model_on_tasks(problem: Any, train: Tasks, learned: np.ndarray):
    """The model on these tasks, some of its own. ModelError where it cannot be without the others."""
    try:
        return problem.with_tasks(train, some=not learned.all())
    except MTLError as error:
        if learned.all():
            raise
        raise ModelError(
            f"tasks of one class would have to be left out of a fold, and this model cannot be without a task: {error}",
            write_instead="write fewer folds, or leave these tasks out of the whole",
        ) from error


def learnable(tasks: Tasks, kept: np.ndarray, two: bool) -> tuple[np.ndarray, np.ndarray]:
    """((m,) whether each task can be learned on the rows kept, (m,) its only label there, NaN without a label or with several).

    kept : how often each row is there: of the shared X, or of the labelled rows, task after task
    """
    m, only = tasks.n_tasks, np.full(tasks.n_tasks, np.nan)
    can = np.zeros(m, dtype=bool)
    for i, y in enumerate(_labels(tasks, kept > 0)):
        same = y.size > 0 and bool((y == y[0]).all())
        can[i] = y.size > 0 and not (two and same)
        only[i] = y[0] if same else np.nan
    return can, only


def _labels(tasks: Tasks, kept: np.ndarray) -> list[np.ndarray]:
    """The labels of every task in the rows kept."""
    if not tasks.is_shared:
        return [y[rows] for y, rows in zip(tasks.per_task(tasks.targets), tasks.per_task(kept), strict=True)]
    table = label_table(tasks, tasks.targets)[kept]
    return [y[~np.isnan(y)] for y in table.T]


def take_rows(tasks: Tasks, kept: np.ndarray, can: np.ndarray) -> Tasks:
    """Some of the tasks in some of their rows, each as often as `kept` says; inputs that were missing are filled in from these rows."""
    some = tasks if can.all() else tasks.select(can)
    if tasks.is_shared:
        return filled_anew(some.take_rows(np.repeat(np.arange(len(kept)), kept)))
    rows = [np.repeat(np.arange(len(part)), part) for part in tasks.per_task(kept)]
    return filled_anew(some.take_rows([one for one, there in zip(rows, can, strict=True) if there]))


@dataclass(frozen=True)
class Fold:
    """One division of the rows. Those to learn on are copied where they are asked for, in `train`, so that many parts need no room.

    kept      : how often each row is learned on, as in `learnable`
    learned   : (m,) which tasks can be learned there
    constant  : (m,) the class that is predicted for a task that is not learned, NaN where it is not predicted
    held_out  : which rows to score, a mask of the same rows
    n_tested  : (m,) how many labels these have of every task
    """

    kept: np.ndarray
    learned: np.ndarray
    constant: np.ndarray
    held_out: np.ndarray
    n_tested: list[int]
    names: tuple[str, ...]

    def train(self, tasks: Tasks) -> Tasks:
        """The tasks that can be learned, in the rows to learn on."""
        return scaled_anew(take_rows(tasks, self.kept, self.learned))

    @staticmethod
    def count(tasks: Tasks, made_of_them: Tasks) -> None:
        """Count passes over a side as passes over the rows of all tasks; of rows in memory none are counted."""

    @property
    def left_out(self) -> list[str]:
        return [name for name, there in zip(self.names, self.learned, strict=True) if not there]

    def identity(self, tasks: Tasks) -> str:
        """A hash of all labels and of the rows on either side: equal for models that learn the same labels on the same fold."""
        found = hashlib.sha256()
        for array in (self.kept, self.held_out, tasks.targets):
            found.update(f"{array.dtype.kind} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def score(self, tasks: Tasks, solution: Solution, measure: Measure, typed: str) -> Score:
        """The measure of a solution that was learned on `train`, over all tasks in the rows to score."""
        require_suited(solution, tasks if self.learned.all() else tasks.select(self.learned), typed, measure)
        truth, predicted, weights = self.outputs(tasks, solution, measure.needs, typed)
        return evaluate(
            measure, truth, predicted, self.names, table=tasks.is_shared, weights=weights, typed=typed
        )

    def outputs(self, tasks: Tasks, solution: Solution, needs: Needs, typed: str):
        """(labels, what such a solution says of them, sample weights or None), a vector a task, of the rows to score."""
        found = predictor_of(solution).outputs(self.inputs(tasks, solution), needs, typed)
        return self.of_all_tasks(tasks, found, needs)

    def inputs(self, tasks: Tasks, solution: Solution) -> Any:
        """The inputs of the rows to score, as the weights of such a solution take them: a table, or one for every task that is learned."""
        rows = rows_of_parts(tasks, self.held_out)
        inputs: Any = rows_filled(tasks, rows, solution.schema.fill)
        if tasks.is_shared:
            return in_units_of(inputs, tasks.scaling, solution.schema.scaling)
        return [
            in_units_of(X, tasks.scaling, solution.schema.scaling)
            for X, there in zip(inputs, self.learned, strict=True)
            if there
        ]

    def of_all_tasks(self, tasks: Tasks, answers: Sequence[np.ndarray], needs: Needs):
        """(labels, answers, sample weights or None), a vector a task, of the rows to score; answers : of the tasks that are learned."""
        rows, found = rows_of_parts(tasks, self.held_out), iter(answers)
        truth = _of_rows(tasks, tasks.targets, rows)
        weights = None if tasks.sample_weights is None else _of_rows(tasks, tasks.sample_weights, rows)
        constants = (self.constant + 1.0) / 2.0 if needs == "probabilities" else self.constant
        predicted = [
            next(found) if there else np.full(len(y), constant)
            for there, constant, y in zip(self.learned, constants, truth, strict=True)
        ]
        return truth, predicted, weights


def _of_rows(tasks: Tasks, flat: np.ndarray, rows) -> list[np.ndarray]:
    """One vector a task; NaN where a label of the table is missing."""
    if tasks.is_shared:
        return list(label_table(tasks, flat)[rows].T)
    return [y[r] for y, r in zip(tasks.per_task(flat), rows, strict=True)]


def make_part(
    tasks: Tasks, train: np.ndarray, test: np.ndarray, two: bool, one_class: str, typed: str
) -> Fold:
    """train, test : masks of the rows of the shared X, or of the labelled rows, task after task. DataError where no task is left, and
    for a task of one class where that is asked for."""
    can, only = learnable(tasks, train.astype(int), two)
    names = tasks.task_names
    if not can.all() and one_class == "error":
        left_out = [name for name, there in zip(names, can, strict=True) if not there]
        raise DataError(
            f"{typed} has labels of one class alone, or none, of the tasks {listed_tasks(left_out)}",
            write_instead="write fewer folds, leave these tasks out, or write one_class='skip' or 'constant'",
        )
    if not can.any():
        raise DataError(f"{typed} has two classes of no task", write_instead="write fewer folds")
    constant = np.where(~can & (one_class == "constant"), only, np.nan)
    tested = [len(y) for y in _labels(tasks, test)]
    return Fold(train.astype(np.int8), can, constant, test, tested, tuple(names))


def warn_of(parts: Sequence[Fold], one_class: str, typed: str, stacklevel: int = 4) -> list[str]:
    """A line for every part in which tasks are not learned; a OneClassWarning with them."""
    lines = [
        f"fold {k}: {listed_tasks(part.left_out)}" for k, part in enumerate(parts) if part.left_out
    ]  # fmt: skip
    if lines:
        shown = "; ".join(lines[:6]) + "; ..." * (len(lines) > 6)
        warnings.warn(
            f"{typed}: some training folds have labels of one class alone, or none, of a task: {shown}; one_class={one_class!r}",
            OneClassWarning,
            stacklevel=stacklevel,
        )
    return lines
