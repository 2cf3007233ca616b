"""Predictions, scores, thresholds and folds of rows elsewhere, measured where the rows are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mtldsl.atoms.losses.structured_hinge import as_metrics, metrics_of_tasks
from mtldsl.atoms.metrics.contingency import FScore
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.derived import label_table
from mtldsl.data.labels import listed_tasks
from mtldsl.distributed.distributed_folds import FoldAssignment, LabelFacts, deal_folds, make_side
from mtldsl.distributed.partitions import ByTask, TaskSum, cut_by_task
from mtldsl.errors import DataError
from mtldsl.solution.measures import MEASURES, Measure, Needs
from mtldsl.solution.predictors import (
    FittedSolution,
    PerTaskPredictor,
    default_measure,
    predictor_class,
    predictor_of,
    require_suited,
)
from mtldsl.solution.score import Score, as_measure, mean_score, require_rows, score_of
from mtldsl.solution.solution import Solution
from mtldsl.solution.task_predictors import FittedColumns, probabilities
from mtldsl.solution.thresholds import best_threshold
from mtldsl.utils.validation import as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# What is sent to rows that are elsewhere so that they are scored there: weights, thresholds, and which predictions are asked for.


@dataclass(frozen=True, eq=False)
class ScoringRequest:
    """Request that is sent to the parts.

    needs    : what is asked of the weights, as a `Measure` needs it
    fitted   : weights, intercepts and thresholds of all m tasks
    centre   : (m, 2) the mean of every task's labels, and that with sample weights
    constant : (m,) what is predicted in place of scores, NaN where weights predict
    """

    needs: Needs
    fitted: FittedColumns
    centre: np.ndarray
    constant: np.ndarray

    def answers(self, part) -> np.ndarray:
        """(n,) what is predicted for a part's labelled rows, task after task."""
        tasks, own = part.tasks, FittedColumns.of(self.fitted, part.which)
        z = tasks.forward(own.coef) + np.repeat(np.asarray(own.intercept), tasks.counts)
        found = np.concatenate(PerTaskPredictor(own).answers(tasks.per_task(z), self.needs, "score"))
        constant = self.constant[part.which][tasks.task_of]
        constant = (constant + 1.0) / 2.0 if self.needs == "probabilities" else constant
        return np.where(np.isnan(constant), found, constant)


def asked_of(fitted: FittedSolution, tasks: Any, needs: Needs, learned=None, constant=None) -> ScoringRequest:
    """Return what a solution of the tasks in `learned` (None: all) asks of these."""
    m, d = tasks.n_tasks, tasks.n_features
    index = np.arange(m) if learned is None else np.flatnonzero(learned)
    W, b, cuts = np.zeros((d, m)), np.zeros(m), None
    W[:, index] = fitted.coef
    if fitted.intercept is not None:
        b[index] = fitted.intercept
    if fitted.thresholds is not None:
        cuts = np.zeros(m)
        cuts[index] = fitted.thresholds
    facts = tasks.label_facts
    centre = np.column_stack([facts.total / facts.counts, facts.weighted_total / facts.weights])
    fixed = np.full(m, np.nan) if constant is None else constant
    return ScoringRequest(needs, FittedColumns(W, b, cuts, fitted.loss, fitted.schema), centre, fixed)


# --------------------------------------------------------------------------------------------------------------
# Scores of rows that are elsewhere which sums do not tell: those of rankings, and those of whole rows.
#
# An area under a curve, a precision at k, a user's own measure look at all scores of a task: these move to one worker, nine bytes a row (17
# with sample weights), as in `mtldsl.distributed.partitions`; so that worker needs memory for the largest task. The number is the one
# in memory, from the same function. A row lies in one part, so a measure of whole rows is a mean over parts.


def evaluate_by_task(tasks: Any, asked: ScoringRequest, function: Callable, *given) -> np.ndarray:
    """(m,) function(position of the task, predictions, labels, sample weights or None, *given) of every task, where all its rows are."""
    columns, _ = tasks.parts.run(_columns, asked, stateful=True)
    return tasks.parts.exchanged(columns, tasks.n_tasks, _each_task, function, *given)[1].of_all(
        tasks.n_tasks
    )


def _columns(part, _, asked: ScoringRequest) -> tuple[ByTask, None]:
    """Return what is predicted for the labelled rows of a part, their labels (of -1 and +1, which are +1), and their sample weights."""
    tasks = part.tasks
    weights = () if tasks.sample_weights is None else (tasks.sample_weights,)
    labels = tasks.targets if asked.needs in ("values", "answers") else tasks.targets > 0.0
    return cut_by_task(part.which, tasks.offsets, (asked.answers(part), labels, *weights)), None


def _each_task(columns: ByTask, function: Callable, *given) -> tuple[ByTask, TaskSum]:
    found = []
    for i, (z, y, *s) in columns.items():
        y = np.where(y, 1.0, -1.0) if y.dtype == bool else y
        found.append(function(i, z, y, s[0] if s else None, *given))
    return {}, TaskSum(np.array([*columns]), np.array(found))


def _measured(i: int, z, y, s, by: Measure, weighted: bool) -> float:
    return by.of_task(y, z, s if weighted else None)


def _by_metric(i: int, z, y, s, metrics: Sequence[Metric], cuts: np.ndarray) -> float:
    """1 - Delta of the task's scores and threshold."""
    return score_of(metrics[i], z, y, float(cuts[i]))


def _best_threshold(i: int, z, y, s, metrics: Sequence[Metric], typed: str, names: tuple) -> float:
    return best_threshold(z, y, metrics[i], typed, names[i])


def measure_of_rows(tasks: Any, by: Measure, asked: ScoringRequest, known: np.ndarray, typed: str) -> Score:
    """The mean over rows, or over the labels that are there, in one pass; tasks that are not known are left out."""
    names = [name for name, one in zip(tasks.task_names, known, strict=True) if not one]
    require_rows(by, tasks.n_tasks, tasks.is_table, tasks.is_weighted, typed)
    total, size = tasks.parts.run(_of_rows, asked, by, known)
    return Score(total / size if size else float("nan"), None, names, tasks.n_tasks)


def _of_rows(part, asked: ScoringRequest, by: Measure, known: np.ndarray) -> np.ndarray:
    """(the measure of a part's rows times what it is a mean over, how many these are)."""
    tasks, there = part.tasks, known[part.which]
    Y, P = (label_table(tasks, one)[:, there] for one in (tasks.targets, asked.answers(part)))
    rows = ~np.isnan(Y).all(axis=1) if Y.size else np.zeros(len(Y), bool)
    if not rows.any():
        return np.zeros(2)
    assert by.rows is not None
    size = len(Y[rows]) if by.over == "rows" else np.count_nonzero(~np.isnan(Y))
    return np.array([by.rows(Y[rows], P[rows]) * size, size])


# --------------------------------------------------------------------------------------------------------------
# Scores of rows that are elsewhere: counts and sums from every part, in one pass; and predictions that stay there.
#
# A measure of labels is a function of how often which label was predicted for which, so it is exact from four counts a task; one of numbers,
# of five sums; the log loss and the Brier score are means, as are measures of whole rows. What looks at the order of all scores of a task takes
# them to one worker: `mtldsl.distributed.distributed_scoring`.

#: Cells of a task's table, each counted and weighed: labels ...
TRUE_LABELS = np.array([1.0, 1.0, -1.0, -1.0])
#: ... and what was predicted.
PREDICTED_LABELS = np.array([1.0, -1.0, 1.0, -1.0])


def sums_of(part, asked: ScoringRequest) -> TaskSum:
    """(k, 2, q) sums of its tasks: of ones, then of sample weights."""
    tasks, y, p = part.tasks, part.tasks.targets, asked.answers(part)
    if asked.needs == "labels":
        up, is_up = p > 0, y > 0
        terms = [is_up & up, is_up & ~up, ~is_up & up, ~is_up & ~up]
    elif asked.needs == "values":
        r = y - p
        terms = [np.ones_like(r), r, r * r, np.abs(r), (y - asked.centre[part.which, 0][tasks.task_of]) ** 2]
    else:
        tiny = np.finfo(float).eps  # as scikit-learn does
        right = np.clip(np.where(y > 0, p, 1.0 - p), tiny, 1.0 - tiny)
        terms = [np.ones_like(p), -np.log(right), (p - (y > 0)) ** 2]
    s = tasks.sample_weights
    both = np.stack([np.stack(terms)] * 2).astype(float)
    if s is not None and asked.needs == "values":
        both[1, 4] = (y - asked.centre[part.which, 1][tasks.task_of]) ** 2
    both[1] *= 1.0 if s is None else s
    return TaskSum(part.which, np.moveaxis(np.add.reduceat(both, tasks.offsets[:-1], axis=2), 2, 0))


def _is_of_counts(metric: Metric) -> bool:
    """Tell whether four counts tell it: not where it looks at orders, nor where a class of one's own has a `score` of its own."""
    names = ("score", "score_of_counts")
    score, of_counts = (next(kind for kind in type(metric).__mro__ if name in vars(kind)) for name in names)
    return metric.labellings and not metric.scored_by_order and issubclass(of_counts, score)


def score_elsewhere(
    fitted: FittedSolution, tasks: Any, by: Measure, typed: str, learned=None, constant=None
) -> Score:
    """The measure of all tasks, in one pass over their rows; of rankings, beside an exchange of scores.

    learned  : (m,) which tasks the solution is of; None: all
    constant : (m,) the label that is predicted for the others, NaN for none
    """
    PerTaskPredictor(fitted).answers([np.zeros(1)] * fitted.coef.shape[1], by.needs, typed)  # before a pass
    require_suited(fitted, tasks, typed, by)
    metric = getattr(by, "metric", None)
    if metric is not None and tasks.is_weighted:
        raise _weighted(by.name, "write a name, such as metric='f1'")
    asked = asked_of(fitted, tasks, by.needs, learned, constant)
    known = np.ones(tasks.n_tasks, bool) if learned is None else learned.copy()
    if constant is not None:
        known |= ~np.isnan(constant)
    if by.of_rows:
        return measure_of_rows(tasks, by, asked, known, typed)
    if by.needs == "labels" and (metric is None or _is_of_counts(metric)):
        sums = tasks.parts.run(sums_of, asked).of_all(tasks.n_tasks)[:, 1]
        tables = [_of_table(by, metric, table, typed) if there else np.nan for table, there in zip(sums, known, strict=True)]  # fmt: skip
        if by.average == "pooled":
            return Score(_of_table(by, metric, sums[known].sum(axis=0), typed), np.array(tables), [], tasks.n_tasks)  # fmt: skip
        weights = sums[:, 0] + sums[:, 1] if by.average == "support" else None
        return mean_score(np.array(tables), tasks.task_names, weights)
    return mean_score(np.where(known, _of_tasks(tasks, by, asked, True), np.nan), tasks.task_names)


def _of_tasks(tasks: Any, by: Measure, asked: ScoringRequest, weighted: bool) -> np.ndarray:
    """(m,) a measure that is none of counts: by sums where these tell it, else by all answers of a task. NaN where it is not defined."""
    if by.name not in _MEANS:
        return evaluate_by_task(tasks, asked, _measured, by, weighted)
    sums = tasks.parts.run(sums_of, asked).of_all(tasks.n_tasks)[:, int(weighted)]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = _MEANS[by.name](*sums.T)
    return np.where((tasks.label_facts.distinct > 1) | (by.defined != "two"), found, np.nan)


#: (m,) sums of weights, residuals, their squares, their absolute values, squares of the labels around their mean -> (m,) scores
_MEANS: dict[str, Any] = {
    "mse": lambda s, r, rr, a, c: rr / s,
    "mae": lambda s, r, rr, a, c: a / s,
    "nmse": lambda s, r, rr, a, c: rr / c,
    "r2": lambda s, r, rr, a, c: 1.0 - rr / c,
    "explained_variance": lambda s, r, rr, a, c: 1.0 - (rr - r * r / s) / c,
    "log_loss": lambda s, log, squares: log / s,
    "brier": lambda s, log, squares: squares / s,
}


def _of_table(by: Measure, metric: Metric | None, table: np.ndarray, typed: str) -> float:
    """From [right positives, missed ones, wrong ones, right negatives], as of so many rows."""
    there = table > 0
    if not by.is_defined(TRUE_LABELS[there]):
        return float("nan")
    if metric is None:
        return by.of_task(TRUE_LABELS[there], PREDICTED_LABELS[there], table[there])
    counts = [round(one) for one in table]
    positives, negatives = counts[0] + counts[1], counts[2] + counts[3]
    metrics_of_tasks(metric, ["of these rows"], [(positives, negatives)], "score")
    return metric.score_of_counts(counts[2], counts[1], positives, negatives)


def scores_elsewhere(fitted: FittedSolution, tasks: Any, metric, method: str) -> np.ndarray:
    """`Solution.scores` for None and for metrics."""
    typed = f"{method}(tasks)"
    like = _alike(fitted, tasks, method)
    if metric is None:
        by = MEASURES["accuracy" if fitted.thresholds is not None else default_measure(fitted.loss)]
        require_suited(fitted, like, typed, by)
        asked = asked_of(fitted, like, by.needs)
        if by.needs != "labels":
            return _of_tasks(like, by, asked, False)
        sums = like.parts.run(sums_of, asked).of_all(like.n_tasks)[:, 0]
        return (sums[:, 0] + sums[:, 3]) / sums.sum(axis=1)
    each = _metrics_of(like, metric, typed)
    if not all(map(_is_of_counts, each)):
        asked = asked_of(fitted, like, "scores")
        cuts = np.zeros(like.n_tasks) if fitted.thresholds is None else fitted.thresholds
        return evaluate_by_task(like, asked, _by_metric, tuple(each), cuts)
    counted = like.parts.run(sums_of, asked_of(fitted, like, "labels")).of_all(like.n_tasks)[:, 0]
    tables = np.rint(counted).astype(int).tolist()
    return np.array(
        [one.score_of_counts(t[2], t[1], t[0] + t[1], t[2] + t[3]) for one, t in zip(each, tables, strict=True)]
    )  # fmt: skip


def thresholds_elsewhere(fitted: FittedSolution, tasks: Any, metric, typed: str) -> np.ndarray:
    """(m,) see `Solution.tune_threshold`: what is found on all scores of a task, on one worker."""
    like = _alike(fitted, tasks, "tune_threshold")
    PerTaskPredictor(fitted).require_labels_predicted(typed)
    chosen = fitted.loss["parameters"].get("metric", FScore()) if metric is None else metric
    metrics = tuple(_metrics_of(like, chosen, typed))
    return evaluate_by_task(
        like, asked_of(fitted, like, "scores"), _best_threshold, metrics, typed, like.task_names
    )


def _metrics_of(tasks: Any, metric, typed: str) -> list[Metric]:
    """One a task, as in `checked_metrics`."""
    given = as_metrics(metric, typed)
    tasks.require_labels("sign", typed)
    if tasks.is_weighted:
        raise _weighted(typed, "repeat rows instead")
    sizes = list(zip(tasks.positives.tolist(), (tasks.counts - tasks.positives).tolist(), strict=True))
    fits = metrics_of_tasks(given, tasks.task_names, sizes, typed)
    return list(fits) if isinstance(fits, tuple) else [fits] * tasks.n_tasks


def _weighted(term: str, write_instead: str) -> DataError:
    return DataError(
        "these tasks have sample weights, and a metric counts samples", term=term, write_instead=write_instead
    )


def named_elsewhere(fitted: FittedSolution, tasks: Any, name: str | Measure, method: str) -> Score:
    """`Solution.score` for a measure, or one by name."""
    found = as_measure(name, f"{method}(tasks, metric")
    return score_elsewhere(fitted, _alike(fitted, tasks, method), found, f"{method}(tasks, metric={found.name!r})")  # fmt: skip


def _alike(fitted: FittedSolution, tasks: Any, method: str) -> Any:
    if predictor_class(fitted.loss) is not PerTaskPredictor:
        raise DataError(
            f"{fitted.loss['word']} predicts whole labellings, and these rows are in parts elsewhere", term=f"{method}(tasks)",
            write_instead="write score(tasks.subsample(100_000))",
        )  # fmt: skip
    return fitted.schema.alike(tasks, method)


# --------------------------------------------------------------------------------------------------------------
# Folds of rows that are elsewhere: which tasks can be learned there, and how a solution is scored on the rows held out, without moving any.


@dataclass(frozen=True)
class DistributedFold:
    """One fold, as `mtldsl.problems.folds.Fold` is of rows that are here."""

    dealt: FoldAssignment
    fold: int
    facts: tuple[LabelFacts, LabelFacts]
    learned: np.ndarray
    constant: np.ndarray
    n_tested: list[int]
    names: tuple[str, ...]

    def train(self, tasks: Any) -> Any:
        """The tasks that can be learned, in the rows to learn on: kept on the workers for as long as they are used."""
        index = None if self.learned.all() else np.flatnonzero(self.learned)
        keep = getattr(tasks.parts, "keep", False)
        return make_side(tasks, self.dealt, self.fold, False, self.facts[0], index=index, keep=keep)

    def identity(self, tasks: Any) -> str:
        """A hash of how the rows were dealt, and of what is known of the labels on either side."""
        known = [(f.total, f.deviations, f.weighted_total) for f in self.facts]
        return hashlib.sha256(repr((self.dealt, self.fold, self.n_tested, known)).encode()).hexdigest()

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
        test = make_side(tasks, self.dealt, self.fold, True, self.facts[1], index=index, keep=False)
        learned, constant = self.learned[there], self.constant[there]
        columns = np.flatnonzero(np.isin(np.flatnonzero(self.learned), there))
        found = score_elsewhere(
            cast(Any, FittedColumns.of(solution, columns)),
            test,
            measure,
            typed,
            learned=learned,
            constant=constant,
        )
        self.count(tasks, test)
        if index is None or found.by_task is None:
            return found
        by_task = np.full(tasks.n_tasks, np.nan)
        by_task[there] = found.by_task
        out = [name for name, one in zip(self.names, by_task, strict=True) if np.isnan(one)]
        return Score(float(found), by_task, out, tasks.n_tasks)


def parts_elsewhere(
    tasks: Any, folds, stratify, groups, random_state, two: bool, one_class: str, typed: str
) -> list[DistributedFold]:
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
        known, tested = train.on(keys), test.on(keys)
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
        parts.append(DistributedFold(dealt, fold, (train, test), can, constant, tested.counts.tolist(), tuple(tasks.task_names)))  # fmt: skip
    return parts


# --------------------------------------------------------------------------------------------------------------
# Predictions for arrays and data frames of Dask: an array of Dask, computed where its inputs are, when it is asked for.


def predictor_for(fitted: FittedSolution, X) -> Any:
    """See `mtldsl.solution.predictors.predictor_for`, of Dask's types."""
    return _WorkerPredictor(fitted) if hasattr(X, "to_delayed") else predictor_of(fitted)


class _WorkerPredictor:
    """The methods of a predictor."""

    def __init__(self, of: FittedSolution):
        self.of = of

    def decision_function(self, X) -> Any:
        return _lazily(self.of, "decision_function", X)

    def predict(self, X, return_certified: bool) -> Any:
        if return_certified:
            return predictor_of(self.of).predict(X, return_certified)
        return _lazily(self.of, "predict", X)

    def predict_proba(self, X) -> Any:
        return _lazily(self.of, "predict_proba", X)


def _lazily(fitted: FittedSolution, method: str, X: Any) -> Any:
    """(n, m) array of Dask: predict, decision_function or predict_proba of the inputs, part by part. DataError where the columns do not fit."""
    import dask.array as da
    from dask.delayed import delayed

    if predictor_class(fitted.loss) is not PerTaskPredictor:
        raise DataError(
            f"{fitted.loss['word']} predicts whole labellings, of inputs that are here",
            term=f"{method}(X)", write_instead="write X.map_blocks(solution.predict)",
        )  # fmt: skip
    if method == "predict_proba":
        probabilities(fitted.loss, np.zeros(1))  # before any input is looked at
    known = FittedColumns.of(fitted)
    m = fitted.coef.shape[1]
    if hasattr(X, "columns"):
        _answer(known, method, X._meta)  # names and number of the columns
        blocks, lengths = X.to_delayed(), [np.nan] * X.npartitions
    else:
        X = X.rechunk({1: -1}) if X.ndim == 2 and X.numblocks[1] > 1 else X
        if X.ndim != 2 or X.shape[1] != fitted.schema.shape[0]:
            fitted.schema.columns(np.zeros((1, *X.shape[1:])))  # says what it must be
        blocks, lengths = X.to_delayed().ravel().tolist(), X.chunks[0]
    sent = delayed(known, traverse=False, pure=False)
    answer = delayed(_answer, pure=False, traverse=False)
    parts = [
        da.from_delayed(answer(sent, method, block), (n, m), dtype=float)
        for block, n in zip(blocks, lengths, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _answer(known: FittedColumns, method: str, X) -> np.ndarray:
    """(rows, m) of one part."""
    if not len(X):
        known.schema.columns(X)
        return np.empty((0, known.coef.shape[1]))
    predictor: Any = PerTaskPredictor(known)  # type: ignore[arg-type]
    found = predictor.predict(X, False) if method == "predict" else getattr(predictor, method)(X)
    return np.asarray(found, dtype=float)
