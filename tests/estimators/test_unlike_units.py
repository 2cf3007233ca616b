"""Columns of very unlike units are told, with what to write, and scaled ones are not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mtldsl.estimators import (
    GroupedMultiTaskRegressor,
    MultiTaskClassifier,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
    UnlikeUnitsWarning,
)
from tests.estimators.cases import labels, regression
from tests.loops import for_each

X, Y = regression()
PRICES = pd.DataFrame(Y[:, :2] * [1.0, 1e6], columns=["rooms", "price"])
METRES = pd.DataFrame(X * [1e6, 1, 1, 1, 1, 1], columns=list("abcdef"))
IDS = np.arange(40) % 2
GAPS = PRICES.mask(X[:, :2] > 1.0)
TOLD = {
    "y": (lambda: MultiTaskRegressor().fit(X, PRICES), "of y, 'rooms' from .* and 'price' from .*e.06"),
    "y with gaps": (lambda: MultiTaskRegressor().fit(X, GAPS), "or, with gaps in y, fit on y / np.nanstd"),
    "y, on folds": (lambda: MultiTaskRegressorCV(values=[1.0], cv=2).fit(X, PRICES), "TransformedTargetRegressor.MultiTaskRegressorCV"),
    "X": (lambda: MultiTaskRegressor().fit(METRES, Y), "of X, .* and 'a' from .* write make_pipeline.StandardScaler"),
    "X beside a ridge": (lambda: MultiTaskRegressorCV(penalty="ridge", cv=2).fit(METRES, PRICES), "units: of X, .* and 'a' from"),
    "X, of classes": (lambda: MultiTaskClassifier().fit(METRES, labels(40)[1]), "MultiTaskClassifier: .* units: of X, .* and 'a' from"),
    "X, of rows of tasks": (lambda: GroupedMultiTaskRegressor(task="g").fit(METRES.assign(g=IDS), Y[:, 0]), "of X, .* and 'a' .* write X.features. = "),
    "both": (lambda: MultiTaskRegressor().fit(METRES, PRICES), "of y, .*; of X, .* and make_pipeline"),
}  # fmt: skip
SILENT = {
    "hundredfold": lambda: MultiTaskRegressor().fit(X, PRICES / [1.0, 1e4]),
    "constant but for rounding": lambda: MultiTaskRegressor().fit(X, PRICES.assign(price=0.1 + 1e-17 * X[:, 0])),
    "a rare flag beside ages": lambda: MultiTaskRegressor().fit(np.c_[80 * X[:, :1], np.eye(40)[:, :1]], Y),
    "a ridge": lambda: MultiTaskRegressor(penalty="ridge").fit(X, PRICES),
    "classes": lambda: MultiTaskClassifier().fit(X, labels(40)[1]),
    "rows of tasks": lambda: GroupedMultiTaskRegressor().fit(X, PRICES["price"], groups=IDS),
    "sparse": lambda: MultiTaskRegressor().fit(sparse.csr_array(METRES), Y),
    "real tables": lambda: [MultiTaskRegressor().fit(*load(return_X_y=True)) for load in (load_diabetes, load_linnerud)],
    "scaled": lambda: TransformedTargetRegressor(MultiTaskRegressor(), transformer=StandardScaler()).fit(X, PRICES),
    "scaled in a pipeline": lambda: make_pipeline(StandardScaler(), MultiTaskRegressor()).fit(METRES, Y),
}  # fmt: skip


@for_each("case", TOLD)
def test_unlike_units_are_told_once(case):
    fit, says = TOLD[case]
    with pytest.warns(UnlikeUnitsWarning, match=says) as told:
        fit()
    assert len(told) == 1


@for_each("case", SILENT)
def test_ordinary_units_are_not_told(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnlikeUnitsWarning)
        SILENT[case]()
