"""Baselines that transform labels into ordinary classification: BR, ECC, LP and RAkEL."""

from __future__ import annotations

from math import comb

import numpy as np
from sklearn.multioutput import ClassifierChain
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_baseline import (
    ClassifierBaseline,
    choice,
    copy_classifier,
    fit_classifier,
    margin,
    probability,
    whole,
)

# --------------------------------------------------------------------------------------------------------------
# Binary relevance: one classifier a label.


class BinaryRelevance(ClassifierBaseline):
    """One classifier a label, which knows nothing of the other labels (BR).

        f_k = the classifier fitted to (X, y_k);  label k is predicted where f_k(x) > 0;  P(y_k = 1 | x) is the classifier's own

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    X (n, d), dense or sparse; Y (n, K) has two classes a column, the second the positive one, and none is missing; a vector (n,) is one
    label. A label that is always the same is predicted so. Attributes after `fit`: estimators_, K classifiers of 0 and 1; classes_, the positions of
    the columns (the two classes of a vector), and label_classes_, the two classes of each. DataError for other labels, ModelError where
    `estimator` is not a classifier.

    Source: Boutell, Luo, Shen and Brown, Learning multi-label scene classification (2004); the SMTL and CGM papers' BR.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import BinaryRelevance
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([["dry", "cold"], ["dry", "warm"], ["wet", "warm"], ["wet", "warm"]])
    >>> BinaryRelevance().fit(X, Y).predict([[0.1], [2.5]])
    array([['dry', 'warm'],
           ['wet', 'warm']], dtype='<U4')
    """

    def __init__(self, estimator=None, *, random_state=0):
        self.estimator = estimator
        self.random_state = random_state

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        self.estimators_ = [fit_classifier(self._base(), X, y, rng) for y in Y.T]

    def _margins(self, X) -> np.ndarray:
        return np.stack([margin(model, X) for model in self.estimators_], axis=1)

    def _probabilities(self, X) -> np.ndarray:
        return np.stack([probability(model, X) for model in self.estimators_], axis=1)


# --------------------------------------------------------------------------------------------------------------
# Ensembles of classifier chains: scikit-learn's chains in random orders, and their votes.


class EnsembleOfClassifierChains(ClassifierBaseline):
    """The mean of classifier chains in random orders (ECC).

        chain: label k is learned from x and the labels before it in the chain's order, which are predicted ones at prediction
        score_k = the mean over the chains of P(y_k = 1 | x, predictions before k), or of their votes;  predicted where it exceeds 1/2

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    n_chains     : how many chains
    voting       : "soft", the mean of the probabilities; or "hard", the share of the votes, as in the paper
    random_state : of the orders; the default gives the same model every time

    The chains are scikit-learn's `ClassifierChain`, and every one sees all rows, where the paper draws some. Labels that are always the same
    are in no chain and are predicted as they are. X, Y and what else is raised are as in `BinaryRelevance`; DataError for numbers outside their
    range, ModelError for another voting, and for soft votes of a classifier without predict_proba. Attributes after `fit`: chains_,
    orders_ (a list of arrays of positions of labels), classes_, label_classes_.

    Source: Read, Pfahringer, Holmes and Frank, Classifier chains for multi-label classification (2011); the SMTL paper's ECC.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import EnsembleOfClassifierChains
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = EnsembleOfClassifierChains(n_chains=3).fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model.predict([[0.5], [2.5]])
    array([[1, 0],
           [0, 1]])
    >>> [order.tolist() for order in model.orders_]
    [[1, 0], [0, 1], [0, 1]]
    """

    def __init__(self, estimator=None, *, n_chains=10, voting="soft", random_state=0):
        self.estimator = estimator
        self.n_chains = n_chains
        self.voting = voting
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "n_chains")
        self._check_voting()

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        varies = (Y[0] != Y).any(axis=0)
        self._constants = np.where(varies, 0.0, Y[0])
        self.chains_, self.orders_ = [], []
        for _ in range(self.n_chains if varies.any() else 0):
            order = rng.permutation(len(varies))
            order = order[varies[order]]
            # columns of the chain are the labels in its order
            self.chains_.append(ClassifierChain(copy_classifier(self._base(), rng)).fit(X, Y[:, order]))
            self.orders_.append(order)

    def _probabilities(self, X) -> np.ndarray:
        """Return the mean over the chains of the probabilities, or of the votes."""
        total = np.zeros((X.shape[0], len(self._constants)))
        for chain, order in zip(self.chains_, self.orders_, strict=True):
            total[:, order] += chain.predict_proba(X) if self.voting == "soft" else chain.predict(X)
        return self._constants + total / max(len(self.chains_), 1)

    def _margins(self, X) -> np.ndarray:
        return self._probabilities(X) - 0.5


# --------------------------------------------------------------------------------------------------------------
# Label powerset: every combination of labels seen in training is one class.


class Powerset:
    """One classifier of the combinations of some labels: what the powerset and the random labelsets are made of."""

    def __init__(self, estimator, X, Y, rng):
        self.combinations, which = np.unique(Y, axis=0, return_inverse=True)
        self.model = fit_classifier(estimator, X, np.ravel(which), rng)

    def labels(self, X) -> np.ndarray:
        """(n, k) of 0 and 1, the combination that the classifier predicts."""
        return self.combinations[self.model.predict(X)]

    def marginals(self, X) -> np.ndarray:
        """(n, k) P(y_k = 1 | x), the sum of the probabilities of the combinations that have the label."""
        P = self.model.predict_proba(X)
        # sums of shares may leave [0, 1] by rounding
        return np.clip(P @ self.combinations[self.model.classes_], 0.0, 1.0)


class LabelPowerset(ClassifierBaseline):
    """One multi-class classifier whose classes are the combinations of labels seen in training (LP).

        c_1, ..., c_C the different rows of Y;  P(c | x) by the classifier;  P(y_k = 1 | x) = the sum of P(c | x) over c with label k

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    prediction   : "combination", the most probable one, which was seen in training; or "marginals", every label whose marginal probability
                   exceeds 1/2, which need not have been seen together
    random_state : whatever is random in the classifier and has no random_state of its own is drawn from it

    predict_proba has the marginals, and with prediction="marginals" decision_function has them less 1/2; both need a classifier with
    predict_proba. With "combination" the answer is that of the whole row: a label of probability below 1/2 may be in it.
    X, Y and what else is raised are as in `BinaryRelevance`; ModelError for another prediction. Attributes after `fit`: combinations_
    (C, K) of 0 and 1, estimator_, classes_, label_classes_.

    Source: Tsoumakas and Katakis, Multi-label classification: an overview (2007); the SMTL paper's LP.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import LabelPowerset
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LabelPowerset().fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model.combinations_
    array([[0, 1],
           [1, 0]])
    >>> model.predict([[0.5], [2.5]])
    array([[1, 0],
           [0, 1]])
    """

    def __init__(self, estimator=None, *, prediction="combination", random_state=0):
        self.estimator = estimator
        self.prediction = prediction
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        choice(self, "prediction", ("combination", "marginals"))
        if self.prediction == "marginals":
            self._needs_probabilities("prediction='marginals'", "write prediction='combination'")

    def _learn(self, X, Y) -> None:
        self._powerset = Powerset(self._base(), X, Y, check_random_state(self.random_state))
        self.combinations_, self.estimator_ = self._powerset.combinations, self._powerset.model

    def _has_margins(self) -> bool:
        return self.prediction == "marginals" and self._has_probabilities()

    def _margins(self, X) -> np.ndarray:
        return self._probabilities(X) - 0.5

    def _positive(self, X) -> np.ndarray:
        return self._powerset.labels(X) > 0 if self.prediction == "combination" else self._margins(X) > 0

    def _probabilities(self, X) -> np.ndarray:
        return self._powerset.marginals(X)


# --------------------------------------------------------------------------------------------------------------
# RAkEL: label powersets of random small sets of labels, and their votes.


class RAkEL(ClassifierBaseline):
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

    def _probabilities(self, X) -> np.ndarray:
        """Return the mean over the sets that have a label of the marginal probabilities, or of the votes."""
        self._check_voting()
        K = 1 + max(int(each.max()) for each in self.labelsets_)
        total, count = np.zeros((X.shape[0], K)), np.zeros(K)
        for labelset, powerset in zip(self.labelsets_, self._powersets, strict=True):
            total[:, labelset] += powerset.marginals(X) if self.voting == "soft" else powerset.labels(X)
            count[labelset] += 1
        return total / count

    def _margins(self, X) -> np.ndarray:
        return self._probabilities(X) - 0.5


def _parts(labels: np.ndarray, k: int) -> list[np.ndarray]:
    """k labels a part, the last has the rest."""
    return [np.sort(labels[first : first + k]) for first in range(0, len(labels), k)]
