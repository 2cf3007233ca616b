"""Second moments of rows that are elsewhere: all that a quadratic loss, or a function of the norms of residuals, knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mtldsl.system.long_calls import eigh
from mtldsl.tasks import Tasks
from mtldsl.tasks.gram import gram, require_gram_memory

if TYPE_CHECKING:
    from mtldsl.tasks.distributed import DistributedTasks, Part

__all__ = [
    "SMALLEST_PIVOT",
    "Moments",
    "factor_of",
    "gram_with_ones",
    "has_one_gram",
    "known_moments",
    "moments_here",
    "moments_of",
    "remember_moments",
]

#: A Gram matrix whose factor has pivots below this share of the largest is taken apart by eigenvectors: a factor would lose half the digits.
SMALLEST_PIVOT = 1e-6
#: Eigenvalues below this share of the largest are rounding.
_NOTHING = 1e-14

#: The key of the Gram matrix that tasks have in common.
_TOGETHER = -1


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the rows, weighted by the samples' weights; the last feature is a column of ones.

    grams  : {task: (d+1, d+1)}; under -1 of the rows that all tasks have in common, which belong to each
    cross  : (d+1, m) of features and labels;  square : (m,) of squared labels
    """

    grams: dict[int, np.ndarray]
    cross: np.ndarray
    square: np.ndarray

    @property
    def is_common(self) -> bool:
        """Whether all tasks have one Gram matrix."""
        return set(self.grams) == {_TOGETHER}

    def gram(self, task: int) -> np.ndarray:
        """(d+1, d+1)"""
        found = [self.grams[key] for key in (_TOGETHER, task) if key in self.grams]
        return found[0] if len(found) == 1 else found[0] + found[1]

    def centre(self, task: int) -> np.ndarray:
        """(d,) the mean of every feature."""
        G = self.gram(task)
        return G[:-1, -1] / G[-1, -1]

    def intercepts(self, W: np.ndarray) -> np.ndarray:
        """(m,) the intercepts that fit best beside weights W (d, m)."""
        if self.is_common:
            G = self.grams[_TOGETHER]
            return (self.cross[-1] - G[-1, :-1] @ W) / G[-1, -1]
        counts = np.array([self.gram(i)[-1, -1] for i in range(W.shape[1])])
        sums = np.array([self.gram(i)[:-1, -1] @ W[:, i] for i in range(W.shape[1])])
        return (self.cross[-1] - sums) / counts

    def rows(self, centred: bool, like: Tasks) -> Tasks:
        """Tasks of at most d + 1 rows with the same squared residuals at any weights.

        centred : with the intercepts that fit best at these weights; else without intercepts
        """
        m = self.cross.shape[1]
        names = {"task_names": like.task_names, "feature_names": like.feature_names}
        if self.is_common:
            R, targets = _rows(self.gram(0), self.cross, self.square, centred)
            return Tasks.shared(R, targets, **names)
        pairs = [_rows(self.gram(i), self.cross[:, [i]], self.square[[i]], centred) for i in range(m)]
        return Tasks.separate([R for R, _ in pairs], [y[:, 0] for _, y in pairs], **names)

    def residual_squares(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(m,) ||X_i w_i + b_i - y_i||^2."""
        ends = np.vstack([W, b[None, :]])
        crossed = np.einsum("dm,dm->m", ends, self.cross)
        return np.maximum(self.squares_along(W, b) - 2.0 * crossed + self.square, 0.0)

    def squares_along(self, D: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(m,) ||X_i D_i + b_i||^2."""
        ends = np.vstack([D, b[None, :]])
        return np.array([ends[:, i] @ self.gram(i) @ ends[:, i] for i in range(D.shape[1])])

    def frame(self, centred: bool, like: Tasks) -> Frame:
        """The rows R_i (r, d) with R_i^T R_i the Gram matrix."""
        m = self.cross.shape[1]
        grams = [self._without_ones(i, centred) for i in ([0] if self.is_common else range(m))]
        factors = [factor_of(G, np.zeros((len(G), 1)))[0] for G in grams]
        names = {"task_names": like.task_names, "feature_names": like.feature_names}
        if self.is_common:
            return Frame(Tasks.shared(factors[0], np.zeros((len(factors[0]), m)), **names), factors)
        return Frame(Tasks.separate(factors, [np.zeros(len(R)) for R in factors], **names), factors)

    def _without_ones(self, task: int, centred: bool) -> np.ndarray:
        G = self.gram(task)
        return G[:-1, :-1] - G[-1, -1] * np.outer(c := G[:-1, -1] / G[-1, -1], c) if centred else G[:-1, :-1]


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows R_i whose targets change."""

    tasks: Tasks
    factors: list[np.ndarray]

    def with_gradient(self, Y: np.ndarray, G: np.ndarray) -> Tasks:
        """Targets t_i with grad 1/2 ||R_i w - t_i||^2 = G_i at w = Y_i (for G_i in the range of R_i^T)."""
        if len(self.factors) == 1:
            R = self.factors[0]
            return self.tasks.with_targets((R @ Y - _transposed_solve(R, G)).T.ravel())
        pieces = [R @ Y[:, i] - _transposed_solve(R, G[:, i]) for i, R in enumerate(self.factors)]
        return self.tasks.with_targets(np.concatenate(pieces))


def _transposed_solve(R, G):
    """v with R^T v = G: R is upper triangular, or has orthogonal rows."""
    if R.shape[0] == R.shape[1] and not np.tril(R, -1).any():
        return solve_triangular(R, G, trans="T", check_finite=False)
    squares = np.einsum("ij,ij->i", R, R)
    weights = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0.0)
    return (weights * (R @ G).T).T


def has_one_gram(tasks: DistributedTasks | Any) -> bool:
    """Whether all tasks have one Gram matrix: one table, every label there, no weights."""
    return bool(tasks.is_table and not tasks.n_missing and not tasks.is_weighted)


def moments_of(tasks: DistributedTasks | Any) -> Moments:
    """In one pass, the first time that it is asked for."""
    known = tasks.__dict__.get("_moments")
    if known is None:
        require_gram_memory(tasks.n_features + 1, 1, "select features, or project them, first")
        known = Moments(*tasks.parts.run(_of_part, tasks.n_tasks))
        remember_moments(tasks, known)
    return known


def moments_here(tasks: Tasks) -> Moments:
    """The same where the rows are in this process: in one pass, and not remembered."""
    return Moments(*_summed(tasks, range(tasks.n_tasks), tasks.n_tasks))


def known_moments(tasks: DistributedTasks | Any) -> Moments | None:
    """Those that need no pass, None where nobody has asked for them."""
    return tasks.__dict__.get("_moments")


def remember_moments(tasks: DistributedTasks | Any, known: Moments) -> None:
    """What the moments of these rows are, and what follows from them."""
    tasks.__dict__["_moments"] = known
    if not tasks.is_weighted:  # so that they need not be asked for
        squares = [known.gram(i).diagonal()[:-1] for i in range(tasks.n_tasks)]
        tasks.__dict__["column_lengths"] = np.sqrt(np.stack(squares, axis=1))


def _of_part(part: Part, n_tasks: int) -> tuple:
    return _summed(part.tasks, part.which, n_tasks)


def _summed(tasks: Tasks, which: Sequence[int] | np.ndarray, n_tasks: int) -> tuple:
    """The fields of `Moments` of tasks that are those numbered `which` of n_tasks."""
    d, weights, grams = tasks.n_features, tasks.sample_weights, {}
    every = tasks.is_shared and tasks.mask is None and len(which) == n_tasks
    if every and weights is None:
        grams[_TOGETHER] = gram_with_ones(tasks.X, None)
    else:
        pieces = [None] * len(which) if weights is None else tasks.per_task(weights)
        for i, X, s in zip(which, tasks.inputs, pieces, strict=True):
            grams[int(i)] = gram_with_ones(X, s)
    y = tasks.targets if weights is None else weights * tasks.targets
    cross, square = np.zeros((d + 1, n_tasks)), np.zeros(n_tasks)
    cross[:-1, which] = tasks.adjoint(y)
    cross[-1, which] = np.add.reduceat(y, tasks.offsets[:-1])
    square[which] = np.add.reduceat(y * tasks.targets, tasks.offsets[:-1])
    return grams, cross, square


def gram_with_ones(X, weights) -> np.ndarray:
    """The Gram matrix of [X, 1]."""
    d, n = X.shape[1], X.shape[0]
    ones = np.ones(n) if weights is None else weights
    G = np.empty((d + 1, d + 1))
    G[:-1, :-1] = gram(X, weights)
    G[-1, :-1] = G[:-1, -1] = X.T @ ones
    G[-1, -1] = ones.sum()
    return G


def _rows(G, cross, square, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """(R (r+1, d), Y (r+1, m)) with ||R w - Y_i||^2 = w^T G w - 2 w^T c_i + s_i; the last row holds what no weights explain."""
    H, c, s = G[:-1, :-1], cross[:-1], square
    if centred:
        centre, means = G[:-1, -1] / G[-1, -1], cross[-1] / G[-1, -1]
        H = H - G[-1, -1] * np.outer(centre, centre)
        c, s = c - G[-1, -1] * np.outer(centre, means), s - G[-1, -1] * means**2
    R, Y = factor_of(H, c)
    rest = np.sqrt(np.maximum(s - np.einsum("ij,ij->j", Y, Y), 0.0))
    return np.vstack([R, np.zeros(R.shape[1])]), np.vstack([Y, rest])


def factor_of(H, c) -> tuple[np.ndarray, np.ndarray]:
    """(R, Y) with R^T R = H and R^T Y = c, for c in the range of H."""
    largest = float(H.diagonal().max(initial=0.0))
    try:
        R = cholesky(H, check_finite=False)
        if R.diagonal().min() ** 2 > SMALLEST_PIVOT * largest:
            return R, solve_triangular(R, c, trans="T", check_finite=False)
    except np.linalg.LinAlgError:
        pass
    values, vectors = eigh(H)
    kept = values > _NOTHING * max(values[-1], np.finfo(float).tiny)
    roots, vectors = np.sqrt(values[kept]), vectors[:, kept]
    if not kept.any():
        return np.zeros((1, len(H))), np.zeros((1, c.shape[1]))
    return roots[:, None] * vectors.T, (vectors.T @ c) / roots[:, None]
