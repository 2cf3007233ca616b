"""Balls of norms: what `l1_norm(W) <= radius` and its like become, for every norm of the language and of one's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.atom import MATRIX, REGISTRY, checked_number, register
from mtldsl.atoms.matrix_function import Set


@register
@dataclass(frozen=True, eq=False)
class NormBall(Set):
    r"""The matrices whose norm is at most radius; typed `norm(W) <= radius`, with any norm of the language or of one's own.

    Parameters
    ----------
    of : the norm (or seminorm) N
    radius : number >= 0

    Raises
    ------
    ModelError
        Where the radius is negative or not finite.

    Notes
    -----
    Projection: the prox of t N at W, with the t >= 0 that makes the norm of the result equal to the radius: in closed form for l1, l2,1,
    l1,2, group, trace, spectral and Frobenius norms, by secants for others. Support function: radius times the dual norm. Violation:
    (N(W) - radius)_+.
    Source: Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in high dimensions", ICML 2008;
    van den Berg, Schmidt, Friedlander and Murphy, "Group sparsity via linear-time projection", Technical Report TR-2008-09, University of
    British Columbia (2008); Parikh and Boyd, "Proximal algorithms", Foundations and Trends in Optimization 1 (2014), section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from mtldsl.atoms.regularizers import L1Norm, L1InfNorm
    >>> NormBall(L1Norm(), 2.0).project(np.array([[2.0, -1.0], [0.5, 1.0]]))
    array([[ 1.33333333, -0.33333333], [ 0. , 0.33333333]])
    >>> NormBall(L1InfNorm(), 3.0).project(np.array([[4.0, -3.0], [0.5, 0.0]])).round(12)
    array([[ 3., -3.], [ 0., 0.]])
    >>> NormBall(L1Norm(), 2.0).support(np.array([[2.0, -3.0]]))
    6.0
    """

    of: Any  # a `Norm`, which imports this file
    radius: float

    name: ClassVar[str] = "norm_ball"
    formula: ClassVar[str] = r"N({}) \leq \rho"

    def __post_init__(self):
        radius = checked_number(
            self.of.name, "radius", self.radius, lambda r: r >= 0, "a finite number >= 0, such as radius=1.0"
        )
        object.__setattr__(self, "radius", radius)

    @classmethod
    def examples(cls):
        def norm(word: str, **parameters) -> Any:
            return REGISTRY[word](**parameters)

        some = np.array([1.0, 2.0, 0.5, 3.0])
        return [
            cls(norm("l1_norm"), 1.0),
            cls(norm("l1_norm"), 100.0),
            cls(norm("l1_norm", weights=np.arange(20.0).reshape(5, 4) / 7), 2.0),
            cls(norm("l21_norm"), 2.5),
            cls(norm("trace_norm"), 1.0),
            cls(norm("trace_norm"), 2.5),
            cls(norm("spectral_norm"), 1.2),
            cls(norm("frobenius_norm"), 1.0),
            cls(norm("l12_norm"), 1.5),
            cls(norm("l12_norm", weights=np.array([1.0, 0.0, 0.5, 2.0])), 1.0),
            cls(norm("l1_inf_norm"), 1.2),
            cls(norm("l1_inf_norm", weights=np.append(some, 1.0)), 3.0),
            cls(norm("group_norm", groups=[[0, 1], [2, 3, 4]], weights=np.array([1.0, 2.0])), 2.0),
            cls(norm("group_norm", groups=[[3, 0], [1]]), 0.5),
            cls(norm("column_group_norm", columns=[[0, 1], [2, 3]]), 1.0),
            cls(norm("sorted_l1_norm", weights=np.linspace(2.0, 0.0, 20)), 1.0),
            cls(norm("total_variation"), 1.0),
        ]

    @property
    def shown(self) -> str:
        return f"{self.of.shown}(...) <= {self.radius:g}"

    @property
    def exact_prox(self) -> bool:
        return self.of.exact_prox

    @property
    def separable(self) -> str | None:
        return self.of.separable if self.of.separable in ("spectrum", "matrix") else None

    @property
    def scales(self):
        return MATRIX if self.of.scales is MATRIX else None

    @property
    def order_preserving(self) -> bool:
        return self.of.order_preserving  # it is the norm's prox, with a step of its own

    @property
    def absorbs(self) -> bool:
        return self.of.absorbs

    @property
    def finite_dual(self) -> bool:
        return self.of.absorbs

    @property
    def accuracy(self) -> float:
        return self.of.accuracy

    def check(self, shape):
        return self.of.check(shape)

    def stated(self, shape):
        return replace(self, of=self.of.stated(shape))

    @property
    def holds_around_zero(self) -> bool:
        return self.radius > 0

    def holds_all(self, shape):
        """Return where the norm is zero for all: for a matrix that is like no other."""
        return self.of.value(np.sin(1.0 + np.arange(float(np.prod(shape)))).reshape(shape)) == 0.0

    def project(self, W):
        inside = self.of.value(W) <= self.radius
        return np.array(W, dtype=float) if inside else self.of.nearest_in_ball(W, self.radius)

    def violation(self, W):
        return max(self.of.value(W) - self.radius, 0.0)

    def support(self, Z):
        gauge = self.of.dual_gauge(Z)
        return self.radius * gauge if gauge < np.inf else np.inf

    def dual_gauge(self, Z):
        return 0.0 if self.absorbs or np.isfinite(self.of.dual_gauge(Z)) else np.inf

    def dual_project(self, Z):
        return self.of.dual_project(Z)

    def latex(self, argument):
        return rf"{self.of.latex(argument)} \leq {self.radius:g}"
