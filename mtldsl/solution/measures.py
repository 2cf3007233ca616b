"""The measures that scores may be asked for, by name and by scikit-learn's name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.utils.parallel import slabs
from mtldsl.utils.validation import quoted


@dataclass(frozen=True)
class MeasureSettings:
    """Limits of measures and of the intervals of scores.

    rare_share      : a label is rare whose smaller class has less than this: accuracy is content with weights of zero
    slab_pairs      : pairs of rows that are compared at once
    counted_entries : numbers that counts of rows may take at a time
    level_share     : samples between the ends of an interval
    r2_rows         : labels of a task below which R^2 has no interval, nor a mean that it is in: its samples are wide, and lie below the score
    gain_tol        : difference that three decimals do not show: it is none
    """

    rare_share: float = 0.3
    slab_pairs: int = 2_000_000
    counted_entries: int = 4_000_000
    level_share: float = 0.95
    r2_rows: int = 10
    gain_tol: float = 5e-4


SETTINGS = MeasureSettings()


# --------------------------------------------------------------------------------------------------------------
# What a measure is: which predictions it needs, where it is defined, and how one number is made of those of the tasks.

Needs = Literal["values", "labels", "scores", "probabilities", "answers"]


@dataclass(frozen=True)
class Measure:
    """One of the measures by name.

    function         : scikit-learn's, by name; imported where it is first called
    needs            : "values" (numbers for labels that are numbers); or, for labels -1 and +1, "labels", "scores" (higher where +1 is
                       more likely) or "probabilities" (of +1); "answers": what `predict` says, labels or numbers
    higher_is_better : False for losses and errors
    defined          : where a task has a number, NaN otherwise: with "any" label, with "two" different ones, with a "positive" one
    average          : "mean" of the tasks' numbers; "support", weighted by their positives; "pooled", one number of all labels together
    rows             : None for measures by task; for one of whole rows the function of (truth, predictions), (n, m) each, NaN where a
                       label is missing
    over             : what a measure of whole rows is the mean over: "rows", or the "labels" that are there
    shown            : what is made of scikit-learn's number
    """

    name: str
    function: str
    needs: Needs
    higher_is_better: bool
    defined: Literal["any", "two", "positive"] = "any"
    average: Literal["mean", "support", "pooled"] = "mean"
    rows: Callable[[np.ndarray, np.ndarray], float] | None = None
    over: Literal["rows", "labels"] = "rows"
    arguments: dict[str, Any] = field(default_factory=dict)
    shown: Callable[[float], float] = float
    of: str = ""

    @property
    def two_classes(self) -> bool:
        """Tell whether a task whose labels are all the same has no number."""
        return self.defined == "two"

    @property
    def of_rows(self) -> bool:
        """Tell whether it is of all labels of a row together, so that no task has a number of its own."""
        return self.rows is not None

    @property
    def direction(self) -> float:
        """+1 where higher is better, else -1."""
        return 1.0 if self.higher_is_better else -1.0

    def is_defined(self, y: np.ndarray) -> bool:
        """Tell whether these labels of a task, none of them missing, are enough for a number."""
        if not y.size:
            return False
        if self.defined == "positive":
            return bool((y > 0).any())
        return self.defined == "any" or bool((y != y[0]).any())

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The number of one task, whose labels are all there: NaN where it is not defined.

        >>> from mtldsl.solution.measures import measure
        >>> measure("roc_auc").of_task(np.array([-1.0, 1.0, 1.0]), np.array([0.1, 0.3, 0.0]))
        0.5
        """
        if not self.is_defined(y):
            return float("nan")
        import sklearn.metrics

        if self.needs != "values":
            y = (y > 0).astype(int)
        if self.needs == "labels":
            predicted = (predicted > 0).astype(int)
        called, given = (
            getattr(sklearn.metrics, self.function),
            {"sample_weight": weights} if weights is not None else {},
        )
        return self.shown(float(called(y, predicted, **given, **self.arguments)))


# --------------------------------------------------------------------------------------------------------------
# Measures of whole rows where labels may be missing: scikit-learn's functions on the labels that are there.


def subset_accuracy(truth: np.ndarray, labels: np.ndarray) -> float:
    """The share of rows whose labels that are there are all right.

    >>> subset_accuracy(np.array([[1.0, np.nan], [1.0, -1.0]]), np.array([[1.0, 1.0], [1.0, 1.0]]))
    0.5
    """
    from sklearn.metrics import accuracy_score

    there = _there(truth, labels)
    right: np.ndarray = np.all(~there | ((truth > 0) == (labels > 0)), axis=1)
    return float(accuracy_score(np.ones(len(right)), right))


def hamming_loss(truth: np.ndarray, labels: np.ndarray) -> float:
    """The share of wrong labels among those that are there."""
    from sklearn.metrics import hamming_loss as theirs

    there = _there(truth, labels)
    return float(theirs(truth[there] > 0, labels[there] > 0))


def coverage_error(truth: np.ndarray, scores: np.ndarray) -> float:
    """Return how far down the ranking of a row's labels one has to go for all its positives, on average; 0 for a row without one.

    A missing label stands last in the ranking, where it changes no other one's place.
    """
    from sklearn.metrics import coverage_error as theirs

    there = _there(truth, scores)
    return float(theirs((truth > 0) & there, np.where(there, _ranks(scores, there), -1)))


def ranking_loss(truth: np.ndarray, scores: np.ndarray) -> float:
    """The share of pairs (positive, negative) of a row in the wrong order, on average; 0 for a row without such a pair.

    A missing label is handed to scikit-learn as a positive above all others: no pair with it is in the wrong order, and the row counts
    for as many times more as it has more pairs.
    """
    from sklearn.metrics import label_ranking_loss

    there = _there(truth, scores)
    positives = np.sum(there & (truth > 0), axis=1)
    negatives = np.sum(there & ~(truth > 0), axis=1)
    rows = np.flatnonzero((positives > 0) & (negatives > 0))
    if not rows.size:
        return 0.0
    missing = ~there[rows]
    ranks = _ranks(scores, there)[rows]
    ranks[missing] = scores.size
    weights = (positives[rows] + missing.sum(axis=1)) / positives[rows]
    wrong = label_ranking_loss((truth[rows] > 0) | missing, ranks, sample_weight=weights)
    return float(wrong) * float(weights.sum()) / len(truth)


def _ranks(scores: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 in the order of the scores that are there, the same for the same ones: there is room above and below them, as
    there is not beside 1e300."""
    ranks = np.zeros(scores.shape, dtype=int)
    ranks[there] = np.unique(scores[there], return_inverse=True)[1]
    return ranks


def _there(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return ~(np.isnan(truth) | np.isnan(predicted))


# --------------------------------------------------------------------------------------------------------------
# The concordance of risks and signed times.


class ConcordanceMeasure(Measure):
    """Harrell's index of signed times, +t of an event and -t of a row last seen at t: NaN for a task without a pair."""

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        return concordance_index(np.asarray(y, float), np.asarray(predicted, float), weights)


def concordance_index(y: np.ndarray, risks: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The share of pairs in the right order: an event at t, and a row known to be without it then, which has the lower risk; equal risks one half.

    Source: Harrell, Califf, Pryor, Lee and Rosati, "Evaluating the yield of medical tests", JAMA 247 (1982).

    >>> concordance_index(np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.9, 0.1]))
    0.5
    """
    times, w = np.abs(y), np.ones(y.size) if weights is None else weights
    right = pairs = 0.0
    events = np.flatnonzero(y > 0)
    for part in slabs(events.size, max(1, SETTINGS.slab_pairs // max(y.size, 1))):
        own = events[part, None]
        known = ((times > times[own]) | ((times == times[own]) & (y < 0))) * w
        lower = (risks < risks[own]) + 0.5 * (risks == risks[own])
        pairs += float(w[events[part]] @ known.sum(axis=1))
        right += float(w[events[part]] @ (known * lower).sum(axis=1))
    return right / pairs if pairs > 0 else float("nan")


_ALL = (
    Measure("mse", "mean_squared_error", "values", False, of="mean squared error"),
    Measure(
        "nmse", "r2_score", "values", False, "two", shown=lambda r2: 1.0 - r2,
        of="mean squared error over the variance of the task's labels, 1 - R^2",
    ),
    Measure("mae", "mean_absolute_error", "values", False, of="mean absolute error"),
    Measure("r2", "r2_score", "values", True, "two", of="coefficient of determination R^2"),
    Measure("explained_variance", "explained_variance_score", "values", True, "two", of="share of the variance explained, whatever the bias"),
    ConcordanceMeasure("concordance", "", "values", True, of="share of pairs of an event and a later row in the order of their risks"),
    Measure("accuracy", "accuracy_score", "labels", True, of="share of right labels"),
    Measure("balanced_accuracy", "balanced_accuracy_score", "labels", True, "two", of="mean of the shares of right labels of either class"),
    Measure("f1", "f1_score", "labels", True, "positive", arguments={"zero_division": 0.0}, of="F1 of every task; its mean is macro F1"),
    Measure("f1_micro", "f1_score", "labels", True, "positive", "pooled", arguments={"zero_division": 0.0}, of="F1 of all labels together"),
    Measure("f1_weighted", "f1_score", "labels", True, "positive", "support", arguments={"zero_division": 0.0}, of="F1, tasks weighted by their positives"),
    Measure("precision", "precision_score", "labels", True, "positive", arguments={"zero_division": 0.0}, of="share of the rows labelled +1 that are right"),
    Measure("recall", "recall_score", "labels", True, "positive", of="share of the positives that are found"),
    Measure("roc_auc", "roc_auc_score", "scores", True, "two", of="area under the ROC curve"),
    Measure("average_precision", "average_precision_score", "scores", True, "two", of="area under the precision-recall curve (PR-AUC)"),
    Measure("log_loss", "log_loss", "probabilities", False, arguments={"labels": [0, 1]}, of="minus the log-likelihood of a label"),
    Measure("brier", "brier_score_loss", "probabilities", False, arguments={"pos_label": 1}, of="mean squared error of probabilities"),
    Measure("subset_accuracy", "accuracy_score", "labels", True, rows=subset_accuracy, of="share of rows whose labels are all right"),
    Measure("hamming_loss", "hamming_loss", "labels", False, rows=hamming_loss, over="labels", of="share of wrong labels in the table"),
    Measure("ranking_loss", "label_ranking_loss", "scores", False, rows=ranking_loss, of="share of pairs of a row's labels in the wrong order"),
    Measure("coverage_error", "coverage_error", "scores", False, rows=coverage_error, of="how far down a row's ranking its positives go"),
)  # fmt: skip

MEASURES: dict[str, Measure] = {one.name: one for one in _ALL}


class _KindMeasure(Measure):
    """Measure that `solution.scores` takes of each task: the accuracy of labels, R^2 of numbers."""

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        # a loss of labels answers with nothing but labels, one of numbers hardly ever
        labels = bool(np.isin(y, (-1.0, 1.0)).all() and np.isin(predicted, (-1.0, 1.0)).all())
        return MEASURES["accuracy" if labels else "r2"].of_task(y, predicted, weights)


#: of models with a loss for each kind of tasks, where nothing else is asked for
OF_KINDS: Measure = _KindMeasure(
    "accuracy or r2",
    "",
    "answers",
    True,
    of="accuracy of labels, coefficient of determination R^2 of numbers",
)

#: what scikit-learn and the field call them
_SYNONYMS = {
    "mean_squared_error": "mse", "neg_mean_squared_error": "mse", "mean_absolute_error": "mae", "neg_mean_absolute_error": "mae",
    "normalized_mse": "nmse", "r2_score": "r2", "r_squared": "r2", "explained_variance_score": "explained_variance", "accuracy_score": "accuracy",
    "balanced_accuracy_score": "balanced_accuracy", "f1_macro": "f1", "f1_score": "f1", "fscore": "f1", "auc": "roc_auc", "rocarea": "roc_auc",
    "roc_auc_score": "roc_auc", "roc_auc_ovr": "roc_auc", "pr_auc": "average_precision", "auprc": "average_precision",
    "average_precision_score": "average_precision", "map": "average_precision", "neg_log_loss": "log_loss", "cross_entropy": "log_loss",
    "precision_score": "precision", "precision_macro": "precision", "recall_score": "recall", "recall_macro": "recall", "sensitivity": "recall",
    "brier_score": "brier", "brier_score_loss": "brier", "neg_brier_score": "brier", "exact_match": "subset_accuracy",
    "zero_one_loss": "subset_accuracy", "hamming": "hamming_loss", "label_ranking_loss": "ranking_loss", "coverage": "coverage_error",
    "c_index": "concordance", "concordance_index": "concordance", "harrell": "concordance",
}  # fmt: skip


def named_measure(name) -> Measure | None:
    """Return the measure of a name, or of the name that scikit-learn has for it; None where there is none."""
    return MEASURES.get(_SYNONYMS.get(name, name)) if isinstance(name, str) else None


#: measures that scikit-learn has alone
_THEIRS = {
    "mape": "neg_mean_absolute_percentage_error",
    "rmse": "neg_root_mean_squared_error",
    "mcc": "matthews_corrcoef",
}


def measure(name, typed: str = "metric", scorers: Sequence[str] = ()) -> Measure:
    """The measure of this name; ModelError with the nearest name, of ours or of scikit-learn's `scorers`, for one that is not known, also for the names that
    others use.

    >>> measure("pr_auc")
    Traceback (most recent call last):
    mtldsl.errors.ModelError: metric='pr_auc': there is no such measure; write 'average_precision'
    """
    if isinstance(name, str) and name in MEASURES:
        return MEASURES[name]
    if name == OF_KINDS.name:
        return OF_KINDS
    low = name.lower() if isinstance(name, str) else ""
    near = difflib.get_close_matches(low, [*MEASURES, *_SYNONYMS, *scorers], n=1, cutoff=0.7)
    if low in _THEIRS:  # and none of ours is near in meaning
        near = [_THEIRS[low]] * (_THEIRS[low] in scorers)
    meant = _SYNONYMS.get(near[0], near[0]) if near else ""
    raise ModelError(
        "there is no such measure",
        term=f"{typed}={quoted(name)}" + ")" * typed.count("("),
        write_instead=f"write {meant!r}"
        if meant
        else f"write one of {', '.join(map(repr, MEASURES))}"
        + ", or a name of scikit-learn's scorers" * bool(scorers),
        argument="metric",
    )


# --------------------------------------------------------------------------------------------------------------
# Scores of folds as a mean and its standard error.


def mean_and_error(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the mean, its standard error s / sqrt(k)) over the first axis, of the k folds that have a number; s has k - 1 below.

    NaN where no fold has one; the error is NaN where fewer than two have.

    >>> mean_and_error(np.array([[1.0, np.nan], [3.0, 5.0]]))
    (array([2., 5.]), array([ 1., nan]))
    """
    there = ~np.isnan(scores)
    k = there.sum(axis=0)
    mean = np.divide(np.nansum(scores, axis=0), k, out=np.full(k.shape, np.nan), where=k > 0)
    squares = np.where(there, scores - mean, 0.0) ** 2
    variance = np.divide(squares.sum(axis=0), (k - 1) * k, out=np.full(k.shape, np.nan), where=k > 1)
    return mean, np.sqrt(variance)


# --------------------------------------------------------------------------------------------------------------
# Measures in a reader's words.

_NAMES = {
    "f1": "F1", "FScore()": "F1", "roc_auc": "ROC area", "ROCArea()": "ROC area", "r2": "R²", "mae": "mean absolute error",
    "mse": "mean squared error", "log_loss": "log loss", "brier": "Brier score",
}  # fmt: skip

#: What the number says, for those who do not know the name.
_MEANINGS = {
    "F1": "F1 is 1 where every positive row is found and no other is called positive, and 0 where none is found",
    "ROC area": "ROC area is how often a positive row has a higher score than another row: 1 is always, 0.5 is chance",
    "accuracy": "accuracy is the share of right labels",
    "R²": "R² is the share of the labels' variation that is explained: 1 is all, 0 is what their mean does",
    "mean absolute error": "mean absolute error is in the unit of the labels: lower is better",
}


def name_of(by: Measure) -> str:
    """
    >>> from mtldsl.solution.measures import measure
    >>> name_of(measure("roc_auc")), name_of(measure("subset_accuracy"))
    ('ROC area', 'subset accuracy')
    """
    return _NAMES.get(by.name, by.name if "(" in by.name else by.name.replace("_", " "))


def meaning_of(by: Measure) -> str:
    """A clause, "" for a metric that says no more than its name.

    >>> from mtldsl.solution.measures import measure
    >>> meaning_of(measure("hamming_loss"))
    'hamming loss is the share of wrong labels in the table: lower is better'
    """
    name = name_of(by)
    if name in _MEANINGS or not by.of:
        return _MEANINGS.get(name, "")
    article = "the " if by.of.startswith(("share", "mean", "area")) else ""
    return f"{name} is {article}{by.of}" + ("" if by.higher_is_better else ": lower is better")


# --------------------------------------------------------------------------------------------------------------
# By what a label is judged that few rows have, or that few rows have not.


def measure_of_rare(shares: Iterable[float]) -> str | None:
    """A measure that sees rare labels, from the share of +1 in every task; None where no label is rare.

    Average precision is of +1, so it suits where that is rare; where -1 is, the area under the ROC curve does, which is of both.

    >>> measure_of_rare([0.03, 0.4]), measure_of_rare([0.97]), measure_of_rare([0.5]), measure_of_rare([1.0])
    ('average_precision', 'roc_auc', None, None)
    """
    rare = [share for share in shares if 0 < min(share, 1 - share) < SETTINGS.rare_share]
    if not rare:
        return None
    return "average_precision" if max(rare) < 0.5 else "roc_auc"
