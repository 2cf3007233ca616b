"""The measures that there are, by name."""

from __future__ import annotations

import difflib

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.scoring.measure import Measure
from mtldsl.scoring.rows import coverage_error, hamming_loss, ranking_loss, subset_accuracy
from mtldsl.values.number import quoted

__all__ = ["MEASURES", "OF_KINDS", "measure", "named_measure"]

_ALL = (
    Measure("mse", "mean_squared_error", "values", False, of="mean squared error"),
    Measure(
        "nmse", "r2_score", "values", False, "two", shown=lambda r2: 1.0 - r2,
        of="mean squared error over the variance of the task's labels, 1 - R^2",
    ),
    Measure("mae", "mean_absolute_error", "values", False, of="mean absolute error"),
    Measure("r2", "r2_score", "values", True, "two", of="coefficient of determination R^2"),
    Measure("explained_variance", "explained_variance_score", "values", True, "two", of="share of the variance explained, whatever the bias"),
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


class _OfKinds(Measure):
    """What `solution.scores` says of each task: the accuracy of labels, R^2 of numbers."""

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        # a loss of labels answers with nothing but labels, one of numbers hardly ever
        labels = bool(np.isin(y, (-1.0, 1.0)).all() and np.isin(predicted, (-1.0, 1.0)).all())
        return MEASURES["accuracy" if labels else "r2"].of_task(y, predicted, weights)


#: of models with a loss for each kind of tasks, where nothing else is asked for
OF_KINDS: Measure = _OfKinds(
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
    "roc_auc_score": "roc_auc", "pr_auc": "average_precision", "auprc": "average_precision",
    "average_precision_score": "average_precision", "map": "average_precision", "neg_log_loss": "log_loss", "cross_entropy": "log_loss",
    "precision_score": "precision", "precision_macro": "precision", "recall_score": "recall", "recall_macro": "recall",
    "brier_score": "brier", "brier_score_loss": "brier", "neg_brier_score": "brier", "exact_match": "subset_accuracy",
    "zero_one_loss": "subset_accuracy", "hamming": "hamming_loss", "label_ranking_loss": "ranking_loss", "coverage": "coverage_error",
}  # fmt: skip


def named_measure(name) -> Measure | None:
    """Return the measure of a name, or of the name that scikit-learn has for it; None where there is none."""
    return MEASURES.get(_SYNONYMS.get(name, name)) if isinstance(name, str) else None


def measure(name, typed: str = "metric") -> Measure:
    """The measure of this name; ModelError with the nearest name for one that is not known, also for the names that others use.

    >>> measure("pr_auc")
    Traceback (most recent call last):
    mtldsl.errors.ModelError: metric='pr_auc': there is no such measure; write 'average_precision'
    """
    if isinstance(name, str) and name in MEASURES:
        return MEASURES[name]
    if name == OF_KINDS.name:
        return OF_KINDS
    low = name.lower() if isinstance(name, str) else ""
    near = difflib.get_close_matches(low, [*MEASURES, *_SYNONYMS], n=1, cutoff=0.7)
    meant = _SYNONYMS.get(near[0], near[0]) if near else ""
    raise ModelError(
        "there is no such measure",
        term=f"{typed}={quoted(name)}" + ")" * typed.count("("),
        write_instead=f"write {meant!r}" if meant else f"write one of {', '.join(map(repr, MEASURES))}",
        argument="metric",
    )
