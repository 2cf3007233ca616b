"""Models stated by the names of their loss and their penalty."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from mtldsl import ModelError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    MultiTaskClassifier,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
)
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = X[:, :2] + 0.1 * RNG.normal(size=(40, 2))


@for_each(
    ("kind", "loss"),
    [
        (MultiTaskRegressor, "squared_loss"),
        (MultiTaskClassifier, "logistic_loss"),
        (GroupedMultiTaskRegressor, "squared_loss"),
        (GroupedMultiTaskClassifier, "logistic_loss"),
    ],
)
def test_names_are_the_statement_of_these_names(kind, loss):
    groups = np.tile(["a", "b"], 20)
    y = Y[:, 0] if loss == "squared_loss" else Y[:, 0] > 0
    given = (X, y) if not kind.__name__.startswith("Grouped") else (X, y, groups)
    named = kind(penalty="trace_norm", lam=2.0).fit(*given)
    typed = kind(f"{loss}(W, tasks) + lam * trace_norm(W)", lam=2.0).fit(*given)
    np.testing.assert_array_equal(named.coef_, typed.coef_)
    assert clone(named).get_params() == named.get_params()


def test_a_sum_of_penalties_has_one_strength():
    named = MultiTaskRegressor(loss="huber_loss", penalty="l1_norm + ridge", lam=0.5).fit(X, Y)
    typed = MultiTaskRegressor("huber_loss(W, tasks) + lam * (l1_norm(W) + ridge(W))", lam=0.5).fit(X, Y)
    np.testing.assert_array_equal(named.coef_, typed.coef_)


def test_a_search_goes_over_penalties():
    grid = {"penalty": ["trace_norm", "mean_regularizer"], "lam": [0.1, 10.0]}
    assert set(GridSearchCV(MultiTaskRegressor(), grid, cv=2).fit(X, Y).best_params_) == {"lam", "penalty"}


@for_each(
    ("arguments", "says"),
    [
        ({"penalty": "nuclear"}, "MultiTaskRegressorCV(penalty='nuclear'): there is no penalty of that name; write penalty='trace_norm'"),
        ({"penalty": "lasso"}, "write penalty='l1_norm'"),
        ({"penalty": "elastic_net"}, "write penalty='l1_norm + ridge'"),
        ({"penalty": "zebra"}, "write one of 'l21_norm', 'trace_norm', 'l1_norm', 'ridge'"),
        ({"penalty": "columns_on_simplex"}, "there is no penalty of that name"),
        ({"penalty": "group_norm"}, "group_norm needs groups; write a function, model=lambda W, tasks, lam=1.0:"),
        ({"penalty": 3}, "write its name, such as penalty='l21_norm'"),
        ({"loss": "mse"}, "write loss='squared_loss'"),
        ({"loss": "ridge"}, "there is no loss of that name"),
        ({"model": "Lasso", "penalty": "ridge"}, "stands beside model='Lasso', which has its own penalty"),
        ({"model": "trace_norm"}, "model='trace_norm' is a word, not a model; write penalty='trace_norm'"),
    ],
)  # fmt: skip
def test_other_names_are_answered(arguments, says):
    with pytest.raises(ModelError) as error:
        MultiTaskRegressorCV(**arguments).fit(X, Y)
    assert says in str(error.value)
