"""scikit-learn's own checks on every baseline; none is expected to fail."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mtldsl.estimators.baselines as room
from mtldsl.estimators.baselines import PLST, LabelPowerset
from tests.estimators.baselines.cases import BASELINES
from tests.estimators.standard_checks import checks_that_fail

#: the last of every class; PLST is checked among the estimators
ONE_OF_EACH = {type(each).__name__: each for each in BASELINES if not isinstance(each, PLST)}


@pytest.mark.by_default("BinaryRelevance")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ONE_OF_EACH.values(), ids=ONE_OF_EACH)
def test_scikit_learns_checks(estimator):
    assert checks_that_fail(estimator) == {}


def test_every_baseline_is_among_those_that_are_checked():
    assert {type(each).__name__ for each in BASELINES} == set(room.__all__)


def test_a_combination_is_not_the_most_probable_labels():
    """Three combinations of probabilities .4, .3, .3: 10 is the most probable, and label 2 has probability .6."""
    X, Y = np.zeros((10, 1)), [[1, 0]] * 4 + [[0, 1]] * 3 + [[1, 1]] * 3
    model = LabelPowerset(LogisticRegression(C=1e6)).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[0.7, 0.6]], atol=1e-3)
    np.testing.assert_array_equal(model.predict(X[:1]), [[1, 0]])
    marginals = LabelPowerset(LogisticRegression(C=1e6), prediction="marginals").fit(X, Y)
    np.testing.assert_array_equal(marginals.predict(X[:1]), [[1, 1]])
