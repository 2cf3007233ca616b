"""Principal label space transformation: regression onto the principal components of the labels."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from mtldsl.errors import DataError
from mtldsl.estimators.baselines.baseline import Baseline, positive, whole

__all__ = ["PLST"]


class PLST(Baseline):
    """Ridge regression of M codes of the labels, decoded and rounded.

        Y in {0, 1}^(n x K);  Y - mean = U S V^T;  codes Z = (Y - mean) V_M, V_M the first M columns of V
        min_(A, b)  ||X A + 1 b^T - Z||_F^2 + alpha ||A||_F^2
        scores = mean + (X A + 1 b^T) V_M^T;  a label is predicted where its score exceeds 1/2

    n_components : M, 1 to K, or None for K. With all K it is one ridge regression a label.
    alpha        : >= 0, of ridge; the sum over samples is not divided by n, the intercept b is not penalised

    Labels (n, K) have two classes a column, the second the positive one, and none is missing; a vector (n,) is one label. `predict`
    answers in the same; a label that is always the same is predicted so. `decision_function` is the scores less 1/2. Attributes after `fit`: coef_ (d, K) and intercept_ (K,), the scores of the labels as 0/1; components_ (M, K), the
    rows of V_M^T; label_mean_ (K,); classes_, the positions of the columns (the two classes of a vector), and label_classes_, the two classes of each. DataError for other
    labels, and an n_components or alpha outside its range.

    Source: Tai and Lin, Multilabel classification with principal label space transformation (2012).

    >>> import numpy as np
    >>> from mtldsl import model
    >>> from mtldsl.estimators import PLST
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Y = np.array([[-1, 1, -1], [-1, 1, -1], [1, -1, -1], [1, -1, 1]])
    >>> model = PLST(n_components=1, alpha=0.1).fit(X, Y)
    >>> model.components_.round(3) + 0.0
    array([[ 0.645, -0.645,  0.411]])
    >>> model.predict([[0.5], [2.5]])
    array([[-1,  1, -1],
           [ 1, -1,  1]])
    """

    def __init__(self, n_components: int | None = None, alpha: float = 1.0):
        self.n_components = n_components
        self.alpha = alpha

    def _check(self) -> None:
        whole(self, "n_components", none="all labels")
        positive(self, "alpha", zero=True)

    def _learn(self, X, Y) -> None:
        K = Y.shape[1]
        M = K if self.n_components is None else self.n_components
        if M > K:
            raise DataError(
                f"n_components={M}: there are {K} labels",
                term="PLST",
                write_instead=f"write 1 to {K}, or None for all",
            )
        self.label_mean_ = Y.mean(axis=0)
        centred = Y - self.label_mean_
        # the covariance has the same right vectors, and all K of them where there are fewer rows than labels
        _, vectors = np.linalg.eigh(centred.T @ centred)
        self.components_ = _signed(vectors[:, ::-1][:, :M].T)
        ridge = Ridge(alpha=self.alpha).fit(X, centred @ self.components_.T)
        self.coef_ = np.atleast_2d(ridge.coef_).T @ self.components_
        self.intercept_ = self.label_mean_ + np.atleast_1d(ridge.intercept_) @ self.components_

    def _margins(self, X) -> np.ndarray:
        return X @ self.coef_ + self.intercept_ - 0.5


def _signed(rows) -> np.ndarray:
    """Each row with its largest entry positive: eigenvectors have no sign of their own."""
    largest = np.argmax(np.abs(rows), axis=1)
    return rows * np.where(np.take_along_axis(rows, largest[:, None], 1) < 0, -1.0, 1.0)
