"""Multi-label systems that the papers compare with, in scikit-learn's face and small: baselines, without a certificate.

Each learns a table of labels, two classes a column, from the rows' features; none knows of the language. `PLST` and `MMOC` are ridge regression
and `AdaBoostMH` boosts stumps; the others are made of a scikit-learn classifier that you choose.
"""

from mtldsl.estimators.baselines.boosting_and_trees import HOMER, AdaBoostMH
from mtldsl.estimators.baselines.label_dependence import LEAD, PLEM
from mtldsl.estimators.baselines.label_embedding import MLCSSP, MMOC, PLST
from mtldsl.estimators.baselines.problem_transformation import (
    BinaryRelevance,
    EnsembleOfClassifierChains,
    LabelPowerset,
    RAkEL,
)

__all__ = [
    "HOMER",
    "LEAD",
    "MLCSSP",
    "MMOC",
    "PLEM",
    "PLST",
    "AdaBoostMH",
    "BinaryRelevance",
    "EnsembleOfClassifierChains",
    "LabelPowerset",
    "RAkEL",
]
