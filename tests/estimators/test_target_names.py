"""Names of the columns of y, held to at every door that takes labels beside a fitted estimator."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mtldsl import DataError
from mtldsl.estimators import MultiTaskClassifier, MultiTaskRegressor, report, scorer
from mtldsl.estimators.baselines import BinaryRelevance
from tests.loops import for_each

X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
Y = pd.DataFrame({"flu": X.a > 0, "sepsis": X.b > 0.5}).astype(int)
PIPE = make_pipeline(StandardScaler(), MultiTaskClassifier()).fit(X, Y)

DOORS = {
    "score": lambda y: PIPE[-1].score(PIPE[:-1].transform(X), y),
    "score of numbers": lambda y: MultiTaskRegressor().fit(X, Y).score(X, y),
    "score of a baseline": lambda y: BinaryRelevance().fit(X, Y).score(X, y),
    "scorer": lambda y: scorer("f1")(PIPE, X, y),
    "scorer of numbers": lambda y: scorer("r2")(MultiTaskRegressor().fit(X, Y), X, y),
    "report": lambda y: report(PIPE, "never.html", X, y),
}


@for_each("door", DOORS)
def test_other_names_of_targets_are_refused(door):
    with pytest.raises(DataError, match="same order as they were in fit; give the columns 'flu', 'sepsis'"):
        DOORS[door](Y[["sepsis", "flu"]])
    with pytest.raises(
        DataError, match=r"unseen at fit time: 'other'; target names seen .* missing: 'sepsis'"
    ):
        DOORS[door](Y.rename(columns={"sepsis": "other"}))
    if door != "report":
        assert DOORS[door](Y.to_numpy()) == DOORS[door](Y)


def test_a_fit_on_an_array_forgets_names_of_targets():
    for make in (MultiTaskClassifier, MultiTaskRegressor):
        named = make().fit(X, Y)
        assert named.target_names_.tolist() == ["flu", "sepsis"] == list(named.solution_.task_names)
    fitted = named.fit(X, Y.to_numpy())
    assert not hasattr(fitted, "target_names_")
    fitted.score(X, Y[["sepsis", "flu"]])
