"""Compression of many rows to few: a triangular factor with the same squared residuals at any weights and intercepts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mtldsl.data.tasks import Tasks

_EPS = float(np.finfo(float).eps)

#: Units in the last place, beside one a feature, that sums of the rows may be off by, of the absolute values in them.
_ROUNDING_UNITS = 64.0


def units(d: int) -> float:
    """By what share of the absolute values in them sums over rows of d features may be off."""
    return (_ROUNDING_UNITS + d) * _EPS


@dataclass(frozen=True, eq=False)
class LabelFactor:
    """||X w + b - y_k||^2 = ||R w - Z_k||^2 + rest_k + weight (b + (centre + mean)^T w - label_centre_k - label_mean_k)^2, for l labels.

    R (r, d), Z (r, l), rest (l,) : of the rows with their means taken off
    centre, mean : (d,) the mean of the rows, in two parts, the second next to nothing;  label_centre, label_mean : (l,) likewise
    lengths : (||columns||, ||labels||) of the rows around their centres, where R was made of their squares, else zeros
    """

    weight: float
    centre: np.ndarray
    mean: np.ndarray
    label_centre: np.ndarray
    label_mean: np.ndarray
    R: np.ndarray
    Z: np.ndarray
    rest: np.ndarray
    lengths: tuple[np.ndarray, np.ndarray]

    def rows(self, centred: bool) -> tuple[np.ndarray, np.ndarray]:
        """(rows, targets (., l)): with the intercept that fits best, or with none. The last row holds what no weights explain."""
        d, rest = self.R.shape[1], np.sqrt(self.rest)[None, :]
        if centred:
            return np.vstack([self.R, np.zeros((1, d))]), np.vstack([self.Z, rest])
        ones = math.sqrt(self.weight)
        first, own = ones * (self.centre + self.mean), ones * (self.label_centre + self.label_mean)
        return np.vstack([first, self.R, np.zeros((1, d))]), np.vstack([own, self.Z, rest])

    def misfits(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(l,) the means of residuals, to the last digit but one."""
        return exact_sums(
            np.concatenate([self.centre, self.mean]),
            np.vstack([W, W]),
            np.stack([b, -self.label_centre, -self.label_mean]),
        )

    def least_squares(self, W: np.ndarray) -> np.ndarray:
        """(l,) the squared residuals with the intercepts that fit best, as if float64 had every number."""
        away = self.R @ W - self.Z
        return np.einsum("ij,ij->j", away, away) + self.rest

    def squares(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(l,) the squared residuals."""
        return self.least_squares(W) + self.weight * self.misfits(W, b) ** 2

    def rounding(self, W: np.ndarray, squares: np.ndarray, centred: bool) -> np.ndarray:
        """(l,) by how much float64 may have misplaced squared residuals at weights W.

        Residuals are off by the columns' lengths; and squares of them, where R was made of squares, by the squares of these.
        """
        size, off = np.abs(W), units(self.R.shape[1])
        columns = np.sqrt(np.einsum("ij,ij->j", self.R, self.R))
        labels = np.sqrt(np.einsum("ij,ij->j", self.Z, self.Z) + self.rest)
        if not centred:
            ones = math.sqrt(self.weight)
            columns = columns + ones * np.abs(self.centre + self.mean)
            labels = labels + ones * np.abs(self.label_centre + self.label_mean)
        moved = off * (columns @ size + labels)
        summed = self.lengths[0] @ size + self.lengths[1]
        return 2.0 * np.sqrt(squares) * moved + moved**2 + 2.0 * off * summed**2


@dataclass(frozen=True, eq=False)
class RowFactors:
    """The rows of all tasks as few: one factor of all tasks' labels, or one for each task."""

    factors: Sequence[LabelFactor]

    @property
    def is_common(self) -> bool:
        return len(self.factors) == 1

    def _each(self, function, *columns: np.ndarray) -> np.ndarray:
        """(m,) function(factor, its columns)."""
        if self.is_common:
            return function(self.factors[0], *columns)
        return np.concatenate(
            [function(one, *(c[..., [i]] for c in columns)) for i, one in enumerate(self.factors)]
        )

    def rows(self, centred: bool, like: Tasks) -> Tasks:
        """Tasks of at most d + 2 rows with the same squared residuals at any weights.

        centred : with the intercepts that fit best at these weights; else without intercepts
        """
        pairs = [one.rows(centred) for one in self.factors]
        names = {"task_names": like.task_names, "feature_names": like.feature_names}
        if self.is_common:
            return Tasks.shared(*pairs[0], **names)
        return Tasks.separate([R for R, _ in pairs], [y[:, 0] for _, y in pairs], **names)

    def intercepts(self, W: np.ndarray) -> np.ndarray:
        """(m,) the intercepts that fit best beside weights W (d, m)."""
        return -self._each(LabelFactor.misfits, W, np.zeros(W.shape[1]))

    def residual_squares(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(m,) ||X_i w_i + b_i - y_i||^2."""
        return self._each(LabelFactor.squares, W, b)

    def least_squares(self, W: np.ndarray) -> np.ndarray:
        """(m,) the same with the intercepts that fit best, as if float64 had every number."""
        return self._each(LabelFactor.least_squares, W)

    def rounding(self, W: np.ndarray, squares: np.ndarray, centred: bool) -> np.ndarray:
        """(m,) by how much float64 may have misplaced squared residuals."""
        return self._each(lambda one, w, s: one.rounding(w, s, centred), W, squares)


@dataclass(frozen=True, eq=False)
class GramRows:
    """Rows R_i with R_i^T R_i a Gram matrix, whose targets change; columns are `lengths` times those of a matrix that can be inverted."""

    tasks: Tasks
    roots: list[np.ndarray]
    lengths: list[np.ndarray]

    @classmethod
    def of(cls, grams: list[np.ndarray], like: Tasks) -> GramRows:
        """One matrix for all tasks, or one for each."""
        m = like.n_tasks
        found = [_root(G) for G in grams]
        roots, lengths = [root for root, _ in found], [length for _, length in found]
        rows = [root * length for root, length in found]
        names = {"task_names": like.task_names, "feature_names": like.feature_names}
        if len(grams) == 1:
            return cls(Tasks.shared(rows[0], np.zeros((len(rows[0]), m)), **names), roots, lengths)
        return cls(Tasks.separate(rows, [np.zeros(len(R)) for R in rows], **names), roots, lengths)

    def with_gradient(self, Y: np.ndarray, G: np.ndarray) -> Tasks:
        """Targets t_i with grad 1/2 ||R_i w - t_i||^2 = G_i at w = Y_i (for G_i in the range of R_i^T)."""
        targets = np.empty((len(self.roots[0]), Y.shape[1]))
        for k, (root, length) in enumerate(zip(self.roots, self.lengths, strict=True)):
            own = slice(None) if len(self.roots) == 1 else [k]
            targets[:, own] = (root * length) @ Y[:, own] - _pulled(root, length, G[:, own])
        return self.tasks.with_targets(targets.T.ravel())


def factor_of(H, C) -> tuple[np.ndarray, np.ndarray]:
    """(R, Z) with R^T R = H and R^T Z = C, R upper triangular: of columns of one length, moved away from zero by as much as rounding may.

    Every direction of C is kept, those too that H has lost to rounding.
    Source: Fukaya, Kannan, Nakatsukasa, Yamamoto and Yanagisawa, "Shifted Cholesky QR", SIAM J. Sci. Comput. 42 (2020).
    """
    root, lengths = _root(H)
    return root * lengths, _pulled(root, lengths, C)


def _root(H) -> tuple[np.ndarray, np.ndarray]:
    """(U upper triangular, lengths) with U diag(lengths) a factor of H."""
    lengths = np.sqrt(np.maximum(H.diagonal(), 0.0))
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    S, shift = inverse[:, None] * H * inverse, units(len(H))
    while True:
        np.fill_diagonal(S, 1.0 + shift)
        try:
            return cholesky(S, check_finite=False), lengths
        except np.linalg.LinAlgError:
            shift *= 4.0


def _pulled(root, lengths, C) -> np.ndarray:
    """Z with (U diag(lengths))^T Z = C; what a column of zeros would have to do is left out."""
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    return solve_triangular(root, inverse[:, None] * C, trans="T", check_finite=False)


def exact_sums(a: np.ndarray, W: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(l,) a^T W + the sum of others (., l) over rows, rounded once: of products with the parts that rounding has taken off them.

    a : (k,), or (k, l) where every column has its own

    Source: Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), algorithm 3.3 (Dekker, Veltkamp).

    >>> exact_sums(np.array([1e9, 1.0]), np.array([[1e9], [3.0]]), np.array([[-1e18]]))
    array([3.])
    """
    a = np.broadcast_to(a[:, None] if a.ndim == 1 else a, W.shape)
    products = a * W
    (high, low), (top, rest) = _halves(a), _halves(W)
    lost = low * rest - (((products - high * top) - low * top) - high * rest)
    parts = np.vstack([products, np.where(np.isfinite(lost), lost, 0.0), others])
    return np.array([math.fsum(column) for column in parts.T.tolist()])


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers of half the digits, whose sum is x."""
    wide = 134217729.0 * x  # 2^27 + 1
    high = wide - (wide - x)
    return high, x - high
