"""Functions of the singular values of W: low rank, tasks that share a few directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.shrinkage import water_level
from mtldsl.atoms.calculus.singular_values import largest_singular_value, shrink_singular_values
from mtldsl.atoms.calculus.spectral_matrix import singular_values
from mtldsl.atoms.function import Regularizer, register
from mtldsl.atoms.regularizers.norm import Norm

__all__ = ["SquaredTraceNorm", "TraceNorm"]


@register
@dataclass(frozen=True, eq=False)
class TraceNorm(Norm):
    r"""The trace norm (nuclear norm): sum of the singular values of W.

    Makes W (p features, q tasks) low-rank: the tasks share a few directions.

    Notes
    -----
    prox: every singular value s -> (s - step)_+. Dual norm: the largest singular value.
    Source: Fazel, Hindi and Boyd, "A rank minimization heuristic with application to minimum order system
    approximation", ACC 2001; Pong, Tseng, Ji and Ye, "Trace norm regularization: reformulations, algorithms,
    and multi-task learning", SIAM J. Optim. 20 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> TraceNorm().value(W)
    4.0
    >>> TraceNorm().prox(W, 1.5).round(12)
    array([[1.5, 0. ], [0. , 0. ]])
    """

    name: ClassVar[str] = "trace_norm"
    meaning: ClassVar[str] = "the trace norm, the sum of the singular values"
    formula: ClassVar[str] = r"\|{}\|_*"
    separable: ClassVar[str] = "spectrum"

    def value(self, W):
        return float(singular_values(W).sum())

    def prox(self, W, step):
        return shrink_singular_values(W, lambda singular: step)

    def dual_gauge(self, Z):
        return largest_singular_value(Z)

    def nearest_in_ball(self, W, radius):
        return shrink_singular_values(W, lambda singular: water_level(singular[:, None], radius)[0])


@register
@dataclass(frozen=True, eq=False)
class SquaredTraceNorm(Regularizer):
    r"""The squared trace norm: (sum of the singular values of W)^2, no 1/2.

    Makes W (p features, q tasks) low-rank; it is what a learned covariance of trace 1 between tasks or
    features eliminates to.

    Notes
    -----
    prox: s -> (s - 2 step S)_+ with S = sum of the new singular values, found exactly: over k, S is the
    largest of (s_1 + ... + s_k) / (1 + 2 step k). Conjugate: ||Z||_2^2 / 4.
    Source: Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008);
    Zhang and Yeung, "A convex formulation for learning task relationships in multi-task learning", UAI 2010.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> SquaredTraceNorm().value(W)
    16.0
    >>> SquaredTraceNorm().prox(W, 0.25).round(12)
    array([[2., 0.], [0., 0.]])
    """

    name: ClassVar[str] = "squared_trace_norm"
    meaning: ClassVar[str] = "the squared trace norm, the sum of the singular values squared as a whole"
    formula: ClassVar[str] = r"\|{}\|_*^2"
    separable: ClassVar[str] = "spectrum"
    finite_dual: ClassVar[bool] = True

    def value(self, W):
        return float(singular_values(W).sum() ** 2)

    def prox(self, W, step):
        def threshold(singular):
            totals = np.cumsum(singular) / (1.0 + 2.0 * step * np.arange(1, singular.size + 1))
            return 2.0 * step * float(totals.max())

        return shrink_singular_values(W, threshold)

    def conjugate(self, Z):
        return largest_singular_value(Z) ** 2 / 4.0

    def dual_gauge(self, Z):
        return 0.0
