"""Losses of labels -1 and +1: exponential, logistic, hinge and squared hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from mtldsl.atoms.atom import register
from mtldsl.atoms.loss import SeparableLoss
from mtldsl.atoms.losses.log_link import finite_exp, log_link_prox


class _MarginLoss(SeparableLoss):
    """A falling function of the margin y z, from the slope -`steepest` to 0."""

    labels: ClassVar[str] = "sign"
    steepest: ClassVar[float] = np.inf

    def dual_interval(self, y):
        return np.minimum(-self.steepest * y, 0.0), np.maximum(-self.steepest * y, 0.0)


# --------------------------------------------------------------------------------------------------------------
# The exponential loss: what boosting minimises.


@register
@dataclass(frozen=True, eq=False)
class ExponentialLoss(_MarginLoss):
    r"""The exponential loss: sum_j s_j exp(-y_j z_j), with z = X_i w_i the predictions of a task and labels
    in {-1, +1}. `predict_proba` gives P(y = +1) = 1 / (1 + exp(-2 z)).

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`). One
    label that is wrong by a large margin outweighs all others: where labels are noisy, take logistic_loss.

    Raises
    ------
    DataError
        Where a label is not -1 or +1, or a task has labels of one class only.

    Notes
    -----
    gradient: -s y exp(-y z), not Lipschitz continuous. With margins v = y z and t = step s, prox: v + w where
    w + log(w) = log(t) - v (Wright's omega function). Conjugate with a = -y u / s: sum s (a log(a) - a) where
    a >= 0 (0 log 0 = 0), else +inf. Where exp(-y z) is beyond the largest float the value is inf.
    Source: Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application
    to boosting", J. Computer and System Sciences 55 (1997); as a loss with these probabilities: Friedman,
    Hastie and Tibshirani, "Additive logistic regression", Annals of Statistics 28 (2000).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([0.0, np.log(2.0)]), np.array([1.0, -1.0])
    >>> ExponentialLoss().value(z, y)
    3.0
    >>> ExponentialLoss().gradient(z, y)
    array([-1.,  2.])
    >>> ExponentialLoss().probability(z).round(12)
    array([0.5, 0.8])
    """

    name: ClassVar[str] = "exponential_loss"
    meaning: ClassVar[str] = "the exponential loss"
    formula: ClassVar[str] = r"\sum_j e^{-y_{ij}({})_j}"
    smooth: ClassVar[bool] = True

    def falls(self, y):
        return np.asarray(y, float)

    def pointwise(self, z, y):
        return finite_exp(-y * z)

    def slope(self, z, y):
        return -y * finite_exp(-y * z)

    def second_slope(self, z, y):
        return finite_exp(-y * z)

    def pointwise_prox(self, z, y, step):
        # the margin m solves m = y z + step e^-m
        return y * -log_link_prox(-y * z, step)

    def pointwise_conjugate(self, u, y):
        a = -y * u
        return scipy.special.xlogy(a, a) - a

    def probability(self, z):
        """P(y = +1) at predictions z."""
        return scipy.special.expit(2.0 * z)


# --------------------------------------------------------------------------------------------------------------
# The logistic loss: probabilities of two classes.

_TINY = np.finfo(float).tiny


#: Step of a prox beyond which its root is sought from a nearer start, which takes longer.
PLAIN_START_STEP = 4.0


#: Largest float64 below 1.
_LARGEST_BELOW_ONE = 1.0 - np.finfo(float).epsneg


@register
@dataclass(frozen=True, eq=False)
class LogisticLoss(_MarginLoss):
    r"""The logistic loss: sum_j s_j log(1 + exp(-y_j z_j)), with z = X_i w_i the predictions of a task and
    labels in {-1, +1}. `predict_proba` gives P(y = +1) = 1 / (1 + exp(-z)).

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`).

    Raises
    ------
    DataError
        Where a label is not -1 or +1, or a task has labels of one class only.

    Notes
    -----
    gradient: -s y / (1 + exp(y z)), with Lipschitz constant 1/4. prox: the root of one increasing scalar
    function, by Newton's method to machine precision. Conjugate with a = -y u / s:
    sum s (a log a + (1 - a) log(1 - a)) where 0 <= a <= 1 (0 log 0 = 0), else +inf.
    Source: Cox, "The regression analysis of binary sequences", JRSS B 20 (1958).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([0.0, 2.0]), np.array([1.0, -1.0])
    >>> round(LogisticLoss().value(z, y), 6)
    2.820075
    >>> LogisticLoss().gradient(z, y).round(6)
    array([-0.5     ,  0.880797])
    >>> LogisticLoss().probability(z).round(6)
    array([0.5     , 0.880797])
    """

    name: ClassVar[str] = "logistic_loss"
    meaning: ClassVar[str] = "the logistic loss"
    formula: ClassVar[str] = r"\sum_j \log\big(1+e^{-y_{ij}({})_j}\big)"
    steepest: ClassVar[float] = 1.0
    entropic: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.25

    def falls(self, y):
        return np.asarray(y, float)

    def pointwise(self, z, y):
        # as logaddexp(0, -y z), which takes three times as long
        margin = y * z
        return np.log1p(np.exp(-np.abs(margin))) + np.maximum(-margin, 0.0)

    def slope(self, z, y):
        return -y / (1.0 + finite_exp(y * z))

    def second_slope(self, z, y):
        e = np.exp(-np.abs(z))
        return e / np.square(1.0 + e)

    def pointwise_prox(self, z, y, step):
        margin = y * z
        # The margin x solves x = margin + step / (1 + e^x). Where it is negative, -x solves the same equation
        # with margin replaced by -(margin + step): only roots >= 0 are left to find.
        negative = margin < -0.5 * step
        root = _nonnegative_root(np.where(negative, -(margin + step), margin), step)
        return y * np.where(negative, -root, root)

    def pointwise_conjugate(self, u, y):
        a = -y * u
        # 0 log 0 = 0: next to a factor of 0, any finite logarithm will do
        return a * np.log(np.maximum(a, _TINY)) + (1.0 - a) * np.log1p(-np.minimum(a, _LARGEST_BELOW_ONE))

    def probability(self, z):
        """P(y = +1) at predictions z."""
        return scipy.special.expit(z)


def _nonnegative_root(v, step):
    """The x >= 0 with x = v + step / (1 + e^x), given v >= -step / 2, elementwise.

    The start bounds the root from above: 1 / (1 + e^x) falls, and is below e^-x, which is the better bound for large steps and takes
    longer. The function x - v - step / (1 + e^x) is increasing, and concave for x >= 0: one Newton step from there lands left of the
    root, the next ones rise to it.
    """
    if np.max(step, initial=0.0) <= PLAIN_START_STEP:
        low = np.maximum(v, 0.0)
        e = np.exp(-low)
        x = np.maximum(v + step * (e / (1.0 + e)), 0.0)
    else:
        x = np.maximum(v + np.minimum(step, scipy.special.wrightomega(np.log(step) - v)), 0.0)
    precision = 8 * np.finfo(float).eps
    for _ in range(60):
        e = np.exp(-x)
        p = e / (1.0 + e)
        change = (x - v - step * p) / (1.0 + step * p * (1.0 - p))
        x = np.maximum(x - change, 0.0)
        if not np.any(np.abs(change) > precision * np.maximum(x, 1.0)):
            break
    return x


# --------------------------------------------------------------------------------------------------------------
# Losses of the margin y z that are zero beyond 1: support vector machines.


@register
@dataclass(frozen=True, eq=False)
class HingeLoss(_MarginLoss):
    r"""The hinge loss: sum_j s_j max(0, 1 - y_j z_j), with z = X_i w_i the predictions of a task and labels
    in {-1, +1}.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`).

    Raises
    ------
    DataError
        Where a label is not -1 or +1, or a task has labels of one class only.

    Notes
    -----
    Not smooth. With margins v = y z and t = step s, prox: v stays where v >= 1, else min(v + t, 1).
    Conjugate: sum u y where 0 <= -y u <= s, else +inf.
    Source: Cortes and Vapnik, "Support-vector networks", Machine Learning 20 (1995).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([2.0, 0.5, 1.5]), np.array([1.0, 1.0, -1.0])
    >>> HingeLoss().value(z, y)
    3.0
    >>> HingeLoss().prox(z, y, step=1.0)
    array([2. , 1. , 0.5])
    """

    name: ClassVar[str] = "hinge_loss"
    meaning: ClassVar[str] = "the hinge loss"
    formula: ClassVar[str] = r"\sum_j \max\big(0,\,1-y_{ij}({})_j\big)"
    steepest: ClassVar[float] = 1.0
    max_affine: ClassVar[bool] = True

    def pointwise(self, z, y):
        return np.maximum(1.0 - y * z, 0.0)

    def slope(self, z, y):
        return np.where(y * z < 1.0, -y, 0.0)

    def pointwise_prox(self, z, y, step):
        margin = y * z
        return y * np.maximum(margin, np.minimum(margin + step, 1.0))

    def dual_quadratic(self, y):
        return y, 0.0


@register
@dataclass(frozen=True, eq=False)
class SquaredHingeLoss(_MarginLoss):
    r"""The squared hinge loss: sum_j s_j max(0, 1 - y_j z_j)^2, with z = X_i w_i the predictions of a task
    and labels in {-1, +1}; no 1/2.

    Shapes: z, y and the sample weights s are (n,); a sum over samples (divided by n with `mean=True`).

    Raises
    ------
    DataError
        Where a label is not -1 or +1, or a task has labels of one class only.

    Notes
    -----
    gradient: -2 s y max(0, 1 - y z), with Lipschitz constant 2. With margins v = y z and t = step s, prox:
    (v + 2 t) / (1 + 2 t) where v < 1. Conjugate with a = -y u: sum a^2 / (4 s) - a where a >= 0, else +inf.
    Source: the L2-SVM of Cortes and Vapnik, "Support-vector networks", Machine Learning 20 (1995).

    Examples
    --------
    >>> import numpy as np
    >>> z, y = np.array([2.0, 0.5, 1.0]), np.array([1.0, 1.0, -1.0])
    >>> SquaredHingeLoss().value(z, y)
    4.25
    >>> SquaredHingeLoss().gradient(z, y)
    array([-0., -1.,  4.])
    """

    name: ClassVar[str] = "squared_hinge_loss"
    meaning: ClassVar[str] = "the squared hinge loss"
    formula: ClassVar[str] = r"\sum_j \max\big(0,\,1-y_{ij}({})_j\big)^2"
    smooth: ClassVar[bool] = True
    piecewise_quadratic: ClassVar[bool] = True
    curvature: ClassVar[float] = 2.0

    def pointwise(self, z, y):
        return np.maximum(1.0 - y * z, 0.0) ** 2

    def slope(self, z, y):
        return -2.0 * y * np.maximum(1.0 - y * z, 0.0)

    def second_slope(self, z, y):
        return np.where(y * z < 1.0, 2.0, 0.0)

    def pointwise_prox(self, z, y, step):
        margin = y * z
        return y * np.where(margin < 1.0, (margin + 2.0 * step) / (1.0 + 2.0 * step), margin)

    def dual_quadratic(self, y):
        return y, 0.5
