"""Bundle of the planes that are kept of every task's loss, and quadratic programs over them."""

from __future__ import annotations

import numpy as np

from mtldsl.solvers.cutting_planes.oracle import Oracle, WeightPlanes


class Bundle:
    """Planes of all tasks: slopes in the weights (with the intercept as a last entry), offsets, weights beta on a simplex.

    The true labelling's plane, zero, is always there at place 0. What certifies them later, the planes in the predictions, is
    kept beside them in the oracle's compact form.

    capacity : planes a task that there is room for at first; the room doubles
    """

    def __init__(self, oracle: Oracle, capacity: int = 16):
        n_tasks, self.size = oracle.tasks.n_tasks, oracle.size
        self.oracle = oracle
        self._allocate(n_tasks, capacity)
        self.counts = np.ones(n_tasks, np.int64)
        self.beta[:, 0] = 1.0
        self.stored = [[oracle.zero(i)] for i in range(n_tasks)]
        self.work = 0.0  # that went into programs, in multiplications

    @classmethod
    def of(cls, oracle: Oracle, before: Bundle | None) -> Bundle:
        """With the planes of a run before, where they are planes of the same data and metrics; coefficients may have changed."""
        bundle = cls(oracle)
        if before is not None and before.oracle.is_of_the_same(oracle):
            for name in ("planes", "gram", "deltas", "beta", "idle", "counts"):
                setattr(bundle, name, getattr(before, name).copy())
            bundle.stored = [list(planes) for planes in before.stored]
        return bundle

    @property
    def is_new(self) -> bool:
        """Tell whether it holds nothing but the true labelling's planes."""
        return bool(np.all(self.counts == 1))

    def _allocate(self, m: int, capacity: int) -> None:
        self.planes = np.zeros((m, capacity, self.size))
        self.gram = np.zeros((m, capacity, capacity))
        self.deltas, self.beta = np.zeros((m, capacity)), np.zeros((m, capacity))
        self.idle = np.zeros((m, capacity), np.int64)

    def _grow(self) -> None:
        old = (self.planes, self.gram, self.deltas, self.beta, self.idle)
        m, n = self.beta.shape
        self._allocate(m, 2 * n)
        new = (self.planes, self.gram, self.deltas, self.beta, self.idle)
        for to, array in zip(new, old, strict=True):
            to[tuple(slice(0, k) for k in array.shape)] = array

    def add(self, found: WeightPlanes, chosen: np.ndarray) -> None:
        """The planes found for the tasks in `chosen` (positions)."""
        if chosen.size == 0:
            return
        if self.counts[chosen].max() >= self.beta.shape[1]:
            self._grow()
        at, new = self.counts[chosen], found.slopes[chosen]
        self.planes[chosen, at], self.deltas[chosen, at] = new, found.deltas[chosen]
        self.beta[chosen, at], self.idle[chosen, at] = 0.0, 0
        products = np.matmul(self.planes[chosen], new[:, :, None])[:, :, 0]  # of places not in use: zero
        self.gram[chosen, at], self.gram[chosen, :, at] = products, products
        self.counts[chosen] += 1
        for i in chosen:
            self.stored[i].append(found.stored[i])

    def proximal_steps(
        self, B: np.ndarray, steps: np.ndarray, tol: float = 1e-14
    ) -> tuple[np.ndarray, np.ndarray]:
        """(V, promised): argmin of steps[i] * model_i + 1/2 ||. - B[i]||^2 (m, D), and the models' values there."""
        from mtldsl.solvers.cutting_planes.plane_kernels import proximal_steps

        V, promised = np.empty_like(B), np.empty(len(B))
        self.work += proximal_steps(
            self.planes, self.gram, self.deltas, self.beta, self.counts, self.idle, steps, B, tol, V, promised
        )
        return V, promised

    def slopes(self) -> np.ndarray:
        """sum_k beta_k planes_k of every task, (m, D)."""
        return np.matmul(self.beta[:, None, :], self.planes)[:, 0, :]

    def expected(self) -> np.ndarray:
        """sum_k beta_k deltas_k of every task."""
        return np.einsum("ik,ik->i", self.beta, self.deltas)

    def values(self, V: np.ndarray) -> np.ndarray:
        """The model, max_k deltas_k + <planes_k, V[i]>, of every task."""
        heights = self.deltas + np.matmul(self.planes, V[:, :, None])[:, :, 0]
        heights[np.arange(heights.shape[1]) >= self.counts[:, None]] = -np.inf
        return heights.max(axis=1)

    def drop_idle(self, rounds: int) -> None:
        """Forget planes without weight for that many rounds; never the zero plane."""
        kept = self.idle < rounds
        kept[:, 0] = True
        for i, n in enumerate(self.counts):
            stays = np.flatnonzero(kept[i, :n])
            k = stays.size
            if k == n:
                continue
            self.stored[i] = [self.stored[i][j] for j in stays]
            self.gram[i, :k, :k] = self.gram[i][np.ix_(stays, stays)]
            for array in (self.planes, self.deltas, self.beta, self.idle):
                array[i, :k] = array[i, stays]
                array[i, k:n] = 0  # what lies beyond is not in use
            self.counts[i] = k

    def duals(self, beta: np.ndarray | None = None, shrink: np.ndarray | None = None) -> list | np.ndarray:
        """The multipliers of the loss that beta stands for, as the certificate takes them; shrink (m,): a factor a task."""
        beta = self.beta if beta is None else beta
        weights = [b[:n] if shrink is None else s * b[:n] for b, n, s in
                   zip(beta, self.counts, np.ones(len(beta)) if shrink is None else shrink, strict=True)]  # fmt: skip
        return self.oracle.duals(self.stored, weights)
