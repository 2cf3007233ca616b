"""The Gamma loss: targets that are amounts, such as costs, times or rainfall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # scipy.special is slow to import: it is loaded where it is first used

from mtldsl.atoms.function import SeparableLoss, register
from mtldsl.atoms.losses.counts import finite_exp, log_link_prox

__all__ = ["GammaLoss"]


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
        return y * finite_exp(-z) + (z - np.log(y) - 1.0)

    def slope(self, z, y):
        return 1.0 - y * finite_exp(-z)

    def second_slope(self, z, y):
        return y * finite_exp(-z)

    def value(self, z, y, s=None):
        with np.errstate(over="ignore"):  # a sum beyond the largest float is inf, as one summand would be
            return super().value(z, y, s)

    def pointwise_prox(self, z, y, step):
        return -log_link_prox(step - z, step * y)

    def pointwise_conjugate(self, u, y):
        a = 1.0 - u
        return scipy.special.xlogy(a, a / y) - a + (np.log(y) + 1.0)

    def dual_interval(self, y):
        return -np.inf, 1.0

    def decide(self, z):
        return finite_exp(z)  # the expected amount
