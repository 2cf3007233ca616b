"""Sums of squared residuals, with and without the 1/2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import SeparableLoss, register
from mtldsl.system.blocks import slabs

__all__ = ["SquaredLoss", "SumOfSquares"]


class _Squares(SeparableLoss):
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
class SquaredLoss(_Squares):
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
class SumOfSquares(_Squares):
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
