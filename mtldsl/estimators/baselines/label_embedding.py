"""Baselines that embed labels in few codes: PLST, MLCSSP and MMOC."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.utils import check_random_state

from mtldsl.atoms.losses.multiclass import on_simplex
from mtldsl.errors import DataError
from mtldsl.estimators.baselines.base_baseline import (
    Baseline,
    ClassifierBaseline,
    fit_classifier,
    margin,
    positive,
    probability,
    whole,
)

# --------------------------------------------------------------------------------------------------------------
# MLCSSP: a few of the labels are learned, and all are read off them linearly.


@dataclass(frozen=True)
class LabelEmbeddingSettings:
    """Limits of the baselines of embedded labels."""

    # share of the largest singular value, or of the Gram matrix's largest eigenvalue, below which is rounding: labels are 0 and 1
    rank_tol: float = 1e-10
    inner_steps: int = 200  # steps of the inner problem
    descent_share: float = 0.1  # part of what a step promised that it has to bring


SETTINGS = LabelEmbeddingSettings()


class MLCSSP(ClassifierBaseline):
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
        self.decoder_ = np.linalg.lstsq(
            Y[:, self.selected_].astype(float), Y.astype(float), rcond=SETTINGS.rank_tol
        )[0]
        self.estimators_ = [fit_classifier(self._base(), X, y, rng) for y in Y[:, self.selected_].T]

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
    rank = int((values > SETTINGS.rank_tol * max(values[-1], 0.0)).sum()) if values[-1] > 0 else 0
    top = vectors[:, ::-1][:, : min(k, rank)]
    leverage = (top**2).sum(axis=1)
    leverage[~Y.any(axis=0)] = 0.0  # rounding of a label that never occurs
    leverage[leverage < SETTINGS.rank_tol] = 0.0
    return leverage / leverage.sum() if leverage.any() else leverage


# --------------------------------------------------------------------------------------------------------------
# The metric of max-margin output codes: a convex problem over positive semidefinite matrices, with a certified gap.


@dataclass(frozen=True)
class OutputCodes:
    """Q (K, K) positive semidefinite, its objective, and objective less a lower bound on the minimum, both proven."""

    Q: np.ndarray
    objective: float
    gap: float
    iterations: int


def nearest(Q, centres, slope=None, tol=1e-12, max_iter=500) -> np.ndarray:
    """(n, K) the y in [0, 1]^K of the least (y - centre)^T Q (y - centre) - slope . y, a row each: coordinate descent, all rows side by side.

    It begins at the centres, clipped. Where Q has a zero on the diagonal, its row is zero: y there is by the slope's sign, and without one the
    centre's.
    """
    slope = np.zeros_like(centres) if slope is None else slope
    y = np.clip(centres, 0.0, 1.0)
    diagonal, gradient = np.diag(Q), (y - centres) @ Q - 0.5 * slope
    for _ in range(max_iter):
        largest = 0.0
        for k in range(len(Q)):
            if diagonal[k] > 0:
                new = np.clip(y[:, k] - gradient[:, k] / diagonal[k], 0.0, 1.0)
            else:
                new = np.where(slope[:, k] > 0, 1.0, np.where(slope[:, k] < 0, 0.0, y[:, k]))
            step = new - y[:, k]
            y[:, k] = new
            gradient += step[:, None] * Q[k]
            largest = max(largest, float(np.abs(step).max(initial=0.0)))
        if largest <= tol:
            break
    return y


def _margins(Q, Y, Z) -> tuple[float, np.ndarray, float]:
    """(R(Q), at most; the slope A and height b of the plane there: R >= b + <A, .> everywhere).

    R(Q) = the mean over rows of max over y in [0, 1]^K of  Delta(y_i, y) + d(y_i) - d(y),  d(y) = (z_i - y)^T Q (z_i - y).
    Delta, the number of labels that differ, is linear in y. Convex in Q: a maximum of affine functions.
    """
    slope = 1.0 - 2.0 * Y
    y = nearest(Q, Z, slope, tol=1e-8, max_iter=200)
    away = Z - y
    A = ((Z - Y).T @ (Z - Y) - away.T @ away) / len(y)
    b = float(np.sum(np.abs(y - Y)) / len(y))
    # what is left of the inner maximum: by its concavity at most the largest value of its linear model over the box
    ascent = slope + 2.0 * away @ Q
    left = float(np.sum(np.maximum(ascent * (1.0 - y), -ascent * y)) / len(y))
    return b + float(np.sum(A * Q)) + left, A, b


def learned_codes(Y, Z, C: float, tol: float, max_iter: int) -> OutputCodes:
    """min over Q positive semidefinite of  1/2 trace(Q) + C R(Q), see `_margins`; Y (n, K) of 0 and 1, Z (n, K) what predicts it.

    A proximal bundle method: the planes found so far, the zero plane among them as R >= 0, and the distance to the best Q so far. Any mean of
    planes b + <A, .> gives a bound: with s in [0, 1] and 1/2 I + s C A positive semidefinite the minimum is at least s C b.
    """
    Y, Z, K = np.asarray(Y, dtype=float), np.asarray(Z, dtype=float), Y.shape[1]
    best = np.eye(K)
    R, A, b = _margins(best, Y, Z)
    value, bound, tau = 0.5 * K + C * R, 0.0, 1.0
    slopes, heights = np.stack([np.zeros((K, K)), A]), np.array([0.0, b])
    alpha, iteration = np.array([0.0, 1.0]), 0
    for iteration in range(1, max_iter + 1):  # noqa: B007
        alpha, Q = _nearby(slopes, heights, alpha, best, tau, C)
        bound = max(bound, _bound(np.tensordot(alpha, slopes, 1), float(alpha @ heights), C))
        if value - bound <= tol * max(1.0, value):
            break
        model = 0.5 * float(np.trace(Q)) + C * float((heights + np.einsum("tkl,kl->t", slopes, Q)).max())
        R, A, b = _margins(Q, Y, Z)
        found = 0.5 * float(np.trace(Q)) + C * R
        if found <= value - SETTINGS.descent_share * (value - model):
            best, value, tau = Q, found, min(2.0 * tau, 1e4)
        elif found > value:
            tau = max(tau / 1.2, 1e-4)
        slopes, heights = np.concatenate([slopes, A[None]]), np.append(heights, b)
        alpha = np.append(alpha, 0.0)
    return OutputCodes(best, value, max(value - bound, 0.0), iteration)


def _nearby(slopes, heights, alpha, centre, tau: float, C: float) -> tuple[np.ndarray, np.ndarray]:
    """(alpha, Q) of min over Q of 1/2 trace(Q) + C max_t (b_t + <A_t, Q>) + ||Q - centre||^2 / (2 tau): its dual over the simplex."""
    half, T = 0.5 * np.eye(len(centre)), len(alpha)
    flat = slopes.reshape(T, -1)
    step = 1.0 / (tau * C * C * max(float(np.linalg.norm(flat @ flat.T, 2)), 1e-12))
    at, t = alpha, 1.0
    for _ in range(SETTINGS.inner_steps):
        Q = _projected(centre - tau * (half + C * (at @ flat).reshape(centre.shape)))
        new = on_simplex([at + step * C * (heights + flat @ Q.ravel())])[0]
        if float((at - new) @ (new - alpha)) > 0:
            at, t = new, 1.0
        else:
            t_next = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
            at, t = new + (t - 1.0) / t_next * (new - alpha), t_next
        moved, alpha = float(np.abs(new - alpha).max()), new
        if moved <= 1e-12:
            break
    return alpha, _projected(centre - tau * (half + C * (alpha @ flat).reshape(centre.shape)))


def _bound(A, b: float, C: float) -> float:
    lowest = float(np.linalg.eigvalsh(A)[0])
    return min(1.0, 0.5 / (C * -lowest) if lowest < 0 else 1.0) * C * b


def _projected(Q) -> np.ndarray:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((Q + Q.T) / 2.0)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


# --------------------------------------------------------------------------------------------------------------
# MMOC: codes of the labels that linear regression can tell apart by a margin.


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


# --------------------------------------------------------------------------------------------------------------
# Principal label space transformation: regression onto the principal components of the labels.


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
