"""AdaBoost.MH: stumps by brute force, the bound on the training error, and scikit-learn's AdaBoost on one label."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier

from mtldsl.estimators.baselines import AdaBoostMH
from mtldsl.estimators.baselines.boosting_and_trees import Stumps
from tests.estimators.baselines.cases import labels
from tests.loops import for_each

X, Y = labels()
NEW = np.random.default_rng(9).normal(size=(200, 5))


def splits(rows):
    """Every feature and threshold that splits the rows."""
    for j in range(rows.shape[1]):
        values = np.unique(rows[:, j])
        for threshold in (values[1:] + values[:-1]) / 2.0:
            yield j, threshold


@for_each("confident", [True, False])
def test_the_best_stump_by_brute_force(confident):
    rng = np.random.default_rng(0)
    rows, signs = rng.integers(0, 6, size=(30, 3)).astype(float), rng.choice([-1.0, 1.0], size=(30, 4))
    weights = rng.random((30, 4))
    weights /= weights.sum()

    def judged(side):
        plus, minus = (weights * (signs == s) * side[:, None] for s in (1.0, -1.0))
        plus, minus = plus.sum(axis=0), minus.sum(axis=0)
        return np.sum(2.0 * np.sqrt(plus * minus)) if confident else np.sum(np.minimum(plus, minus))

    found = {(j, t): judged(rows[:, j] <= t) + judged(rows[:, j] > t) for j, t in splits(rows)}
    stump = Stumps(rows, signs).best(weights, confident)
    np.testing.assert_allclose(found[stump.feature, stump.threshold], min(found.values()), rtol=1e-12)
    answers = stump(rows)
    if confident:  # up to the smoothing, Z is what the stump was chosen by
        Z = np.sum(weights * np.exp(-signs * answers))
        np.testing.assert_allclose(Z, min(found.values()), atol=0.02)
    else:
        np.testing.assert_allclose(weights[signs != answers].sum(), min(found.values()), rtol=1e-12)


@for_each("confident", [True, False])
def test_the_normalizers_bound_the_training_error(confident):
    signs = 2 * Y - 1
    for rounds in (1, 5, 40):
        model = AdaBoostMH(n_rounds=rounds, confidence_rated=confident).fit(X, Y)
        bound, scores = np.prod(model.normalizers_), model.decision_function(X)
        np.testing.assert_allclose(bound, np.mean(np.exp(-signs * scores)), rtol=1e-10)
        assert np.mean(model.predict(X) != Y) <= bound
        assert (model.normalizers_ <= 1.0).all()
    assert np.mean(model.predict(X) != Y) < 0.15
    real = AdaBoostMH(n_rounds=40).fit(X, Y).normalizers_.prod()
    assert real <= AdaBoostMH(n_rounds=40, confidence_rated=False).fit(X, Y).normalizers_.prod()


class WeightedStump(ClassifierMixin, BaseEstimator):
    """The stump of the least weighted error, by brute force."""

    def fit(self, rows, y, sample_weight):
        self.classes_ = np.unique(y)
        signs, best = 2.0 * y - 1.0, np.inf
        for j, t in splits(rows):
            side = rows[:, j] <= t
            answers = [1.0 if np.sum((sample_weight * signs)[s]) > 1e-15 else -1.0 for s in (side, ~side)]
            error = np.sum(sample_weight[np.where(side, *answers) != signs])
            if error < best - 1e-12:
                best, self.stump_ = error, (j, t, *answers)
        return self

    def predict(self, rows):
        j, t, below, above = self.stump_
        return (np.where(rows[:, j] <= t, below, above) > 0).astype(int)


@pytest.mark.slow
def test_on_one_label_the_discrete_one_is_adaboost():
    y = Y[:, 1]
    twin = AdaBoostClassifier(WeightedStump(), n_estimators=12).fit(X, y)
    model = AdaBoostMH(n_rounds=12, confidence_rated=False).fit(X, y)
    # scikit-learn's weights are ln((1 - e) / e), twice these
    np.testing.assert_allclose(model.weights_, twin.estimator_weights_ / 2.0, rtol=1e-8)
    np.testing.assert_array_equal(model.predict(NEW), twin.predict(NEW))
    np.testing.assert_allclose(
        2.0 * model.decision_function(NEW) / model.weights_.sum(), twin.decision_function(NEW), rtol=1e-8
    )


def test_labels_share_features_of_stumps():
    """One feature says both labels: one stump learns both, which is what .MH is for."""
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    both = np.hstack([x > 0.2, x <= 0.2]).astype(int)
    model = AdaBoostMH(n_rounds=5).fit(np.hstack([np.zeros_like(x), x]), both)
    assert model.stumps_[0].feature == 1 and 0.15 < model.stumps_[0].threshold < 0.27
    np.testing.assert_array_equal(np.sign(model.stumps_[0].below), [-1, 1])
    exact = AdaBoostMH(n_rounds=5, confidence_rated=False).fit(x, both)
    assert len(exact.stumps_) == 1 and (exact.predict(x) == both).all()


def test_features_that_do_not_vary():
    model = AdaBoostMH(n_rounds=3).fit(np.ones((6, 2)), [[1], [1], [1], [1], [0], [0]])
    assert (model.predict(np.zeros((2, 2))) == 1).all()
