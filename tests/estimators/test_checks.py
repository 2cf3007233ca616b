"""scikit-learn's own checks, every one on every estimator; none is expected to fail."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

import mtldsl.estimators
from mtldsl.estimators import MultiTaskClassifier
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


#: tuned thresholds, and probabilities, are for predictions that are not the sign of the score, nor a probability above 1/2; these compare them
MOVED = ["check_classifier_multioutput", "check_classifiers_train"]
TUNED = (
    MultiTaskClassifier(tune_thresholds=True, calibration="sigmoid", inner_folds=3, tol=1e-10),
    MultiTaskClassifier(calibration="isotonic", inner_folds=2, tol=1e-10),
)


def _moved(estimator):
    own = (
        "check_class_weight_classifiers"
        if estimator.tune_thresholds
        else "check_classifiers_multilabel_output_format_predict_proba"
    )
    return dict.fromkeys([*MOVED, own], "a label is predicted by its threshold, not by the sign of its score")


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(list(TUNED), expected_failed_checks=_moved)
def test_checks_of_what_inner_folds_tune(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(list(ESTIMATORS))
def test_scikit_learns_checks(estimator, check):
    check(estimator)
