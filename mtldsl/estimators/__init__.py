"""Estimators with scikit-learn's face: fit, predict, get_params. This room imports scikit-learn; `import mtldsl` does not import it."""

from mtldsl.estimators.baselines.plst import PLST
from mtldsl.estimators.choosing import (
    GroupedMultiTaskClassifierCV,
    GroupedMultiTaskRegressorCV,
    MultiTaskClassifierCV,
    MultiTaskRegressorCV,
)
from mtldsl.estimators.classifier import MultiTaskClassifier
from mtldsl.estimators.folds import MultiTaskKFold
from mtldsl.estimators.grouped import GroupedMultiTaskClassifier, GroupedMultiTaskRegressor
from mtldsl.estimators.kernels import KernelMultiTaskClassifier
from mtldsl.estimators.label_graph import LabelGraphClassifier
from mtldsl.estimators.one_class import OneTaskWarning
from mtldsl.estimators.positive_class import PositiveClassWarning
from mtldsl.estimators.regressor import MultiTaskRegressor
from mtldsl.estimators.reports import importances, report, summary
from mtldsl.estimators.scorers import scorer
from mtldsl.tasks.one_class import OneClassWarning

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
    "importances",
    "report",
    "scorer",
    "summary",
]


def __dir__() -> list[str]:
    return __all__
