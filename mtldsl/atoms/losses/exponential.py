"""The exponential loss: what boosting minimises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # scipy.special is slow to import: it is loaded where it is first used

from mtldsl.atoms.function import SeparableLoss, register
from mtldsl.atoms.losses.counts import finite_exp, log_link_prox

__all__ = ["ExponentialLoss"]


@register
@dataclass(frozen=True, eq=False)
class ExponentialLoss(SeparableLoss):
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
    labels: ClassVar[str] = "sign"
    smooth: ClassVar[bool] = True

    def falls(self, y):
        return np.asarray(y, float)

    def pointwise(self, z, y):
        return finite_exp(-y * z)

    def slope(self, z, y):
        return -y * finite_exp(-y * z)

    def second_slope(self, z, y):
        return finite_exp(-y * z)

    def constant_of_classes(self, positive, negative):
        return 0.5 * np.log(positive / negative)

    def value(self, z, y, s=None):
        with np.errstate(over="ignore"):  # a sum beyond the largest float is inf, as one summand would be
            return super().value(z, y, s)

    def pointwise_prox(self, z, y, step):
        # the margin m solves m = y z + step e^-m
        return y * -log_link_prox(-y * z, step)

    def pointwise_conjugate(self, u, y):
        a = -y * u
        return scipy.special.xlogy(a, a) - a

    def dual_interval(self, y):
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)

    def probability(self, z):
        """P(y = +1) at predictions z."""
        return scipy.special.expit(2.0 * z)
