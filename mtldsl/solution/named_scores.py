"""Scores of a solution under a measure by name."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.scoring.measure import Measure, Needs
from mtldsl.scoring.measures import measure
from mtldsl.scoring.score import Score, evaluate
from mtldsl.solution.predictors import Fitted, predictor_of, require_signs
from mtldsl.tasks import Tasks
from mtldsl.tasks.derived import label_table

__all__ = ["named_score", "named_scores", "outputs_beside", "truth_of"]


def named_score(fitted: Fitted, tasks: Tasks, name: str, method: str) -> Score:
    """The score over all tasks; see `Solution.score`."""
    return tasks.apply_scoring(_named_score, fitted, name, method)


def _named_score(tasks: Tasks, fitted: Fitted, name: str, method: str) -> Score:
    typed = f"{method}(tasks, metric={name!r})"
    found = measure(name, f"{method}(tasks, metric")
    like = fitted.schema.alike(tasks, method)
    require_signs(fitted, like, typed, found.needs)
    predicted = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, found.needs, typed)
    truth, weights = truth_of(like)
    return evaluate(
        found, truth, predicted, tasks.task_names, table=like.is_shared, weights=weights, typed=typed
    )  # fmt: skip


def outputs_beside(
    fitted: Fitted, tasks: Tasks, needs: Needs, typed: str
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(labels, predictions) of every task's labelled rows; ModelError where the loss has none of the kind.

    needs : "labels" (-1 and +1, from the tuned thresholds on), "probabilities" of +1, "scores", "values"
    """
    like = fitted.schema.alike(tasks, typed)
    require_signs(fitted, like, typed, needs)
    found = predictor_of(fitted).outputs(like.X if like.is_shared else like.inputs, needs, typed)
    there = [~np.isnan(y) for y in truth_of(like)[0]]
    return [(y[rows], p[rows]) for y, p, rows in zip(truth_of(like)[0], found, there, strict=True)]


def named_scores(fitted: Fitted, tasks: Tasks, name: str, method: str) -> np.ndarray:
    """(m,) the score of every task; ModelError for a measure of whole rows."""
    found: Measure = measure(name, f"{method}(tasks, metric")
    if found.of_rows:
        raise ModelError(
            f"{name} is of all labels of a row together, so that no task has a number of its own",
            term=f"{method}(tasks, metric={name!r})",
            write_instead=f"write score(tasks, metric={name!r})",
        )
    by_task = named_score(fitted, tasks, name, method).by_task
    assert by_task is not None
    return by_task


def truth_of(tasks: Tasks) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
    """(labels, sample weights or None), one vector a task: columns of the table where inputs are shared, NaN for missing ones."""
    flat = [tasks.targets] if tasks.sample_weights is None else [tasks.targets, tasks.sample_weights]
    found = [list(label_table(tasks, one).T) if tasks.is_shared else tasks.per_task(one) for one in flat]
    return found[0], found[1] if len(found) > 1 else None
