"""PLST against regressions one label at a time, a decomposition by hand and optimality of its codes."""

import numpy as np
from scipy import sparse
from sklearn.linear_model import Ridge

from mtldsl.estimators import PLST
from tests.estimators.baselines.cases import labels
from tests.loops import for_each

# Tolerances of 1e-12 to 1e-15 are the rounding of small decompositions and of the linear systems of a ridge.


@for_each("alpha", [0.0, 0.7, 50.0])
def test_all_components_are_a_ridge_regression_a_label(alpha):
    X, Y = labels(60)
    X_new = np.random.default_rng(1).normal(size=(200, 5))
    model = PLST(alpha=alpha).fit(X, Y)
    for k in range(4):
        ridge = Ridge(alpha=alpha).fit(X, Y[:, k])
        np.testing.assert_allclose(model.coef_[:, k], ridge.coef_, atol=1e-12)
        scores = model.decision_function(X_new)[:, k]
        np.testing.assert_allclose(scores, ridge.predict(X_new) - 0.5, atol=1e-12)
        np.testing.assert_array_equal(model.predict(X_new)[:, k], ridge.predict(X_new) > 0.5)


def test_by_hand():
    """Labels 1 and 2 are each other's opposite, label 3 is always 1: one component (1, -1, 0) / sqrt(2) says it all.

    With x = -1, 1 the slope of the code +-1/sqrt(2) is (2 / sqrt(2)) / (2 + alpha); decoded with alpha = 2 that is 1/4 a label.
    """
    model = PLST(n_components=1, alpha=2.0).fit([[-1.0], [1.0]], [[0, 1, 1], [1, 0, 1]])
    np.testing.assert_allclose(np.abs(model.components_), [[np.sqrt(0.5), np.sqrt(0.5), 0.0]], atol=1e-15)
    np.testing.assert_allclose(model.coef_, [[0.25, -0.25, 0.0]], atol=1e-15)
    np.testing.assert_allclose(model.intercept_, [0.5, 0.5, 1.0], atol=1e-15)
    np.testing.assert_allclose(model.decision_function([[3.0]]), [[0.75, -0.75, 0.5]], atol=1e-15)
    np.testing.assert_array_equal(model.predict([[3.0], [-0.1]]), [[1, 0, 1], [0, 1, 1]])


@for_each("M", [1, 2, 3])
def test_codes_lose_no_more_than_the_singular_values_left_out(M):
    """Eckart and Young: the squared error of the labels' reconstruction is the sum of the squares of the other singular values."""
    X, Y = labels(60)
    model = PLST(n_components=M).fit(X, Y)
    assert model.components_.shape == (M, 4)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(M), atol=1e-14)
    centred = Y - Y.mean(axis=0)
    lost = np.linalg.norm(centred - centred @ model.components_.T @ model.components_) ** 2
    singular = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(lost, np.sum(singular[M:] ** 2), rtol=1e-12)
    # scores vary along the components only
    scores = model.decision_function(X)
    moved = scores - scores.mean(axis=0)
    np.testing.assert_allclose(moved @ model.components_.T @ model.components_, moved, atol=1e-12)


def test_more_labels_than_rows_and_sparse_inputs():
    X, Y = labels(n=6, d=3, K=9)
    model = PLST(alpha=0.5).fit(X, Y)
    assert model.components_.shape == (9, 9)
    np.testing.assert_allclose(model.coef_, Ridge(alpha=0.5).fit(X, Y).coef_.T, atol=1e-12)
    X, Y = labels(60)
    X[np.abs(X) < 0.5] = 0.0
    dense, thin = PLST(2).fit(X, Y), PLST(2).fit(sparse.csr_array(X), Y)
    # scikit-learn solves sparse ridge with an intercept iteratively, to its tol of 1e-4
    scores = thin.decision_function(sparse.csr_array(X))
    np.testing.assert_allclose(scores, dense.decision_function(X), atol=1e-3)
