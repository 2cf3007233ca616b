"""Losses of the margin y z that are zero beyond 1: support vector machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import SeparableLoss, register

__all__ = ["HingeLoss", "SquaredHingeLoss"]


@register
@dataclass(frozen=True, eq=False)
class HingeLoss(SeparableLoss):
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
    labels: ClassVar[str] = "sign"
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

    def dual_interval(self, y):
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def constant_of_classes(self, positive, negative):
        # where the classes weigh the same, any constant between the margins
        is_even = np.abs(positive - negative) <= 1e-11 * (positive + negative)
        return np.where(is_even, 0.0, np.sign(positive - negative))


@register
@dataclass(frozen=True, eq=False)
class SquaredHingeLoss(SeparableLoss):
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
    labels: ClassVar[str] = "sign"
    smooth: ClassVar[bool] = True
    piecewise_quadratic: ClassVar[bool] = True
    curvature: ClassVar[float] = 2.0

    def pointwise(self, z, y):
        return np.maximum(1.0 - y * z, 0.0) ** 2

    def slope(self, z, y):
        return -2.0 * y * np.maximum(1.0 - y * z, 0.0)

    def second_slope(self, z, y):
        return np.where(y * z < 1.0, 2.0, 0.0)

    def constant_of_classes(self, positive, negative):
        return (positive - negative) / (positive + negative)

    def pointwise_prox(self, z, y, step):
        margin = y * z
        return y * np.where(margin < 1.0, (margin + 2.0 * step) / (1.0 + 2.0 * step), margin)

    def dual_quadratic(self, y):
        return y, 0.5

    def dual_interval(self, y):
        return np.where(y > 0, -np.inf, 0.0), np.where(y > 0, 0.0, np.inf)
