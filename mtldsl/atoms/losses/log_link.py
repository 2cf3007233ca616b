"""Losses of counts and amounts, Poisson and Gamma: a prediction is the logarithm of what is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from mtldsl.atoms.atom import register
from mtldsl.atoms.loss import SeparableLoss

# --------------------------------------------------------------------------------------------------------------
# The Poisson loss: targets that count events.


@register
@dataclass(frozen=True, eq=False)
class PoissonLoss(SeparableLoss):
    r"""The Poisson loss: sum_j s_j (exp(z_j) - y_j z_j), with z = X_i w_i the predictions of a task and
    counts y in {0, 1, 2, ...}. z is the logarithm of the expected count.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`). The
    negative log-likelihood up to the constant log(y!), so it can be negative: its minimum in z is
    y - y log(y). Counts over unequal exposures e: with log(e) as the last feature and `W[-1:, :] == 1` in
    `subject_to` the expected count is e times exp of the rest, in predictions too.

    Raises
    ------
    DataError
        Where a target is not a whole number >= 0.

    Notes
    -----
    gradient: s (exp(z) - y), not Lipschitz continuous. prox with t = step s: c - w where c = z + t y and w is
    the solution of w + log(w) = c + log(t) (Wright's omega function). Conjugate with a = y + u / s:
    sum s (a log(a) - a) where a >= 0 (0 log 0 = 0), else +inf. Where exp(z) is beyond the largest float the
    value is inf.
    Source: Nelder and Wedderburn, "Generalized linear models", JRSS A 135 (1972).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([0.0, np.log(3.0)]), np.array([2.0, 3.0])
    >>> PoissonLoss().gradient(z, y).round(12)
    array([-1.,  0.])
    >>> round(PoissonLoss().value(z, y), 6)
    0.704163
    """

    name: ClassVar[str] = "poisson_loss"
    meaning: ClassVar[str] = "the Poisson loss of counts, whose expectation is $e^z$ at a prediction $z$"
    formula: ClassVar[str] = r"\sum_j \big(e^{({})_j}-y_{ij}({})_j\big)"
    labels: ClassVar[str] = "count"
    smooth: ClassVar[bool] = True
    bounded_below: ClassVar[float] = -np.inf  # y - y log(y) falls without end as counts grow

    def falls(self, y):
        return np.where(np.asarray(y) == 0, -1.0, 0.0)

    def pointwise(self, z, y):
        return finite_exp(z) - y * z

    def summands(self, z, y):
        return finite_exp(z) * (1.0 + np.abs(z)) + y * np.abs(z)

    def slope(self, z, y):
        return finite_exp(z) - y

    def second_slope(self, z, y):
        return finite_exp(z)

    def pointwise_prox(self, z, y, step):
        return log_link_prox(z + step * y, step)

    def pointwise_conjugate(self, u, y):
        a = u + y
        return scipy.special.xlogy(a, a) - a

    def dual_interval(self, y):
        return -y, np.inf

    def decide(self, z):
        return finite_exp(z)  # the expected count


def finite_exp(z):
    """e^z, inf without a warning where that is beyond the largest float."""
    with np.errstate(over="ignore"):
        return np.exp(z)


def log_link_prox(c, t):
    """The x with x = c - t e^x, elementwise: the prox of t exp, which losses of a logarithm share.

    >>> x = log_link_prox(np.array([2.0, 800.0]), np.array([0.5, 3.0]))
    >>> (x + np.array([0.5, 3.0]) * np.exp(x)).round(9)
    array([  2., 800.])
    """
    log_t = np.log(t)
    w = scipy.special.wrightomega(c + log_t)
    # w = t e^x at the solution x: for large w its logarithm is exact where c - w cancels
    return np.where(w > 1.0, np.log(np.maximum(w, 1.0)) - log_t, c - w)


# --------------------------------------------------------------------------------------------------------------
# The Gamma loss: targets that are amounts, such as costs, times or rainfall.


@dataclass(frozen=True)
class SeriesSettings:
    """Series of e^t and log(1 - t) less their first terms, to rounding.

    series_radius : largest |t| with a series: beyond, differences keep their digits
    exp_terms     : terms of the series of e^t
    log_terms     : terms of the series of log(1 - t)
    """

    series_radius: float = 0.1
    exp_terms: int = 12
    log_terms: int = 18


SETTINGS = SeriesSettings()


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

    def label_sizes(self, y):
        return np.abs(np.log(y))

    def slope(self, z, y):
        with np.errstate(over="ignore"):  # -inf where y e^-z is beyond the largest float
            return 0.0 - np.expm1(np.log(y) - z)  # not -0 at a perfect fit

    def second_slope(self, z, y):
        return y * finite_exp(-z)

    def pointwise_prox(self, z, y, step):
        return -log_link_prox(step - z, step * y)

    def pointwise_conjugate(self, u, y):
        return _entropy_excess(np.asarray(u, float)) + u * np.log(y)

    def dual_interval(self, y):
        return -np.inf, 1.0

    def decide(self, z):
        return finite_exp(z)  # the expected amount


def _exp_excess(t):
    """e^t - 1 - t, elementwise, which is nearly t^2 / 2 around zero: there by its series, for the difference cancels.

    >>> bool(abs(_exp_excess(np.array([1e-9])) / 5e-19 - 1) < 1e-8)
    True
    """
    t = np.asarray(t, float)
    near = np.clip(t, -SETTINGS.series_radius, SETTINGS.series_radius)
    total = np.zeros_like(near)
    for k in range(SETTINGS.exp_terms, 1, -1):
        total = (1.0 + total) * near / k
    with np.errstate(over="ignore"):
        return np.where(near == t, near * total, np.expm1(t) - t)


def _entropy_excess(u):
    """(1 - u) log(1 - u) + u, elementwise, u <= 1, which is u^2 / 2 + u^3 / 6 + ... + u^k / (k (k - 1)) around zero."""
    near = np.clip(u, -SETTINGS.series_radius, SETTINGS.series_radius)
    total = np.zeros_like(near)
    for k in range(SETTINGS.log_terms, 1, -1):
        total = (1.0 / (k * (k - 1)) + total) * near
    return np.where(near == u, near * total, scipy.special.xlogy(1.0 - u, 1.0 - u) + u)
