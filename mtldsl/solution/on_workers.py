"""Predictions for arrays and data frames of Dask: an array of Dask, computed where its inputs are, when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.errors import DataError
from mtldsl.solution.predictors import Fitted, TaskByTask, predictor_class, predictor_of, probabilities
from mtldsl.tasks.schema import Schema

__all__ = ["predictor_for"]


@dataclass(frozen=True, eq=False)
class _Predicting:
    """What predictions need of a solution: nothing that is as long as the data it was learned on."""

    coef: np.ndarray
    intercept: np.ndarray | None
    thresholds: np.ndarray | None
    loss: dict
    schema: Schema


def predictor_for(fitted: Fitted, X) -> Any:
    """See `mtldsl.solution.predictors.predictor_for`, of Dask's types."""
    return _OnWorkers(fitted) if hasattr(X, "to_delayed") else predictor_of(fitted)


class _OnWorkers:
    """The methods of a predictor."""

    def __init__(self, of: Fitted):
        self.of = of

    def decision_function(self, X) -> Any:
        return _lazily(self.of, "decision_function", X)

    def predict(self, X, return_certified: bool) -> Any:
        if return_certified:
            return predictor_of(self.of).predict(X, return_certified)
        return _lazily(self.of, "predict", X)

    def predict_proba(self, X) -> Any:
        return _lazily(self.of, "predict_proba", X)


def _lazily(fitted: Fitted, method: str, X: Any) -> Any:
    """(n, m) array of Dask: predict, decision_function or predict_proba of the inputs, part by part. DataError where the columns do not fit."""
    import dask.array as da
    from dask.delayed import delayed

    if predictor_class(fitted.loss) is not TaskByTask:
        raise DataError(
            f"{fitted.loss['word']} predicts whole labellings, of inputs that are here",
            term=f"{method}(X)", write_instead="write X.map_blocks(solution.predict)",
        )  # fmt: skip
    if method == "predict_proba":
        probabilities(fitted.loss, np.zeros(1))  # before any input is looked at
    known = _Predicting(fitted.coef, fitted.intercept, fitted.thresholds, fitted.loss, fitted.schema)
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


def _answer(known: _Predicting, method: str, X) -> np.ndarray:
    """(rows, m) of one part."""
    if not len(X):
        known.schema.columns(X)
        return np.empty((0, known.coef.shape[1]))
    predictor: Any = TaskByTask(known)  # type: ignore[arg-type]
    found = predictor.predict(X, False) if method == "predict" else getattr(predictor, method)(X)
    return np.asarray(found, dtype=float)
