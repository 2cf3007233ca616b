"""Losses of numbers and counts: absolute, quantile, Huber, Poisson, Gamma and squared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from mtldsl.atoms.atom import register
from mtldsl.atoms.loss import SeparableLoss
from mtldsl.utils.parallel import slabs

# --------------------------------------------------------------------------------------------------------------
# Losses that grow linearly: outliers pull no harder than the rest.


@register
@dataclass(frozen=True, eq=False)
class AbsoluteLoss(SeparableLoss):
    r"""The sum of absolute residuals: sum_j s_j |z_j - y_j|, with z = X_i w_i the predictions of a task. Fits
    the median.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`).

    Raises
    ------
    DataError
        Where a target is not finite (NaN in a shared Y means: not in this task).

    Notes
    -----
    Not smooth. prox: the residual is soft thresholded at step s. Conjugate: sum u y where |u| <= s, else
    +inf.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([3.0, 0.0, 1.2]), np.array([1.0, 1.0, 1.0])
    >>> round(AbsoluteLoss().value(z, y), 12)
    3.2
    >>> AbsoluteLoss().prox(z, y, step=0.5)
    array([2.5, 0.5, 1. ])
    """

    of_residuals: ClassVar[bool] = True
    name: ClassVar[str] = "absolute_loss"
    meaning: ClassVar[str] = "the sum of absolute residuals"
    formula: ClassVar[str] = r"\|{}-y_i\|_1"
    weighted_formula: ClassVar[str] = r"\sum_j s_{ij} |{}-y_i|_j"

    def pointwise(self, z, y):
        return np.abs(z - y)

    def slope(self, z, y):
        return np.sign(z - y)

    def pointwise_prox(self, z, y, step):
        # the point of [z - step, z + step] nearest to y: exactly y where it lies between
        return np.clip(y, z - step, z + step)

    def dual_quadratic(self, y):
        return y, 0.0

    def dual_interval(self, y):
        return -1.0, 1.0


@register
@dataclass(frozen=True, eq=False)
class QuantileLoss(SeparableLoss):
    r"""The quantile (pinball) loss: sum_j s_j max(q (y_j - z_j), (q - 1) (y_j - z_j)), with z = X_i w_i the
    predictions of a task. Fits the q-quantile: too low a prediction costs q, too high a one 1 - q.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`).
    q = 0.5 gives half of `absolute_loss`.

    Parameters
    ----------
    q : number, 0 < q < 1, default 0.5
        The quantile.

    Raises
    ------
    ModelError
        Where q is not strictly between 0 and 1.

    Notes
    -----
    Not smooth. prox: the point of [z - step s (1 - q), z + step s q] nearest to y. Conjugate: sum u y where
    -q s <= u <= (1 - q) s, else +inf.
    Source: Koenker and Bassett, "Regression quantiles", Econometrica 46 (1978).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([3.0, 0.0]), np.array([1.0, 1.0])
    >>> QuantileLoss(q=0.75).value(z, y)
    1.25
    >>> QuantileLoss(q=0.75).gradient(z, y)
    array([ 0.25, -0.75])
    """

    q: float = 0.5

    of_residuals: ClassVar[bool] = True
    name: ClassVar[str] = "quantile_loss"
    meaning: ClassVar[str] = r"the quantile loss, $\rho_{<q>}(r) = \max(<q>\, r,\, (<q> - 1)\, r)$"
    formula: ClassVar[str] = r"\sum_j \rho_{q}\big(y_{ij}-({})_j\big)"

    def __post_init__(self):
        self.keep_number("q", lambda q: 0 < q < 1, "a number with 0 < q < 1, such as q=0.9")

    @classmethod
    def examples(cls):
        return [cls(), cls(q=0.1), cls(q=0.8)]

    def pointwise(self, z, y):
        below = y - z
        return np.maximum(self.q * below, (self.q - 1.0) * below)

    def slope(self, z, y):
        return np.where(z > y, 1.0 - self.q, np.where(z < y, -self.q, 0.0))

    def pointwise_prox(self, z, y, step):
        return np.clip(y, z - step * (1.0 - self.q), z + step * self.q)

    def dual_quadratic(self, y):
        return y, 0.0

    def dual_interval(self, y):
        return -self.q, 1.0 - self.q


@register
@dataclass(frozen=True, eq=False)
class HuberLoss(SeparableLoss):
    r"""The Huber loss: sum_j s_j h(z_j - y_j), with z = X_i w_i the predictions of a task and h(r) = r^2 / 2
    where |r| <= delta, else delta |r| - delta^2 / 2. Squared for small residuals, absolute for large ones.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`). delta
    is in the units of the targets; as delta grows this becomes `squared_loss`.

    Parameters
    ----------
    delta : number > 0, default 1.0
        The residual beyond which the loss is linear.

    Raises
    ------
    ModelError
        Where delta is not a finite number > 0.

    Notes
    -----
    gradient: s clip(r, -delta, delta), with Lipschitz constant 1. prox with t = step s: r / (1 + t) where
    |r| <= delta (1 + t), else r - t delta sign(r). Conjugate: sum u^2 / (2 s) + u y where |u| <= delta s,
    else +inf.
    Source: Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([0.5, 4.0]), np.array([0.0, 0.0])
    >>> HuberLoss().value(z, y)
    3.625
    >>> HuberLoss(delta=2.0).gradient(z, y)
    array([0.5, 2. ])
    """

    delta: float = 1.0

    of_residuals: ClassVar[bool] = True
    name: ClassVar[str] = "huber_loss"
    meaning: ClassVar[str] = (
        r"the Huber loss, $h_{<delta>}(r) = \tfrac12 r^2$ where $|r| \leq <delta>$, else $<delta>\, |r| "
        r"- \tfrac12 \cdot <delta>^2$"
    )
    formula: ClassVar[str] = r"\sum_j h_{\delta}\big(({})_j-y_{ij}\big)"
    smooth: ClassVar[bool] = True
    piecewise_quadratic: ClassVar[bool] = True
    curvature: ClassVar[float] = 1.0

    def __post_init__(self):
        self.keep_number("delta", lambda d: d > 0, "a finite number > 0, such as delta=1.0")

    @classmethod
    def examples(cls):
        return [cls(), cls(delta=0.2), cls(delta=3.0)]

    def pointwise(self, z, y):
        r = np.abs(z - y)
        quadratic = np.minimum(r, self.delta)
        return quadratic * (r - 0.5 * quadratic)

    def slope(self, z, y):
        return np.clip(z - y, -self.delta, self.delta)

    def second_slope(self, z, y):
        return np.where(np.abs(z - y) <= self.delta, 1.0, 0.0)

    def pointwise_prox(self, z, y, step):
        r = z - y
        inner = r / (1.0 + step)
        return y + np.where(np.abs(inner) <= self.delta, inner, r - step * np.copysign(self.delta, r))

    def dual_quadratic(self, y):
        return y, 1.0

    def dual_interval(self, y):
        return -self.delta, self.delta


# --------------------------------------------------------------------------------------------------------------
# The Poisson loss: targets that count events.


@register
@dataclass(frozen=True, eq=False)
class PoissonLoss(SeparableLoss):
    r"""The Poisson loss: sum_j s_j (exp(z_j) - y_j z_j), with z = X_i w_i the predictions of a task and
    counts y in {0, 1, 2, ...}. z is the logarithm of the expected count.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`). The
    negative log-likelihood up to the constant log(y!), so it can be negative: its minimum in z is
    y - y log(y).

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

    def summands(self, z, y):
        return np.abs(self.slope(z, y) * np.log(y))  # log y - z rounds, which moves the loss by its slope

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


# --------------------------------------------------------------------------------------------------------------
# Sums of squared residuals, with and without the 1/2.


class _ScaledSquares(SeparableLoss):
    """q/2 times the sum of squares, q = `quadratic`."""

    quadratic: ClassVar[float]
    of_residuals: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    radial: ClassVar[bool] = True

    def pointwise(self, z, y):
        r = z - y
        return 0.5 * self.quadratic * r * r

    def value(self, z, y, s=None) -> float:
        """As the sum of `pointwise`, by products of vectors: without arrays of all the squares."""
        if s is not None or not _are_vectors(z, y):
            return super().value(z, y, s)
        total = 0.0
        for part in slabs(z.size):
            r = z[part] - y[part]
            total += float(r @ r)
        return 0.5 * self.quadratic * total

    def conjugate(self, u, y, s=None) -> float:
        if s is not None or not _are_vectors(u, y):
            return super().conjugate(u, y, s)
        squares = along = 0.0
        for part in slabs(u.size):
            squares, along = squares + float(u[part] @ u[part]), along + float(u[part] @ y[part])
        return 0.5 / self.quadratic * squares + along

    def slope(self, z, y):
        return self.quadratic * (z - y)

    def value_of_norm(self, t):
        return 0.5 * self.quadratic * np.square(t)

    def weight_of_norm(self, t):
        return np.full(np.shape(t), self.quadratic)

    def pointwise_prox(self, z, y, step):
        pull = self.quadratic * step
        return (z + pull * y) / (1.0 + pull)

    def dual_quadratic(self, y):
        return y, 1.0 / self.quadratic


def _are_vectors(z, y) -> bool:
    return isinstance(z, np.ndarray) and isinstance(y, np.ndarray) and z.ndim == 1 and z.shape == y.shape


@register
@dataclass(frozen=True, eq=False)
class SquaredLoss(_ScaledSquares):
    r"""Half the sum of squared residuals: 1/2 sum_j s_j (z_j - y_j)^2, with z = X_i w_i the predictions of a
    task.

    Shapes: z, y and the sample weights s are (n,); the loss is a sum over samples (divided by n with
    `mean=True`), not a mean. For the same without the 1/2 use `sum_of_squares`.

    Raises
    ------
    DataError
        Where a target is not finite (NaN in a shared Y means: not in this task).

    Notes
    -----
    gradient: s (z - y), with Lipschitz constant 1. prox: (z + t y) / (1 + t), t = step s.
    Conjugate: sum u^2 / (2 s) + u y.
    Source: Gauss, "Theoria motus" (1809); as a loss for several tasks, Evgeniou and Pontil, "Regularized
    multi-task learning", KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([3.0, 0.0]), np.array([1.0, 1.0])
    >>> SquaredLoss().value(z, y)
    2.5
    >>> SquaredLoss().value(z, y, s=np.array([2.0, 1.0]))
    4.5
    >>> SquaredLoss().gradient(z, y)
    array([ 2., -1.])
    """

    name: ClassVar[str] = "squared_loss"
    meaning: ClassVar[str] = "half the sum of squared residuals"
    formula: ClassVar[str] = r"\tfrac12\|{}-y_i\|_2^2"
    weighted_formula: ClassVar[str] = r"\tfrac12\sum_j s_{ij} ({}-y_i)_j^2"
    curvature: ClassVar[float] = 1.0
    quadratic: ClassVar[float] = 1.0


@register
@dataclass(frozen=True, eq=False)
class SumOfSquares(_ScaledSquares):
    r"""The sum of squared residuals: sum_j s_j (z_j - y_j)^2, with z = X_i w_i the predictions of a task; no
    1/2.

    Shapes: z, y and the sample weights s are (n,); the loss is a sum over samples (divided by n with
    `mean=True`, which makes it the mean squared error). It is twice `squared_loss`.

    Raises
    ------
    DataError
        Where a target is not finite (NaN in a shared Y means: not in this task).

    Notes
    -----
    gradient: 2 s (z - y), with Lipschitz constant 2. prox: (z + 2 t y) / (1 + 2 t), t = step s.
    Conjugate: sum u^2 / (4 s) + u y.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([3.0, 0.0]), np.array([1.0, 1.0])
    >>> SumOfSquares().value(z, y)
    5.0
    >>> SumOfSquares().prox(z, y, step=0.5)
    array([2. , 0.5])
    """

    name: ClassVar[str] = "sum_of_squares"
    meaning: ClassVar[str] = "the sum of squared residuals"
    formula: ClassVar[str] = r"\|{}-y_i\|_2^2"
    weighted_formula: ClassVar[str] = r"\sum_j s_{ij} ({}-y_i)_j^2"
    curvature: ClassVar[float] = 2.0
    quadratic: ClassVar[float] = 2.0
