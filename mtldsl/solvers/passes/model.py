"""A quadratic model of a loss of rows that are elsewhere, as a loss of a few rows here."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.losses.squares import SquaredLoss
from mtldsl.compile.normal_form import Blocks, LossTerm
from mtldsl.compile.terms.moments import Moments, factor_of
from mtldsl.tasks import Tasks

__all__ = ["Model"]


class Model:
    """<g_i, (w, b)_i> + 1/2 (w, b)_i^T H_i (w, b)_i of every task i, as a function of the step (w, b); the intercepts at their best for w.

    H_i : (d+1, d+1), its Hessian over features and the column of ones, plus `damping` times the Gram matrix
    """

    def __init__(self, loss: LossTerm, hessian: dict[int, np.ndarray], moments: Moments, damping: float):
        self.loss, self.m = loss, loss.tasks.n_tasks
        self.H = [damping * moments.gram(i) + hessian.get(i, 0.0) for i in range(self.m)]
        self.centres = np.stack([H[:-1, -1] / H[-1, -1] for H in self.H], axis=1)  # (d, m)
        self.totals = np.array([H[-1, -1] for H in self.H])

    def term(self, y: Blocks, adjoint: np.ndarray, sums: np.ndarray) -> LossTerm:
        V, rows, targets = self.loss.map.forward(y), [], []
        for i, H in enumerate(self.H):
            G, g = H[:-1, :-1], adjoint[:, i]
            if self.loss.intercepts:
                c = self.centres[:, i]
                G, g = G - H[-1, -1] * np.outer(c, c), g - c * sums[i]
            R, t = factor_of(G, g[:, None])
            rows.append(R)
            targets.append(R @ V[:, i] - t[:, 0])
        like = self.loss.tasks
        tasks = Tasks.separate(rows, targets, task_names=like.task_names, feature_names=like.feature_names)
        return LossTerm(SquaredLoss(), np.ones(self.m), tasks, self.loss.map, (), self.loss.typed)

    def intercepts(self, x: Blocks, y: Blocks, sums: np.ndarray) -> Blocks:
        """The best ones beside new weights."""
        step = -sums / self.totals - np.einsum("dm,dm->m", self.centres, self._moved(x, y))
        return {name: y[name] + step[None, :] for name in self.loss.intercepts}

    def _moved(self, x: Blocks, y: Blocks) -> np.ndarray:
        return self.loss.map.forward(x) - self.loss.map.forward(y)

    def rise(self, x: Blocks, y: Blocks, adjoint: np.ndarray, sums: np.ndarray) -> float:
        """The model's value at x, from y."""
        D, b = self._moved(x, y), np.zeros(self.m)
        for name in self.loss.intercepts:
            b = b + (x[name] - y[name])[0]
        ends = np.vstack([D, b[None, :]])
        curved = sum(float(ends[:, i] @ H @ ends[:, i]) for i, H in enumerate(self.H))
        return float(np.vdot(adjoint, D) + sums @ b) + 0.5 * curved
