"""Under an l1 norm alone the model is a linear program a task: a simplex method ends what ADMM only approaches."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.oracle import Oracle

__all__ = ["LinearFinish"]

_MOST_PROGRAMS = 60  # a task
_PULL = 0.5  # where between the best point and the program's the oracle is asked
_ACCURACY = 1e-10  # of HiGHS, the tightest it takes


class LinearFinish:
    """minimize over w_i   sum_j a_ij |w_ij| + c_i G_i(w_i)   for every task by itself, by cutting planes.

    The linear program over the planes met so far gives a lower bound and a vertex; the oracle, asked between the best point and that
    vertex, gives the next plane and perhaps a better point.
    """

    def __init__(self, form: NormalForm, oracle: Oracle, bundle: Bundle, tol: float):
        self.oracle, self.bundle, self.tol = oracle, bundle, tol
        (term,) = form.functions
        block, profile = form.losses[0].map.identity_of, term.atom.profile
        assert block is not None and profile is not None and profile.absolute is not None  # `fits` said so
        d, m = form.shapes[block]
        self.a = np.broadcast_to(term.coefficient * profile.absolute, (d, m)).T

    @staticmethod
    def fits(form: NormalForm) -> bool:
        profile = form.functions[0].atom.profile if len(form.functions) == 1 else None
        return profile is not None and profile.length is None and profile.square is None

    def run(self, S: np.ndarray, expired) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(points (m, D), beta, shrink) that prove each other to tol, starting from S; None where some task was not finished."""
        S, betas = S.copy(), []
        d = self.a.shape[1]
        total = float((self.a * np.abs(S[:, :d])).sum() + self.oracle.coefficients @ self.oracle.values(S))
        for i in range(len(S)):
            beta = self._one_task(i, S, total, expired)
            if beta is None:
                return None
            betas.append(beta)
        beta = np.zeros_like(self.bundle.beta)
        for i, own in enumerate(betas):
            beta[i, : own.size] = own
        pull = self.oracle.coefficients[:, None] * np.abs(
            np.matmul(beta[:, None, :], self.bundle.planes)[:, 0, :d]
        )
        gauge = np.divide(pull, self.a, out=np.zeros_like(pull), where=self.a > 0).max(axis=1)
        return S, beta, 1.0 / np.maximum(gauge, 1.0)

    def _one_task(self, i: int, S: np.ndarray, total: float, expired) -> np.ndarray | None:
        d, c = self.a.shape[1], self.oracle.coefficients[i]
        share = 0.3 * self.tol * total / len(S)
        at = self.oracle.one(i, S[i])
        best = self.a[i] @ np.abs(S[i, :d]) + c * at.values[0]
        self._add(i, at)
        for _ in range(_MOST_PROGRAMS):
            solved = self._program(i, c)
            if solved is None or expired():
                return None
            w, bound, beta = solved
            if best - bound <= share:
                return beta
            for v in (S[i] + _PULL * (w - S[i]), w):
                at = self.oracle.one(i, v)
                value = self.a[i] @ np.abs(v[:d]) + c * at.values[0]
                self._add(i, at)
                if value < best:
                    best, S[i] = value, v
        return None

    def _add(self, i: int, at) -> None:
        self.bundle.add_one(i, at.slopes[0], at.deltas[0], at.stored[0])

    def _program(self, i: int, c: float) -> tuple[np.ndarray, float, np.ndarray] | None:
        """(vertex, optimum, multipliers of the planes) of the program over the planes of task i."""
        from scipy.optimize import linprog

        n, d = int(self.bundle.counts[i]), self.a.shape[1]
        planes, deltas = self.bundle.planes[i, :n], self.bundle.deltas[i, :n]
        scale = max(np.abs(planes).max(), 1e-300)  # weights are 1 / scale in size
        columns = np.hstack([planes[:, :d], -planes[:, :d], planes[:, d:]]) / scale
        cost = np.concatenate([self.a[i], self.a[i], np.zeros(planes.shape[1] - d)]) / scale
        bounds = [(0, None)] * (2 * d) + [(None, None)] * (planes.shape[1] - d + 1)
        found = linprog(
            np.append(cost, c), A_ub=np.hstack([columns, -np.ones((n, 1))]), b_ub=-deltas, bounds=bounds,
            method="highs-ds",
            options={"primal_feasibility_tolerance": _ACCURACY, "dual_feasibility_tolerance": _ACCURACY},
        )  # fmt: skip
        if found.status != 0:
            return None
        x = found.x / scale
        beta = np.maximum(-found.ineqlin.marginals, 0.0)
        w = np.concatenate([x[:d] - x[d : 2 * d], x[2 * d : -1]])
        return w, float(found.fun), beta / beta.sum()
