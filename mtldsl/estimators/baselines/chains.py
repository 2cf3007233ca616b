"""Ensembles of classifier chains: scikit-learn's chains in random orders, and their votes."""

from __future__ import annotations

import numpy as np
from sklearn.multioutput import ClassifierChain
from sklearn.utils import check_random_state

from mtldsl.estimators.baselines.base_classifier import MadeOfClassifiers, copied
from mtldsl.estimators.baselines.baseline import fraction, whole

__all__ = ["EnsembleOfClassifierChains"]


class EnsembleOfClassifierChains(MadeOfClassifiers):
    """The mean of classifier chains in random orders (ECC).

        chain: label k is learned from x and the labels before it in the chain's order, which are predicted ones at prediction
        score_k = the mean over the chains of P(y_k = 1 | x, predictions before k), or of their votes;  predicted where it exceeds 1/2

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    n_chains     : how many chains
    voting       : "soft", the mean of the probabilities; or "hard", the share of the votes, as in the paper
    max_samples  : None, every chain sees all rows; or a share: each sees so many rows drawn with replacement, as in the paper
    random_state : of the orders and the rows; the default gives the same model every time

    The chains are scikit-learn's `ClassifierChain`. Labels that are always the same, in all rows or in those drawn, are in no chain of these
    rows and are predicted as they are. X, Y and what else is raised are as in `BinaryRelevance`; DataError for numbers outside their
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

    def __init__(self, estimator=None, *, n_chains=10, voting="soft", max_samples=None, random_state=0):
        self.estimator = estimator
        self.n_chains = n_chains
        self.voting = voting
        self.max_samples = max_samples
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "n_chains")
        self._check_voting()
        fraction(self, "max_samples", "all rows")

    def _learn(self, X, Y) -> None:
        rng = check_random_state(self.random_state)
        n, K = Y.shape
        self.chains_, self.orders_, self._constants = [], [], []
        for _ in range(self.n_chains):
            order = rng.permutation(K)
            size = n if self.max_samples is None else max(1, round(self.max_samples * n))
            rows = slice(None) if self.max_samples is None else rng.randint(n, size=size)
            seen = Y[rows]
            varies = (seen != seen[0]).any(axis=0)
            order = order[varies[order]]
            chain = None
            if order.size:
                # columns of the chain are the labels in its order
                chain = ClassifierChain(copied(self._base(), rng)).fit(X[rows], seen[:, order])
            self.chains_.append(chain)
            self.orders_.append(order)
            self._constants.append(seen[0])

    def _mean(self, X, voting: str) -> np.ndarray:
        total = np.zeros((X.shape[0], len(self._constants[0])))
        for chain, order, constants in zip(self.chains_, self.orders_, self._constants, strict=True):
            one = np.tile(constants.astype(float), (len(total), 1))
            if chain is not None:
                one[:, order] = chain.predict_proba(X) if voting == "soft" else chain.predict(X)
            total += one
        return total / len(self.chains_)

    def _has_probabilities(self) -> bool:
        return self.voting == "soft" and self._base_has_probabilities()

    def _margins(self, X) -> np.ndarray:
        return self._mean(X, self.voting) - 0.5

    def _probabilities(self, X) -> np.ndarray:
        return self._mean(X, "soft")
