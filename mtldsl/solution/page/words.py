"""Measures in a reader's words."""

from __future__ import annotations

from mtldsl.scoring.measure import Measure

__all__ = ["meaning_of", "name_of"]

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
    >>> from mtldsl.scoring.measures import measure
    >>> name_of(measure("roc_auc")), name_of(measure("subset_accuracy"))
    ('ROC area', 'subset accuracy')
    """
    return _NAMES.get(by.name, by.name if "(" in by.name else by.name.replace("_", " "))


def meaning_of(by: Measure) -> str:
    """A clause, "" for a metric that says no more than its name.

    >>> from mtldsl.scoring.measures import measure
    >>> meaning_of(measure("hamming_loss"))
    'hamming loss is the share of wrong labels in the table: lower is better'
    """
    name = name_of(by)
    if name in _MEANINGS or not by.of:
        return _MEANINGS.get(name, "")
    article = "the " if by.of.startswith(("share", "mean", "area")) else ""
    return f"{name} is {article}{by.of}" + ("" if by.higher_is_better else ": lower is better")
