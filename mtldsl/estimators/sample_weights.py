"""Weights of samples and of classes, as one weight a label."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mtldsl.data.input_checks import weights_of
from mtldsl.errors import DataError
from mtldsl.utils.validation import as_float, plain, quoted


def of_labels(sample_weight, shape: tuple[int, int]) -> np.ndarray | None:
    """(n, m) weights >= 0 from sample_weight (n,) or (n, m); None where there are none.

    ValueError for other shapes, for weights that are negative, infinite or NaN, and where all are zero.
    """
    if sample_weight is None:
        return None
    given = weights_of(sample_weight, "sample_weight")
    if given.ndim == 0:
        given = np.full(shape[0], float(given))
    n, m = shape
    if given.shape not in ((n,), (n, m)):
        raise DataError(
            f"sample_weight has the shape {given.shape}, and y has {n} rows and {m} tasks",
            argument="sample_weight",
            write_instead=f"give ({n},), one weight a row, or ({n}, {m}), one a label",
        )
    if not (given >= 0).all() or np.isinf(given).any():
        place = np.argwhere(~((given >= 0) & (given < np.inf)))[0]
        raise DataError(
            f"sample_weight is {given[tuple(place)]} in row {place[0]}; weights are finite and >= 0",
            argument="sample_weight",
        )
    if not given.any():
        raise DataError("Sample weights must contain at least one non-zero number", argument="sample_weight")
    return np.broadcast_to(given[:, None] if given.ndim == 1 else given, shape)


def of_rows(sample_weight, n: int) -> np.ndarray | None:
    """(n,) the same of rows, which have one weight each."""
    weights = of_labels(sample_weight, (n, 1))
    return None if weights is None else weights[:, 0]


def class_weights(class_weight, labels, weights: np.ndarray | None) -> np.ndarray | None:
    """Those of the samples times those of their classes: (n, m), or None where all are 1.

    class_weight : None; "balanced": n / (2 n_class) in every task, of its labels as they are weighted; for one task of two or more
                   classes n / (k n_class); or {class: weight}, of a table also one such dict a column
    """
    if class_weight is None:
        return weights
    signs = labels.signs
    own = np.ones(signs.shape) if weights is None else np.array(weights)
    own[np.isnan(signs)] = 0.0
    if isinstance(class_weight, str) and class_weight == "balanced":
        if labels.kind == "multiclass":  # a class weighs the same in every task that it stands in
            totals = np.array([own[signs[:, k] > 0, k].sum() for k in range(signs.shape[1])])
            each = totals.sum() / (len(totals) * np.where(totals > 0, totals, 1.0))
            return own * each[np.nanargmax(np.nan_to_num(signs, nan=-2.0), axis=1)][:, None]
        for i in range(signs.shape[1]):
            sides = [signs[:, i] > 0, signs[:, i] < 0]
            totals = [own[side, i].sum() for side in sides]
            for side, total in zip(sides, totals, strict=True):
                own[side, i] *= sum(totals) / (2.0 * total) if total > 0 else 1.0
        return own
    columns = labels.classes if labels.kind == "multilabel" else [labels.classes]
    if isinstance(class_weight, Mapping):
        each = [class_weight] * len(columns)
    elif labels.kind == "multilabel" and isinstance(class_weight, list | tuple) and len(class_weight) == len(columns):  # fmt: skip
        each = class_weight
    else:
        raise DataError(
            f"class_weight={quoted(class_weight, 60)}",
            argument="class_weight",
            write_instead="write None, 'balanced', {class: weight}, or of a table of labels a list with one dict a column",
        )
    if labels.kind != "multiclass":
        return own * np.stack([_two_sided(*one) for one in zip(each, columns, signs.T, strict=True)], axis=1)
    _refuse_unknown(each[0], labels.classes)
    weight_of = np.array([_weight(each[0], known) for known in labels.classes])
    return own * weight_of[np.argmax(np.nan_to_num(signs, nan=-2.0), axis=1)][:, None]


def _two_sided(class_weight, known, signs) -> np.ndarray:
    if not isinstance(class_weight, Mapping):
        raise DataError(
            f"class_weight holds {quoted(class_weight, 60)}",
            argument="class_weight",
            write_instead="write {class: weight}",
        )
    if not len(known):  # a column without a label: whatever its classes are
        return np.ones(len(signs))
    _refuse_unknown(class_weight, known)
    return np.where(signs > 0, _weight(class_weight, known[-1]), _weight(class_weight, known[0]))


def _weight(class_weight: Mapping, known) -> float:
    """Return the weight of a class, 1 where none is given."""
    given = class_weight.get(plain(known), 1.0)
    weight = as_float(given)
    if weight is None or not 0 <= weight < np.inf:
        raise DataError(
            f"class_weight={quoted(class_weight, 60)}: the weight of {plain(known)!r} is {quoted(given)}",
            argument="class_weight",
            write_instead="write a finite number >= 0",
        )
    return weight


def _refuse_unknown(class_weight: Mapping, classes) -> None:
    known = {plain(each) for each in classes}
    strange = [each for each in class_weight if each not in known]
    if strange:
        raise DataError(
            f"class_weight names the class {strange[0]!r}; the classes are {', '.join(map(repr, sorted(known, key=str)))}",
            argument="class_weight",
        )
