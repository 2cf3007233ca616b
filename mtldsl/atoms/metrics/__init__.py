"""Metrics: losses of labellings that a structured hinge optimises, registered when this package is imported."""

from mtldsl.atoms.metrics.contingency import AUC, BalancedError, ErrorRate, FScore, GMean, Jaccard
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.ranking import PartialAUC, ROCArea
from mtldsl.atoms.metrics.top_places import NDCG, AveragePrecision, PrecisionAt, RecallAt

__all__ = [
    "AUC",
    "NDCG",
    "AveragePrecision",
    "BalancedError",
    "ErrorRate",
    "FScore",
    "GMean",
    "Jaccard",
    "Metric",
    "PartialAUC",
    "PrecisionAt",
    "ROCArea",
    "RecallAt",
]


def __dir__() -> list[str]:
    return __all__
