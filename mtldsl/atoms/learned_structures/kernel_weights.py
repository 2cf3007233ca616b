"""Interior-point method for the best weights of task kernels, the matrices of weights being given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from mtldsl.atoms.learned_structures.structure import TriangularFactor
from mtldsl.atoms.learned_structures.task_kernels import KernelCell, KernelWeightBall
from mtldsl.utils.parallel import on_one_blas_thread

if TYPE_CHECKING:
    from mtldsl.atoms.learned_structures.task_kernels import DiagonalPlusLowRank


# --------------------------------------------------------------------------------------------------------------
# The Hessian of a kernel penalty in the kernels' weights, and Newton's equations: dense, or a diagonal and a few columns.


@dataclass(frozen=True)
class KernelWeightSettings:
    """Limits of the search for kernel weights.

    columns_share    : columns that are worth taking apart, of the number of kernels
    newton_steps     : Newton steps of the interior point method
    columns_gap_tol  : relative gap above which T x T matrices are tried after a diagonal and a few columns
    columns_exponent : least exponent p of the ball with columns: near p = 1 weights vanish, and with them digits
    """

    columns_share: float = 0.25
    newton_steps: int = 200
    columns_gap_tol: float = 1e-12
    columns_exponent: float = 1.25


SETTINGS = KernelWeightSettings()


class KernelWeightCurvature:
    """C = sum over cells of (B Z Z^T B^T) * (B^T P B), added up over the columns of each kernel; P = K^{-1}, Z = P H^T.

    Where every kernel is one column, and few columns are shared by tasks, those of single tasks, s, have C_ss = diag - G G^T with G the
    products of a few columns of P by those of Z: then C is kept as the diagonal, G and the columns of the others, f.
    """

    def __init__(self, n: int, n_cells: int):
        self.n, self.n_cells = n, n_cells
        self.dense: np.ndarray | None = None
        self.parts: tuple | None = None

    def add(self, cell: KernelCell, product: np.ndarray) -> None:
        """product (k, k), of the columns of a cell."""
        if self.dense is None:
            self.dense = np.zeros((self.n, self.n))
        if len(cell.members) < len(cell.owner):
            k = len(cell.owner)
            owners = sparse.csr_array((np.ones(k), (cell.owner, np.arange(k))), (len(cell.members), k))
            product = np.asarray(owners @ np.asarray(owners @ product).T).T
        self.dense[np.ix_(cell.members, cell.members)] += product

    @on_one_blas_thread
    def add_few(self, cell: KernelCell, few: DiagonalPlusLowRank, BZ: np.ndarray) -> None:
        nodes, k = cell.nodes, len(cell.owner)
        s, f = nodes.own, nodes.shared
        Q = few.halves()
        BQ = np.asarray(cell.transposed @ Q)  # (k, r)
        single = self.n_cells == 1 and len(cell.members) == k == self.n and nodes.n_tasks == s.size
        if not single or f.size * BZ.shape[1] > SETTINGS.columns_share * self.n:
            inverse = cell.transposed.multiply(1.0 / few.D[None, :]).tocsr()
            self.add(cell, (BZ @ BZ.T) * (np.asarray((inverse @ cell.factor).toarray()) - BQ @ BQ.T))
            return
        own = np.einsum("ij,ij->i", BZ[s], BZ[s]) * nodes.factor**2 / few.D[nodes.task]
        G = (BQ[s][:, :, None] * BZ[s][:, None, :]).reshape(s.size, -1)
        across = np.asarray(cell.transposed @ (nodes.U / few.D[:, None])) - BQ @ BQ[f].T
        across *= BZ @ BZ[f].T  # (k, f)
        of = cell.members
        self.parts = of[s], of[f], own, G, across[s], across[f]

    def in_q(self, first: np.ndarray, diagonal: np.ndarray) -> None:
        """In coordinates q with d theta / d q = first, and with `diagonal` added."""
        if self.parts is None:
            assert self.dense is not None
            self.dense = first[:, None] * self.dense * first[None, :]
            self.dense[np.diag_indices(self.n)] += diagonal
            return
        s, f, own, G, across, rest = self.parts
        rest = first[f][:, None] * rest * first[f][None, :]
        rest[np.diag_indices(f.size)] += diagonal[f]
        across = first[s][:, None] * across * first[f][None, :]
        self.parts = s, f, first[s] ** 2 * own + diagonal[s], first[s][:, None] * G, across, rest

    @on_one_blas_thread
    def solve(self, q: np.ndarray, mu: float, right: np.ndarray) -> np.ndarray:
        """(diag(q) C diag(q) + mu I)^{-1} right."""
        if self.parts is None:
            assert self.dense is not None
            A = q[:, None] * self.dense * q[None, :]
            A[np.diag_indices(self.n)] += mu
            return np.linalg.solve(A, right)
        s, f, own, G, across, rest = self.parts
        D = q[s] ** 2 * own + mu
        G, across = q[s][:, None] * G, q[s][:, None] * across * q[f][None, :]
        rest = q[f][:, None] * rest * q[f][None, :] + mu * np.eye(f.size)
        # (D - G G^T)^{-1} of the single tasks' columns, then Schur's complement of the others
        both = np.column_stack([right[s], across])
        scaled = G / D[:, None]
        small = np.eye(G.shape[1]) - G.T @ scaled
        solved = both / D[:, None] + scaled @ np.linalg.solve(small, scaled.T @ both)
        x, Y = solved[:, : right.shape[1]], solved[:, right.shape[1] :]
        found = np.empty_like(right)
        found[f] = np.linalg.solve(rest - across.T @ Y, right[f] - across.T @ x)
        found[s] = x - Y @ found[f]
        return found


# --------------------------------------------------------------------------------------------------------------
# The best kernel weights for given matrices: an interior point method in as many unknowns as there are kernels.
#
#     minimize over theta >= 0, ||theta||_p <= r    h(theta) = 1/2 sum over cells of tr(W (delta I + K_theta)^{-1} W^T),   K_theta = sum_m theta_m R_m
#
# With delta = 0 this is the penalty of W, with delta > 0 its proximal step. In q = (theta / r)^p the feasible set is
# the simplex, and h stays convex, since it falls and theta is concave in q.

#: Relative Frank-Wolfe gap that is rounding of the sums that it is made of.
_ROUNDING_SHARE = 1e-14


Pair = tuple[KernelCell, np.ndarray]  # a cell and W on its rows, or any H with H^T H = W^T W


def best_weights(pairs: Sequence[Pair], n_kernels: int, ball: KernelWeightBall, delta: float) -> np.ndarray:
    """argmin h, to a relative gap near rounding. Where delta = 0, every K_theta with theta > 0 has to be positive definite (`in_range`)."""
    start = ball.uniform(n_kernels)
    size = sum(float(np.vdot(H, H)) for _, H in pairs)
    if np.isinf(ball.p) or n_kernels == 1 or size == 0.0:
        return start
    found = [(cell, _shorter(H) / np.sqrt(size)) for cell, H in pairs]
    run = _KernelWeightInteriorPoint(found, n_kernels, ball, delta, True)
    best, least = run.run()
    if (
        least > SETTINGS.columns_gap_tol and run.few
    ):  # weights that all but vanish: what is left of a diagonal beside a few columns is rounding
        other, smaller = _KernelWeightInteriorPoint(found, n_kernels, ball, delta, False).run()
        best = other if smaller < least else best
    return best


def in_range(cell: KernelCell, W) -> tuple[KernelCell, np.ndarray]:
    """(the cell, the rows W), both in coordinates of the range of its kernels."""
    if cell.nodes.covers:
        return cell, W
    # every column counts alike, so that a kernel is not lost beside a larger one
    norms = np.sqrt(np.asarray(cell.factor.power(2).sum(axis=0)).ravel())
    unit = cell.factor @ sparse.diags_array(1.0 / np.maximum(norms, np.finfo(float).tiny))
    values, basis = np.linalg.eigh((unit @ unit.T).toarray())
    held = values > 1e-12 * values[-1]
    if held.all():
        return cell, W
    basis = basis[:, held]
    factor = sparse.csr_array((cell.factor.T @ basis).T)
    return KernelCell(cell.rows, cell.members, factor, cell.owner), W @ basis


def _shorter(H) -> np.ndarray:
    """A matrix of no more rows than columns with the same H^T H."""
    return np.asarray(np.linalg.qr(H, mode="r")) if len(H) > H.shape[1] else H


class _KernelWeightInteriorPoint:
    """Primal-dual, with the logarithmic barrier of q >= 0."""

    def __init__(self, pairs, n: int, ball: KernelWeightBall, delta: float, may_be_few: bool):
        self.pairs, self.n, self.ball, self.delta = pairs, n, ball, delta
        # near p = 1 weights vanish, and with them digits of what a few columns leave of a diagonal
        may_be_few = may_be_few and (delta > 0.0 or ball.p >= SETTINGS.columns_exponent)
        self.few = may_be_few and any(cell.nodes.are_few for cell, _ in pairs)

    def run(self) -> tuple[np.ndarray, float]:
        """(the weights, the relative gap that they leave)."""
        q = np.full(self.n, 1.0 / self.n)
        try:
            value, slope, curvature, gap = self._look(q)
        except np.linalg.LinAlgError:  # kernels of sizes too far apart: no better weights can be told
            return self._weights(q), np.inf
        best, least = self._weights(q), gap / value
        mu = max(gap, _ROUNDING_SHARE * value) / self.n
        for _ in range(SETTINGS.newton_steps):
            if least <= _ROUNDING_SHARE:
                break
            mu = min(mu, 0.2 * gap / self.n) if gap > 0 else 0.1 * mu
            # the Hessian of the barrier at its own multipliers mu / q, scaled by q: well conditioned however small q is
            solved = curvature.solve(q, mu, np.column_stack([mu - q * slope, q]))
            nu = (q @ solved[:, 0]) / (q @ solved[:, 1])
            step = q * (solved[:, 0] - nu * solved[:, 1])
            shrinking = step < 0
            longest = 0.99 * np.min(-q[shrinking] / step[shrinking], initial=1.0 / 0.99)
            trial = self._search(q, step, longest, value, slope, mu)
            if trial is None:
                mu *= 0.1
                if mu < _ROUNDING_SHARE * value * 1e-3 / self.n:
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
        return best, least

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
        theta = self._weights(q)
        try:
            return sum(self._form(cell, H, theta)[0] for cell, H in self.pairs)
        except np.linalg.LinAlgError:  # too near to a singular kernel for double precision
            return np.inf

    def _form(
        self, cell: KernelCell, H, theta
    ) -> tuple[float, np.ndarray, DiagonalPlusLowRank | TriangularFactor]:
        """(1/2 tr(H P H^T), Z = P H^T, the kernel that P is the inverse of)."""
        if self.few and cell.nodes.are_few:
            few = cell.nodes.at(cell.of_columns(theta), self.delta)
            return *few.form(H), few
        K = cell.kernel(theta)
        K[np.diag_indices(len(K))] += self.delta
        factor = TriangularFactor(K)
        half = factor.half(H.T)  # P H^T H P would lose half the digits
        return 0.5 * float(np.vdot(half, half)), factor.back(half), factor

    def _look(self, q):
        """h, its gradient and Hessian in q, and the Frank-Wolfe gap in theta."""
        theta, p = self._weights(q), self.ball.p
        value, b, curvature = 0.0, np.zeros(self.n), KernelWeightCurvature(self.n, len(self.pairs))
        for cell, H in self.pairs:
            part, Z, kernel = self._form(cell, H, theta)
            value += part
            BZ = np.asarray(cell.transposed @ Z)
            b[cell.members] += cell.add_up(np.einsum("ij,ij->i", BZ, BZ))
            if isinstance(kernel, TriangularFactor):
                P = kernel.solve(np.eye(len(Z)))
                curvature.add(cell, (BZ @ BZ.T) * np.asarray((cell.transposed @ P) @ cell.factor))
            else:
                curvature.add_few(cell, kernel, BZ)
        first = theta / (p * q)  # d theta / d q
        second = first * (1.0 / p - 1.0) / q
        curvature.in_q(first, -0.5 * b * second)
        return value, -0.5 * b * first, curvature, 0.5 * (self.ball.support(b) - float(b @ theta))
