"""Metrics: losses of labellings that a structured hinge optimises. One file a family; importing this package registers them."""

from mtldsl.atoms.metrics.contingency import AUC, FScore
from mtldsl.atoms.metrics.error_rates import BalancedError, ErrorRate
from mtldsl.atoms.metrics.list_precision import NDCG, AveragePrecision
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.atoms.metrics.partial_auc import PartialAUC
from mtldsl.atoms.metrics.products import GMean, Jaccard
from mtldsl.atoms.metrics.ranking import ROCArea
from mtldsl.atoms.metrics.top import PrecisionAt, RecallAt

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
