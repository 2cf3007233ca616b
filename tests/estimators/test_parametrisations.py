"""The table of docs/estimators.md that says which lam is whose alpha or C: every line, against the other package's own answer; and that it names all that is tested."""

import re
import warnings
from pathlib import Path

import numpy as np
import sklearn
from sklearn import linear_model, svm
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

from mtldsl.estimators import MultiTaskClassifier, MultiTaskRegressor
from tests.estimators.cases import labels, regression
from tests.loops import for_each

N = 40
X, Y = regression(N)
XL, YL = labels(N)
COUNTS = np.random.default_rng(0).poisson(np.exp(0.3 * Y[:, 0]))
SQUARES, LOGISTIC = "squared_loss(W, tasks)", "logistic_loss(W, tasks)"
EXACT = {"tol": 1e-11}


def lasso_logistic(C):
    """scikit-learn's l1 logistic regression, whose option has changed its name."""
    new = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
    kind = {"l1_ratio": 1.0} if new else {"penalty": "l1"}
    return linear_model.LogisticRegression(C=C, solver="saga", tol=1e-10, max_iter=100_000, **kind)


def tight(estimator):
    """Their solution to the last digits."""
    options = {"tol": 1e-12, "max_iter": 200_000}
    return estimator.set_params(**{k: v for k, v in options.items() if k in estimator.get_params()})


#: the line -> (theirs, ours, X, y). In `ours` the numbers are written as the table says them.
LINES = {
    "Lasso": (tight(linear_model.Lasso(alpha=0.1)), MultiTaskRegressor(f"{SQUARES} + lam * l1_norm(W)", lam=N * 0.1), X, Y[:, 0]),
    "ElasticNet": (
        tight(linear_model.ElasticNet(alpha=0.1, l1_ratio=0.3)),
        MultiTaskRegressor(f"{SQUARES} + lam1 * l1_norm(W) + lam2 * ridge(W)", lam1=N * 0.1 * 0.3, lam2=N * 0.1 * 0.7),
        X, Y[:, 0],
    ),
    "MultiTaskLasso": (tight(linear_model.MultiTaskLasso(alpha=0.1)), MultiTaskRegressor(lam=N * 0.1), X, Y),
    "MultiTaskLasso, means": (
        tight(linear_model.MultiTaskLasso(alpha=0.1)),
        MultiTaskRegressor("squared_loss(W, tasks, mean=True) + lam * l21_norm(W)", lam=0.1), X, Y,
    ),
    "MultiTaskElasticNet": (
        tight(linear_model.MultiTaskElasticNet(alpha=0.1, l1_ratio=0.3)),
        MultiTaskRegressor(f"{SQUARES} + lam1 * l21_norm(W) + lam2 * ridge(W)", lam1=N * 0.1 * 0.3, lam2=N * 0.1 * 0.7),
        X, Y,
    ),
    "Ridge": (linear_model.Ridge(alpha=3.0), MultiTaskRegressor(f"{SQUARES} + lam * ridge(W)", lam=3.0), X, Y),
    "LinearRegression": (linear_model.LinearRegression(), MultiTaskRegressor(SQUARES), X, Y),
    "QuantileRegressor": (
        linear_model.QuantileRegressor(quantile=0.7, alpha=0.05),
        MultiTaskRegressor("quantile_loss(W, tasks, q=0.7) + lam * l1_norm(W)", lam=N * 0.05), X, Y[:, 0],
    ),
    "PoissonRegressor": (
        tight(linear_model.PoissonRegressor(alpha=0.2)),
        MultiTaskRegressor("poisson_loss(W, tasks) + lam * ridge(W)", lam=N * 0.2), X, COUNTS,
    ),
    "GammaRegressor": (
        tight(linear_model.GammaRegressor(alpha=0.2)),
        MultiTaskRegressor("gamma_loss(W, tasks) + lam * ridge(W)", lam=N * 0.2), X, COUNTS + 0.5,
    ),
    "LogisticRegression": (
        tight(linear_model.LogisticRegression(C=0.5)),
        MultiTaskClassifier(f"{LOGISTIC} + lam * ridge(W)", lam=1 / 0.5), XL, YL[:, 0],
    ),
    "LogisticRegression, l1": (lasso_logistic(0.5), MultiTaskClassifier(f"{LOGISTIC} + lam * l1_norm(W)", lam=1 / 0.5), XL, YL[:, 0]),
    "LogisticRegression, balanced": (
        tight(linear_model.LogisticRegression(C=0.5, class_weight="balanced")),
        MultiTaskClassifier(f"{LOGISTIC} + lam * ridge(W)", lam=1 / 0.5, class_weight="balanced"), XL, YL[:, 0],
    ),
    "LinearSVC": (
        tight(svm.LinearSVC(C=0.5, fit_intercept=False)),
        MultiTaskClassifier("squared_hinge_loss(W, tasks) + lam * ridge(W)", lam=1 / 0.5, fit_intercept=False), XL, YL[:, 0],
    ),
    "SVC": (
        svm.SVC(kernel="linear", C=0.5, tol=1e-10),
        MultiTaskClassifier("hinge_loss(W, tasks) + lam * ridge(W)", lam=1 / 0.5), XL, YL[:, 0],
    ),
    "RidgeClassifier": (
        linear_model.RidgeClassifier(alpha=3.0),
        MultiTaskClassifier(f"{SQUARES} + lam * ridge(W)", lam=3.0), XL, YL[:, 0],
    ),
}  # fmt: skip


@for_each("line", LINES)
def test_a_line_of_the_table(line):
    theirs, ours, inputs, y = LINES[line]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of theirs, where the last digit that was asked for is not reached
        theirs.fit(inputs, y)
    ours.set_params(**EXACT).fit(inputs, y)
    np.testing.assert_allclose(ours.coef_, np.reshape(theirs.coef_, ours.coef_.shape), atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-4 if line == "SVC" else 2e-5)
    # a number where there is no intercept; (d,) for two classes
    if line not in ("LinearSVC", "RidgeClassifier"):
        assert np.shape(ours.coef_) == np.shape(theirs.coef_)
        assert np.shape(ours.intercept_) == np.shape(theirs.intercept_)
    np.testing.assert_allclose(ours.predict(inputs), theirs.predict(inputs), atol=1e-3)


def test_weights_of_samples_are_sums_too():
    """scikit-learn's Lasso divides by the sum of the weights, where ours adds."""
    weights = np.random.default_rng(1).uniform(0.5, 3.0, N)
    theirs = linear_model.Lasso(alpha=0.1, tol=1e-12).fit(X, Y[:, 0], sample_weight=weights)
    ours = MultiTaskRegressor(f"{SQUARES} + lam * l1_norm(W)", lam=weights.sum() * 0.1, **EXACT).fit(
        X, Y[:, 0], weights
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    ridge = linear_model.Ridge(alpha=3.0).fit(X, Y, sample_weight=weights)
    ours = MultiTaskRegressor(f"{SQUARES} + lam * ridge(W)", lam=3.0, **EXACT).fit(X, Y, weights)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, atol=1e-8)


def test_labels_one_by_one_and_classes_against_the_rest():
    ours = MultiTaskClassifier(f"{LOGISTIC} + lam * ridge(W)", lam=2.0, **EXACT)
    one = tight(linear_model.LogisticRegression(C=0.5))
    each = MultiOutputClassifier(one).fit(XL, YL)
    coefficients = np.vstack([e.coef_ for e in each.estimators_])
    np.testing.assert_allclose(ours.fit(XL, YL).coef_, coefficients, atol=1e-5)
    positive = np.stack([P[:, 1] for P in each.predict_proba(XL)], axis=1)
    np.testing.assert_allclose(ours.predict_proba(XL), positive, atol=1e-5)
    y = YL.sum(axis=1)
    rest = OneVsRestClassifier(one).fit(XL, y)
    np.testing.assert_allclose(ours.fit(XL, y).predict_proba(XL), rest.predict_proba(XL), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(XL), rest.predict(XL))


PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"


def test_every_line_of_the_table_of_lam_names_what_is_tested():
    """Names of other packages' estimators in the table are those of the lines that are tested, and the other way round."""
    text = PAGE.read_text(encoding="utf-8").split("## lam and alpha")[1].split("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for line in rows for name in re.findall(r"`([A-Z]\w+)(?:\(|`)", line.split("|")[1])}
    source = Path(__file__).read_text(encoding="utf-8")
    assert len(rows) >= 12 and named, rows
    assert all(name in source for name in named), named
    assert {line.split(",")[0] for line in LINES} <= named
