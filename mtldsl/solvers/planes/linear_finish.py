"""Under an l1 norm alone the model is a linear program a task: a simplex method ends what ADMM only approaches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.oracle import Oracle

__all__ = ["Finish", "LinearFinish"]

_PULL = 0.5  # where between the best point and the program's the oracle is asked
_ACCURACY = 1e-13  # of the programs, relative to the largest offset
_REFACTOR = 50  # pivots after which an inverse is made anew
_PATIENCE = 10  # rounds without half of the gap, and as many more as half of the unknowns of a task
_USUAL_PIVOTS = 5  # of a program that begins with the last one's basis
_MOST_PIVOTS = 20  # of one program, times its rows and columns


class Finish(NamedTuple):
    """Points (m, D), weights of the planes and the factors that make multipliers of them, the objective."""

    S: np.ndarray
    beta: np.ndarray
    shrink: np.ndarray
    objective: float


class LinearFinish:
    """minimize over w_i   sum_j a_ij |w_ij| + c_i G_i(w_i)   for every task by itself, by cutting planes.

    The linear program over the planes met so far gives a lower bound and a vertex; the oracle, asked there and between the best point and
    that vertex, gives the next planes and perhaps a better point. What is solved is the program's dual: a new plane is a column, and the
    last basis is where the next program begins.
    """

    def __init__(self, form: NormalForm, oracle: Oracle, bundle: Bundle):
        self.oracle, self.bundle = oracle, bundle
        (term,) = form.functions
        block, profile = form.losses[0].map.identity_of, term.atom.profile
        assert block is not None and profile is not None and profile.absolute is not None  # `fits` said so
        d, m = form.shapes[block]
        self.d, D = d, oracle.size
        self.a = np.broadcast_to(term.coefficient * profile.absolute, (d, m)).T
        reach = np.zeros((m, D))
        reach[:, :d] = self.a / oracle.coefficients[:, None]
        self.half = (reach > 0.0).astype(float)
        sizes = np.abs(bundle.planes).max(axis=1)
        self.scale = 1.0 / np.where(reach > 0.0, reach, np.where(sizes > 0.0, sizes, 1.0))
        self.basis = np.repeat(
            np.append(-1 - np.arange(D), 0)[None, :], m, axis=0
        )  # the true labelling's plane, and the slacks
        self.place, self.x, self.y = np.zeros((m, D)), np.zeros((m, D + 1)), np.zeros((m, D + 1))
        self.x[:, D] = 1.0
        self.inverse = np.repeat(np.eye(D + 1)[None], m, axis=0)

    @staticmethod
    def fits(form: NormalForm) -> bool:
        profile = form.functions[0].atom.profile if len(form.functions) == 1 else None
        return profile is not None and profile.length is None and profile.square is None

    @staticmethod
    def price(oracle: Oracle) -> float:
        """What programs to the end cost, in multiplications: two looks at the oracle a round, some pivots a task, and in the end a few more
        rounds than there are unknowns."""
        pivots = _USUAL_PIVOTS * 5.0 * oracle.size**2 * oracle.tasks.n_tasks
        return (oracle.size + 10) * (2.0 * oracle.work + pivots)

    def run(self, S: np.ndarray, tol: float, budget: float, expired) -> Finish:
        """From S until the points are proven to tol, while the gap falls and the work is within the budget, in multiplications."""
        c = self.oracle.coefficients
        at = self.oracle(S)
        S, values = S.copy(), self._norms(S) + c * at.values
        bounds = np.full(len(S), -np.inf)
        beta, shrink = self.bundle.beta.copy(), np.zeros(len(S))
        tasks = np.arange(len(S))
        self.bundle.add(at, tasks)
        spent, gaps_seen, patience = 0.0, [], _PATIENCE + self.oracle.size // 2
        while True:
            w, own, work = self._programs(tasks)
            spent += work + 2.0 * self.oracle.work
            self.bundle.work += work + 2.0 * self.oracle.work
            pull = np.abs(np.matmul(own[:, None, :], self.bundle.planes)[:, 0, : self.d]) * c[:, None]
            gauge = np.divide(pull, self.a, out=np.zeros_like(pull), where=self.a > 0).max(axis=1)
            factors = 1.0 / np.maximum(gauge, 1.0)
            found = factors * c * np.einsum("ik,ik->i", own, self.bundle.deltas)
            if own.shape != beta.shape:
                beta = np.hstack([beta, np.zeros((len(beta), own.shape[1] - beta.shape[1]))])
            better = found > bounds
            beta[better], shrink[better], bounds[better] = own[better], factors[better], found[better]
            gaps, total = values - bounds, values.sum()
            gaps_seen.append(gaps.sum())
            stalls = len(gaps_seen) > patience and not gaps_seen[-1] <= 0.5 * gaps_seen[-1 - patience]
            if gaps_seen[-1] <= tol * total or spent > budget or stalls or expired():
                break
            tasks = np.flatnonzero(gaps > 0.5 * tol * total / len(S))
            base = S.copy()
            for share in (_PULL, 1.0):
                V = base + share * (w - base)
                at = self.oracle(V)
                heights = self._norms(V) + c * at.values
                better = heights < values
                S[better], values[better] = V[better], heights[better]
                self.bundle.add(at, tasks)
        return Finish(S, beta, shrink, float(values.sum()))

    def _norms(self, S: np.ndarray) -> np.ndarray:
        return (self.a * np.abs(S[:, : self.d])).sum(axis=1)

    def _programs(self, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Vertices (m, D), weights of the planes (m, K) and the work of the programs over the planes met so far; solved anew for `tasks` alone."""
        from mtldsl.solvers.kernels.plane_programs import solve_program

        bundle, D, work = self.bundle, self.oracle.size, 0.0
        for i in tasks.tolist():
            n = int(bundle.counts[i])
            tol = _ACCURACY * max(float(bundle.deltas[i].max()), 1e-300)
            for _ in range(_MOST_PIVOTS * (D + n) // _REFACTOR + 1):
                left = solve_program(
                    bundle.planes[i], bundle.deltas[i], n, self.scale[i], self.half[i],
                    self.basis[i], self.place[i], self.inverse[i], self.x[i], self.y[i], _REFACTOR, tol,
                )  # fmt: skip
                work += (_REFACTOR - left + 1) * (3.0 * D + n) * D
                if left > 0:
                    break
                self._refactor(i)
        beta = np.zeros_like(bundle.beta)
        rows, at = np.nonzero(self.basis >= 0)
        beta[rows, self.basis[rows, at]] = np.maximum(self.x[rows, at], 0.0)
        return -self.y[:, :D] * self.scale, beta / beta.sum(axis=1, keepdims=True), work

    def _refactor(self, i: int) -> None:
        D = self.oracle.size
        columns, ends = np.zeros((D + 1, D + 1)), np.zeros(D + 1)
        for r, k in enumerate(self.basis[i]):
            if k >= 0:
                columns[:D, r], columns[D, r] = self.bundle.planes[i, k] * self.scale[i], 1.0
            else:
                columns[-1 - k, r] = 1.0
        ends[D] = 1.0
        ends[:D] -= self.place[i] * self.half[i]
        try:
            self.inverse[i] = np.linalg.inv(columns)
        except np.linalg.LinAlgError:  # what rounding made of it stays, and the bounds say how good that is
            return
        self.x[i] = self.inverse[i] @ ends
