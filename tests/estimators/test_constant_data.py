"""Estimators that choose their parameter, on data from which nothing can be learned: an error at once, for what is left is rounding."""

import numpy as np
import pytest

from mtldsl import DataError
from mtldsl.estimators import MultiTaskClassifierCV, MultiTaskRegressorCV
from tests.loops import for_each

RNG = np.random.default_rng(7)
X = RNG.normal(size=(30, 4))
Y = X @ RNG.normal(size=(4, 3)) + 0.3 * RNG.normal(size=(30, 3))
CONSTANT = {
    "equal rows": np.repeat(X[:1], 30, axis=0),
    "columns of 2^53": np.full((30, 4), 2.0**53),
    "columns of 1e-9": np.full((30, 4), 1e-9),
    "columns of one value each": np.tile([3.0, -1e6, 0.1, 1e12], (30, 1)),
    "zeros": np.zeros((30, 4)),
}


@for_each("kind", CONSTANT)
@for_each("estimator", [MultiTaskClassifierCV, MultiTaskRegressorCV])
def test_rounding_is_not_learned_from(estimator, kind):
    y = np.sign(Y).astype(int) if estimator is MultiTaskClassifierCV else Y
    with pytest.raises(DataError, match="labels do not depend on X"):
        estimator().fit(CONSTANT[kind], y)


def test_one_column_that_varies_is_learned_from():
    A = CONSTANT["columns of 2^53"].copy()
    A[:, 1] = X[:, 1]
    assert MultiTaskRegressorCV(n_values=3).fit(A, X[:, [1]]).score(A, X[:, [1]]) > 0.9
