"""The logistic loss: probabilities of two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # scipy.special is slow to import: it is loaded where it is first used

from mtldsl.atoms.function import SeparableLoss, register
from mtldsl.atoms.losses.counts import finite_exp

__all__ = ["LogisticLoss"]

_TINY = np.finfo(float).tiny
_LARGE_STEP = 4.0  # of a prox: beyond, its root is sought from a nearer start
_NEARLY_ONE = 1.0 - np.finfo(float).epsneg


@register
@dataclass(frozen=True, eq=False)
class LogisticLoss(SeparableLoss):
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
    labels: ClassVar[str] = "sign"
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

    def constant_of_classes(self, positive, negative):
        return np.log(positive / negative)

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
        return a * np.log(np.maximum(a, _TINY)) + (1.0 - a) * np.log1p(-np.minimum(a, _NEARLY_ONE))

    def dual_interval(self, y):
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def probability(self, z):
        """P(y = +1) at predictions z."""
        return scipy.special.expit(z)


def _nonnegative_root(v, step):
    """The x >= 0 with x = v + step / (1 + e^x), given v >= -step / 2, elementwise.

    The start bounds the root from above: 1 / (1 + e^x) falls, and is below e^-x, which is the better bound for large steps and takes
    longer. The function x - v - step / (1 + e^x) is increasing, and concave for x >= 0: one Newton step from there lands left of the
    root, the next ones rise to it.
    """
    if np.max(step, initial=0.0) <= _LARGE_STEP:
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
