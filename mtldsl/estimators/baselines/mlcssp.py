"""MLCSSP: a few of the labels are learned, and all are read off them linearly."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from mtldsl.errors import DataError
from mtldsl.estimators.baselines.base_classifier import MadeOfClassifiers, fitted, margin, probability
from mtldsl.estimators.baselines.baseline import whole

__all__ = ["MLCSSP"]

#: What is below this share of the largest singular value, or of the Gram matrix's largest eigenvalue, is rounding: labels are 0 and 1.
_RANK = 1e-10


class MLCSSP(MadeOfClassifiers):
    """Classifiers of k labels that span the others, drawn by their leverage (column subset selection).

        Y = U S V^T;  p_k = ||row k of V_r||^2 / r,  V_r the first r = min(k, rank Y) right vectors;  k different labels c drawn with p
        h_j = the classifier fitted to (X, y_(c_j));  scores = h(x) C^+ Y,  C = Y[:, c];  a label is predicted where its score exceeds 1/2

    estimator    : a classifier of scikit-learn's, None for LogisticRegression(max_iter=1000)
    n_selected   : k, 1 to K; None for half of the labels, rounded up. Labels whose p is 0 are never drawn, so that k may be fewer
    voting       : "hard", h_j are predicted labels in {0, 1}, as in the paper; or "soft", they are probabilities. It is read when it predicts
    random_state : of the labels drawn; the default gives the same model every time

    With all labels selected, and Y of full column rank, C^+ Y is the identity and each label is its own classifier's: binary relevance.
    X, Y and what else is raised are as in `BinaryRelevance`; DataError for an n_selected outside its range, ModelError for another
    voting, and soft ones of a classifier without predict_proba. Attributes after `fit`: selected_ (k,) increasing; leverage_ (K,), p;
    decoder_ (k, K), C^+ Y; estimators_, k of them; classes_, label_classes_.

    Source: Bi and Kwok, Efficient multi-label classification with many labels (2013); the SMTL paper's MLCSSP.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import MLCSSP
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = MLCSSP(n_selected=1).fit(X, [[0, 1, 0], [0, 1, 0], [1, 0, 1], [1, 0, 1]])
    >>> model.selected_, model.decoder_.round(6) + 0.0
    (array([2]), array([[1., 0., 1.]]))
    >>> model.predict([[3.0]])
    array([[1, 0, 1]])
    """

    def __init__(self, estimator=None, *, n_selected=None, voting="hard", random_state=0):
        self.estimator = estimator
        self.n_selected = n_selected
        self.voting = voting
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        whole(self, "n_selected", none="half of the labels")
        self._check_voting()

    def _learn(self, X, Y) -> None:
        K = Y.shape[1]
        k = (K + 1) // 2 if self.n_selected is None else self.n_selected
        if k > K:
            raise DataError(
                f"n_selected={k}: there are {K} labels",
                term="MLCSSP",
                write_instead=f"write 1 to {K}, or None for half of them",
            )
        rng = check_random_state(self.random_state)
        self.leverage_ = _leverage(Y, k)
        k = min(k, int((self.leverage_ > 0).sum()))
        if k:  # drawn one after another, each with what is left: as with replacement until k are different
            self.selected_ = np.sort(rng.choice(K, k, replace=False, p=self.leverage_))
        else:  # no label occurs
            self.selected_ = np.zeros(0, dtype=int)
        self.decoder_ = np.linalg.lstsq(Y[:, self.selected_].astype(float), Y.astype(float), rcond=_RANK)[0]
        self.estimators_ = [fitted(self._base(), X, y, rng) for y in Y[:, self.selected_].T]

    def _margins(self, X) -> np.ndarray:
        self._check_voting()
        codes = np.zeros((X.shape[0], len(self.estimators_)))
        for column, model in zip(codes.T, self.estimators_, strict=True):
            column[:] = probability(model, X) if self.voting == "soft" else margin(model, X) > 0
        return codes @ self.decoder_ - 0.5


def _leverage(Y, k: int) -> np.ndarray:
    """(K,) p: the squared rows of the first right vectors of Y; zeros where no label occurs."""
    # the Gram matrix of the labels has the same right vectors, and its entries are counts
    values, vectors = np.linalg.eigh((Y.T @ Y).astype(float))
    rank = int((values > _RANK * max(values[-1], 0.0)).sum()) if values[-1] > 0 else 0
    top = vectors[:, ::-1][:, : min(k, rank)]
    leverage = (top**2).sum(axis=1)
    leverage[~Y.any(axis=0)] = 0.0  # rounding of a label that never occurs
    leverage[leverage < _RANK] = 0.0
    return leverage / leverage.sum() if leverage.any() else leverage
