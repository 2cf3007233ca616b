"""Multi-label systems that the papers compare with, in scikit-learn's face and small: baselines, without a certificate.

Each learns a table of labels, two classes a column, from the rows' features; none knows of the language. `PLST` and `MMOC` are ridge regression
and `AdaBoostMH` boosts stumps; the others are made of a scikit-learn classifier that you choose.
"""

from mtldsl.estimators.baselines.adaboost_mh import AdaBoostMH
from mtldsl.estimators.baselines.binary_relevance import BinaryRelevance
from mtldsl.estimators.baselines.chains import EnsembleOfClassifierChains
from mtldsl.estimators.baselines.homer import HOMER
from mtldsl.estimators.baselines.label_powerset import LabelPowerset
from mtldsl.estimators.baselines.lead import LEAD
from mtldsl.estimators.baselines.mlcssp import MLCSSP
from mtldsl.estimators.baselines.mmoc import MMOC
from mtldsl.estimators.baselines.plem import PLEM
from mtldsl.estimators.baselines.plst import PLST
from mtldsl.estimators.baselines.rakel import RAkEL

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
