"""Folds of rows that are elsewhere: which tasks can be learned there, and how a solution is scored on the rows held out, without moving any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.score import Score
from mtldsl.solution.elsewhere import score_elsewhere
from mtldsl.solution.solution import Solution
from mtldsl.tasks.distributed.divided import Dealt, deal_folds, made
from mtldsl.tasks.distributed.facts import Facts, LabelFacts
from mtldsl.tasks.one_class import listed_tasks
from mtldsl.values.number import as_whole, quoted

__all__ = ["PartElsewhere", "parts_elsewhere"]


@dataclass(frozen=True)
class PartElsewhere:
    """One fold, as `mtldsl.analysis.parts.Part` is of rows that are here."""

    dealt: Dealt
    fold: int
    facts: tuple[Facts, Facts]
    learned: np.ndarray
    constant: np.ndarray
    n_tested: list[int]
    names: tuple[str, ...]

    def train(self, tasks: Any) -> Any:
        """The tasks that can be learned, in the rows to learn on: kept on the workers for as long as they are used."""
        index = None if self.learned.all() else np.flatnonzero(self.learned)
        keep = getattr(tasks.parts, "keep", False)
        return made(tasks, self.dealt, self.fold, False, self.facts[0], index=index, keep=keep)

    @staticmethod
    def count(tasks: Any, made_of_them: Any) -> None:
        """Passes over a side are passes over the rows of all tasks."""
        tasks.parts.passes += made_of_them.parts.passes
        tasks.parts.bytes_moved += made_of_them.parts.bytes_moved

    @property
    def left_out(self) -> list[str]:
        return [name for name, there in zip(self.names, self.learned, strict=True) if not there]

    def score(self, tasks: Any, solution: Solution, measure: Measure, typed: str) -> Score:
        """The measure of a solution that was learned on `train`, over all tasks that have rows held out."""
        there = np.flatnonzero(np.array(self.n_tested) > 0)
        index = None if there.size == tasks.n_tasks else there
        test = made(tasks, self.dealt, self.fold, True, self.facts[1], index=index, keep=False)
        learned, constant = self.learned[there], self.constant[there]
        columns = np.flatnonzero(np.isin(np.flatnonzero(self.learned), there))
        found = score_elsewhere(
            _Columns(solution, columns), test, measure, typed, learned=learned, constant=constant
        )
        self.count(tasks, test)
        if index is None or found.by_task is None:
            return found
        by_task = np.full(tasks.n_tasks, np.nan)
        by_task[there] = found.by_task
        out = [name for name, one in zip(self.names, by_task, strict=True) if np.isnan(one)]
        return Score(float(found), by_task, out, tasks.n_tasks)


class _Columns:
    """Some tasks of a solution."""

    def __init__(self, solution: Solution, columns: np.ndarray):
        self.loss, self.schema = solution.loss, solution.schema
        self.coef = solution.coef[:, columns]
        self.intercept = None if solution.intercept is None else solution.intercept[columns]
        self.thresholds = None if solution.thresholds is None else solution.thresholds[columns]


def parts_elsewhere(
    tasks: Any, folds, stratify, groups, random_state, two: bool, one_class: str, typed: str
) -> list[PartElsewhere]:
    """As `make_part` for every fold, in one pass. DataError for lists of rows, which are as long as the data."""
    if as_whole(folds) is None:
        raise DataError(
            "lists of rows are as long as the data, which are in parts elsewhere", term=f"{typed}(lam, folds={quoted(folds)})",
            write_instead="write how many folds",
        )  # fmt: skip
    dealt, found = deal_folds(tasks, folds, stratify, groups, random_state, f"{typed}(lam, folds=")
    parts = []
    for fold, (train, test) in enumerate(found):
        if train is None or test is None:
            raise DataError(f"fold {fold} has a side without rows", term=typed, write_instead="write fewer folds")  # fmt: skip
        keys = tuple(range(tasks.n_tasks))
        known, tested = LabelFacts.of(train, keys), LabelFacts.of(test, keys)
        can = (known.counts > 0) & ((known.distinct > 1) | (not two))
        left_out = [name for name, there in zip(tasks.task_names, can, strict=True) if not there]
        if left_out and one_class == "error":
            raise DataError(
                f"{typed}: training fold {fold} has labels of one class alone, or none, of the tasks {listed_tasks(left_out)}",
                write_instead="write fewer folds, leave these tasks out, or write one_class='skip' or 'constant'",
            )
        if not can.any():
            raise DataError(f"{typed}: training fold {fold} has two classes of no task", write_instead="write fewer folds")  # fmt: skip
        only = np.where((known.counts > 0) & (known.distinct < 2), known.minimum, np.nan)
        constant = np.where(~can & (one_class == "constant"), only, np.nan)
        parts.append(PartElsewhere(dealt, fold, (train, test), can, constant, tested.counts.tolist(), tuple(tasks.task_names)))  # fmt: skip
    return parts
