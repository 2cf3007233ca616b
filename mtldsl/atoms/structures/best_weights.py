"""The best kernel weights for given matrices: an interior point method in as many unknowns as there are kernels.

    minimize over theta >= 0, ||theta||_p <= r    h(theta) = 1/2 sum over cells of tr(W (delta I + K_theta)^{-1} W^T),   K_theta = sum_m theta_m R_m

With delta = 0 this is the penalty of W, with delta > 0 its proximal step. In q = (theta / r)^p the feasible set is
the simplex, and h stays convex, since it falls and theta is concave in q.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from mtldsl.atoms.structures.task_kernel import Cell
from mtldsl.atoms.structures.triangular import Triangular
from mtldsl.atoms.structures.weights_ball import Ball

__all__ = ["Pair", "best_weights", "in_range"]

#: Stop at a Frank-Wolfe gap this small, relatively: rounding of the sums that it is made of.
_ROUNDING = 1e-14

_MAX_STEPS = 200

Pair = tuple[Cell, np.ndarray]  # a cell and W on its rows, or any H with H^T H = W^T W


def best_weights(pairs: Sequence[Pair], n_kernels: int, ball: Ball, delta: float) -> np.ndarray:
    """argmin h, to a relative gap near rounding. Where delta = 0, every K_theta with theta > 0 has to be positive definite (`in_range`)."""
    start = ball.uniform(n_kernels)
    size = sum(float(np.vdot(H, H)) for _, H in pairs)
    if np.isinf(ball.p) or n_kernels == 1 or size == 0.0:
        return start
    return _InteriorPoint(
        [(cell, _shorter(H) / np.sqrt(size)) for cell, H in pairs], n_kernels, ball, delta
    ).run()


def in_range(cell: Cell, W) -> tuple[Cell, np.ndarray]:
    """(the cell, the rows W), both in coordinates of the range of its kernels."""
    # every column counts alike, so that a kernel is not lost beside a larger one
    norms = np.sqrt(np.asarray(cell.factor.power(2).sum(axis=0)).ravel())
    unit = cell.factor @ sparse.diags_array(1.0 / np.maximum(norms, np.finfo(float).tiny))
    values, basis = np.linalg.eigh((unit @ unit.T).toarray())
    held = values > 1e-12 * values[-1]
    if held.all():
        return cell, W
    basis = basis[:, held]
    factor = sparse.csr_array((cell.factor.T @ basis).T)
    return Cell(cell.rows, cell.members, factor, cell.owner), W @ basis


def _shorter(H) -> np.ndarray:
    """A matrix of no more rows than columns with the same H^T H."""
    return np.asarray(np.linalg.qr(H, mode="r")) if len(H) > H.shape[1] else H


class _InteriorPoint:
    """Primal-dual, with the logarithmic barrier of q >= 0."""

    def __init__(self, pairs, n: int, ball: Ball, delta: float):
        self.pairs, self.n, self.ball, self.delta = pairs, n, ball, delta

    def run(self) -> np.ndarray:
        q = np.full(self.n, 1.0 / self.n)
        try:
            value, slope, curvature, gap = self._look(q)
        except np.linalg.LinAlgError:  # kernels of sizes too far apart: no better weights can be told
            return self._weights(q)
        best, least = self._weights(q), gap / value
        mu = max(gap, _ROUNDING * value) / self.n
        for _ in range(_MAX_STEPS):
            if least <= _ROUNDING:
                break
            mu = min(mu, 0.2 * gap / self.n) if gap > 0 else 0.1 * mu
            # the Hessian of the barrier at its own multipliers mu / q, scaled by q: well conditioned however small q is
            A = q[:, None] * curvature * q[None, :]
            A[np.diag_indices(self.n)] += mu
            right = np.column_stack([mu - q * slope, q])
            solved = np.linalg.solve(A, right)
            nu = (q @ solved[:, 0]) / (q @ solved[:, 1])
            step = q * (solved[:, 0] - nu * solved[:, 1])
            shrinking = step < 0
            longest = 0.99 * np.min(-q[shrinking] / step[shrinking], initial=1.0 / 0.99)
            trial = self._search(q, step, longest, value, slope, mu)
            if trial is None:
                mu *= 0.1
                if mu < _ROUNDING * value * 1e-3 / self.n:
                    break
                continue
            q = trial / trial.sum()
            try:
                value, slope, curvature, gap = self._look(q)
            except (
                np.linalg.LinAlgError
            ):  # so near to a singular kernel that rounding decides: `best` it stays
                break
            if gap / value < least:
                best, least = self._weights(q), gap / value
        return best

    def _search(self, q, step, longest, value, slope, mu) -> np.ndarray | None:
        barrier = value - mu * np.log(q).sum()
        descent = float(slope @ step - mu * (step / q).sum())
        t = longest
        for _ in range(30):
            trial = q + t * step
            if trial.min() > 0:
                found = self._value(trial) - mu * np.log(trial).sum()
                # at the end, decrease drowns in the rounding of the values
                if found <= barrier + 1e-4 * t * descent + 1e-14 * abs(barrier):
                    return trial
            t *= 0.5
        return None

    def _weights(self, q) -> np.ndarray:
        return self.ball.radius * q ** (1.0 / self.ball.p)

    def _value(self, q) -> float:
        theta, total = self._weights(q), 0.0
        for cell, H in self.pairs:
            try:
                factor = self._factor(cell, theta)
            except np.linalg.LinAlgError:  # too near to a singular kernel for double precision
                return np.inf
            half = factor.half(H.T)
            total += 0.5 * float(np.vdot(half, half))
        return total

    def _factor(self, cell: Cell, theta) -> Triangular:
        K = cell.kernel(theta)
        K[np.diag_indices(len(K))] += self.delta
        return Triangular(K)

    def _look(self, q):
        """h, its gradient and Hessian in q, and the Frank-Wolfe gap in theta."""
        theta, p = self._weights(q), self.ball.p
        value, b, curvature = 0.0, np.zeros(self.n), np.zeros((self.n, self.n))
        for cell, H in self.pairs:
            factor = self._factor(cell, theta)
            half = factor.half(H.T)
            Z = factor.back(half)  # P H^T; P H^T H P would lose half the digits
            P = factor.solve(np.eye(len(Z)))
            value += 0.5 * float(np.vdot(half, half))
            BZ = np.asarray(cell.transposed @ Z)
            b[cell.members] += cell.add_up(np.einsum("ij,ij->i", BZ, BZ))
            product = (BZ @ BZ.T) * np.asarray((cell.transposed @ P) @ cell.factor)
            rows = np.zeros((len(cell.members), product.shape[1]))
            np.add.at(rows, cell.owner, product)
            blocks = np.zeros((len(cell.members), len(cell.members)))
            np.add.at(blocks.T, cell.owner, rows.T)
            curvature[np.ix_(cell.members, cell.members)] += blocks
        first = theta / (p * q)  # d theta / d q
        second = first * (1.0 / p - 1.0) / q
        slope = -0.5 * b * first
        curvature = first[:, None] * curvature * first[None, :]
        curvature[np.diag_indices(self.n)] += -0.5 * b * second
        return value, slope, curvature, 0.5 * (self.ball.support(b) - float(b @ theta))
