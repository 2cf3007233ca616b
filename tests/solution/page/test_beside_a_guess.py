"""The page says in words which tasks are not shown to be better than a guess."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solution.page.build import html_report
from mtldsl.solution.page.facts import Facts
from tests.loops import for_each


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([X[:, 0] + 0.1 * rng.normal(size=300), rng.normal(size=300)])
    return mtl.Tasks.shared(X, Y, task_names=["learnable", "noise"]).split(test_size=0.4, random_state=0)


def written(train, test, lam, metrics=()) -> str:
    W = mtl.Weights(train, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, train) + lam * mtl.l1_norm(W)).solve()
    return html_report(Facts(solution, test, metrics=metrics, bootstrap=60))


@pytest.mark.slow
@for_each("metric, name", [("r2", "R²"), ("mae", "mean absolute error")])
def test_noise_is_named_and_what_was_learned_is_not(parts, metric, name):
    """Where less is better, the upper end of the interval counts."""
    page = written(*parts, 1.0, [metric])
    assert f"By {name}, it is not shown to be better than a guess in 1 of 2 tasks: noise." in page


def test_weights_of_zero_are_a_guess(parts):
    page = written(*parts, 1e6)
    assert "not shown to be better than a guess in 2 of 2 tasks: learnable, noise." in page
