"""Principal label space transformation: regression onto the principal components of the labels."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from mtldsl.errors import DataError
from mtldsl.estimators.seen_labels import share_right
from mtldsl.estimators.targets import Labels, labels_of

__all__ = ["PLST"]


class PLST(ClassifierMixin, BaseEstimator):
    """Ridge regression of M codes of the labels, decoded and rounded.

        Y in {0, 1}^(n x K);  Y - mean = U S V^T;  codes Z = (Y - mean) V_M, V_M the first M columns of V
        min_(A, b)  ||X A + 1 b^T - Z||_F^2 + alpha ||A||_F^2
        scores = mean + (X A + 1 b^T) V_M^T;  a label is predicted where its score exceeds 1/2

    n_components : M, 1 to K, or None for K. With all K it is one ridge regression a label.
    alpha        : >= 0, of ridge; the sum over samples is not divided by n, the intercept b is not penalised

    Labels (n, K) have two classes a column, the second the positive one, and none is missing; a vector (n,) is one label. `predict`
    answers in the same. Attributes after `fit`: coef_ (d, K) and intercept_ (K,), the scores of the labels as 0/1; components_ (M, K), the
    rows of V_M^T; label_mean_ (K,); classes_, the positions of the columns (the two classes of a vector), and label_classes_, the two classes of each. DataError for other
    labels, and an n_components or alpha outside its range.

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
        if Y is None:  # says so in scikit-learn's words
            validate_data(self, X, Y)
        X = validate_data(self, X, accept_sparse="csr", dtype=float)
        check_consistent_length(X, Y)
        self._labels = self._read(Y)
        labels = (self._labels.signs > 0).astype(float)
        self.classes_ = self._labels.known
        self.label_classes_ = self._labels.classes
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
        z = X @ self.coef_ + self.intercept_ - 0.5
        return z[:, 0] if self._labels.kind == "binary" else z

    def predict(self, X) -> np.ndarray:
        """(n, K) of the labels that `fit` was given, (n,) where that was a vector."""
        z = self.decision_function(X)
        z = z[:, None] if z.ndim == 1 else z
        return self._labels.decoded(z > 0, z)

    def score(self, X, y, sample_weight=None) -> float:
        """The share of rows whose labels are all right; missing labels are not counted, nor rows that have none."""
        return share_right(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags

    def _check(self) -> None:
        M, alpha = self.n_components, self.alpha
        if M is not None and (isinstance(M, bool) or not isinstance(M, int | np.integer) or M < 1):
            raise DataError(f"n_components={M!r}: write a whole number of at least 1, or None for all labels")
        if isinstance(alpha, bool | str) or not (bool(np.isscalar(alpha)) and 0 <= alpha < np.inf):
            raise DataError(f"alpha={alpha!r}: write a finite number >= 0")

    def _read(self, Y) -> Labels:
        labels = labels_of(Y)
        if labels.kind == "multiclass":
            raise DataError(
                "Only binary classification is supported. The type of the target is multiclass",
                term="PLST",
                write_instead="give a table with one column a label",
            )
        if np.isnan(labels.signs).any():
            row, column = np.argwhere(np.isnan(labels.signs))[0]
            raise DataError(
                f"PLST: Input y contains NaN in row {row}, column {column}", write_instead="leave the row out"
            )
        return labels


def _signed(rows) -> np.ndarray:
    """Each row with its largest entry positive: eigenvectors have no sign of their own."""
    largest = np.argmax(np.abs(rows), axis=1)
    return rows * np.where(np.take_along_axis(rows, largest[:, None], 1) < 0, -1.0, 1.0)
