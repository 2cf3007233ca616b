"""Principal label space transformation: regression onto the principal components of the labels."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted, validate_data

from mtldsl.errors import DataError

__all__ = ["PLST"]


class PLST(BaseEstimator):
    """Ridge regression of M codes of the labels, decoded and rounded.

        Y in {0, 1}^(n x K);  Y - mean = U S V^T;  codes Z = (Y - mean) V_M, V_M the first M columns of V
        min_(A, b)  ||X A + 1 b^T - Z||_F^2 + alpha ||A||_F^2
        scores = mean + (X A + 1 b^T) V_M^T;  a label is predicted where its score exceeds 1/2

    n_components : M, 1 to K, or None for K. With all K it is one ridge regression a label.
    alpha        : >= 0, of ridge; the sum over samples is not divided by n, the intercept b is not penalised

    Labels may be -1/+1 or 0/1 (n, K); `predict` answers in the same. Attributes after `fit`: coef_ (d, K) and intercept_ (K,), the scores
    of the labels as 0/1; components_ (M, K), the rows of V_M^T; label_mean_ (K,); negative_ (-1 or 0). DataError for other labels, and an
    n_components or alpha outside its range.

    Source: Tai and Lin, Multilabel classification with principal label space transformation (2012).

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

    def fit(self, X, Y) -> PLST:
        """X (n, d), dense or sparse; Y (n, K)."""
        self._check()
        X, Y = validate_data(self, X, Y, accept_sparse="csr", dtype=float, multi_output=True)
        labels = self._as_01(Y)
        K = labels.shape[1]
        M = K if self.n_components is None else self.n_components
        if M > K:
            raise DataError(
                f"n_components={M}: there are {K} labels", write_instead=f"write 1 to {K}, or None for all"
            )
        self.label_mean_ = labels.mean(axis=0)
        centred = labels - self.label_mean_
        # the covariance has the same right vectors, and all K of them where there are fewer rows than labels
        _, vectors = np.linalg.eigh(centred.T @ centred)
        self.components_ = _signed(vectors[:, ::-1][:, :M].T)
        ridge = Ridge(alpha=self.alpha).fit(X, centred @ self.components_.T)
        self.coef_ = np.atleast_2d(ridge.coef_).T @ self.components_
        self.intercept_ = self.label_mean_ + np.atleast_1d(ridge.intercept_) @ self.components_
        return self

    def decision_function(self, X) -> np.ndarray:
        """(n, K) scores minus 1/2: above 0 where a label is predicted."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=float, reset=False)
        return X @ self.coef_ + self.intercept_ - 0.5

    def predict(self, X) -> np.ndarray:
        """(n, K) of the two labels that `fit` was given."""
        scores = self.decision_function(X)
        return np.where(scores > 0, 1, self.negative_).astype(self._label_type)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags

    def _check(self) -> None:
        M, alpha = self.n_components, self.alpha
        if M is not None and (isinstance(M, bool) or not isinstance(M, int | np.integer) or M < 1):
            raise DataError(f"n_components={M!r}: write a whole number of at least 1, or None for all labels")
        if isinstance(alpha, bool | str) or not (bool(np.isscalar(alpha)) and 0 <= alpha < np.inf):
            raise DataError(f"alpha={alpha!r}: write a finite number >= 0")

    def _as_01(self, Y) -> np.ndarray:
        if Y.ndim != 2:
            raise DataError(
                f"PLST: Y has the shape {Y.shape}", write_instead="write (n, K), a column a label"
            )
        values = np.unique(Y)
        if not (np.isin(values, (-1, 1)).all() or np.isin(values, (0, 1)).all()):
            shown = ", ".join(f"{value:g}" for value in values[:4])
            raise DataError(f"PLST: labels must be -1/+1 or 0/1, all the same way; Y holds {shown}")
        self.negative_ = -1 if (values == -1).any() else 0
        self._label_type = Y.dtype
        return (Y > 0).astype(float)


def _signed(rows) -> np.ndarray:
    """Each row with its largest entry positive: eigenvectors have no sign of their own."""
    largest = np.argmax(np.abs(rows), axis=1)
    return rows * np.where(np.take_along_axis(rows, largest[:, None], 1) < 0, -1.0, 1.0)
