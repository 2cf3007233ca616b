"""RAkEL: label powersets of random small sets of labels, and their votes."""

from __future__ import annotations

from math import comb

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_classifier import MadeOfClassifiers
from mtldsl.estimators.baselines.baseline import choice, whole
from mtldsl.estimators.baselines.label_powerset import Powerset

__all__ = ["RAkEL"]


class RAkEL(MadeOfClassifiers):
    """Label powersets of random sets of k labels, and their votes (random k-labelsets).

        R_1, ..., R_m random sets of k labels;  score_k = the mean of the votes for label k in {0, 1}, over the sets that have the label
        label k is predicted where its score exceeds 1/2

    estimator     : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    labelset_size : k; K where there are fewer labels
    n_labelsets   : m, of overlapping sets; None for twice the number of labels. At most the number of sets that there are
    overlapping   : True, m different sets (RAkELo); or False, a random partition of the labels into sets of k and the rest (RAkELd)
    voting        : "hard", votes are labels, as in the paper; or "soft", they are marginal probabilities. It is read when it predicts, so
                    that a fitted model answers both ways
    random_state  : of the sets; the default gives the same model every time

    Labels that no set of the m has are put into further sets of at most k, so that every label has a vote. X, Y and what else is raised are
    as in `BinaryRelevance`; DataError for numbers outside their range, ModelError for another voting, and soft votes of a classifier
    without predict_proba. Attributes after `fit`: labelsets_, a list of arrays of positions; classes_, label_classes_.

    Source: Tsoumakas, Katakis and Vlahavas, Random k-labelsets for multi-label classification (2011); the SMTL paper's RAkEL.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import RAkEL
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 1]])
    >>> model = RAkEL(labelset_size=2, overlapping=False).fit(X, Y)
    >>> [labelset.tolist() for labelset in model.labelsets_]
    [[2, 3], [0, 1]]
    >>> model.predict([[0.5], [3.5]])
    array([[1, 0, 1, 0],
           [0, 1, 1, 1]])
    """

    def __init__(
        self,
        estimator=None,
        *,
        labelset_size=3,
        n_labelsets=None,
        overlapping=True,
        voting="hard",
        random_state=0,
    ):
        self.estimator = estimator
        self.labelset_size = labelset_size
        self.n_labelsets = n_labelsets
        self.overlapping = overlapping
        self.voting = voting
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "labelset_size")
        whole(self, "n_labelsets", none="twice the number of labels")
        choice(self, "overlapping", (True, False))
        self._check_voting()

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        self.labelsets_ = self._drawn(Y.shape[1], rng)
        self._powersets = [Powerset(self._base(), X, Y[:, each], rng) for each in self.labelsets_]

    def _drawn(self, K: int, rng) -> list[np.ndarray]:
        k = min(self.labelset_size, K)
        if not self.overlapping:
            return _parts(rng.permutation(K), k)
        m = min(2 * K if self.n_labelsets is None else self.n_labelsets, comb(K, k))
        found: dict[tuple, None] = {}
        while len(found) < m:
            found[tuple(sorted(rng.choice(K, k, replace=False).tolist()))] = None
        sets = [np.array(each) for each in found]
        left_out = np.setdiff1d(np.arange(K), np.concatenate(sets))
        return sets + (_parts(left_out, k) if left_out.size else [])

    def _mean(self, X) -> np.ndarray:
        self._check_voting()
        K = 1 + max(int(each.max()) for each in self.labelsets_)
        total, count = np.zeros((X.shape[0], K)), np.zeros(K)
        for labelset, powerset in zip(self.labelsets_, self._powersets, strict=True):
            total[:, labelset] += powerset.marginals(X) if self.voting == "soft" else powerset.labels(X)
            count[labelset] += 1
        return total / count

    def _has_probabilities(self) -> bool:
        return self.voting == "soft" and self._base_has_probabilities()

    def _margins(self, X) -> np.ndarray:
        return self._mean(X) - 0.5

    def _probabilities(self, X) -> np.ndarray:
        return self._mean(X)


def _parts(labels: np.ndarray, k: int) -> list[np.ndarray]:
    """k labels a part, the last has the rest."""
    return [np.sort(labels[first : first + k]) for first in range(0, len(labels), k)]
