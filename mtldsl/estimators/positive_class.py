"""Positive class where the labels do not say it: the last of two in sorted order, as in scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from mtldsl.atoms.metrics.contingency import BalancedError, ErrorRate, GMean
from mtldsl.atoms.metrics.ranking import ROCArea
from mtldsl.estimators.targets import ClassTargets

#: the measures by name that change where the two classes change places
OF_POSITIVES = frozenset(("f1", "f1_micro", "f1_weighted", "precision", "recall", "average_precision"))

#: the metrics that do not
EVEN = (BalancedError, ErrorRate, GMean, ROCArea)


class PositiveClassWarning(UserWarning):
    """A score asks for the positive class, and labels that do not say which it is have the more frequent one there."""


def _unsaid(labels: ClassTargets) -> Iterator[tuple[str, list, np.ndarray]]:
    """Yield (name, its two classes, its signs) of each column whose labels do not say which class is positive."""
    if labels.kind == "multiclass":
        return
    columns = labels.classes if labels.kind == "multilabel" else [labels.classes]
    names = labels.names or (("y",) if labels.kind == "binary" else map(str, range(len(columns))))
    for name, known, signs in zip(names, columns, labels.signs.T, strict=True):
        if len(known) == 2 and known.tolist() not in ([0, 1], [-1, 1]):
            yield name, known.tolist(), signs


def positives(labels: ClassTargets) -> dict[str, object]:
    """{column: its positive class} of the columns whose labels do not say it: text, and numbers other than 0/1 and -1/+1."""
    return {name: known[-1] for name, known, _ in _unsaid(labels)}


def warn_of_positives(labels: ClassTargets, typed: str, asked: str) -> bool:
    """A PositiveClassWarning where the class taken as positive is the more frequent one; tell whether that is so."""
    often = [(name, known) for name, known, signs in _unsaid(labels) if np.nansum(signs) > 0]
    if not often:
        return False
    other = often[0][1][0]
    listed = ", ".join(f"{known[-1]!r} of {name}" for name, known in often[:4]) + ", ..." * (len(often) > 4)
    warnings.warn(
        f"{typed}: {asked} counts positives, and the class taken as positive is the last in sorted order, here the more frequent one: {listed}; "
        f"where {other!r} is meant, fit and score on y == {other!r}",
        PositiveClassWarning,
        stacklevel=4,
    )
    return True
