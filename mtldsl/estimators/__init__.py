"""Estimators with scikit-learn's face: fit, predict, get_params.

This room imports scikit-learn; `import mtldsl` does not import it.
"""

from mtldsl.data.input_checks import SpellingWarning, UnlikeIndexWarning
from mtldsl.data.labels import OneClassWarning
from mtldsl.estimators.base_estimator import OneTaskWarning
from mtldsl.estimators.baselines.label_embedding import PLST
from mtldsl.estimators.classifier import KernelMultiTaskClassifier, LabelGraphClassifier, MultiTaskClassifier
from mtldsl.estimators.cv_estimators import (
    GroupedMultiTaskClassifierCV,
    GroupedMultiTaskRegressorCV,
    MultiTaskClassifierCV,
    MultiTaskRegressorCV,
)
from mtldsl.estimators.grouped import GroupedMultiTaskClassifier, GroupedMultiTaskRegressor
from mtldsl.estimators.kfold import MultiTaskKFold
from mtldsl.estimators.positive_class import PositiveClassWarning
from mtldsl.estimators.regressor import MultiTaskRegressor
from mtldsl.estimators.reports import frame, importances, report, summary
from mtldsl.estimators.scorers import scorer
from mtldsl.estimators.unit_warnings import UnlikeUnitsWarning

__all__ = [
    "PLST",
    "GroupedMultiTaskClassifier",
    "GroupedMultiTaskClassifierCV",
    "GroupedMultiTaskRegressor",
    "GroupedMultiTaskRegressorCV",
    "KernelMultiTaskClassifier",
    "LabelGraphClassifier",
    "MultiTaskClassifier",
    "MultiTaskClassifierCV",
    "MultiTaskKFold",
    "MultiTaskRegressor",
    "MultiTaskRegressorCV",
    "OneClassWarning",
    "OneTaskWarning",
    "PositiveClassWarning",
    "SpellingWarning",
    "UnlikeIndexWarning",
    "UnlikeUnitsWarning",
    "frame",
    "importances",
    "report",
    "scorer",
    "summary",
]


def __dir__() -> list[str]:
    return __all__
