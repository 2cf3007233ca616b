"""Matrices of low rank: what `rank(W) <= r` becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import singular_values, thin_svd
from mtldsl.atoms.function import Set, register
from mtldsl.atoms.no_dual import NoDual
from mtldsl.errors import ModelError

__all__ = ["RankAtMost"]


@register
@dataclass(frozen=True, eq=False)
class RankAtMost(NoDual, Set):
    r"""The matrices of rank <= r, not convex; typed `rank(W) <= r`.

    Parameters
    ----------
    radius : whole number >= 1, the rank r

    Raises
    ------
    ModelError
        Where r is not a whole number >= 1.

    Notes
    -----
    Projection: the r largest singular values are kept (Eckart and Young; where the r-th and the next are equal there are several,
    and this is one of them). Violation: the norm of the others.
    Source: Izenman, "Reduced-rank regression for the multivariate linear model", J. Multivariate Anal. 5 (1975).

    Examples
    --------
    >>> import numpy as np
    >>> RankAtMost(1).project(np.diag([3.0, 1.0])).diagonal()
    array([3., 0.])
    >>> RankAtMost(1).violation(np.diag([3.0, 1.0]))
    1.0
    """

    radius: float

    name: ClassVar[str] = "rank_at_most"
    formula: ClassVar[str] = r"\operatorname{rank}({}) \leq \rho"
    separable: ClassVar[str] = "spectrum"
    convex: ClassVar[bool] = False
    weak_convexity: ClassVar[float] = np.inf
    is_bounded: ClassVar[bool] = True

    @property
    def rank(self) -> int:
        """How many singular values need not be zero."""
        return int(self.radius)

    def __post_init__(self):
        r = self.radius
        whole = not isinstance(r, bool) and np.isfinite(r) and r == int(r)
        if not (whole and r >= 1):
            raise ModelError(
                f"rank(...) <= {r if isinstance(r, bool) else f'{r:g}'}: a rank is bounded by a whole number >= 1, as in rank(W) <= 3"
            )
        object.__setattr__(self, "radius", int(self.radius))

    @classmethod
    def examples(cls):
        return [cls(1), cls(2), cls(4)]

    def project(self, W):
        U, s, Vt = thin_svd(W)
        r = self.radius
        return (U[:, :r] * s[:r]) @ Vt[:r]

    def violation(self, W):
        return float(np.linalg.norm(singular_values(W)[self.radius :]))

    def support(self, Z):
        """+inf but at zero: multiples of matrices of rank one are in the set."""
        return self.conjugate(Z)

    def holds_all(self, shape):
        return self.radius >= min(shape)

    def latex(self, argument):
        return self.formula.replace(r"\rho", str(self.radius)).replace("{}", argument)
