"""Norms that weight entries by their rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.regularizers.norm import Norm
from mtldsl.atoms.regularizers.weights import checked_weights
from mtldsl.errors import ModelError
from mtldsl.values.number import quoted

__all__ = ["SortedL1Norm"]


@register
@dataclass(frozen=True, eq=False)
class SortedL1Norm(Norm):
    r"""The sorted l1 norm (SLOPE, OWL): sum over k of a_k |W|_(k), |W|_(k) the k-th largest of all entries' absolute values.

    Makes entries of W exactly zero, and gives the same absolute value to entries that belong together: those of correlated
    features. The ranking is over all n entries of all tasks at once, not task by task.

    Parameters
    ----------
    weights : n numbers a_1 >= a_2 >= ... >= 0, a_1 > 0, one for every entry
        What the largest entry costs, the second largest, ...; all equal: the l1 norm, (1, 0, ..., 0): the largest
        absolute value. A number stands for equal weights.
    q : number, 0 < q < 1, in place of weights; default 0.1
        The weights of SLOPE, a_k = Phi^-1(1 - k q / (2 n)), Phi the standard normal distribution: the sequence of Benjamini
        and Hochberg at level q.

    Raises
    ------
    ModelError
        Where weights are negative, not finite, increase, are all zero, are not as many as the argument has entries, or are
        given beside q; where q is not between 0 and 1.

    Notes
    -----
    prox: |W| in descending order less step a is made nonincreasing (pool adjacent violators) and nonnegative, and put back.
    Dual norm: max over k of (|Z|_(1) + ... + |Z|_(k)) / (a_1 + ... + a_k).
    Source: Bogdan, van den Berg, Sabatti, Su and Candes, "SLOPE - adaptive variable selection via convex optimization",
    Annals of Applied Statistics 9 (2015); Zeng and Figueiredo, "The ordered weighted l1 norm: atomic formulation, projections,
    and algorithms", arXiv:1409.4271 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -1.0], [0.5, 2.0]])
    >>> SortedL1Norm(weights=[4.0, 3.0, 2.0, 1.0]).value(W)
    20.5
    >>> SortedL1Norm(weights=[2.0, 0.5, 0.0, 0.0]).prox(W, 1.0)  # 3 - 2 and 2 - 0.5 would change places
    array([[ 1.25, -1.  ],
           [ 0.5 ,  1.25]])
    """

    weights: float | np.ndarray | None = None
    q: float | None = None

    name: ClassVar[str] = "sorted_l1_norm"
    meaning: ClassVar[str] = (
        r"the sorted $\ell_1$ norm: $|\cdot|_{(k)}$ is the $k$-th largest absolute value of all entries, "
        r"$a_1 \geq a_2 \geq \dots \geq 0$"
    )
    formula: ClassVar[str] = r"\sum_k a_k |{}|_{(k)}"
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        if self.weights is not None and self.q is not None:
            raise ModelError(
                f"{self.name}(..., weights={quoted(self.weights)}, q={quoted(self.q)}): q makes the weights",
                write_instead="write one of the two",
            )
        if self.weights is None and self.q is not None:
            q = checked_number(self.name, "q", self.q, lambda q: 0 < q < 1, "a number between 0 and 1")
            object.__setattr__(self, "q", q)
        a = checked_weights(self.weights, self.name, 1)
        object.__setattr__(self, "weights", a)
        if a is None:
            return
        typed = f"{self.name}(..., weights={quoted(self.weights)})"
        a = np.atleast_1d(a)
        rising = np.flatnonzero(np.diff(a) > 0)
        if rising.size:
            k = int(rising[0])
            raise ModelError(
                f"weight {k + 2} is {a[k + 1]:g}, more than the one before it, {a[k]:g}: not convex",
                term=typed,
                write_instead="give the weights in descending order",
            )
        if np.max(a, initial=0.0) == 0.0:
            raise ModelError("all weights are zero; the first must be > 0", term=typed)

    @classmethod
    def examples(cls):
        return [
            cls(),
            cls(q=0.5),
            cls(weights=np.arange(20.0, 0.0, -1.0) / 7),
            cls(weights=np.array([1.5] + 19 * [0.0])),
        ]

    def check(self, shape):
        if isinstance(self.weights, np.ndarray) and len(self.weights) != shape[0] * shape[1]:
            return f"there are {len(self.weights)} weights for {shape[0]} x {shape[1]} entries; write one an entry, or q=0.1"
        return None

    def stated(self, shape):
        return SortedL1Norm(weights=self.ranked(shape[0] * shape[1]))

    def ranked(self, size: int) -> np.ndarray:
        """The weights a of an argument of so many entries."""
        if self.weights is None:
            return _slope_weights(size, 0.1 if self.q is None else self.q)
        return np.broadcast_to(self.weights, size)

    def value(self, W):
        return float(self.ranked(W.size) @ np.sort(np.abs(W), axis=None)[::-1])

    def prox(self, W, step):
        from scipy.optimize import isotonic_regression  # slow to import: where it is first used

        order = np.argsort(-np.abs(W), axis=None)
        shrunk = np.abs(W).ravel()[order] - step * self.ranked(W.size)
        entries = np.empty(W.size)
        entries[order] = np.maximum(isotonic_regression(shrunk, increasing=False).x, 0.0)
        return np.copysign(entries.reshape(W.shape), W)

    def dual_gauge(self, Z):
        sums = np.cumsum(np.sort(np.abs(Z), axis=None)[::-1])
        return float(np.max(sums / np.cumsum(self.ranked(Z.size))))


@cache
def _slope_weights(size: int, q: float) -> np.ndarray:
    from scipy.special import ndtri  # slow to import: where it is first used

    weights = ndtri(1.0 - q * np.arange(1, size + 1) / (2.0 * size))
    weights.flags.writeable = False  # the cache gives the same array to all
    return weights
