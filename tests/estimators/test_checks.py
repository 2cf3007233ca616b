"""scikit-learn's own checks, every one on every estimator; none is expected to fail."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import mtldsl.estimators
from tests.estimators.cases import ESTIMATORS


def _kinds():
    found = {getattr(mtldsl.estimators, name) for name in mtldsl.estimators.__all__}
    return {
        each
        for each in found
        if isinstance(each, type) and issubclass(each, BaseEstimator) and hasattr(each, "predict")
    }


def test_every_estimator_is_among_those_that_are_checked():
    assert {type(each) for each in ESTIMATORS} == _kinds()


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(list(ESTIMATORS))
def test_scikit_learns_checks(estimator, check):
    check(estimator)
