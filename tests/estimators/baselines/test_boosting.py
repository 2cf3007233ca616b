"""AdaBoost.MH: stumps by brute force, and the bound on the training error."""

import numpy as np

from mtldsl.estimators.baselines import AdaBoostMH
from mtldsl.estimators.baselines.boosting_and_trees import Stumps
from tests.estimators.baselines.cases import labels

X, Y = labels()
NEW = np.random.default_rng(9).normal(size=(200, 5))


def splits(rows):
    """Every feature and threshold that splits the rows."""
    for j in range(rows.shape[1]):
        values = np.unique(rows[:, j])
        for threshold in (values[1:] + values[:-1]) / 2.0:
            yield j, threshold


def test_the_best_stump_by_brute_force():
    rng = np.random.default_rng(0)
    rows, signs = rng.integers(0, 6, size=(30, 3)).astype(float), rng.choice([-1.0, 1.0], size=(30, 4))
    weights = rng.random((30, 4))
    weights /= weights.sum()

    def judged(side):
        plus, minus = (weights * (signs == s) * side[:, None] for s in (1.0, -1.0))
        plus, minus = plus.sum(axis=0), minus.sum(axis=0)
        return np.sum(2.0 * np.sqrt(plus * minus))

    found = {(j, t): judged(rows[:, j] <= t) + judged(rows[:, j] > t) for j, t in splits(rows)}
    stump = Stumps(rows, signs).best(weights)
    np.testing.assert_allclose(found[stump.feature, stump.threshold], min(found.values()), rtol=1e-12)
    below, share = rows[:, stump.feature] <= stump.threshold, 1.0 / weights.size
    for side in (
        below,
        ~below,
    ):  # answers are smoothed by one weight's share; 1e-12 is rounding of these sums
        plus, minus = ((weights * (signs == s))[side].sum(axis=0) + share for s in (1.0, -1.0))
        np.testing.assert_allclose(
            stump(rows)[side], np.tile(0.5 * np.log(plus / minus), (side.sum(), 1)), rtol=1e-12
        )


def test_the_normalizers_bound_the_training_error():
    signs = 2 * Y - 1
    for rounds in (1, 5, 40):
        model = AdaBoostMH(n_rounds=rounds).fit(X, Y)
        bound, scores = np.prod(model.normalizers_), model.decision_function(X)
        np.testing.assert_allclose(bound, np.mean(np.exp(-signs * scores)), rtol=1e-10)
        assert np.mean(model.predict(X) != Y) <= bound
        assert (model.normalizers_ <= 1.0).all()
    assert np.mean(model.predict(X) != Y) < 0.15


def test_labels_share_features_of_stumps():
    """One feature says both labels: one stump learns both, which is what .MH is for."""
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    both = np.hstack([x > 0.2, x <= 0.2]).astype(int)
    model = AdaBoostMH(n_rounds=5).fit(np.hstack([np.zeros_like(x), x]), both)
    assert model.stumps_[0].feature == 1 and 0.15 < model.stumps_[0].threshold < 0.27
    np.testing.assert_array_equal(np.sign(model.stumps_[0].below), [-1, 1])
    assert (model.predict(np.hstack([np.zeros_like(x), x])) == both).all()


def test_features_that_do_not_vary():
    model = AdaBoostMH(n_rounds=3).fit(np.ones((6, 2)), [[1], [1], [1], [1], [0], [0]])
    assert (model.predict(np.zeros((2, 2))) == 1).all()
