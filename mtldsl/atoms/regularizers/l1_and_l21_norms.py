"""Norms of entries, rows and columns, with their proximal steps: l1, l21, l12, l1inf, sorted l1, total variation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import (
    COLUMNS,
    ROUNDING_SHARE,
    ROWS,
    RowProfile,
    Separability,
    is_same_along_rows,
    register,
)
from mtldsl.atoms.prox.shrinkage import water_level
from mtldsl.atoms.regularizers.norm_base import (
    Norm,
    WeightedNorm,
    check_broadcast,
    check_length,
    checked_weights,
    transposed_weights,
)
from mtldsl.errors import ModelError
from mtldsl.utils.validation import quoted

# --------------------------------------------------------------------------------------------------------------
# Norms that treat every column (task) of W as one.


@register
@dataclass(frozen=True, eq=False)
class L12Norm(WeightedNorm):
    r"""Group norm with one group per task: sum over columns i of a_i ||W_i||_2.

    Makes whole columns of W (p features, q tasks) zero. On S in L + S it singles out outlier tasks.

    Parameters
    ----------
    weights : number or array a (q,), >= 0, default all 1
        What each column costs; a column of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or there is not one weight per column.

    Notes
    -----
    prox: W_i -> (1 - step a_i / ||W_i||_2)_+ W_i. Dual norm: max ||Z_i||_2 / a_i.
    Source: Chen, Zhou and Ye, "Integrating low-rank and group-sparse structures for robust multi-task
    learning", KDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 0.6], [4.0, 0.8]])
    >>> L12Norm().value(W)
    6.0
    >>> L12Norm().prox(W, 2.5)
    array([[1.5, 0. ], [2. , 0. ]])
    """

    weights: float | np.ndarray | None = None

    scales: ClassVar[Separability] = COLUMNS
    name: ClassVar[str] = "l12_norm"
    meaning: ClassVar[str] = r"the $\ell_{1,2}$ norm, the sum of the columns' Euclidean norms"
    formula: ClassVar[str] = r"\|{}\|_{1,2}"
    weighted_formula: ClassVar[str] = r"\sum_i a_i \|{}_{\cdot i}\|_2"
    separable: ClassVar[str] = "columns"
    monotone: ClassVar[bool] = True

    @classmethod
    def examples(cls):
        return [
            cls(),
            cls(weights=np.array([1.0, 2.0, 0.5, 3.0])),
            cls(weights=np.array([1.0, 0.0, 0.5, 2.0])),
        ]

    def check(self, shape):
        return check_length(self.weights, shape[1], "columns (tasks)")

    def of_transpose(self, shape):
        return L21Norm(self.weights)

    def cell_norms(self, W):
        return np.sqrt(np.einsum("rc,rc->c", W, W))


# --------------------------------------------------------------------------------------------------------------
# Norms that treat every entry by itself.


@register
@dataclass(frozen=True, eq=False)
class L1Norm(WeightedNorm):
    r"""The l1 norm: sum over entries of a_ij |W_ij|.

    Makes entries of W (p, q) exactly zero, each by itself.

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
    prox: soft threshold W_ij -> sign(W_ij) (|W_ij| - step a_ij)_+. Dual norm: max |Z_ij| / a_ij.
    Source: Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 58 (1996).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -1.0], [0.5, 2.0]])
    >>> L1Norm().value(W)
    6.5
    >>> L1Norm().prox(W, 1.0)
    array([[2., 0.], [0., 1.]])
    """

    weights: float | np.ndarray | None = None

    name: ClassVar[str] = "l1_norm"
    meaning: ClassVar[str] = r"the $\ell_1$ norm, the sum of absolute entries"
    formula: ClassVar[str] = r"\|{}\|_1"
    weighted_formula: ClassVar[str] = r"\|a \circ {}\|_1"
    separable: ClassVar[str] = "entries"
    monotone: ClassVar[bool] = True
    of_precisions: ClassVar[bool] = True
    weight_axes: ClassVar[int] = 2

    @classmethod
    def examples(cls):
        per_entry = np.arange(20.0).reshape(5, 4) / 7
        return [
            cls(),
            cls(weights=2.5),
            cls(weights=per_entry),
            cls(weights=np.array([[1.0], [2.0], [0.0], [0.5], [3.0]])),
        ]

    def check(self, shape):
        return check_broadcast(self.weights, shape)

    def cell_norms(self, W):
        return np.abs(W)

    def prox(self, W, step):
        threshold = self.thresholds(step)
        # W - clip(W) is the soft threshold: exactly 0 inside, one temporary.
        inside = np.clip(W, -threshold, threshold)
        return np.subtract(W, inside, out=inside)

    @property
    def order_preserving(self) -> bool:
        return self.weights is None or is_same_along_rows(self.weights)

    @property
    def profile(self):
        return RowProfile(absolute=1.0 if self.weights is None else self.weights)

    def on_rows(self, rows, shape):
        if not isinstance(self.weights, np.ndarray):
            return self
        return L1Norm(np.broadcast_to(self.weights, shape)[rows])

    def of_transpose(self, shape):
        return L1Norm(transposed_weights(self.weights))

    def entry_slopes(self, W):
        threshold = self.thresholds(1.0)
        slope = threshold * np.sign(W)
        return np.where(W == 0, -threshold, slope), np.where(W == 0, threshold, slope)


# --------------------------------------------------------------------------------------------------------------
# Norms that treat every row (feature) of W as one: a feature is used by all tasks or by none.


@dataclass(frozen=True, eq=False)
class _RowNorm(WeightedNorm):
    weights: float | np.ndarray | None = None

    separable: ClassVar[str] = "rows"
    monotone: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = True

    @classmethod
    def examples(cls):
        return [
            cls(),
            cls(weights=np.array([1.0, 2.0, 0.5, 1.5, 3.0])),
            cls(weights=np.array([1.0, 0.0, 0.5, 2.0, 0.0])),
        ]

    def check(self, shape):
        return check_length(self.weights, shape[0], "rows")

    def spread(self, per_cell, shape):
        return np.asarray(per_cell)[..., None]


@register
@dataclass(frozen=True, eq=False)
class L21Norm(_RowNorm):
    r"""The l2,1 norm: sum over rows r of a_r ||W_r||_2.

    Makes whole rows of W (p features, q tasks) zero: features are selected jointly for all tasks.

    Parameters
    ----------
    weights : number or array a (p,), >= 0, default all 1
        What each row costs; a row of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or there is not one weight per row.

    Notes
    -----
    prox: W_r -> (1 - step a_r / ||W_r||_2)_+ W_r. Dual norm: max ||Z_r||_2 / a_r.
    Source: Yuan and Lin, "Model selection and estimation in regression with grouped variables", JRSS B 68
    (2006); Argyriou, Evgeniou and Pontil, "Convex multi-task feature learning", Machine Learning 73 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 4.0], [0.6, 0.8]])
    >>> L21Norm().value(W)
    6.0
    >>> L21Norm().prox(W, 2.5)
    array([[1.5, 2. ], [0. , 0. ]])
    """

    scales: ClassVar[Separability] = ROWS
    name: ClassVar[str] = "l21_norm"
    meaning: ClassVar[str] = r"the $\ell_{2,1}$ norm, the sum of the rows' Euclidean norms"
    formula: ClassVar[str] = r"\|{}\|_{2,1}"
    weighted_formula: ClassVar[str] = r"\sum_r a_r \|{}_{r\cdot}\|_2"

    def cell_norms(self, W):
        return np.sqrt(np.einsum("rc,rc->r", W, W))

    @property
    def profile(self):
        return RowProfile(length=1.0 if self.weights is None else self.weights)

    def on_rows(self, rows, shape):
        return L21Norm(self.weights[rows]) if isinstance(self.weights, np.ndarray) else self

    def of_transpose(self, shape):
        return L12Norm(self.weights)


@register
@dataclass(frozen=True, eq=False)
class L1InfNorm(_RowNorm):
    r"""The l1,inf norm: sum over rows r of a_r max_i |W_ri|.

    Makes whole rows of W (p features, q tasks) zero; within a row, the largest entries tie.

    Parameters
    ----------
    weights : number or array a (p,), >= 0, default all 1
        What each row costs; a row of weight 0 is not penalised.

    Raises
    ------
    ModelError
        Where a weight is negative or not finite, or there is not one weight per row.

    Notes
    -----
    prox: each row is clipped at the level theta >= 0 that removes sum_i (|W_ri| - theta)_+ = step a_r in all
    (theta = 0, a zero row, where the whole row is less than that): Moreau's identity with the projection on
    the l1 ball. Dual norm: max ||Z_r||_1 / a_r.
    Source: Turlach, Venables and Wright, "Simultaneous variable selection", Technometrics 47 (2005);
    Quattoni et al., "An efficient projection for l1,inf regularization", ICML 2009.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, -2.0], [0.6, 0.8]])
    >>> L1InfNorm().value(W)
    3.8
    >>> L1InfNorm().prox(W, 2.0)
    array([[ 1.5, -1.5], [ 0. ,  0. ]])
    """

    name: ClassVar[str] = "l1_inf_norm"
    instead_of_transpose: ClassVar[str] = (
        "l12_norm({0}), the columns' Euclidean norms, in place of their largest entries"
    )
    meaning: ClassVar[str] = r"the $\ell_{1,\infty}$ norm, the sum of the rows' largest absolute entries"
    formula: ClassVar[str] = r"\|{}\|_{1,\infty}"
    weighted_formula: ClassVar[str] = r"\sum_r a_r \|{}_{r\cdot}\|_\infty"

    def cell_norms(self, W):
        return np.abs(W).max(axis=1)

    def cell_dual_norms(self, Z):
        return np.abs(Z).sum(axis=1)

    def prox(self, W, step):
        removed = np.broadcast_to(self.thresholds(step), W.shape[:1])
        magnitudes = np.abs(W)
        # Smaller rows vanish; where solutions are sparse these are most, so only the others are sorted.
        kept = np.flatnonzero(magnitudes.sum(axis=1) > removed)
        levels = water_level(magnitudes[kept].T, removed[kept])
        level = np.zeros((len(W), 1))
        level[kept, 0] = np.maximum(levels, 0.0)  # the two sums round differently
        return np.clip(W, -level, level)


# --------------------------------------------------------------------------------------------------------------
# Norms that weight entries by their rank.


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
    transpose_invariant: ClassVar[bool] = True
    monotone: ClassVar[bool] = True

    def __post_init__(self):
        if self.weights is not None and self.q is not None:
            raise ModelError(
                f"{self.name}(..., weights={quoted(self.weights)}, q={quoted(self.q)}): q makes the weights",
                write_instead="write one of the two",
            )
        if self.weights is None and self.q is not None:
            self.keep_number("q", lambda q: 0 < q < 1, "a number between 0 and 1")
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


# --------------------------------------------------------------------------------------------------------------
# Penalties on differences between neighbouring tasks.


@register
@dataclass(frozen=True, eq=False)
class TotalVariation(Norm):
    r"""Total variation over tasks in their order: sum over i < q of ||W_{i+1} - W_i||_1.

    For tasks (columns of W (p, q)) that are ordered, such as time steps: each feature's weight is piecewise
    constant along them. It is a seminorm: 0 where all columns are equal.

    Notes
    -----
    prox: exact, row by row, in O(q) by dynamic programming on the derivative (a piecewise linear function).
    Conjugate: the indicator of {Z : every row sums to 0 and its running sums are at most 1 in absolute
    value}.
    Source: Tibshirani et al., "Sparsity and smoothness via the fused lasso", JRSS B 67 (2005); Johnson, "A
    dynamic programming algorithm for the fused lasso and L0-segmentation", J. Comput. Graph. Stat. 22 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[0.0, 0.0, 3.0, 3.0]])
    >>> TotalVariation().value(W)
    3.0
    >>> TotalVariation().prox(W, 1.0)
    array([[0.5, 0.5, 2.5, 2.5]])
    """

    name: ClassVar[str] = "total_variation"
    instead_of_transpose: ClassVar[str] = "l1_norm({0}[1:, :] - {0}[:-1, :])"
    meaning: ClassVar[str] = "the total variation over tasks in their order"
    formula: ClassVar[str] = r"\sum_{i<q}\|{}_{\cdot\,i+1}-{}_{\cdot\,i}\|_1"
    separable: ClassVar[str] = "rows"
    absorbs: ClassVar[bool] = False
    ordinal: ClassVar[bool] = True

    def lineality(self, n_columns):
        return np.full((n_columns, 1), n_columns**-0.5)

    def value(self, W):
        return float(np.abs(np.diff(W, axis=1)).sum())

    def prox(self, W, step):
        from mtldsl.atoms.regularizers.variation_kernel import denoise_rows

        return denoise_rows(np.ascontiguousarray(W, dtype=np.float64), float(step))

    def dual_gauge(self, Z):
        running = np.abs(np.cumsum(Z, axis=1))
        if running[:, -1].max() > ROUNDING_SHARE * np.abs(Z).max():
            return np.inf
        return float(running[:, :-1].max(initial=0.0))

    def dual_project(self, Z):
        # Twice, so that the row sums are zero against the result even where the result is small against Z.
        Z = Z - Z.mean(axis=1, keepdims=True)
        return Z - Z.mean(axis=1, keepdims=True)
