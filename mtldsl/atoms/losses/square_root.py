"""Square-root loss: the norm of a task's residuals, one value a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ROUNDING_SHARE, register
from mtldsl.atoms.loss import Loss


@register
@dataclass(frozen=True, eq=False)
class SquareRootLoss(Loss):
    r"""The norm of a task's residuals: sqrt(sum_j s_j (z_j - y_j)^2 + eps^2), with z = X_i w_i its predictions.

    Shapes: z, y and the sample weights s are (n,); one norm per task, summed over tasks. Tasks with more
    noise weigh less than under a squared loss, so that one regularization parameter suits them all.
    `mean=True` divides each norm by n (not by sqrt(n)).

    Parameters
    ----------
    eps : number >= 0, in the units of a task's residual norm. 0 is the norm itself, which is not smooth where
        a task's residuals are all zero; with eps > 0 the loss is smooth everywhere.

    Raises
    ------
    DataError
        Where a target is not finite (NaN in a shared Y means: not in this task).
    ModelError
        Where eps is negative or not finite.

    Notes
    -----
    gradient: s r / sqrt(||sqrt(s) r||^2 + eps^2), r = z - y (0 where r = 0). Conjugate: <u, y> - eps sqrt(1 -
    ||u / sqrt(s)||^2) where that norm is <= 1, else +inf. prox: r_j / (1 + mu s_j), mu >= 0 the root of a
    scalar equation; a block soft threshold on r where eps = 0 and all s are equal.
    Reweighting: v/2 ||sqrt(s) r||^2 with v = 1 / sqrt(||sqrt(s) r||^2 + eps^2) touches it from above.
    Source: Belloni, Chernozhukov and Wang, "Square-root lasso", Biometrika 98 (2011); for several tasks, Liu,
    Wang and Zhao, "Multivariate regression with calibration", NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([4.0, 3.0]), np.array([1.0, -1.0])
    >>> SquareRootLoss().value(z, y)
    5.0
    >>> SquareRootLoss().prox(z, y, step=2.5)
    array([2.5, 1. ])
    >>> SquareRootLoss().gradient(y, y)
    array([0., 0.])
    >>> SquareRootLoss(eps=12.0).value(z, y)
    13.0
    """

    eps: float = 0.0

    of_residuals: ClassVar[bool] = True
    name: ClassVar[str] = "square_root_loss"
    meaning: ClassVar[str] = "the norm of a task's residuals"
    formula: ClassVar[str] = r"\|{}-y_i\|_2"
    weighted_formula: ClassVar[str] = r"\sqrt{\sum_j s_{ij} ({}-y_i)_j^2}"
    radial: ClassVar[bool] = True

    def __post_init__(self):
        self.keep_number("eps", lambda e: e >= 0, "a finite number >= 0, such as eps=1e-3")

    @classmethod
    def examples(cls):
        return [cls(), cls(0.5)]

    @property
    def smooth(self) -> bool:
        return self.eps > 0

    @property
    def curvature(self) -> float:
        return 1.0 / self.eps if self.eps else np.inf

    def weighted_latex(self, argument):
        text = super().weighted_latex(argument)
        return text if not self.eps else rf"{text[:-1]} + {self.eps:g}^2}}"

    def latex(self, argument):
        return (
            super().latex(argument) if not self.eps else rf"\sqrt{{\|{argument}-y_i\|_2^2 + {self.eps:g}^2}}"
        )

    def value(self, z, y, s=None):
        return float(np.hypot(_norm(z - y, s), self.eps))

    def gradient(self, z, y, s=None):
        r = z - y
        norm = np.hypot(_norm(r, s), self.eps)
        pull = r if s is None else s * r
        return pull / norm if norm > 0 else np.zeros_like(r)

    def value_of_norm(self, t):
        return np.hypot(t, self.eps)

    def weight_of_norm(self, t):
        with np.errstate(divide="ignore"):  # no quadratic touches a kink from above
            return 1.0 / np.hypot(t, self.eps)

    def prox(self, z, y, step, s=None):
        r = z - y
        if self.eps:
            s = np.ones_like(r) if s is None else s
            return y + r / (1.0 + _smoothed_root(s, np.sqrt(s) * r, step, self.eps) * s)
        if s is None:
            return y + _block_soft_threshold(r, step)
        if np.all(s == s[0]):
            return y + _block_soft_threshold(r, step * np.sqrt(s[0]))
        if np.linalg.norm(r / np.sqrt(s)) <= step:
            return y + np.zeros_like(r)
        t = _secular_root(s, np.sqrt(s) * r, step)
        return y + r * (t / (t + s))

    def conjugate(self, u, y, s=None):
        return float(np.dot(u, y)) + float(self.conjugate_of_norm(_dual_norm(u, s)))

    def conjugate_of_norm(self, n):
        """f*(u) - <u, y> as a function of n = ||u / sqrt(s)||, elementwise: +inf for n > 1."""
        inside = -self.eps * np.sqrt(np.maximum(1.0 - np.square(n), 0.0))
        return np.where(np.asarray(n) > 1.0 + ROUNDING_SHARE, np.inf, inside)

    def dual_project(self, u, y, s=None):
        return u / max(_dual_norm(u, s), 1.0)


def _norm(r, s) -> float:
    return float(np.linalg.norm(r if s is None else np.sqrt(s) * r))


def _dual_norm(u, s) -> float:
    return float(np.linalg.norm(u if s is None else u / np.sqrt(s)))


def _block_soft_threshold(r, threshold):
    norm = np.linalg.norm(r)
    return r * (1.0 - threshold / norm) if norm > threshold else np.zeros_like(r)


def _secular_root(s, a, step) -> float:
    """The t > 0 with ||a / (t + s)|| = step, given that the left side exceeds step at t = 0; it falls with t.

    The prox has residuals r_j / (1 + mu s_j) with mu = step / ||sqrt(s) r_new||; t = 1 / mu turns that into
    this equation, the one of a trust region step.
    """
    from scipy.optimize import brentq

    top = (1.0 + 1e-9) * np.linalg.norm(a) / step - s.min()  # beyond it, whatever rounding says
    if np.isnan(top):
        return top
    return float(brentq(lambda t: np.linalg.norm(a / (t + s)) - step, 0.0, top, xtol=1e-300, rtol=8.9e-16))


def _smoothed_root(s, a, step, eps) -> float:
    """The mu >= 0 with mu sqrt(||a / (1 + mu s)||^2 + eps^2) = step, of which the left side rises from 0: log mu, between bounds."""
    from scipy.optimize import brentq

    def excess(log_mu: float) -> float:
        return log_mu + np.log(np.hypot(np.linalg.norm(a / (1.0 + np.exp(log_mu) * s)), eps)) - np.log(step)

    low, high = np.log(step / np.hypot(np.linalg.norm(a), eps)), np.log(step / eps)
    if excess(low) >= 0.0 or excess(high) <= 0.0:  # rounding: the residuals are zero, or do not shrink
        return float(np.exp(low if excess(low) >= 0.0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-16, rtol=8.9e-16)))
