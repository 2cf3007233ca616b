"""The Poisson loss: targets that count events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # scipy.special is slow to import: it is loaded where it is first used

from mtldsl.atoms.function import SeparableLoss, register

__all__ = ["PoissonLoss", "finite_exp", "log_link_prox"]


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

    def value(self, z, y, s=None):
        with np.errstate(over="ignore"):  # a sum beyond the largest float is inf, as one summand would be
            return super().value(z, y, s)

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
