"""Ctrl-C while folds are fitted: what was complete is handed over."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.estimators import MultiTaskClassifierCV, MultiTaskRegressorCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = np.sign(X @ RNG.normal(size=(5, 3)) + RNG.normal(size=(60, 3)))
VALUES = [4.0, 1.0]


class Stopping:
    """A scorer that is interrupted after so many scores."""

    def __init__(self, after):
        self.left = after

    def __call__(self, estimator, X, y):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return estimator.score(X, y)


@pytest.mark.parametrize("kind", [MultiTaskClassifierCV, MultiTaskRegressorCV])
def test_an_interrupted_choice_hands_over_complete_folds(kind):
    whole = kind(values=VALUES, cv=4, random_state=0, scoring=Stopping(np.inf)).fit(X, Y)
    estimator = kind(values=VALUES, cv=4, random_state=0, scoring=Stopping(5))  # in the third fold
    with pytest.raises(mtl.Interrupted, match="2 of 4 folds were complete; it is not fitted") as stop:
        estimator.fit(X, Y)
    found, folds = stop.value.completed, ("split0_test_score", "split1_test_score")
    assert "split2_test_score" not in found and not hasattr(estimator, "cv_results_")
    for fold in folds:
        np.testing.assert_array_equal(found[fold], whole.cv_results_[fold])
    np.testing.assert_allclose(found["mean_test_score"], np.mean([found[fold] for fold in folds], axis=0))
    np.testing.assert_array_equal(found["param_lam"], VALUES)
    with pytest.raises(mtl.Interrupted, match="0 of 4") as stop:
        kind(values=VALUES, cv=4, scoring=Stopping(1)).fit(X, Y)
    assert stop.value.completed is None
