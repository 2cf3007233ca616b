"""Scores of rows that are elsewhere: counts and sums from every part, in one pass; and predictions that stay there.

A measure of labels is a function of how often which label was predicted for which, so it is exact from four counts a task; one of numbers,
of five sums; the log loss and the Brier score are means, as are measures of whole rows. What looks at the order of all scores of a task takes
them to one worker: `mtldsl.solution.ranked_elsewhere`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.atoms.losses.structured_hinge import as_metrics, metrics_of_tasks
from mtldsl.atoms.metrics import FScore, Metric
from mtldsl.errors import DataError, ModelError
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.measures import measure
from mtldsl.scoring.score import Score, mean_score
from mtldsl.solution.asked import Asked, asked_of
from mtldsl.solution.predictors import (
    Fitted,
    TaskByTask,
    loss_of,
    predictor_class,
    probabilities,
)
from mtldsl.solution.ranked_elsewhere import best_by_task, measure_by_task, measure_of_rows, metrics_by_task
from mtldsl.tasks.distributed.sums import TaskSum

__all__ = ["named_elsewhere", "score_elsewhere", "scores_elsewhere", "thresholds_elsewhere"]

#: cells of a task's table, each counted and weighed: labels, and what was predicted
_Y, _P = np.array([1.0, 1.0, -1.0, -1.0]), np.array([1.0, -1.0, 1.0, -1.0])


def sums_of(part, asked: Asked) -> TaskSum:
    """(k, 2, q) sums of its tasks: of ones, then of sample weights."""
    tasks, of = part.tasks, part.tasks.task_of
    y, z = tasks.targets, asked.scores(part)
    constant = asked.constant[part.which][of]
    if asked.needs == "labels":
        up, is_up = asked.labels(part, z), y > 0
        terms = [is_up & up, is_up & ~up, ~is_up & up, ~is_up & ~up]
    elif asked.needs == "values":
        r = y - np.where(np.isnan(constant), loss_of(asked.loss).decide(z), constant)
        terms = [np.ones_like(r), r, r * r, np.abs(r), (y - asked.centre[part.which, 0][of]) ** 2]
    else:
        p = np.where(np.isnan(constant), probabilities(asked.loss, z), (constant + 1.0) / 2.0)
        tiny = np.finfo(float).eps  # as scikit-learn does
        right = np.clip(np.where(y > 0, p, 1.0 - p), tiny, 1.0 - tiny)
        terms = [np.ones_like(p), -np.log(right), (p - (y > 0)) ** 2]
    s = tasks.sample_weights
    both = np.stack([np.stack(terms)] * 2).astype(float)
    if s is not None and asked.needs == "values":
        both[1, 4] = (y - asked.centre[part.which, 1][of]) ** 2
    both[1] *= 1.0 if s is None else s
    return TaskSum(part.which, np.moveaxis(np.add.reduceat(both, tasks.offsets[:-1], axis=2), 2, 0))


def _is_of_sums(by: Measure) -> bool:
    metric = getattr(by, "metric", None)
    if metric is not None:
        return _is_of_counts(metric)
    return by.needs != "scores"


def _is_of_counts(metric: Metric) -> bool:
    """Whether four counts tell it: not where it looks at orders, nor where a class of one's own has a `score` of its own."""
    names = ("score", "score_of_counts")
    score, of_counts = (next(kind for kind in type(metric).__mro__ if name in vars(kind)) for name in names)
    return metric.labellings and not metric.scored_by_order and issubclass(of_counts, score)


def score_elsewhere(
    fitted: Fitted, tasks: Any, by: Measure, typed: str, learned=None, constant=None
) -> Score:
    """The measure of all tasks, in one pass over their rows; of rankings, beside an exchange of scores.

    learned  : (m,) which tasks the solution is of; None: all
    constant : (m,) the label that is predicted for the others, NaN for none
    """
    if by.needs == "values" and fitted.loss["labels"] == "sign":
        raise ModelError(
            f"{fitted.loss['word']} predicts labels, and this measure is of numbers",
            term=typed,
            write_instead="write a measure of labels, such as metric='accuracy'",
        )
    if by.needs == "probabilities":
        probabilities(fitted.loss, np.zeros(1))  # before the rows are looked at
    if by.needs != "values":
        _require_signs(tasks, typed)
    metric = getattr(by, "metric", None)
    if metric is not None and tasks.is_weighted:
        raise DataError(
            "these tasks have sample weights, and a metric counts samples", term=by.name, write_instead="write a name, such as metric='f1'"
        )  # fmt: skip
    asked = asked_of(fitted, tasks, by.needs, learned, constant)
    known = np.ones(tasks.n_tasks, bool) if learned is None else learned.copy()
    if constant is not None:
        known |= ~np.isnan(constant)
    if by.of_rows:
        return measure_of_rows(tasks, by, asked, known, typed)
    if not _is_of_sums(by):
        return mean_score(np.where(known, measure_by_task(tasks, by, asked), np.nan), tasks.task_names)
    sums = tasks.parts.run(sums_of, asked).of_all(tasks.n_tasks)[:, 1]
    if by.needs == "labels":
        tables = [_of_table(by, metric, table, typed) if there else np.nan for table, there in zip(sums, known, strict=True)]  # fmt: skip
        if by.average == "pooled":
            return Score(_of_table(by, metric, sums[known].sum(axis=0), typed), np.array(tables), [], tasks.n_tasks)  # fmt: skip
        weights = sums[:, 0] + sums[:, 1] if by.average == "support" else None
        return mean_score(np.array(tables), tasks.task_names, weights)
    found = _MEANS[by.name](*sums.T)
    two = tasks.label_facts.distinct > 1
    return mean_score(np.where(known & (two | (by.defined != "two")), found, np.nan), tasks.task_names)


def _nmse(s, r, rr, a, c):
    with np.errstate(divide="ignore", invalid="ignore"):
        return rr / c


def _unexplained(s, r, rr, a, c):
    with np.errstate(divide="ignore", invalid="ignore"):
        return (rr - r * r / s) / c


#: (m,) sums of weights, residuals, their squares, their absolute values, squares of the labels around their mean -> (m,) scores
_MEANS: dict[str, Any] = {
    "mse": lambda s, r, rr, a, c: rr / s,
    "mae": lambda s, r, rr, a, c: a / s,
    "nmse": _nmse,
    "r2": lambda *sums: 1.0 - _nmse(*sums),
    "explained_variance": lambda *sums: 1.0 - _unexplained(*sums),
    "log_loss": lambda s, log, squares: log / s,
    "brier": lambda s, log, squares: squares / s,
}


def _of_table(by: Measure, metric: Metric | None, table: np.ndarray, typed: str) -> float:
    """From [right positives, missed ones, wrong ones, right negatives], as of so many rows."""
    there = table > 0
    if not by.is_defined(_Y[there]):
        return float("nan")
    if metric is None:
        return by.of_task(_Y[there], _P[there], table[there])
    counts = [round(one) for one in table]
    positives, negatives = counts[0] + counts[1], counts[2] + counts[3]
    metrics_of_tasks(metric, ["of these rows"], [(positives, negatives)], "score")
    return metric.score_of_counts(counts[2], counts[1], positives, negatives)


def scores_elsewhere(fitted: Fitted, tasks: Any, metric, method: str) -> np.ndarray:
    """`Solution.scores` for None and for metrics."""
    typed = f"{method}(tasks)"
    like = _alike(fitted, tasks, method)
    if metric is None:
        classes = fitted.loss["labels"] == "sign" or fitted.thresholds is not None
        if classes:
            _require_signs(like, typed)
        sums = _summed(fitted, like, "labels" if classes else "values")
        return (sums[:, 0] + sums[:, 3]) / sums.sum(axis=1) if classes else _r2(sums)
    each = _metrics_of(like, metric, typed)
    if not all(map(_is_of_counts, each)):
        return metrics_by_task(like, each, asked_of(fitted, like, "scores"))
    tables = np.rint(_summed(fitted, like, "labels")).astype(int)
    return np.array(
        [one.score_of_counts(t[2], t[1], t[0] + t[1], t[2] + t[3]) for one, t in zip(each, tables.tolist(), strict=True)]
    )  # fmt: skip


def thresholds_elsewhere(fitted: Fitted, tasks: Any, metric, typed: str) -> np.ndarray:
    """(m,) see `Solution.tune_threshold`: what is found on all scores of a task, on one worker."""
    like = _alike(fitted, tasks, "tune_threshold")
    TaskByTask(fitted).require_labels_predicted(typed)
    chosen = fitted.loss["parameters"].get("metric", FScore()) if metric is None else metric
    return best_by_task(like, _metrics_of(like, chosen, typed), asked_of(fitted, like, "scores"), typed)


def _metrics_of(tasks: Any, metric, typed: str) -> list[Metric]:
    """One a task, as in `checked_metrics`."""
    given = as_metrics(metric, typed)
    tasks.require_labels("sign", typed)
    if tasks.is_weighted:
        raise DataError(
            "these tasks have sample weights, and a metric counts samples",
            term=typed,
            write_instead="repeat rows instead",
        )
    sizes = list(zip(tasks.positives.tolist(), (tasks.counts - tasks.positives).tolist(), strict=True))
    fits = metrics_of_tasks(given, tasks.task_names, sizes, typed)
    return list(fits) if isinstance(fits, tuple) else [fits] * tasks.n_tasks


def named_elsewhere(fitted: Fitted, tasks: Any, name: str, method: str) -> Score:
    """`Solution.score` for a measure by name."""
    found = measure(name, f"{method}(tasks, metric")
    like = _alike(fitted, tasks, method)
    return score_elsewhere(fitted, like, found, f"{method}(tasks, metric={name!r})")


def _r2(sums) -> np.ndarray:
    found = _MEANS["r2"](*sums.T)
    return np.where(sums[:, 4] > 0, found, np.nan)


def _alike(fitted: Fitted, tasks: Any, method: str) -> Any:
    if predictor_class(fitted.loss) is not TaskByTask:
        raise DataError(
            f"{fitted.loss['word']} predicts whole labellings, and these rows are in parts elsewhere", term=f"{method}(tasks)",
            write_instead="write score(tasks.subsample(100_000))",
        )  # fmt: skip
    return fitted.schema.alike(tasks, method)


def _require_signs(tasks: Any, typed: str) -> None:
    """Labels -1 and +1; tasks of one class pass, as in `require_kind`."""
    if not tasks.label_facts.are("sign").all():
        tasks.require_labels("sign", typed)


def _summed(fitted: Fitted, tasks: Any, needs: str) -> np.ndarray:
    """(m, q), see `sums_of`, without sample weights."""
    return tasks.parts.run(sums_of, asked_of(fitted, tasks, needs)).of_all(tasks.n_tasks)[:, 0]
