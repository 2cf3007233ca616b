"""Losses of residuals: absolute, quantile, epsilon-insensitive, Huber and squared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import register
from mtldsl.atoms.loss import SLAB_ROWS, SeparableLoss

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
class EpsilonInsensitiveLoss(SeparableLoss):
    r"""The epsilon-insensitive loss of support vector regression: sum_j s_j max(0, |z_j - y_j| - epsilon), with
    z = X_i w_i the predictions of a task. Residuals up to epsilon cost nothing.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`).
    epsilon is in the units of the targets; epsilon = 0 gives `absolute_loss`.

    Parameters
    ----------
    epsilon : number >= 0, default 0.1
        The residual up to which the loss is zero.

    Raises
    ------
    ModelError
        Where epsilon is negative or not finite.

    Notes
    -----
    Not smooth: kinks at y - epsilon and y + epsilon. prox: the point of [z - step s, z + step s] nearest to
    [y - epsilon, y + epsilon], measured from z. Conjugate: sum u y + epsilon |u| where |u| <= s, else +inf.
    Source: Vapnik, "The nature of statistical learning theory", Springer 1995, section 6.1; for several tasks,
    Evgeniou and Pontil, "Regularized multi-task learning", KDD 2004.

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([3.0, 1.2]), np.array([1.0, 1.0])
    >>> EpsilonInsensitiveLoss(epsilon=0.5).value(z, y)
    1.5
    >>> EpsilonInsensitiveLoss(epsilon=0.5).prox(z, y, step=1.0)
    array([2. , 1.2])
    """

    epsilon: float = 0.1

    of_residuals: ClassVar[bool] = True
    name: ClassVar[str] = "epsilon_insensitive_loss"
    meaning: ClassVar[str] = r"the epsilon-insensitive loss, $\max(0, |r| - <epsilon>)$ of a residual $r$"
    formula: ClassVar[str] = r"\sum_j \max\big(0,\,|({})_j-y_{ij}|-{\varepsilon}\big)"

    def __post_init__(self):
        self.keep_number("epsilon", lambda e: e >= 0, "a finite number >= 0, such as epsilon=0.1")

    @classmethod
    def examples(cls):
        return [cls(), cls(epsilon=0.0), cls(epsilon=1.5)]

    def pointwise(self, z, y):
        return np.maximum(np.abs(z - y) - self.epsilon, 0.0)

    def slope(self, z, y):
        r = z - y
        return np.where(np.abs(r) > self.epsilon, np.sign(r), 0.0)

    def pointwise_prox(self, z, y, step):
        return np.clip(z, np.minimum(y - self.epsilon, z + step), np.maximum(y + self.epsilon, z - step))

    def pointwise_conjugate(self, u, y):
        return u * y + self.epsilon * np.abs(u)

    def dual_interval(self, y):
        return -1.0, 1.0

    def zero_interval(self, y):
        return y - self.epsilon, y + self.epsilon


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
        if s is not None or not _are_few_vectors(z, y):
            return super().value(z, y, s)
        r = z - y
        return 0.5 * self.quadratic * float(r @ r)

    def conjugate(self, u, y, s=None) -> float:
        if s is not None or not _are_few_vectors(u, y):
            return super().conjugate(u, y, s)
        return 0.5 / self.quadratic * float(u @ u) + float(u @ y)

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


def _are_few_vectors(z, y) -> bool:
    """Tell whether they are vectors that a sum takes at once."""
    vectors = isinstance(z, np.ndarray) and isinstance(y, np.ndarray) and z.ndim == 1 and z.shape == y.shape
    return vectors and z.size <= SLAB_ROWS


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
