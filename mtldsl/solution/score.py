"""Score of predictions over tasks: a number that says what it is the mean of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtldsl.atoms.losses.structured_hinge import as_metrics, metrics_of_tasks
from mtldsl.atoms.metrics.contingency import FScore
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.measures import Measure, measure

# --------------------------------------------------------------------------------------------------------------
# Measures of rows that are drawn again and again: one product for all samples, where calling scikit-learn for each would take minutes.

_EPS = float(np.finfo(float).eps)

#: (labels (n,), predictions (n,), how often each row was drawn (k, n)) -> (k,), NaN for samples without a number
Counted = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def counted_measures(by: Measure) -> Counted | None:
    """Return what `by.of_task` says of rows that stand there as often as they are counted; None for a measure that is not known here.

    >>> from mtldsl.solution.measures import measure
    >>> y, p = np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, -1.0])
    >>> counted_measures(measure("accuracy"))(y, p, np.array([[1, 1, 1], [3, 0, 0]]))
    array([0.333..., 1.        ])
    """
    return _BY_NAME.get(by.name) if by.average == "mean" and not by.of_rows else None


def _mean_of(of_rows: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Counted:
    """The mean over rows of a function of labels and predictions."""
    return lambda y, p, times: _share(times @ of_rows(y, p), times.sum(axis=1))


def _of_counts(of: Callable[..., np.ndarray]) -> Counted:
    """A function of how many rows are positive, negative, positives labelled +1, and negatives labelled +1."""

    def counted(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
        positive, chosen = y > 0, p > 0
        P, N = times @ positive, times @ ~positive
        return of(P, N, times @ (positive & chosen), times @ (~positive & chosen))

    return counted


def _precision(P, N, right, wrong) -> np.ndarray:
    chosen = right + wrong
    return np.where(P > 0, np.where(chosen > 0, _share(right, chosen), 0.0), np.nan)


def _f1(P, N, right, wrong) -> np.ndarray:
    return np.where(P > 0, _share(2.0 * right, P + right + wrong), np.nan)


def _roc_auc(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The share of pairs (positive, negative) in the right order, equal scores one half."""
    order = np.argsort(p, kind="stable")
    times, y, p = times[:, order], y[order], p[order]
    starts = np.flatnonzero(np.r_[True, p[1:] != p[:-1]])  # rows of one score stand together
    above = np.add.reduceat(times * (y > 0), starts, axis=1).astype(float)
    below = np.add.reduceat(times * (y <= 0), starts, axis=1).astype(float)
    lower = np.cumsum(below, axis=1) - below
    return _share((above * (lower + 0.5 * below)).sum(axis=1), above.sum(axis=1) * below.sum(axis=1))


def _r2(y: np.ndarray, p: np.ndarray, times: np.ndarray) -> np.ndarray:
    n, centred = times.sum(axis=1), y - y.mean()  # less is lost where squares are subtracted
    whole = times @ centred**2 - _share((times @ centred) ** 2, n)
    highest = np.where(times > 0, y, -np.inf).max(axis=1)
    lowest = np.where(times > 0, y, np.inf).min(axis=1)
    return np.where(highest > lowest, 1.0 - _share(times @ (y - p) ** 2, whole), np.nan)


def _log_loss(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    return -np.log(np.clip(np.where(y > 0, p, 1.0 - p), _EPS, 1.0 - _EPS))


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, NaN where there is nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, np.nan)


_BY_NAME: dict[str, Counted] = {
    "accuracy": _mean_of(lambda y, p: (y > 0) == (p > 0)),
    "mse": _mean_of(lambda y, p: (y - p) ** 2),
    "mae": _mean_of(lambda y, p: np.abs(y - p)),
    "brier": _mean_of(lambda y, p: ((y > 0) - p) ** 2),
    "log_loss": _mean_of(_log_loss),
    "f1": _of_counts(_f1),
    "precision": _of_counts(_precision),
    "recall": _of_counts(lambda P, N, right, wrong: _share(right, P)),
    "balanced_accuracy": _of_counts(
        lambda P, N, right, wrong: 0.5 * (_share(right, P) + _share(N - wrong, N))
    ),
    "roc_auc": _roc_auc,
    "r2": _r2,
    "nmse": lambda y, p, times: 1.0 - _r2(y, p, times),
}


class NotedNumber(float):
    """A number that prints with its note, "" where there is nothing to say."""

    note: Any

    def __repr__(self) -> str:
        return float.__repr__(self) + (f" ({self.note})" if self.note else "")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)


class Score(NotedNumber):
    """A number with `by_task` (m,), NaN where a task has none; `left_out`, the names of these tasks. by_task is None for measures of
    whole rows.

    >>> mean_score(np.array([0.5, np.nan, 0.7]), ["a", "b", "c"])
    0.6 (1 of 3 tasks left out: 'b')
    """

    by_task: np.ndarray | None
    left_out: tuple[str, ...]
    n_tasks: int

    def __new__(
        cls, value: float, by_task: np.ndarray | None = None, left_out: Sequence[str] = (), n_tasks: int = 0
    ):
        self = super().__new__(cls, value)
        self.by_task, self.left_out, self.n_tasks = by_task, tuple(left_out), n_tasks
        return self

    def __getnewargs__(self):
        return float(self), self.by_task, self.left_out, self.n_tasks

    @property
    def note(self) -> str:
        """Which tasks are not in the number, "" where all are."""
        if not self.left_out:
            return ""
        names = ", ".join(map(repr, self.left_out[:4])) + ", ..." * (len(self.left_out) > 4)
        return f"{len(self.left_out)} of {self.n_tasks} tasks left out: {names}"


def mean_score(by_task: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None) -> Score:
    """The mean of the tasks that have a number; NaN where none has."""
    has = ~np.isnan(by_task)
    left_out = [name for name, one in zip(names, has, strict=True) if not one]
    weights = None if weights is None else weights[has]
    value = float(np.average(by_task[has], weights=weights)) if has.any() else float("nan")
    return Score(value, by_task, left_out, len(by_task))


def evaluate(
    measure: Measure,
    truth: Sequence[np.ndarray],
    predicted: Sequence[np.ndarray],
    names: Sequence[str],
    *,
    table: bool,
    weights: Sequence[np.ndarray] | None = None,
    typed: str = "evaluate",
) -> Score:
    """The measure of predictions, one vector a task.

    truth     : labels, -1 and +1 unless the measure is of values; NaN where one is missing
    predicted : what the measure needs; NaN for a task that was not learned, which is left out
    table     : whether the vectors are columns of one table, as measures of whole rows ask for
    weights   : how much every label counts, in measures by task
    DataError for a measure of whole rows without a table, with weights, or of rankings of one label.

    >>> from mtldsl.solution.measures import measure
    >>> y = [np.array([1.0, -1.0, np.nan]), np.array([1.0, 1.0, 1.0])]
    >>> evaluate(measure("roc_auc"), y, [np.array([2.0, 1.0, 0.0])] * 2, ["a", "b"], table=True)
    1.0 (1 of 2 tasks left out: 'b')
    """
    if measure.rows is not None:
        return _of_rows(measure, truth, predicted, names, table, weights, typed)
    parts: list[tuple] = []
    for i, (y, p) in enumerate(zip(truth, predicted, strict=True)):
        there = ~(np.isnan(y) | np.isnan(p))
        parts.append((y[there], p[there], None if weights is None else weights[i][there]))
    found = np.array([measure.of_task(*part) for part in parts])
    if measure.average == "pooled":
        y, p, w = zip(*parts, strict=True)
        whole = np.concatenate(y), np.concatenate(p), None if weights is None else np.concatenate(w)
        empty = [name for name, one in zip(names, y, strict=True) if not one.size]
        return Score(measure.of_task(*whole), found, empty, len(found))
    if measure.average == "mean":
        return mean_score(found, names)
    positives = [np.count_nonzero(y > 0) if w is None else w[y > 0].sum() for y, _, w in parts]
    return mean_score(found, names, np.array(positives, dtype=float))


def _of_rows(measure: Measure, truth, predicted, names, table: bool, weights, typed: str) -> Score:
    assert measure.rows is not None
    require_rows(measure, len(truth), table, weights is not None, typed)
    Y, P = np.stack(list(truth), axis=1), np.stack(list(predicted), axis=1)
    there = ~(np.isnan(Y) | np.isnan(P))
    left_out = [name for name, column in zip(names, there.T, strict=True) if not column.any()]
    rows: np.ndarray = np.any(there, axis=1)
    value = measure.rows(Y[rows], P[rows]) if rows.any() else float("nan")
    return Score(value, None, left_out, len(truth))


def require_rows(measure: Measure, n_tasks: int, table: bool, weighted: bool, typed: str) -> None:
    """DataError where a measure of whole rows is asked for without a table, with weights, or of rankings of one label."""
    if not table:
        raise DataError(
            f"{measure.name} is of all labels of a row, and these tasks have rows of their own",
            term=typed,
            write_instead="write a measure by task, such as metric='accuracy'",
        )
    if weighted:
        raise DataError(
            f"these tasks have sample weights, and {measure.name} counts rows",
            term=typed,
            write_instead="write a measure by task, such as metric='accuracy'",
        )
    if measure.needs == "scores" and n_tasks < 2:
        raise DataError(f"{measure.name} ranks the labels of a row, and there is one task", term=typed)


# --------------------------------------------------------------------------------------------------------------
# How good predictions are under a metric: one number a task, 1 for a perfect answer.


def checked_metrics(metric, tasks: Tasks, typed: str) -> list[Metric]:
    """One metric a task. ModelError for anything else than a metric, a list with one a task or a dict {task name: metric};
    DataError for labels that are not -1 and +1, a task of one class, or sample weights.
    """
    metric = as_metrics(metric, typed)
    tasks.require_labels("sign", typed)
    if tasks.sample_weights is not None:
        raise DataError(
            "these tasks have sample weights, and a metric counts samples",
            term=typed,
            write_instead="repeat rows instead",
        )
    positives = [int(np.sum(y > 0)) for y in tasks.per_task(tasks.targets)]
    sizes = list(zip(positives, tasks.counts - positives, strict=True))
    fitted = metrics_of_tasks(metric, tasks.task_names, sizes, typed)
    return list(fitted) if isinstance(fitted, tuple) else [fitted] * tasks.n_tasks


def score_of(metric: Metric, z, y, threshold: float = 0.0, typed: str = "score_of") -> float:
    """1 - Delta of the labels +1 where z >= threshold, else -1, in one task; the higher the better.

    `ErrorRate()`: the share of right labels, because its Delta is 2 (b + c): 1 - Delta / (2 n).
    `ROCArea()`: the share of pairs (positive, negative) that z puts in the right order, equal scores one half.
    `PartialAUC`, `AveragePrecision`, `NDCG`: of the order; what equal scores are worth, each says.
    `PrecisionAt(k)`, `RecallAt(k)`: of the k samples with the highest z; where equal scores meet at the k-th place, the mean
    over all choices among them. None of these but `ErrorRate` looks at the threshold.

    >>> from mtldsl.atoms.metrics import ErrorRate, PrecisionAt, ROCArea
    >>> z, y = np.array([0.5, 0.1, -0.3, -0.6]), np.array([1.0, -1.0, 1.0, -1.0])
    >>> score_of(ErrorRate(), z, y), score_of(ROCArea(), z, y), score_of(PrecisionAt(k=1), z, y)
    (0.5, 0.75, 1.0)
    """
    if not (metric.labellings or metric.scored_by_order):
        raise ModelError(
            f"{metric!r} measures rankings, and has no score of predictions",
            term=typed,
            write_instead="write metric=ROCArea()",
        )
    return metric.score(np.asarray(z, float), np.asarray(y) > 0, threshold)


def r_squared(prediction, y) -> float:
    """The coefficient of determination of predictions, or of one constant; NaN where all labels are equal.

    >>> import numpy as np
    >>> r_squared(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    0.5
    """
    spread = np.sum((y - y.mean()) ** 2)
    return float(1.0 - np.sum((y - prediction) ** 2) / spread) if spread > 0 else float("nan")


# --------------------------------------------------------------------------------------------------------------
# Metrics of the language, such as FScore(beta=2), where a measure is asked for by name.


def as_measure(metric, typed: str) -> Measure:
    """A measure, that of this name, or one of a metric: 1 - Delta of every task, as in `solution.scores(tasks, metric)`.

    typed : what stands before the value in messages, such as "cross_validate(lam, metric"

    >>> one = as_measure(FScore(beta=2.0), "metric")
    >>> one.name, one.needs, one.of_task(np.array([1.0, 1.0, -1.0]), np.array([1.0, -1.0, -1.0]))
    ('FScore(beta=2.0)', 'labels', 0.555...)
    """
    if not isinstance(metric, Metric):
        return metric if isinstance(metric, Measure) else measure(metric, typed)
    if not (metric.labellings or metric.scored_by_order):
        raise ModelError(
            f"{metric!r} measures rankings, and has no score of predictions",
            term=f"{typed}={metric!r}" + ")" * typed.count("("),
            write_instead="write metric='roc_auc'",
        )
    return _MetricScore(
        repr(metric), "", "scores" if metric.scored_by_order else "labels", True, "two", metric=metric
    )


@dataclass(frozen=True)
class _MetricScore(Measure):
    metric: Metric = field(default_factory=FScore)

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        if weights is not None:
            raise DataError(
                "these tasks have sample weights, and a metric counts samples", term=self.name, write_instead="write a name, such as metric='f1'"
            )  # fmt: skip
        if not self.is_defined(y):
            return float("nan")
        positives = int(np.sum(y > 0))
        metrics_of_tasks(self.metric, ["of these rows"], [(positives, len(y) - positives)], "score")
        return score_of(self.metric, predicted, y)
