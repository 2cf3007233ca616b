"""Losses of the scores of all classes of a row together: a row belongs to one class, and every class is a task."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np
import scipy

from mtldsl.atoms.atom import ROUNDING_SHARE, SET_BY_MODEL, register
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.prox.shrinkage import water_level


class RowLoss(Loss):
    """A sum over rows of max over p in the simplex of <p, z + margin> - h(p), minus the true class's score.

    z and y are flat (K n,), class after class; y is +1 for the class of a row, and -1 for all others. A subclass gives the function of
    rows: tables are (n, K), and `own` (n,) is the class of every row. With e the indicator of the class, multipliers are u = p - e.
    Where rows have weights, the model multiplies the terms of the sum by them.
    """

    n_classes: int
    labels: ClassVar[str] = "classes"
    weighs_samples: ClassVar[bool] = False

    def for_tasks(self, names, class_sizes):
        return replace(cast(Any, self), n_classes=len(names))

    @classmethod
    def examples(cls):
        make: Any = cls  # a subclass has the field
        return [make(n_classes=3), make(n_classes=4), make(n_classes=2)]

    def table(self, z) -> np.ndarray:
        """(n, K) from flat."""
        return np.asarray(z, float).reshape(self.n_classes, -1).T

    @staticmethod
    def flat(table) -> np.ndarray:
        """Flat from (n, K)."""
        return np.ascontiguousarray(table.T).ravel()

    def own(self, y) -> np.ndarray:
        """(n,) the class of every row."""
        return np.asarray(y).reshape(self.n_classes, -1).argmax(axis=0)

    def value_of_rows(self, Z, own) -> np.ndarray:
        """(n,)"""
        raise NotImplementedError

    def points_of_rows(self, Z, own) -> np.ndarray:
        """(n, K) the p of a maximum."""
        raise NotImplementedError

    def prox_slopes(self, Z, own, steps) -> np.ndarray:
        """(n, K) the p - e at argmin over X of steps_i * f_i(X_i) + 1/2 ||X_i - Z_i||^2, which is X = Z - steps (p - e)."""
        raise NotImplementedError

    def conjugate_of_points(self, P, own) -> np.ndarray:
        """(n,) the conjugate at p - e."""
        raise NotImplementedError

    def best_constants(self, sizes) -> np.ndarray:
        """(K,) the scores, the same for all rows, at which the sum is least, where the rows of class k weigh sizes_k > 0."""
        raise NotImplementedError

    def value(self, z, y, s=None) -> float:
        self.refuse_weights(s)
        return float(self.value_of_rows(self.table(z), self.own(y)).sum())

    def gradient(self, z, y, s=None):
        self.refuse_weights(s)
        own = self.own(y)
        return self.flat(less_own(self.points_of_rows(self.table(z), own), own))

    def prox(self, z, y, step, s=None):
        self.refuse_weights(s)
        Z, own = self.table(z), self.own(y)
        return self.flat(Z - float(step) * self.prox_slopes(Z, own, np.full(len(Z), float(step))))

    def conjugate(self, u, y, s=None) -> float:
        self.refuse_weights(s)
        own = self.own(y)
        P = plus_own(self.table(u), own)
        inside = on_simplex(P)
        if np.abs(P - inside).max(initial=0.0) > ROUNDING_SHARE:
            return np.inf
        return float(self.conjugate_of_points(inside, own).sum())

    def dual_project(self, u, y, s=None):
        self.refuse_weights(s)
        own = self.own(y)
        return self.flat(less_own(on_simplex(plus_own(self.table(u), own)), own))

    def decide(self, z):
        return one_highest(z)


def one_highest(z) -> np.ndarray:
    """+1 for the class with the highest score of (n, K), the first of equal ones, -1 for all others."""
    return np.where(np.arange(z.shape[1]) == np.argmax(z, axis=1)[:, None], 1.0, -1.0)


def less_own(P, own) -> np.ndarray:
    """p - e."""
    U = np.array(P, dtype=float)
    U[np.arange(len(U)), own] -= 1.0
    return U


def plus_own(U, own) -> np.ndarray:
    """u + e."""
    P = np.array(U, dtype=float)
    P[np.arange(len(P)), own] += 1.0
    return P


def on_simplex(P) -> np.ndarray:
    """Every row's nearest point with entries >= 0 that sum to one."""
    P = np.asarray(P, float)
    lowered = (P - P.max(axis=1, keepdims=True)).T  # 1e6 + 0.1 keeps few digits of 0.1
    return np.maximum(lowered - water_level(lowered, 1.0), 0.0).T


@register
@dataclass(frozen=True, eq=False)
class SoftmaxLoss(RowLoss):
    r"""Multinomial logistic regression: sum_j s_j (log sum_k exp(z_jk) - z_j,c(j)), with z_jk = x_j^T w_k the score of class k and c(j) the
    class of row j. Every class is a task, labelled +1 in its own rows and -1 in all others: `Tasks.from_classes(X, classes)`.

    `predict` says +1 for the class with the highest score, `predict_proba` gives P(class k) = exp(z_k) / sum_l exp(z_l).

    Raises
    ------
    DataError
        Where inputs are not shared, a label is missing or neither -1 nor +1, a row has no class or several, or other weights for other classes.

    Notes
    -----
    gradient: p - e, p the probabilities and e the indicator of the class, with Lipschitz constant 1/2. prox: p_k = omega(v_k - c) / step, omega
    the Wright function, c the root of one increasing function a row, by Newton's method. Conjugate at u = p - e: sum p log p for p in the
    simplex, else +inf.
    Source: Cox, "Some procedures connected with the logistic qualitative response curve", 1966; Bishop, "Pattern recognition and machine
    learning", 2006, section 4.3.4.

    Examples
    --------
    >>> import numpy as np
    >>> loss = SoftmaxLoss(n_classes=3)
    >>> round(loss.value(np.array([0.0, 0.0, 0.0]), np.array([1.0, -1.0, -1.0])), 6)
    1.098612
    """

    n_classes: int = field(default=SET_BY_MODEL, metadata={"told": True})

    name: ClassVar[str] = "softmax_loss"
    meaning: ClassVar[str] = "the negative log-likelihood of classes, whose scores are the tasks' predictions"
    formula: ClassVar[str] = r"\sum_j \big[\log\sum_k e^{{}_k} - {}_{c(j)}\big]"
    smooth: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.5

    def value_of_rows(self, Z, own):
        highest = Z.max(axis=1)
        total = np.log(np.exp(Z - highest[:, None]).sum(axis=1))
        return total + (highest - Z[np.arange(len(Z)), own])

    def points_of_rows(self, Z, own):
        return self.probability(Z)

    @staticmethod
    def probability(z):
        """(n, K) the probability of every class at scores (n, K)."""
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def prox_slopes(self, Z, own, steps):
        # X = v - step p with v = Z + step e, and log p = X - c: step p solves omega + log omega = v - c + log step
        steps = steps[:, None]
        V = Z + steps * (np.arange(Z.shape[1]) == own[:, None]) + np.log(steps)
        # left of the root: there the largest p alone is one. The sum is convex and falls in c, so that Newton's steps rise to it
        c = V.max(axis=1, keepdims=True) - steps - np.log(steps)
        for _ in range(100):
            omega = scipy.special.wrightomega(V - c)
            missing = omega.sum(axis=1, keepdims=True) / steps - 1.0
            change = missing * steps / (omega / (1.0 + omega)).sum(axis=1, keepdims=True)
            c = c + change
            if np.all(np.abs(change) <= 4e-16 * np.maximum(np.abs(c), 1.0)) or np.all(missing <= 1e-15):
                break
        P = scipy.special.wrightomega(V - c) / steps
        return less_own(P / P.sum(axis=1, keepdims=True), own)

    def conjugate_of_points(self, P, own):
        return np.sum(P * np.log(np.maximum(P, np.finfo(float).tiny)), axis=1)

    def best_constants(self, sizes):
        found = np.log(sizes)
        return found - found.mean()


@register
@dataclass(frozen=True, eq=False)
class CrammerSingerLoss(RowLoss):
    r"""The hinge loss of several classes: sum_j s_j max_k ([k != c(j)] + z_jk - z_j,c(j)), with z_jk = x_j^T w_k the score of class k and c(j)
    the class of row j. Every class is a task, labelled +1 in its own rows and -1 in all others: `Tasks.from_classes(X, classes)`.

    `predict` says +1 for the class with the highest score.

    Raises
    ------
    DataError
        Where inputs are not shared, a label is missing or neither -1 nor +1, a row has no class or several, or other weights for other classes.

    Notes
    -----
    Not smooth. Conjugate at u = p - e, e the indicator of the class: p_c - 1 for p in the simplex, else +inf. prox: Z - step (p - e), p the
    point of the simplex nearest to e + (z + margins) / step.
    Source: Crammer and Singer, "On the algorithmic implementation of multiclass kernel-based vector machines", JMLR 2 (2001).

    Examples
    --------
    >>> import numpy as np
    >>> loss = CrammerSingerLoss(n_classes=3)
    >>> loss.value(np.array([0.5, 0.0, 2.0]), np.array([1.0, -1.0, -1.0]))
    2.5
    """

    n_classes: int = field(default=SET_BY_MODEL, metadata={"told": True})

    name: ClassVar[str] = "crammer_singer_loss"
    meaning: ClassVar[str] = "the hinge loss of classes, whose scores are the tasks' predictions"
    formula: ClassVar[str] = r"\sum_j \big[\max_k(1_{k\ne c(j)} + {}_k) - {}_{c(j)}\big]"

    @staticmethod
    def _with_margins(Z, own):
        return less_own(Z + 1.0, own)

    def value_of_rows(self, Z, own):
        return self._with_margins(Z, own).max(axis=1) - Z[np.arange(len(Z)), own]

    def points_of_rows(self, Z, own):
        scores = self._with_margins(Z, own)
        best = scores.argmax(axis=1)
        rows = np.arange(len(Z))
        best = np.where(scores[rows, own] >= scores[rows, best], own, best)
        return 1.0 * (np.arange(Z.shape[1]) == best[:, None])

    def prox_slopes(self, Z, own, steps):
        # with the own score as the origin, so that a large step magnifies no rounding: sum_k p_k = t over the others, p_k = (D_k - t)_+,
        # where that leaves 1 - t >= 0 for the own class; else they have all of it
        rows = np.arange(len(Z))
        D = (Z + 1.0 - Z[rows, own][:, None]) / steps[:, None]
        D[rows, own] = -np.inf
        ordered = -np.sort(-D, axis=1)[:, :-1]
        counts = np.arange(2, Z.shape[1] + 1)
        sums = np.cumsum(ordered, axis=1)
        support = np.sum(ordered * counts > sums, axis=1)
        last = np.maximum(support - 1, 0)[:, None]
        t = np.where(support > 0, (np.take_along_axis(sums, last, axis=1) / (last + 2.0))[:, 0], 0.0)
        U = np.maximum(D - t[:, None], 0.0)
        full = t > 1.0
        if full.any():
            D[rows[full], own[full]] = -1e300
            U[full] = on_simplex(D[full])
        U[rows, own] = -U.sum(axis=1)
        return U

    def conjugate_of_points(self, P, own):
        return P[np.arange(len(P)), own] - 1.0

    def best_constants(self, sizes):
        # sum_k sizes_k t_k over t_k >= 0, t_k >= 1 + b_l - b_k
        K = len(sizes)
        k, l = np.nonzero(~np.eye(K, dtype=bool))
        A = np.zeros((len(k), 2 * K))
        at = np.arange(len(k))
        A[at, l], A[at, k], A[at, K + k] = 1.0, -1.0, -1.0
        cost = np.concatenate([np.zeros(K), sizes])
        bounds = [(None, None)] * K + [(0.0, None)] * K
        found = scipy.optimize.linprog(cost, A, -np.ones(len(k)), bounds=bounds, method="highs")
        b = found.x[:K]
        return b - b.mean()
