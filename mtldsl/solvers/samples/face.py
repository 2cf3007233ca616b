"""Conjugate gradients on a face: all multipliers that are off their bounds move together, where one by one they crawl."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.samples.nodes import Nodes
from mtldsl.solvers.samples.samples import Samples

__all__ = ["Face"]

#: An entropy's multipliers stop this far on their way to an end.
_SHORT = 0.99

#: Halvings of a projected step before it is given up.
_HALVINGS = 6

#: Residual of the linear system, relative to its right-hand side, that is small enough: bounds change what is to be solved anyway.
_ACCURATE = 1e-3


class Face:
    """The samples `free`, and the dual value as a function of their multipliers: slope and Hessian H = X K_theta X^T / c + diag(curvature),
    with `shift` added inside a task for its intercept. Quadratic unless the conjugate is an entropy; then a step is Newton's.
    """

    def __init__(
        self,
        samples: Samples,
        nodes: Nodes,
        table: np.ndarray,
        theta: np.ndarray,
        shift: np.ndarray,
        intercepts: np.ndarray,
    ):
        u, low, high = table[:, 0], table[:, 1], table[:, 2]
        self.free = np.flatnonzero((u > low) & (u < high))
        self.nodes, self.theta, self.shift = nodes, theta, shift
        self.offsets = np.searchsorted(self.free, samples.offsets).astype(np.int64)
        self.task = np.repeat(np.arange(samples.n_tasks), np.diff(self.offsets))
        rows = samples.rows_of[self.free] if samples.rows_of.size else self.free
        self.w, self.products = np.zeros(samples.n_features), 1
        support = samples.supports_of(self.offsets, rows) if samples.is_sparse else samples.support
        self.found = tuple(samples.inputs._replace(of=rows)), tuple(support), tuple(nodes.places)
        self.samples = samples
        self.u, self.low, self.high = u[self.free], low[self.free], high[self.free]
        self.z = intercepts[self.task] - self._dots(nodes.store)
        first, self.curvature = samples.slopes(self.free, self.u)
        self.slope = first - self.z
        self.conjugate = samples.conjugates(self.free, self.u)
        # Jacobi's preconditioner: kernel values differ as rows and tasks do
        diagonal = table[self.free, 5:].sum(axis=1) * float(theta.max()) + shift[self.task] + self.curvature
        self.scale = np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))

    def _dots(self, store) -> np.ndarray:
        from mtldsl.solvers.kernels.face_products import dots

        z = np.zeros(self.free.size)
        dots(store, self.theta, self.offsets, *self.found, self.w, z)
        return z

    def nodes_of(self, v) -> np.ndarray:
        """The node vectors of multipliers v on the face."""
        from mtldsl.solvers.kernels.face_products import gather

        store = np.zeros(self.nodes.store.size)
        gather(v, self.offsets, *self.found, self.w, store)
        return store

    def kernel(self, v) -> np.ndarray:
        """X K_theta X^T v / c, with the intercepts' part."""
        self.products += 1
        result = self._dots(self.nodes_of(v))
        if self.shift.any():
            result += (self.shift * np.bincount(self.task, weights=v, minlength=self.shift.size))[self.task]
        return result

    def product(self, v) -> np.ndarray:
        """H v."""
        return self.kernel(v) + self.curvature * v

    def rise(self, change) -> float:
        """By how much the dual value rises with u + change."""
        conjugate = self.samples.conjugates(self.free, self.u + change) - self.conjugate
        return float(change @ (self.z - 0.5 * self.kernel(change)) - conjugate.sum())

    def step(self, most: int) -> tuple[np.ndarray, float, bool]:
        """(change of u on the face, by how much the dual value rises, whether the whole step was best), `most` products for its direction."""
        direction = self._solve(most)
        if not np.isfinite(direction).all():
            return np.zeros(self.free.size), 0.0, False
        low, high = self.low, self.high
        if self.samples.entropic:  # whose slope is infinite at its ends
            low, high = self.u + _SHORT * (low - self.u), self.u + _SHORT * (high - self.u)
        best, gain, best_t, t = np.zeros(self.free.size), 0.0, 0.0, 1.0
        for _ in range(_HALVINGS):
            change = np.clip(self.u + t * direction, low, high) - self.u
            rise = self.rise(change)
            if rise > gain:
                best, gain, best_t = change, rise, t
            elif gain > 0.0:
                break
            if t == 1.0 and gain > 0.0 and np.array_equal(change, direction):
                break
            t *= 0.5
        return best, gain, best_t == 1.0

    def _solve(self, most: int) -> np.ndarray:
        """H direction = -slope by conjugate gradients in the scale of the diagonal."""
        x, r = np.zeros(self.free.size), -self.slope / self.scale
        p, size = r.copy(), float(r @ r)
        enough = _ACCURATE**2 * size
        for _ in range(most):
            if size <= enough:
                break
            Hp = self.product(p / self.scale) / self.scale
            bent = float(p @ Hp)
            if bent <= 1e-14 * float(p @ p):  # flat: the bounds end this direction
                break
            t = size / bent
            x += t * p
            r -= t * Hp
            new = float(r @ r)
            p = r + (new / size) * p
            size = new
        return x / self.scale
