"""The Gamma loss: targets that are amounts, such as costs, times or rainfall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # scipy.special is slow to import: it is loaded where it is first used

from mtldsl.atoms.function import SeparableLoss, register
from mtldsl.atoms.losses.counts import finite_exp, log_link_prox

__all__ = ["GammaLoss"]

#: below this |t| differences of e^t and log(1 - t) with their first terms go by series, of so many terms to rounding
_SERIES, _TERMS, _LOG_TERMS = 0.1, 12, 18


@register
@dataclass(frozen=True, eq=False)
class GammaLoss(SeparableLoss):
    r"""The Gamma loss, half the Gamma deviance: sum_j s_j (y_j exp(-z_j) + z_j - log(y_j) - 1), with
    z = X_i w_i the predictions of a task and labels y > 0. z is the logarithm of the expected amount.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`). It is
    0 where every exp(z_j) is y_j, and does not change with the unit of y if z follows: errors count in
    relation to the amount, as where the standard deviation grows with the mean.

    Raises
    ------
    DataError
        Where a label is not > 0; the message names task and row.

    Notes
    -----
    gradient: s (1 - y exp(-z)), not Lipschitz continuous. prox with t = step s: c + w where c = z - t and w
    is the solution of w + log(w) = log(t y) - c (Wright's omega function). Conjugate with a = 1 - u / s:
    sum s (a log(a / y) - a + log(y) + 1) where a >= 0 (0 log 0 = 0), else +inf. Where exp(-z) is beyond the
    largest float the value is inf.
    Source: Nelder and Wedderburn, "Generalized linear models", JRSS A 135 (1972), with the log link; McCullagh
    and Nelder, "Generalized linear models", Chapman and Hall 1989, chapter 8.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([0.0, np.log(3.0)]), np.array([2.0, 3.0])
    >>> GammaLoss().gradient(z, y).round(12)
    array([-1.,  0.])
    >>> round(GammaLoss().value(z, y), 6)
    0.306853
    """

    name: ClassVar[str] = "gamma_loss"
    meaning: ClassVar[str] = "the Gamma loss of amounts, whose expectation is $e^z$ at a prediction $z$"
    formula: ClassVar[str] = r"\sum_j \big(y_{ij}e^{-({})_j}+({})_j-\log y_{ij}-1\big)"
    labels: ClassVar[str] = "positive"
    smooth: ClassVar[bool] = True

    def pointwise(self, z, y):
        return _exp_excess(np.log(y) - z)

    def summands(self, z, y):
        return np.abs(self.slope(z, y) * np.log(y))  # log y - z rounds, which moves the loss by its slope

    def slope(self, z, y):
        return _minus_expm1(np.log(y) - z)

    def second_slope(self, z, y):
        return y * finite_exp(-z)

    def value(self, z, y, s=None):
        with np.errstate(over="ignore"):  # a sum beyond the largest float is inf, as one summand would be
            return super().value(z, y, s)

    def pointwise_prox(self, z, y, step):
        return -log_link_prox(step - z, step * y)

    def pointwise_conjugate(self, u, y):
        return _entropy_excess(np.asarray(u, float)) + u * np.log(y)

    def dual_interval(self, y):
        return -np.inf, 1.0

    def decide(self, z):
        return finite_exp(z)  # the expected amount


def _minus_expm1(t):
    """1 - e^t, -inf without a warning where e^t is beyond the largest float."""
    with np.errstate(over="ignore"):
        return 0.0 - np.expm1(t)  # not -0 at a perfect fit


def _exp_excess(t):
    """e^t - 1 - t, elementwise, which is nearly t^2 / 2 around zero: there by its series, for the difference cancels.

    >>> bool(abs(_exp_excess(np.array([1e-9])) / 5e-19 - 1) < 1e-8)
    True
    """
    t = np.asarray(t, float)
    near = np.clip(t, -_SERIES, _SERIES)
    total = np.zeros_like(near)
    for k in range(_TERMS, 1, -1):
        total = (1.0 + total) * near / k
    with np.errstate(over="ignore"):
        return np.where(near == t, near * total, np.expm1(t) - t)


def _entropy_excess(u):
    """(1 - u) log(1 - u) + u, elementwise, u <= 1, which is u^2 / 2 + u^3 / 6 + ... + u^k / (k (k - 1)) around zero."""
    near = np.clip(u, -_SERIES, _SERIES)
    total = np.zeros_like(near)
    for k in range(_LOG_TERMS, 1, -1):
        total = (1.0 / (k * (k - 1)) + total) * near
    return np.where(near == u, near * total, scipy.special.xlogy(1.0 - u, 1.0 - u) + u)
