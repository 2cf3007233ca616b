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
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.measures import Measure, measure
from mtldsl.solution.predictors import (
    FittedSolution,
    PerTaskPredictor,
    predictor_class,
    predictor_of,
)
from mtldsl.solution.score import Score, mean_score, require_rows, score_of
from mtldsl.solution.solution import Solution
from mtldsl.solution.task_predictors import FittedColumns, loss_of, probabilities
from mtldsl.solution.thresholds import best_threshold
from mtldsl.utils.validation import as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# What is sent to rows that are elsewhere so that they are scored there: weights, thresholds, and which predictions are asked for.


@dataclass(frozen=True, eq=False)
class ScoringRequest:
    """Request that is sent to the parts.

    needs    : "labels", "scores", "values" or "probabilities"
    cuts     : (m,) thresholds, or None for what the loss decides
    centre   : (m, 2) the mean of every task's labels, and that with sample weights
    constant : (m,) what is predicted in place of scores, NaN where weights predict
    """

    needs: str
    W: np.ndarray
    b: np.ndarray
    cuts: np.ndarray | None
    loss: dict
    centre: np.ndarray
    constant: np.ndarray

    def scores(self, part) -> np.ndarray:
        """(n,) X w + b of a part's labelled rows, task after task."""
        return part.tasks.forward(part.columns(self.W)) + self.b[part.which][part.tasks.task_of]

    def labels(self, part, z: np.ndarray) -> np.ndarray:
        """(n,) whether +1 is predicted where the scores are z."""
        of = part.tasks.task_of
        cut = np.zeros(1) if self.cuts is None else self.cuts[part.which][of]
        constant = self.constant[part.which][of]
        return np.where(np.isnan(constant), z >= cut, constant > 0)


def asked_of(fitted: FittedSolution, tasks: Any, needs: str, learned=None, constant=None) -> ScoringRequest:
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
    return ScoringRequest(needs, W, b, cuts, fitted.loss, centre, fixed)


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
    """Return what is predicted for the labelled rows of a part, which of them are +1, and their sample weights."""
    tasks = part.tasks
    weights = () if tasks.sample_weights is None else (tasks.sample_weights,)
    arrays = (_predicted(part, asked), tasks.targets > 0.0, *weights)
    return cut_by_task(part.which, tasks.offsets, arrays), None


def _predicted(part, asked: ScoringRequest) -> np.ndarray:
    """Scores, or labels -1 and +1."""
    z = asked.scores(part)
    if asked.needs == "labels":
        return np.where(asked.labels(part, z), 1.0, -1.0)
    constant = asked.constant[part.which][part.tasks.task_of]
    return np.where(np.isnan(constant), z, constant)


def _each_task(columns: ByTask, function: Callable, *given) -> tuple[ByTask, TaskSum]:
    found = [
        function(i, z, np.where(positive, 1.0, -1.0), s[0] if s else None, *given)
        for i, (z, positive, *s) in columns.items()
    ]
    return {}, TaskSum(np.array([*columns]), np.array(found))


def _measured(i: int, z, y, s, by: Measure) -> float:
    return by.of_task(y, z, s)


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
    Y, P = (label_table(tasks, one)[:, there] for one in (tasks.targets, _predicted(part, asked)))
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
        raise _weighted(by.name, "write a name, such as metric='f1'")
    asked = asked_of(fitted, tasks, by.needs, learned, constant)
    known = np.ones(tasks.n_tasks, bool) if learned is None else learned.copy()
    if constant is not None:
        known |= ~np.isnan(constant)
    if by.of_rows:
        return measure_of_rows(tasks, by, asked, known, typed)
    if by.needs == "scores" if metric is None else not _is_of_counts(metric):
        return mean_score(
            np.where(known, evaluate_by_task(tasks, asked, _measured, by), np.nan), tasks.task_names
        )
    sums = tasks.parts.run(sums_of, asked).of_all(tasks.n_tasks)[:, 1]
    if by.needs == "labels":
        tables = [_of_table(by, metric, table, typed) if there else np.nan for table, there in zip(sums, known, strict=True)]  # fmt: skip
        if by.average == "pooled":
            return Score(_of_table(by, metric, sums[known].sum(axis=0), typed), np.array(tables), [], tasks.n_tasks)  # fmt: skip
        weights = sums[:, 0] + sums[:, 1] if by.average == "support" else None
        return mean_score(np.array(tables), tasks.task_names, weights)
    found = _means(by.name, sums)
    two = tasks.label_facts.distinct > 1
    return mean_score(np.where(known & (two | (by.defined != "two")), found, np.nan), tasks.task_names)


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


def _means(name: str, sums: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _MEANS[name](*sums.T)


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

    def summed(needs: str) -> np.ndarray:
        """(m, q), see `sums_of`, without sample weights."""
        return like.parts.run(sums_of, asked_of(fitted, like, needs)).of_all(like.n_tasks)[:, 0]

    if metric is None and fitted.loss["labels"] != "sign" and fitted.thresholds is None:
        sums = summed("values")
        return np.where(sums[:, 4] > 0, _means("r2", sums), np.nan)
    if metric is None:
        _require_signs(like, typed)
        sums = summed("labels")
        return (sums[:, 0] + sums[:, 3]) / sums.sum(axis=1)
    each = _metrics_of(like, metric, typed)
    if not all(map(_is_of_counts, each)):
        asked = asked_of(fitted, like, "scores")
        cuts = np.zeros(like.n_tasks) if asked.cuts is None else asked.cuts
        return evaluate_by_task(like, asked, _by_metric, tuple(each), cuts)
    tables = np.rint(summed("labels")).astype(int).tolist()
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


def named_elsewhere(fitted: FittedSolution, tasks: Any, name: str, method: str) -> Score:
    """`Solution.score` for a measure by name."""
    found = measure(name, f"{method}(tasks, metric")
    like = _alike(fitted, tasks, method)
    return score_elsewhere(fitted, like, found, f"{method}(tasks, metric={name!r})")


def _alike(fitted: FittedSolution, tasks: Any, method: str) -> Any:
    if predictor_class(fitted.loss) is not PerTaskPredictor:
        raise DataError(
            f"{fitted.loss['word']} predicts whole labellings, and these rows are in parts elsewhere", term=f"{method}(tasks)",
            write_instead="write score(tasks.subsample(100_000))",
        )  # fmt: skip
    return fitted.schema.alike(tasks, method)


def _require_signs(tasks: Any, typed: str) -> None:
    """Labels -1 and +1; tasks of one class pass, as in `require_kind`."""
    if not tasks.label_facts.are("sign").all():
        tasks.require_labels("sign", typed)


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
