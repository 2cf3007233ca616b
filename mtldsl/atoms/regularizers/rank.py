"""The number of singular values that are not zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import singular_values, thin_svd
from mtldsl.atoms.function import Regularizer, Set, register
from mtldsl.atoms.no_dual import NoDual
from mtldsl.atoms.sets import RankAtMost

__all__ = ["Rank", "numerical_rank"]

#: A singular value this small, relative to the largest, is rounding.
_ROUNDING = 1e-10


def numerical_rank(W) -> int:
    """How many singular values of W are above 1e-10 of the largest."""
    s = singular_values(W)
    return int(np.count_nonzero(s > _ROUNDING * s[0])) if s.size and s[0] > 0 else 0


@register
@dataclass(frozen=True, eq=False)
class Rank(NoDual, Regularizer):
    r"""The rank of W, not convex: how many of its singular values are not zero (above 1e-10 of the largest).

    Mostly as a constraint, `rank(W) <= r`; as a term, `mu * rank(W)`, it costs mu for every direction that tasks share.
    W is (p features, q tasks). Its convex relaxation is trace_norm; nearer to it are log_rank and capped_trace_norm.

    Notes
    -----
    prox for a step t: singular values s with s^2 > 2 t are kept, all others are zero (a hard threshold).
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (3).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> Rank().value(W), Rank().prox(W, 2.0).diagonal()
    (2.0, array([3., 0.]))
    """

    name: ClassVar[str] = "rank"
    meaning: ClassVar[str] = "the rank, which is not convex"
    formula: ClassVar[str] = r"\operatorname{rank}({})"
    separable: ClassVar[str] = "spectrum"
    convex: ClassVar[bool] = False
    weak_convexity: ClassVar[float] = np.inf
    is_bounded: ClassVar[bool] = True

    def value(self, W):
        return float(numerical_rank(W))

    def prox(self, W, step):
        U, s, Vt = thin_svd(W)
        kept = int(np.count_nonzero(s**2 > 2.0 * step))
        return (U[:, :kept] * s[:kept]) @ Vt[:kept]

    def ball(self, radius) -> Set:
        return RankAtMost(radius)
