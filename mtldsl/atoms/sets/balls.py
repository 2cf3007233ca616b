"""Norm balls: what `l1_norm(W) <= radius` and its like become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.shrinkage import shrinkage, water_level
from mtldsl.atoms.calculus.singular_values import largest_singular_value, shrink_singular_values
from mtldsl.atoms.calculus.spectral_matrix import singular_values
from mtldsl.atoms.function import Set, register
from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.parts import MATRIX

__all__ = ["FrobeniusBall", "L1Ball", "L21Ball", "TraceNormBall"]


@dataclass(frozen=True, eq=False)
class _Ball(Set):
    """{W : N(W) <= radius}: a subclass has a field `radius` and gives the norm, its dual and, for W outside,
    the nearest point of the ball.
    """

    radius: float
    finite_dual: ClassVar[bool] = True

    def __post_init__(self):
        radius = checked_number(
            self.name, "radius", self.radius, lambda r: r >= 0, "a finite number >= 0, such as radius=1.0"
        )
        object.__setattr__(self, "radius", radius)

    @classmethod
    def examples(cls):
        return [cls(1.0), cls(2.5), cls(100.0)]

    def norm_of(self, W) -> float:
        raise NotImplementedError

    def dual_norm_of(self, Z) -> float:
        raise NotImplementedError

    def project_from_outside(self, W) -> np.ndarray:
        raise NotImplementedError

    def project(self, W):
        return self.project_from_outside(W) if self.norm_of(W) > self.radius else np.array(W, dtype=float)

    def violation(self, W):
        return max(self.norm_of(W) - self.radius, 0.0)

    def support(self, Z):
        return self.radius * self.dual_norm_of(Z)

    def dual_gauge(self, Z):
        return 0.0

    def latex(self, argument):
        return self.formula.replace(r"\rho", f"{self.radius:g}").replace("{}", argument)


@register
@dataclass(frozen=True, eq=False)
class L1Ball(_Ball):
    r"""The matrices with sum of |W_ij| <= radius; typed `l1_norm(W) <= radius`.

    Parameters
    ----------
    radius : number >= 0

    Raises
    ------
    ModelError
        Where the radius is negative or not finite.

    Notes
    -----
    Projection: soft threshold at the level that makes the norm equal to the radius, found by sorting. Support
    function: radius max |Z_ij|. Violation: (||W||_1 - radius)_+.
    Source: Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient projections onto the l1-ball for learning in
    high dimensions", ICML 2008.

    Examples
    --------
    >>> import numpy as np
    >>> L1Ball(2.0).project(np.array([[2.0, -1.0], [0.5, 1.0]]))
    array([[ 1.33333333, -0.33333333], [ 0. , 0.33333333]])
    >>> L1Ball(2.0).support(np.array([[2.0, -3.0]]))
    6.0
    """

    radius: float

    name: ClassVar[str] = "l1_ball"
    formula: ClassVar[str] = r"\|{}\|_1 \leq \rho"

    def norm_of(self, W):
        return float(np.abs(W).sum())

    def dual_norm_of(self, Z):
        return float(np.abs(Z).max(initial=0.0))

    def project_from_outside(self, W):
        # below zero only by rounding, when W is outside by no more: zeros must stay zeros
        level = max(water_level(np.abs(W).reshape(-1, 1), self.radius)[0], 0.0)
        return W - np.clip(W, -level, level)


@register
@dataclass(frozen=True, eq=False)
class L21Ball(_Ball):
    r"""The matrices with sum over rows r of ||W_r||_2 <= radius; typed `l21_norm(W) <= radius`.

    Parameters
    ----------
    radius : number >= 0

    Raises
    ------
    ModelError
        Where the radius is negative or not finite.

    Notes
    -----
    Projection: every row keeps its direction; the vector of row norms is projected on the l1 ball. Support
    function: radius max ||Z_r||_2. Violation: (||W||_{2,1} - radius)_+.
    Source: van den Berg, Schmidt, Friedlander and Murphy, "Group sparsity via linear-time projection",
    Technical Report TR-2008-09, University of British Columbia (2008).

    Examples
    --------
    >>> import numpy as np
    >>> L21Ball(3.0).project(np.array([[3.0, 4.0], [0.6, 0.8]]))
    array([[1.8, 2.4], [0. , 0. ]])
    >>> L21Ball(3.0).violation(np.array([[3.0, 4.0], [0.6, 0.8]]))
    3.0
    """

    radius: float

    name: ClassVar[str] = "l21_ball"
    formula: ClassVar[str] = r"\|{}\|_{2,1} \leq \rho"

    def norm_of(self, W):
        return float(np.linalg.norm(W, axis=1).sum())

    def dual_norm_of(self, Z):
        return float(np.linalg.norm(Z, axis=1).max(initial=0.0))

    def project_from_outside(self, W):
        norms = np.linalg.norm(W, axis=1)
        return W * shrinkage(norms, water_level(norms[:, None], self.radius)[0])[:, None]


@register
@dataclass(frozen=True, eq=False)
class TraceNormBall(_Ball):
    r"""The matrices whose singular values sum to at most radius; typed `trace_norm(W) <= radius`.

    Parameters
    ----------
    radius : number >= 0

    Raises
    ------
    ModelError
        Where the radius is negative or not finite.

    Notes
    -----
    Projection: the singular vectors stay; the vector of singular values is projected on the l1 ball. Support
    function: radius times the largest singular value of Z. Violation: (||W||_* - radius)_+.
    Source: Cai, Candes and Shen, "A singular value thresholding algorithm for matrix completion", SIAM J.
    Optim. 20 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> TraceNormBall(2.0).project(np.diag([3.0, 2.0])).round(12)
    array([[1.5, 0. ], [0. , 0.5]])
    >>> TraceNormBall(2.0).support(np.diag([3.0, -4.0]))
    8.0
    """

    radius: float

    name: ClassVar[str] = "trace_norm_ball"
    formula: ClassVar[str] = r"\|{}\|_* \leq \rho"
    separable: ClassVar[str] = "spectrum"

    def norm_of(self, W):
        return float(singular_values(W).sum())

    def dual_norm_of(self, Z):
        return largest_singular_value(Z)

    def project_from_outside(self, W):
        return shrink_singular_values(W, lambda singular: water_level(singular[:, None], self.radius)[0])


@register
@dataclass(frozen=True, eq=False)
class FrobeniusBall(_Ball):
    r"""The matrices with sqrt(sum of W_ij^2) <= radius; typed `frobenius_norm(W) <= radius`.

    Parameters
    ----------
    radius : number >= 0

    Raises
    ------
    ModelError
        Where the radius is negative or not finite.

    Notes
    -----
    Projection: W times min(1, radius / ||W||_F). Support function: radius ||Z||_F. Violation:
    (||W||_F - radius)_+.

    Examples
    --------
    >>> import numpy as np
    >>> FrobeniusBall(1.0).project(np.array([[3.0, 0.0], [0.0, 4.0]]))
    array([[0.6, 0. ], [0. , 0.8]])
    >>> FrobeniusBall(1.0).violation(np.array([[3.0, 0.0], [0.0, 4.0]]))
    4.0
    """

    radius: float

    name: ClassVar[str] = "frobenius_ball"
    formula: ClassVar[str] = r"\|{}\|_F \leq \rho"
    separable: ClassVar[str] = "matrix"
    order_preserving: ClassVar[bool] = True

    @property
    def scales(self):
        return MATRIX

    def norm_of(self, W):
        return float(np.linalg.norm(W))

    def dual_norm_of(self, Z):
        return float(np.linalg.norm(Z))

    def project_from_outside(self, W):
        return W * (self.radius / np.linalg.norm(W))
