"""Quadratic losses under a ridge where tasks have inputs, weights or missing labels of their own: a Cholesky factor a task.

    minimize over w, b    1/2 sum_k s_k (<x_k, w> + b - y_k)^2 + l / 2 ||w||^2

A task's Gram matrix is not held beside those of others. What rounding leaves of a solution is removed by steps with residuals through X itself.
"""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import LossTerm
from mtldsl.solvers.linear_algebra.gram import centred_gram
from mtldsl.solvers.linear_algebra.shifted import Shifted
from mtldsl.system.jobs import in_jobs
from mtldsl.tasks.gram import gram, require_gram_memory

__all__ = ["separate_ridge"]

_EXACT = 1e-14  # the relative gap below which no step is taken
_MOST_STEPS = 5


def separate_ridge(
    loss: LossTerm, levels: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """(W (d, m), b (m,)); None where a task's system is singular to rounding.

    levels : (m,) l of every task;  weights : (N,) s, flat
    """
    tasks, d = loss.tasks, loss.tasks.n_features
    require_gram_memory(d, 1, "select features, or name another solver")
    W, b = np.empty((tasks.n_tasks, d)), np.zeros(tasks.n_tasks)

    def one(i: int, _) -> bool:
        own = slice(tasks.offsets[i], tasks.offsets[i + 1])
        system = _Task(_inputs(tasks, i), tasks.targets[own], weights[own], bool(loss.intercepts))
        if not system.solve(float(levels[i])):
            return False
        W[i], b[i] = system.w, system.b
        return True

    regular = in_jobs(one, range(tasks.n_tasks), work=float(tasks.n_samples) * d * d)
    return (W.T, b) if all(regular) else None


def _inputs(tasks, i: int):
    """X_i, made for this task alone where labels are missing."""
    return (
        tasks.X[np.flatnonzero(tasks.mask[:, i])]
        if tasks.is_shared and tasks.mask is not None
        else tasks.inputs[i]
    )


class _Task:
    def __init__(self, X, y, s, centred: bool):
        self.X, self.s = X.astype(float, copy=False), s
        total = s.sum()
        self.x_mean, self.y_mean = np.zeros(X.shape[1]), 0.0
        if centred:
            self.x_mean, self.y_mean = np.asarray(s @ X).ravel() / total, float(s @ y) / total
        self.y, self.total, self.centred = y - self.y_mean, total, centred

    def solve(self, level: float) -> bool:
        """Whether the system is regular; then w and b are there."""
        same = bool(np.all(self.s == self.s[:1]))
        G = gram(self.X) if same else gram(self.X, self.s)
        G *= self.s[0] if same else 1.0
        if self.centred:
            G = centred_gram(G, self.total * self.x_mean, self.x_mean)
        system = Shifted(G, np.array([level]), np.inf)
        if not system.is_regular:
            return False
        target = self._onto_features(self.y)
        w = system.solve(target[None])[0]
        objective = 0.5 * float(self.s @ np.square(self.y) - target @ w)
        smallest = np.inf
        for _ in range(_MOST_STEPS if system.error(w[None])[0] > _EXACT * objective else 0):
            residual = self.y - (self.X @ w - self.x_mean @ w)
            slope = self._onto_features(residual) - level * w
            step = system.solve(slope[None])[0]
            gap = float(slope @ step)
            if not gap < 0.25 * smallest:
                break
            smallest, w = gap, w + step
        self.w, self.b = w, self.y_mean - float(self.x_mean @ w)
        return True

    def _onto_features(self, r) -> np.ndarray:
        r = self.s * r
        return np.asarray(r @ self.X).ravel() - r.sum() * self.x_mean
