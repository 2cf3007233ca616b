"""MMOC: codes of the labels that linear regression can tell apart by a margin."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

from mtldsl.estimators.baselines.baseline import Baseline, positive, whole
from mtldsl.estimators.baselines.output_codes import learned_codes, nearest

__all__ = ["MMOC"]


class MMOC(Baseline):
    """Output codes V^T y that regression predicts, learned so that right rows of labels are nearer than wrong ones (MMOC).

        z(x) = mean + B^T x, ridge regression of Y in {0, 1}^(n x K), so that V^T z(x) is ridge regression of the codes V^T y;  Q = V V^T
        d(y) = (z_i - y)^T Q (z_i - y)
        min over Q positive semidefinite of  1/2 trace(Q) + C / n sum_i max over y of { Delta(y_i, y) + d(y_i) - d(y) }
        Delta = the number of labels that differ;  the y with the least (z(x) - y)^T Q (z(x) - y) is predicted

    C        : > 0, what the margins count beside 1/2 ||V||_F^2 = 1/2 trace(Q)
    alpha    : >= 0, of ridge; the sum over samples is not divided by n, the intercept is not penalised
    tol      : > 0, the objective is within tol * max(1, objective) of the minimum, proven, else a ConvergenceWarning tells how near
    max_iter : planes of the proximal bundle method

    As in the paper, both y range over the box [0, 1]^K (overgenerating), where the problem in Q is convex and the inner one a concave
    quadratic; the predicted y is rounded. What is simplified: the paper's cutting planes are kept near
    the best point so far, and its variant that decodes with classifiers of the labels besides is not here. The least squares B is part of the method: there is no other base estimator.
    X and Y are as in `BinaryRelevance`; DataError for other labels and numbers outside their range. decision_function is the y of the box less 1/2.
    Attributes after `fit`: metric_ (K, K), Q; codes_ (K, r), V; objective_ and gap_; coef_ (d, K) and intercept_ (K,), of z; n_iter_; classes_,
    label_classes_.

    Source: Zhang and Schneider, Maximum margin output coding (2012); the CGM paper's MMOC.

    >>> import numpy as np
    >>> from mtldsl.estimators.baselines import MMOC
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = MMOC(alpha=0.1).fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model.predict([[0.5], [2.5]])
    array([[1, 0],
           [0, 1]])
    >>> bool(model.gap_ <= 1e-2 * max(1.0, model.objective_))
    True
    """

    def __init__(self, *, C=10.0, alpha=1.0, tol=1e-2, max_iter=300):
        self.C = C
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def _check(self) -> None:
        positive(self, "C")
        positive(self, "alpha", zero=True)
        positive(self, "tol")
        whole(self, "max_iter")

    def _learn(self, X, Y) -> None:
        ridge = Ridge(alpha=self.alpha).fit(X, Y.astype(float))
        self.coef_ = np.atleast_2d(ridge.coef_).T
        self.intercept_ = np.atleast_1d(ridge.intercept_)
        codes = learned_codes(Y, self._predicted(X), self.C, self.tol, self.max_iter)
        self.metric_, self.objective_, self.gap_, self.n_iter_ = (
            codes.Q, codes.objective, codes.gap, codes.iterations,
        )  # fmt: skip
        if codes.gap > self.tol * max(1.0, codes.objective):
            warnings.warn(
                f"MMOC: after {codes.iterations} planes the objective {codes.objective:.6g} is within {codes.gap:.2g} of the minimum; "
                "write a larger max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        values, vectors = np.linalg.eigh(self.metric_)
        kept = values > 1e-10 * max(values[-1], 0.0)
        self.codes_ = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, kept][:, ::-1]

    def _predicted(self, X) -> np.ndarray:
        return X @ self.coef_ + self.intercept_

    def _margins(self, X) -> np.ndarray:
        return nearest(self.metric_, self._predicted(X)) - 0.5
