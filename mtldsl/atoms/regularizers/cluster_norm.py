"""The squared cluster norm: what a covariance with bounded eigenvalues and a bounded trace leaves when it is at its best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import singular_values, thin_svd
from mtldsl.atoms.function import Regularizer, register
from mtldsl.atoms.parameters import checked_number

__all__ = ["SquaredClusterNorm"]


@register
@dataclass(frozen=True, eq=False)
class SquaredClusterNorm(Regularizer):
    r"""The squared cluster norm (spectral box norm): min tr(W S^-1 W^T) over covariances S of the tasks, lower I <= S <= upper I, tr S <= trace.

    Relaxes clustered multi-task learning: with lower = e, upper = 1 + e and trace = k + m e for m tasks in k clusters, S - e I is a
    projection onto k dimensions, relaxed. Between a ridge and the squared trace norm, which it is at lower = 0, upper = inf.

    Parameters
    ----------
    lower : number >= 0
    upper : number > lower, may be inf
    trace : number, at least lower times the number of tasks

    Raises
    ------
    ModelError
        Where no S obeys the bounds, or a number is not as above.

    Notes
    -----
    With singular values s it is the least sum_i s_i^2 / v_i over lower <= v_i <= upper with a sum of at most trace, at
    v_i = clip(x s_i, lower, upper); prox of step t: s_i -> s_i v_i / (v_i + 2 t) at v_i = clip(x s_i - 2 t, lower, upper); x makes the sum
    right. Conjugate: 1/4 sum_i v_i z_i^2 at the v that gives the largest z_i all they may have.
    Source: Jacob, Bach and Vert, "Clustered multi-task learning: a convex formulation", NIPS 2008; Zhou, Chen and Ye, "Clustered multi-task
    learning via alternating structure optimization", NIPS 2011, eq. (8); McDonald, Pontil and Stamos, "New perspectives on k-support and
    cluster norms", JMLR 17 (2016), Theorems 14 and 17.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([3.0, 1.0])
    >>> SquaredClusterNorm(lower=0.0, upper=np.inf, trace=1.0).value(W)  # the squared trace norm
    16.0
    >>> SquaredClusterNorm(lower=0.5, upper=1.0, trace=1.5).value(W)  # v = (1, 1/2)
    11.0
    """

    lower: float
    upper: float
    trace: float

    name: ClassVar[str] = "squared_cluster_norm"
    meaning: ClassVar[str] = "the squared cluster norm"
    formula: ClassVar[str] = (
        r"\min_{\lambda I \preceq S \preceq \mu I, \; \operatorname{tr} S \leq c} \operatorname{tr}({} S^{-1} {}^\top)"
    )
    separable: ClassVar[str] = "spectrum"
    finite_dual: ClassVar[bool] = True

    def __post_init__(self):
        for key, fits, what in (
            ("lower", lambda x: x >= 0, "a number >= 0"),
            ("trace", lambda x: x > 0, "a number > 0"),
        ):
            object.__setattr__(self, key, checked_number(self.name, key, getattr(self, key), fits, what))
        if self.upper != np.inf:
            upper = checked_number(
                self.name, "upper", self.upper, lambda x: x > self.lower, "a number > lower, or inf"
            )
            object.__setattr__(self, "upper", upper)

    @classmethod
    def examples(cls):
        return [
            cls(0.1, 1.1, 2.4),
            cls(0.0, 1.0, 1.5),
            cls(0.0, np.inf, 2.0),
            cls(0.5, 2.0, 100.0),
            cls(0.25, 3.0, 1.0),
        ]

    def check(self, shape):
        least = self.lower * shape[1]
        if least > self.trace * (1 + 1e-12):
            return f"the eigenvalues of {shape[1]} tasks, each >= {self.lower:g}, have a sum >= {least:g}, above trace={self.trace:g}"
        return None

    def value(self, W):
        s = singular_values(W)
        s = s[s > 0]
        return float(np.sum(s**2 / self._variances(s, W.shape[1], 0.0)))

    def prox(self, W, step):
        U, s, Vt = thin_svd(W)
        v = self._variances(s, W.shape[1], 2.0 * step)
        return (U * (s * np.divide(v, v + 2.0 * step, out=np.ones_like(v), where=v + 2.0 * step > 0))) @ Vt

    def conjugate(self, Z):
        squares = singular_values(Z) ** 2  # descending
        room = max(self.trace - self.lower * Z.shape[1], 0.0)
        each = self.upper - self.lower
        taken = (
            np.diff(np.minimum(np.arange(len(squares) + 1) * each, room))
            if each < np.inf
            else np.append(room, np.zeros(len(squares) - 1))
        )
        return 0.25 * float((self.lower + taken) @ squares)

    def dual_gauge(self, Z):
        return 0.0

    def _variances(self, s, n_tasks: int, less: float) -> np.ndarray:
        """clip(x s - less, lower, upper) of every singular value, those that are not there being `lower`; x > 0 makes the sum `trace`."""
        total = self.trace - self.lower * (n_tasks - len(s))
        some = s > 0
        most = np.where(some, self.upper, self.lower)
        if not some.any() or most.sum() <= total:
            return most
        with np.errstate(over="ignore"):
            ends = np.concatenate([(self.lower + less) / s[some], (self.upper + less) / s[some]])
        ends = np.sort(ends[np.isfinite(ends)])
        sums = np.array([self._at(x, s, less).sum() for x in ends])
        k = int(np.searchsorted(sums, total))
        if k == 0:
            x = ends[0]
        elif k < len(ends):
            share = (total - sums[k - 1]) / (sums[k] - sums[k - 1])
            x = ends[k - 1] + share * (ends[k] - ends[k - 1])
        else:  # no upper bound: all of them grow
            x = ends[-1] + (total - sums[-1]) / s.sum()
        return self._at(x, s, less)

    def _at(self, x: float, s, less: float) -> np.ndarray:
        return np.clip(x * s - less, self.lower, self.upper)
