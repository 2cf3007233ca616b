"""Inputs that were standardised, in the statistics of fewer rows: those that a fold learns on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.tasks.data import T
from mtldsl.tasks.derived import changed
from mtldsl.tasks.scaling import Scaling
from mtldsl.tasks.stacked import Widened

__all__ = ["in_units_of", "scaled_anew", "scaled_like"]


def scaled_anew(tasks: T) -> T:
    """By the statistics of the rows that are here, where `standardize(each_fold=True)` asked for that; else as they are."""
    old = tasks.scaling
    if old is None or old.each_fold is None:
        return tasks
    here = Scaling.of([tasks.X] if tasks.is_shared else Widened(tasks.inputs), *old.each_fold)
    return scaled_like(
        tasks, replace(old, mean=old.mean + old.scale * here.mean, scale=old.scale * here.scale)
    )


def scaled_like(tasks: T, new: Scaling | None) -> T:
    """By these statistics, which others learned, in place of their own."""
    old = tasks.scaling
    if old is None or new is None or old == new:
        return tasks
    own = "shared" if tasks.is_shared else "stacked"
    X = tasks.X if tasks.is_shared else tasks.stacked
    return changed(tasks, **{own: in_units_of(X, old, new)}, scaling=new)


def in_units_of(X, old: Scaling | None, new: Scaling | None) -> Any:
    """(n, d) inputs that were standardised by `old`, standardised by `new`."""
    if old is None or new is None or old == new:
        return X
    if sparse.issparse(X):  # never centred
        return sparse.csr_array(X.multiply(old.scale / new.scale))
    return (np.asarray(X) - (new.mean - old.mean) / old.scale) * (old.scale / new.scale)
