"""Names of the columns of y: kept by `fit`, and held to wherever labels stand beside a fitted estimator."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.estimators.columns import is_vector
from mtldsl.values.table import as_frame

__all__ = ["hold_targets", "keep_targets", "learned"]


def keep_targets(estimator, names) -> None:
    """`target_names_` of this fit; None, of an array, forgets those of an earlier one."""
    estimator.__dict__.pop("target_names_", None)
    if names is not None:
        estimator.target_names_ = np.array(names, dtype=object)


def hold_targets(estimator, y) -> None:
    """DataError where the columns of y have other names than those that were learned, or another order. Arrays and vectors have none."""
    known = learned(estimator, "target_names_")
    frame = as_frame(y)
    if known is None or frame is None or is_vector(y):
        return
    known, given = list(known), list(map(str, frame.columns))
    if given == known:
        return
    said = "The target names should match those that were passed during fit"
    for what, names in (
        ("unseen at fit time", [one for one in given if one not in known]),
        ("seen at fit time, yet now missing", [one for one in known if one not in given]),
    ):
        if names:
            said += f"; target names {what}: {_listed(names)}"
    if sorted(given) == sorted(known):
        said += "; they must be in the same order as they were in fit"
    raise DataError(
        said, argument="y", write_instead=f"give the columns {_listed(known)}, in this order, or an array"
    )


def learned(estimator, name: str):
    """An attribute that a fit made, wherever the estimator that learned it stands in pipelines and searches; None where there is none."""
    while estimator is not None:
        if hasattr(estimator, name):
            return getattr(estimator, name)
        steps = getattr(estimator, "steps", None)
        inside = getattr(estimator, "best_estimator_", getattr(estimator, "estimator_", None))
        estimator = steps[-1][1] if steps else inside
    return None


def _listed(names: list) -> str:
    return ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
