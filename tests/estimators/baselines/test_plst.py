"""PLST against regressions one label at a time, and optimality of its codes."""

import numpy as np
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


@for_each("M", [1, 2, 3])
def test_codes_lose_no_more_than_the_singular_values_left_out(M):
    """Eckart and Young: the squared error of the labels' reconstruction is the sum of the squares of the other singular values."""
    X, Y = labels(60)
    model = PLST(n_components=M, alpha=0.7).fit(X, Y)
    assert model.components_.shape == (M, 4)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(M), atol=1e-14)
    centred = Y - Y.mean(axis=0)
    lost = np.linalg.norm(centred - centred @ model.components_.T @ model.components_) ** 2
    singular = np.linalg.svd(centred, compute_uv=False)
    np.testing.assert_allclose(lost, np.sum(singular[M:] ** 2), rtol=1e-12)
    # what is predicted are the codes, each by a ridge regression
    ridge = Ridge(alpha=0.7).fit(X, centred @ model.components_.T)
    np.testing.assert_allclose(model.coef_, ridge.coef_.reshape(M, -1).T @ model.components_, atol=1e-12)
    scores = ridge.predict(X).reshape(-1, M) @ model.components_ + Y.mean(axis=0) - 0.5
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-12)


def test_more_labels_than_rows():
    X, Y = labels(n=6, d=3, K=9)
    model = PLST(alpha=0.5).fit(X, Y)
    assert model.components_.shape == (9, 9)
    np.testing.assert_allclose(model.coef_, Ridge(alpha=0.5).fit(X, Y).coef_.T, atol=1e-12)
