"""Quadratic penalties on the size of W."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import in_parentheses
from mtldsl.atoms.function import Regularizer, register
from mtldsl.atoms.parts import RowProfile
from mtldsl.atoms.regularizers.weights import check_broadcast, checked_weights
from mtldsl.system.kept import cached_property

__all__ = ["Ridge"]


@register
@dataclass(frozen=True, eq=False)
class Ridge(Regularizer):
    r"""Ridge: 1/2 sum over entries of a_ij W_ij^2, which is 1/2 ||W||_F^2 without weights.

    Shrinks the entries of W (p, q), none to exactly zero, and makes any model strongly convex.

    Parameters
    ----------
    weights : number or array a that broadcasts to the shape of W, >= 0, default all 1
        What each entry costs; an entry of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or the weights do not broadcast to the argument's shape.

    Notes
    -----
    prox: W / (1 + step a). Conjugate: 1/2 sum Z_ij^2 / a_ij, +inf where Z_ij != 0 has a_ij = 0.
    Source: Hoerl and Kennard, "Ridge regression", Technometrics 12 (1970).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -1.0], [0.5, 2.0]])
    >>> Ridge().value(W)
    7.125
    >>> Ridge(weights=[2.0, 0.0]).gradient(W)
    array([[ 6., -0.], [ 1.,  0.]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "ridge"
    meaning: ClassVar[str] = "half the sum of squared weights"
    formula: ClassVar[str] = r"\tfrac12\|{}\|_F^2"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    weights_add: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "weights", checked_weights(self.weights, self.name, 2))

    @classmethod
    def examples(cls):
        per_entry = 0.25 + np.arange(20.0).reshape(5, 4) / 7
        return [cls(), cls(weights=2.5), cls(weights=per_entry), cls(weights=np.array([1.0, 0.0, 2.0, 0.5]))]

    def check(self, shape):
        return check_broadcast(self.weights, shape)

    def latex(self, argument):
        return super().latex(
            argument if self.weights is None else rf"\sqrt{{a}} \circ {in_parentheses(argument)}"
        )

    @property
    def profile(self):
        return RowProfile(square=1.0 if self.weights is None else self.weights)

    def on_rows(self, rows, shape):
        if not isinstance(self.weights, np.ndarray):
            return self
        return Ridge(np.broadcast_to(self.weights, shape)[rows])

    @cached_property
    def strong_convexity(self) -> float:
        return 1.0 if self.weights is None else float(np.min(self.weights))

    @cached_property
    def curvature(self) -> float:
        return 1.0 if self.weights is None else float(np.max(self.weights))

    @property
    def absorbs(self) -> bool:
        return self.strong_convexity > 0

    @property
    def finite_dual(self) -> bool:
        return self.strong_convexity > 0

    def value(self, W):
        squares = np.square(W)
        return 0.5 * float(squares.sum() if self.weights is None else (self.weights * squares).sum())

    def gradient(self, W):
        return W.copy() if self.weights is None else self.weights * W

    def prox(self, W, step):
        return W / (1.0 + (step if self.weights is None else step * self.weights))

    def conjugate(self, Z):
        if self.weights is None:
            return 0.5 * float(np.square(Z).sum())
        if self.dual_gauge(Z) > 0:
            return np.inf
        weights = np.broadcast_to(self.weights, Z.shape)
        held = weights > 0
        return 0.5 * float(np.sum(np.square(Z[held]) / weights[held]))

    def dual_gauge(self, Z):
        if self.weights is None or self.absorbs:
            return 0.0
        return np.inf if np.any(Z[np.broadcast_to(self.weights, Z.shape) == 0]) else 0.0

    def dual_project(self, Z):
        return Z if self.absorbs else np.where(np.asarray(self.weights) == 0, 0.0, Z)

    def task_quadratic(self, n_columns):
        if not isinstance(self.weights, np.ndarray):
            return (1.0 if self.weights is None else self.weights) * np.eye(n_columns)
        if self.weights.ndim == 2 and self.weights.shape[0] > 1:
            return None
        return np.diag(np.broadcast_to(self.weights.ravel(), n_columns))
