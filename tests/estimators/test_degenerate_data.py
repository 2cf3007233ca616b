"""Data that say nothing, in estimators that choose lam: an answer or a typed error, never a grid of rounding errors."""

import numpy as np
import pytest

from mtldsl.errors import DataError
from mtldsl.estimators import (
    GroupedMultiTaskClassifierCV,
    GroupedMultiTaskRegressorCV,
    MultiTaskClassifierCV,
    MultiTaskRegressorCV,
)
from tests.looks import counted_looks
from tests.loops import for_each

N = 30
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 4))
Y = X @ RNG.normal(size=(4, 3)) + 0.3 * RNG.normal(size=(N, 3))
SIDES = np.where(Y > 0, 1, -1)
IDS = np.repeat(["a", "b", "c"], N // 3)
ESTIMATORS = {
    "regressor": (MultiTaskRegressorCV, Y, {}),
    "classifier": (MultiTaskClassifierCV, SIDES, {}),
    "regressor of rows": (GroupedMultiTaskRegressorCV, Y[:, 0], {"groups": IDS}),
    "classifier of rows": (GroupedMultiTaskClassifierCV, SIDES[:, 0], {"groups": IDS}),
}
NOTHING = {
    "equal rows": np.repeat(X[:1], N, axis=0),
    "constant 2^53": np.full((N, 4), 2.0**53),
    "constants of many sizes": np.broadcast_to([1e-9, 1.0, 1e9, 1.7e15], (N, 4)),
    "zeros": np.zeros((N, 4)),
    "one constant column": np.full((N, 1), 1e15),
}
LITTLE = {
    "a constant column of seconds": np.where(np.arange(4) == 0, 1.7e9, X),
    "two different rows": np.repeat(X[:2], N // 2, axis=0),
    "one column four times": np.repeat(X[:, :1], 4, axis=1),
    "a column of zeros": np.where(np.arange(4) == 0, 0.0, X),
    "columns of many sizes": X * [1e8, 1.0, 1e-8, 1.0],
}


@for_each("kind", ESTIMATORS)
@for_each("data", NOTHING)
def test_labels_that_do_not_depend_on_inputs_are_said_so(data, kind):
    """No solve is begun."""
    make, y, beside = ESTIMATORS[kind]
    with counted_looks() as looks, pytest.raises(DataError, match="the labels do not depend on X"):
        make().fit(NOTHING[data], y, **beside)
    assert looks.count == 0


@pytest.mark.slow
@for_each("data, kind", list(zip(LITTLE, [*ESTIMATORS, "regressor"], strict=True)))
def test_little_to_learn_from_takes_no_more_looks(data, kind):
    """About as many as ordinary columns do."""
    make, y, beside = ESTIMATORS[kind]
    with counted_looks() as ordinary:
        make(n_values=5).fit(X, y, **beside)
    with counted_looks() as looks:
        fitted = make(n_values=5).fit(LITTLE[data], y, **beside)
    assert fitted.solution_.is_certified and 0 < looks.count <= 2 * ordinary.count


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mtldsl.estimators.OneClassWarning")
def test_one_row_of_a_class_and_a_label_that_is_constant():
    rare = np.where(np.arange(N)[:, None] == 0, -1, np.ones((N, 3), dtype=int))
    constant = np.where(np.arange(3) == 0, 1, SIDES)
    for labels in (rare, constant):
        assert MultiTaskClassifierCV(n_values=5).fit(X, labels).solution_.is_certified


def test_lambda_max_beside_an_offset_is_that_of_centered_columns():
    """What is left out as rounding is rounding: the columns that count have the value that they have without an offset."""
    import mtldsl as mtl

    found = []
    for inputs in (X, X + 1e6, np.where(np.arange(5) == 4, 2.0**53, np.hstack([X, X[:, :1]]))):
        tasks = mtl.Tasks.shared(inputs, Y)
        W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
        found.append(float(mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.l21_norm(W)).lambda_max(lam)))
    np.testing.assert_allclose(found, found[0], rtol=1e-6)
