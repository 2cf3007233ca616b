"""One model per task is as good as what every task learns alone with a program of its own."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import mtldsl as mtl
from mtldsl.problems.separate_models import separate_models


def small_groups(m=5, n=9, seed=0):
    rng = np.random.default_rng(seed)
    inputs = [rng.normal(size=(n + 40, 3)) for _ in range(m)]
    labels = [X @ [2.0, 1.0, 0.0] + rng.normal(size=len(X)) for X in inputs]
    return [(X[:n], y[:n], X[n:], y[n:]) for X, y in zip(inputs, labels, strict=True)]


@pytest.mark.slow
def test_small_groups_are_no_worse_than_least_squares():
    """A mean of R^2 over three rows a task follows the worst of them, and shrinks everything."""
    data = small_groups()
    alone = separate_models(mtl.Tasks.separate([one[0] for one in data], [one[1] for one in data]))
    own = alone.predict([one[2] for one in data])
    plain = [LinearRegression().fit(X, y).predict(new) for X, y, new, _ in data]
    truth = [one[3] for one in data]
    errors = [np.mean(np.abs(np.subtract(found, truth))) for found in (own, plain)]
    assert errors[0] < 1.02 * errors[1]


def test_columns_of_other_units_choose_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 6))
    Y = X @ rng.normal(size=(6, 2)) + [[0.1, 4.0]] * rng.normal(size=(24, 2))
    lams = [separate_models(mtl.Tasks.shared(X, Y * [1.0, unit])).parameters["lam"] for unit in (1.0, 1e3)]
    assert lams[0] == lams[1]
