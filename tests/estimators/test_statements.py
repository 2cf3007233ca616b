"""An estimator is its statement: what it learns is what the statement, typed and solved by hand, learns on the same data."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mtldsl as mtl
from mtldsl import ModelError
from mtldsl.estimators import (
    GroupedMultiTaskClassifier,
    GroupedMultiTaskRegressor,
    KernelMultiTaskClassifier,
    LabelGraphClassifier,
    MultiTaskClassifier,
    MultiTaskRegressor,
    MultiTaskRegressorCV,
)
from tests.estimators.cases import labels, regression, rows_of_tasks
from tests.loops import for_each
from tests.pairs import pairwise_cases


def with_gaps(Y, every=7):
    """A copy without every seventh label."""
    return np.where(np.arange(Y.size).reshape(Y.shape) % every == 0, np.nan, Y)


def solved(loss, tasks, intercept=True, lam=2.0, penalty=mtl.l21_norm):
    """The statement, typed and solved by hand."""
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(loss(W, tasks) + lam * penalty(W)).solve()


@for_each("intercept, gaps, sparse_X", pairwise_cases([False, True], [False, True], [False, True]))
def test_regression_is_the_statement_solved(intercept, gaps, sparse_X):
    X, Y = regression()
    Y = with_gaps(Y) if gaps else Y
    X = sparse.csr_array(X) if sparse_X else X
    fitted = MultiTaskRegressor(lam=3.0, fit_intercept=intercept).fit(X, Y)
    by_hand = solved(mtl.squared_loss, mtl.Tasks.shared(X, Y), intercept, 3.0)
    np.testing.assert_array_equal(fitted.coef_, by_hand.W.T)
    np.testing.assert_array_equal(fitted.intercept_, by_hand.intercept if intercept else np.zeros(3))
    assert fitted.solution_.objective == by_hand.objective and fitted.solution_.is_optimal
    np.testing.assert_allclose(fitted.predict(X), by_hand.predict(X), rtol=1e-14)


@for_each("word", ["l21_norm", "l1_norm", "trace_norm", "ridge"])
def test_classification_is_the_statement_solved_on_signs(word):
    X, Y = labels()
    fitted = MultiTaskClassifier(f"logistic_loss(W, tasks) + lam * {word}(W)", lam=2.0).fit(X, Y)
    by_hand = solved(mtl.logistic_loss, mtl.Tasks.shared(X, 2.0 * Y - 1.0), penalty=getattr(mtl, word))
    np.testing.assert_array_equal(fitted.coef_, by_hand.W.T)
    np.testing.assert_array_equal(fitted.intercept_, by_hand.intercept)
    assert fitted.solution_.objective == by_hand.objective
    np.testing.assert_array_equal(2 * fitted.predict(X) - 1, by_hand.predict(X))
    P, z = fitted.predict_proba(X), by_hand.decision_function(X)
    np.testing.assert_allclose(P, by_hand.predict_proba(X), rtol=1e-14)
    np.testing.assert_allclose(fitted.decision_function(X), z, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(np.exp(fitted.predict_log_proba(X)).round(12), P.round(12))


@pytest.mark.slow
def test_a_named_model_and_a_function_are_the_statement():
    X, Y = regression()
    named = MultiTaskRegressor("Robust-MTL", rho1=2.0, rho2=1.0, tol=1e-9).fit(X, Y)
    text = "sum_of_squares(L + S, tasks) + a * trace_norm(L) + b * l12_norm(S)"
    typed = MultiTaskRegressor(text, a=2.0, b=1.0, tol=1e-9).fit(X, Y)
    np.testing.assert_array_equal(named.coef_, typed.coef_)

    model = mtl.model("Robust-MTL", mtl.Tasks.shared(X, Y), intercept=True, rho1=2.0, rho2=1.0)
    np.testing.assert_array_equal(named.coef_, model.solve(tol=1e-9).coef.T)
    assert {"L", "S"} <= set(named.solution_.blocks)

    def lasso(W, tasks, lam=1.0):
        return mtl.squared_loss(W, tasks) + lam * mtl.l1_norm(W), [W >= 0]

    by_function = MultiTaskRegressor(lasso, lam=2.0).fit(X, Y)
    text = "squared_loss(W, tasks) + lam * l1_norm(W)"
    by_text = MultiTaskRegressor(text, subject_to=["W >= 0"], lam=2.0).fit(X, Y)
    assert by_function.get_params()["lam"] == 2.0 and MultiTaskRegressor(lasso).get_params()["lam"] == 1.0
    np.testing.assert_allclose(by_function.coef_, by_text.coef_, atol=1e-12)
    assert by_function.coef_.min() >= 0.0


def test_rows_of_tasks_are_the_statement_on_grouped_tasks():
    X, y, ids, words = rows_of_tasks()
    order = np.concatenate([np.flatnonzero(ids == each) for each in dict.fromkeys(ids.tolist())])
    tasks = mtl.Tasks.grouped(X[order], y[order], ids[order])
    by_hand = solved(mtl.squared_loss, tasks)
    fitted = GroupedMultiTaskRegressor(lam=2.0).fit(X, y, groups=ids)
    assert fitted.tasks_.tolist() == list(tasks.task_names)
    np.testing.assert_array_equal(fitted.coef_, by_hand.W.T)
    np.testing.assert_array_equal(fitted.intercept_, by_hand.intercept)
    places = [fitted.tasks_.tolist().index(each) for each in ids]
    expected = np.einsum("nd,nd->n", X, fitted.coef_[places]) + fitted.intercept_[places]
    np.testing.assert_allclose(fitted.predict(X, groups=ids), expected, rtol=1e-12)

    tasks = mtl.Tasks.grouped(X[order], np.where(words == "yes", 1.0, -1.0)[order], ids[order])
    classifier = GroupedMultiTaskClassifier(lam=2.0).fit(X, words, groups=ids)
    np.testing.assert_array_equal(classifier.coef_, solved(mtl.logistic_loss, tasks).W.T)
    z, P = classifier.decision_function(X, groups=ids), classifier.predict_proba(X, groups=ids)
    np.testing.assert_array_equal(classifier.predict(X, groups=ids), np.where(z >= 0, "yes", "no"))
    np.testing.assert_allclose(P[:, 1], 1.0 / (1.0 + np.exp(-z)), rtol=1e-12)


@pytest.mark.slow
def test_a_graph_of_labels_is_the_statement_on_inputs_with_ones():
    X, Y = labels(n=40, d=3)
    fitted = LabelGraphClassifier(lam=0.1, tol=1e-7).fit(X, Y)
    tasks = mtl.Tasks.shared(np.hstack([X, np.ones((40, 1))]), 2.0 * Y - 1.0)
    solved = mtl.model("CGM", tasks, lam=0.1).solve(tol=1e-7)
    # rows stand in another order
    assert fitted.solution_.objective == pytest.approx(solved.objective, rel=2e-7)
    np.testing.assert_array_equal(2 * fitted.predict(X) - 1, solved.predict(tasks.X))
    only = LabelGraphClassifier(lam=0.1, edges=[(0, 1)]).fit(X, Y)
    assert set(map(frozenset, only.solution_.graph.edges)) <= {frozenset(("task0", "task1"))}
    marginals = LabelGraphClassifier("HLLM-L1", lam=0.1, mu=0.1).fit(X, Y)
    by_hand = mtl.model("HLLM-L1", tasks, lam=0.1, mu=0.1).solve(tol=1e-8).predict_proba(tasks.X)
    np.testing.assert_allclose(marginals.predict_proba(X), by_hand, atol=2e-2)  # at gaps of 1e-4 and 1e-8


@pytest.mark.slow
def test_kernels_are_the_statement_on_tasks_with_kernels():
    X, Y = labels(n=40)
    fitted = KernelMultiTaskClassifier(kernels=["rbf", "linear"], C=2.0, tol=1e-7).fit(X, Y)
    tasks = mtl.Tasks.shared(X, 2.0 * Y - 1.0).with_kernels(["rbf", "linear"])
    solved = mtl.model("MT-MKL", tasks, intercept=True, C=2.0).solve(tol=1e-7)
    assert fitted.solution_.objective == pytest.approx(solved.objective, rel=2e-7)
    np.testing.assert_allclose(fitted.decision_function(X), solved.decision_function(X), atol=5e-3)
    assert not hasattr(fitted, "coef_")

    gram = X @ X.T
    given = KernelMultiTaskClassifier(kernels="precomputed", tol=1e-8).fit(gram, Y)
    linear = KernelMultiTaskClassifier(kernels="linear", tol=1e-8).fit(X, Y)
    z = linear.decision_function(X[:5])
    np.testing.assert_allclose(given.decision_function(gram[:5]), z, atol=1e-3)


def test_a_warm_start_begins_at_the_last_fit():
    X, Y = labels(n=100, d=30)
    cold = MultiTaskClassifier(
        "logistic_loss(W, tasks) + lam * trace_norm(W)", lam=1.0, solver="proximal_gradient"
    ).fit(X, Y)
    warm = clone(cold).set_params(warm_start=True).fit(X, Y)
    assert warm.n_iter_ == cold.n_iter_ > 2
    assert warm.fit(X, Y).n_iter_ < cold.n_iter_ / 2
    other = warm.fit(X[:, :10], Y)  # weights of another shape are not begun at
    np.testing.assert_array_equal(other.coef_, cold.fit(X[:, :10], Y).coef_)


def test_a_time_limit_warns_and_the_certificate_says_how_far():
    limited = MultiTaskRegressor(lam=0.1, solver="proximal_gradient", tol=1e-14, max_seconds=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        fitted = limited.fit(*regression(n=300, d=60))
    assert not fitted.solution_.is_certified and fitted.solution_.dual_bound <= fitted.solution_.objective


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


@for_each(("arguments", "says"), [
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
])  # fmt: skip
def test_other_names_are_answered(arguments, says):
    with pytest.raises(ModelError) as error:
        MultiTaskRegressorCV(**arguments).fit(X, Y)
    assert says in str(error.value)
