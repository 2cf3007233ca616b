"""One of every baseline, and labels that depend on each other."""

import numpy as np
from sklearn.svm import LinearSVC

import mtldsl.estimators.baselines as room

BASELINES = (
    room.BinaryRelevance(), room.BinaryRelevance(LinearSVC()), room.LabelPowerset(),
    room.LabelPowerset(prediction="marginals"), room.EnsembleOfClassifierChains(n_chains=3),
    room.EnsembleOfClassifierChains(LinearSVC(), n_chains=3, voting="hard"), room.RAkEL(),
    room.RAkEL(overlapping=False, voting="soft"), room.MLCSSP(), room.MLCSSP(n_selected=1, voting="soft"),
    room.HOMER(), room.AdaBoostMH(), room.LEAD(), room.PLEM(),
    room.MMOC(), room.PLST(),
)  # fmt: skip


def labels(n=120, d=5, K=4, seed=0, share=0.5):
    """X (n, d); Y (n, K) of 0 and 1 along two hidden directions, with noise that labels share."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Z = X @ rng.normal(size=(d, 2)) @ rng.normal(size=(2, K))
    noise = share * rng.normal(size=(n, 1)) + (1.0 - share) * rng.normal(size=(n, K))
    return X, (Z + noise > 0.3).astype(int)
