"""The class that counts as positive where the labels do not say it: the last of two in sorted order, as in scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np

from mtldsl.atoms.metrics.contingency import BalancedError, ErrorRate, GMean
from mtldsl.atoms.metrics.ranking import ROCArea
from mtldsl.estimators.targets import Labels

__all__ = ["EVEN", "OF_POSITIVES", "PositiveClassWarning", "positives", "warn_of_positives"]

#: the measures by name that change where the two classes change places
OF_POSITIVES = frozenset(("f1", "f1_micro", "f1_weighted", "precision", "recall", "average_precision"))

#: the metrics that do not
EVEN = (BalancedError, ErrorRate, GMean, ROCArea)


class PositiveClassWarning(UserWarning):
    """A score asks for the positive class, and labels that do not say which it is have the more frequent one there."""


def positives(labels: Labels) -> dict[str, object]:
    """{column: its positive class} of the columns whose labels do not say it: text, and numbers other than 0/1 and -1/+1."""
    if labels.kind == "multiclass":
        return {}
    columns = labels.classes if labels.kind == "multilabel" else [labels.classes]
    names = labels.names or (("y",) if labels.kind == "binary" else tuple(map(str, range(len(columns)))))
    return {
        name: known[-1].item()
        for name, known in zip(names, columns, strict=True)
        if len(known) == 2 and known.tolist() not in ([0, 1], [-1, 1])
    }


def warn_of_positives(labels: Labels, typed: str, asked: str) -> None:
    """A PositiveClassWarning where the class taken as positive is the more frequent one."""
    unsaid = positives(labels)
    names = list(
        labels.names or (("y",) if labels.kind == "binary" else map(str, range(labels.signs.shape[1])))
    )
    often = [one for one in unsaid if np.nansum(labels.signs[:, names.index(one)]) > 0]
    if not often:
        return
    other = labels.classes if labels.kind == "binary" else labels.classes[names.index(often[0])]
    listed = ", ".join(f"{unsaid[one]!r} of {one}" for one in often[:4]) + ", ..." * (len(often) > 4)
    warnings.warn(
        f"{typed}: {asked} counts positives, and the class taken as positive is the last in sorted order, here the more frequent one: {listed}; "
        f"where {other[0].item()!r} is meant, fit and score on y == {other[0].item()!r}",
        PositiveClassWarning,
        stacklevel=4,
    )
