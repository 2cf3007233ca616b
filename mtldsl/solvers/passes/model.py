"""A quadratic model of a loss of rows that are elsewhere, as a loss of a few rows here."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.losses.squares import SquaredLoss
from mtldsl.compile.normal_form import Blocks, LossTerm
from mtldsl.compile.terms.few_rows import factor_of
from mtldsl.compile.terms.moments import Moments
from mtldsl.tasks import Tasks

__all__ = ["Model"]

#: Factors whose squared pivots are below this share of the largest are made one by one, of columns of one length.
_SMALLEST_PIVOT = 1e-6

#: Features up to which factors are made all at once.
_SMALL = 64


class Model:
    """<g_i, (w, b)_i> + 1/2 (w, b)_i^T H_i (w, b)_i of every task i, as a function of the step (w, b); the intercepts at their best for w.

    H_i : (d+1, d+1), its Hessian over features and the column of ones, plus `damping` times the Gram matrix
    """

    def __init__(self, loss: LossTerm, hessian: dict[int, np.ndarray], moments: Moments, damping: float):
        self.loss, self.m = loss, loss.tasks.n_tasks
        self.H = np.stack([damping * moments.gram(i) + hessian.get(i, 0.0) for i in range(self.m)])
        self.totals = self.H[:, -1, -1]
        self.centres = (self.H[:, :-1, -1] / self.totals[:, None]).T  # (d, m)

    def term(self, y: Blocks, adjoint: np.ndarray, sums: np.ndarray) -> LossTerm:
        V, G, g = self.loss.map.forward(y), self.H[:, :-1, :-1], adjoint.T
        if self.loss.intercepts:
            c = self.centres.T
            G = G - self.totals[:, None, None] * (c[:, :, None] * c[:, None, :])
            g = g - c * sums[:, None]
        tasks = self._together(G, g, V.T)
        if tasks is None:
            factors = [factor_of(one, own[:, None]) for one, own in zip(G, g, strict=True)]
            targets = [R @ v - t[:, 0] for (R, t), v in zip(factors, V.T, strict=True)]
            tasks = Tasks.separate([R for R, _ in factors], targets, **self._names)
        return LossTerm(SquaredLoss(), np.ones(self.m), tasks, self.loss.map, (), self.loss.typed)

    @property
    def _names(self) -> dict:
        like = self.loss.tasks
        return {"task_names": like.task_names, "feature_names": like.feature_names}

    def _together(self, G, g, V) -> Tasks | None:
        """All factors at once, where matrices are small: a thousand calls cost more than what they compute. None where one is near to singular."""
        d = G.shape[1]
        if d > _SMALL:
            return None
        try:
            L = np.linalg.cholesky(G)
        except np.linalg.LinAlgError:
            return None
        pivots, sizes = np.einsum("mdd->md", L) ** 2, np.einsum("mdd->md", G)
        if (pivots.min(axis=1) <= _SMALLEST_PIVOT * sizes.max(axis=1)).any():
            return None
        R = np.ascontiguousarray(np.swapaxes(L, 1, 2))
        targets = np.einsum("mij,mj->mi", R, V) - np.linalg.solve(L, g[:, :, None])[:, :, 0]
        return Tasks(
            stacked=R.reshape(-1, d),
            counts=np.full(self.m, d),
            targets=targets.ravel(),
            **self._names,
        )

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
        curved = float(np.einsum("im,mij,jm->", ends, self.H, ends, optimize=True))
        return float(np.vdot(adjoint, D) + sums @ b) + 0.5 * curved
