"""Thresholds of labels from rows that the weights were not learned on: every row is scored by the model learned on the other folds."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from mtldsl.analysis.cross_validation import fit_to
from mtldsl.analysis.parts import data_of, make_part, needs_two_classes, warn_of
from mtldsl.atoms.metrics import Metric
from mtldsl.errors import ModelError
from mtldsl.solution.solution import Solution
from mtldsl.solution.thresholds import best_threshold
from mtldsl.system.told import counted
from mtldsl.tasks.folding import fold_numbers

__all__ = ["thresholds_of_folds"]

_TYPED = "thresholds"


def thresholds_of_folds(
    problem: Any, solution: Solution, metric: Metric, *, folds: int = 5, groups=None, random_state=0, progress: bool = False, **solve_options
) -> Solution:  # fmt: skip
    """A copy of the solution whose thresholds are, for every task, the best under the metric on scores of the training rows, each by the same
    model, at the same parameters, learned on the other folds.

    On the rows that the weights were learned on scores are firmer than on new ones, so that a threshold tuned there lies too far out. A task
    that has one class only among the rows with a score keeps 0. ModelError for losses that do not predict labels one by one.
    Ctrl-C raises KeyboardInterrupt: half the folds say nothing.
    """
    if solution.loss["labels"] != "sign":
        raise ModelError(
            f"{solution.loss['word']} does not score labels one by one, so that there is nothing to cut",
            term=_TYPED, write_instead="leave [thresholds] out",
        )  # fmt: skip
    tasks = data_of(problem, _TYPED)
    numbers = fold_numbers(tasks, folds, groups=groups, random_state=random_state)
    two = needs_two_classes(problem)
    parts = [make_part(tasks, numbers != k, numbers == k, two, "skip", f"{_TYPED}: training fold {k}") for k in range(folds)]  # fmt: skip
    warn_of(parts, "skip", _TYPED)
    found: list[list[tuple[np.ndarray, ...]]] = [[] for _ in tasks.task_names]
    with counted("tuning thresholds, fold", len(parts), progress) as tell:
        for part in parts:
            model = copy.deepcopy(problem.with_tasks(tasks), {id(tasks): tasks})
            own = fit_to(model, part.train(tasks), part.learned).solve(**solve_options)
            if own.interrupted:
                raise KeyboardInterrupt
            truth, scores, weights = part.outputs(tasks, own, "scores", _TYPED)
            for i, of_task in enumerate(found):
                w = np.ones(len(truth[i])) if weights is None else weights[i]
                of_task.append((scores[i], truth[i], w))
            tell(own.status)
    cuts = np.zeros(tasks.n_tasks)
    for i, (name, of_task) in enumerate(zip(tasks.task_names, found, strict=True)):
        z, y, w = (np.concatenate(part) for part in zip(*of_task, strict=True))
        known = ~np.isnan(z) & ~np.isnan(y)
        if len(np.unique(y[known])) == 2:
            weights = None if (w[known] == 1.0).all() else w[known]
            cuts[i] = best_threshold(z[known], y[known], metric, _TYPED, name, weights)
    return replace(solution, thresholds=cuts)
