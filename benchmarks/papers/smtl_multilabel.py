"""The multi-label baselines on top of scikit-learn's logistic regression, `mtldsl.estimators.baselines`: BR, ECC, LP, RAkEL, and MLCSSP,
HOMER and AdaBoostMH, each with scores and labels.

BR   : one logistic regression a label.
ECC  : ten classifier chains in random orders, probabilities averaged.
LP   : one multinomial logistic regression on the label combinations seen in training.
RAkEL: 2 m label powersets on random subsets of 3 labels; labels by the votes, scores by the mean of the marginal probabilities.
MLCSSP, HOMER: half of the labels, and clusters of three, by logistic regression. AdaBoostMH: 50 stumps, without a C.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mtldsl import Tasks
from mtldsl.estimators import OneClassWarning
from mtldsl.estimators.baselines import (
    HOMER,
    MLCSSP,
    AdaBoostMH,
    BinaryRelevance,
    EnsembleOfClassifierChains,
    LabelPowerset,
    RAkEL,
)

__all__ = ["MULTILABEL", "fit_and_score"]

#: name -> function of (classifier, seed)
MULTILABEL = {
    "BR": lambda base, seed: BinaryRelevance(base),
    "LP": lambda base, seed: LabelPowerset(base),
    "ECC": lambda base, seed: EnsembleOfClassifierChains(base, n_chains=10, random_state=seed),
    "RAkEL": lambda base, seed: RAkEL(base, labelset_size=3, random_state=30_000 + seed),
    "MLCSSP": lambda base, seed: MLCSSP(base, random_state=seed),
    "HOMER": lambda base, seed: HOMER(base, n_children=3, random_state=seed),
    "AdaBoostMH": lambda base, seed: AdaBoostMH(n_rounds=50),
}


def fit_and_score(name: str, train: Tasks, new: Tasks, C: float, seed: int) -> tuple[list, list]:
    """(scores, labels) of every task for the rows of `new`: scores centred so that 0 is the threshold."""
    Y = (train.targets.reshape(train.n_tasks, -1).T > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", OneClassWarning)
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than 50%")
        model = MULTILABEL[name](LogisticRegression(C=C, max_iter=300), seed).fit(train.X, Y)
        labels = model.predict(new.X)
        if name in ("RAkEL", "MLCSSP"):
            model.set_params(voting="soft")
        has = hasattr(model, "predict_proba")
        scores = model.predict_proba(new.X) - 0.5 if has else model.decision_function(new.X)
    return list(scores.T), list(np.where(labels > 0, 1.0, -1.0).T)
