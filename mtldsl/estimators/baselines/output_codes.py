"""The metric of max-margin output codes: a convex problem over positive semidefinite matrices, with a certified gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Codes", "learned_codes", "nearest"]


@dataclass(frozen=True)
class Codes:
    """Q (K, K) positive semidefinite, its objective, and objective less a lower bound on the minimum, both proven."""

    Q: np.ndarray
    objective: float
    gap: float
    iterations: int


def nearest(Q, centres, slope=None, start=None, tol=1e-12, max_iter=500) -> np.ndarray:
    """(n, K) the y in [0, 1]^K of the least (y - centre)^T Q (y - centre) - slope . y, a row each: coordinate descent, all rows side by side.

    start : where to begin; the centres, clipped, if None. Where Q has a zero on the diagonal, its row is zero: y there is by the slope's sign,
            and without one the centre's
    """
    slope = np.zeros_like(centres) if slope is None else slope
    y = np.clip(centres, 0.0, 1.0) if start is None else start.copy()
    diagonal, gradient = np.diag(Q), (y - centres) @ Q - 0.5 * slope
    for _ in range(max_iter):
        largest = 0.0
        for k in range(len(Q)):
            if diagonal[k] > 0:
                new = np.clip(y[:, k] - gradient[:, k] / diagonal[k], 0.0, 1.0)
            else:
                new = np.where(slope[:, k] > 0, 1.0, np.where(slope[:, k] < 0, 0.0, y[:, k]))
            step = new - y[:, k]
            y[:, k] = new
            gradient += step[:, None] * Q[k]
            largest = max(largest, float(np.abs(step).max(initial=0.0)))
        if largest <= tol:
            break
    return y


class _Margins:
    """R(Q) = the mean over rows of max over y in [0, 1]^K of  Delta(y_i, y) + d(y_i) - d(y),  d(y) = (z_i - y)^T Q (z_i - y).

    Delta, the number of labels that differ, is linear in y. Convex in Q: a maximum of affine functions.
    """

    def __init__(self, Y, Z):
        self.Y, self.Z, self.slope = Y, Z, 1.0 - 2.0 * Y
        self.offset = (Z - Y).T @ (Z - Y) / len(Y)

    def at(self, Q) -> tuple[float, np.ndarray, float]:
        """(R(Q), at most; the slope A and height b of the plane there: R >= b + <A, .> everywhere)."""
        y = nearest(Q, self.Z, self.slope, tol=1e-8, max_iter=200)
        away = self.Z - y
        A = self.offset - away.T @ away / len(y)
        b = float(np.sum(np.abs(y - self.Y)) / len(y))
        # what is left of the inner maximum: by its concavity at most the largest value of its linear model over the box
        ascent = self.slope + 2.0 * away @ Q
        left = float(np.sum(np.maximum(ascent * (1.0 - y), -ascent * y)) / len(y))
        return b + float(np.sum(A * Q)) + left, A, b


#: Planes that are kept, those of the largest multipliers; steps of the inner problem; what a step has to bring of what it promised.
_KEPT, _INNER, _ENOUGH = 40, 200, 0.1


def learned_codes(Y, Z, C: float, tol: float, max_iter: int) -> Codes:
    """min over Q positive semidefinite of  1/2 trace(Q) + C R(Q), see `_Margins`; Y (n, K) of 0 and 1, Z (n, K) what predicts it.

    A proximal bundle method: the planes found so far, the zero plane among them as R >= 0, and the distance to the best Q so far. Any mean of
    planes b + <A, .> gives a bound: with s in [0, 1] and 1/2 I + s C A positive semidefinite the minimum is at least s C b.
    """
    margins, K = _Margins(np.asarray(Y, dtype=float), np.asarray(Z, dtype=float)), Y.shape[1]
    best = np.eye(K)
    R, A, b = margins.at(best)
    value, bound, tau = 0.5 * K + C * R, 0.0, 1.0
    slopes, heights = np.stack([np.zeros((K, K)), A]), np.array([0.0, b])
    alpha, iteration = np.array([0.0, 1.0]), 0
    for iteration in range(1, max_iter + 1):  # noqa: B007
        alpha, Q = _nearby(slopes, heights, alpha, best, tau, C)
        bound = max(bound, _bound(np.tensordot(alpha, slopes, 1), float(alpha @ heights), C))
        if value - bound <= tol * max(1.0, value):
            break
        model = 0.5 * float(np.trace(Q)) + C * float((heights + np.einsum("tkl,kl->t", slopes, Q)).max())
        R, A, b = margins.at(Q)
        found = 0.5 * float(np.trace(Q)) + C * R
        if found <= value - _ENOUGH * (value - model):
            best, value, tau = Q, found, min(2.0 * tau, 1e4)
        elif found > value:
            tau = max(tau / 1.2, 1e-4)
        if len(alpha) >= _KEPT:  # the mean plane stands for those that go
            kept = np.sort(np.argsort(-alpha[1:], kind="stable")[: _KEPT // 2]) + 1
            mean = np.tensordot(alpha, slopes, 1), float(alpha @ heights)
            slopes = np.concatenate([slopes[:1], mean[0][None], slopes[kept]])
            heights = np.concatenate([[0.0], [mean[1]], heights[kept]])
            alpha = np.concatenate([[0.0, 1.0], np.zeros(len(kept))])
        slopes, heights = np.concatenate([slopes, A[None]]), np.append(heights, b)
        alpha = np.append(alpha, 0.0)
    return Codes(best, value, max(value - bound, 0.0), iteration)


def _nearby(slopes, heights, alpha, centre, tau: float, C: float) -> tuple[np.ndarray, np.ndarray]:
    """(alpha, Q) of min over Q of 1/2 trace(Q) + C max_t (b_t + <A_t, Q>) + ||Q - centre||^2 / (2 tau): its dual over the simplex."""
    half, T = 0.5 * np.eye(len(centre)), len(alpha)
    flat = slopes.reshape(T, -1)
    step = 1.0 / (tau * C * C * max(float(np.linalg.norm(flat @ flat.T, 2)), 1e-12))
    at, t = alpha, 1.0
    for _ in range(_INNER):
        Q = _projected(centre - tau * (half + C * (at @ flat).reshape(centre.shape)))
        new = _on_simplex(at + step * C * (heights + flat @ Q.ravel()))
        if float((at - new) @ (new - alpha)) > 0:
            at, t = new, 1.0
        else:
            t_next = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
            at, t = new + (t - 1.0) / t_next * (new - alpha), t_next
        moved, alpha = float(np.abs(new - alpha).max()), new
        if moved <= 1e-12:
            break
    return alpha, _projected(centre - tau * (half + C * (alpha @ flat).reshape(centre.shape)))


def _on_simplex(v: np.ndarray) -> np.ndarray:
    """The nearest point whose entries are >= 0 and sum to 1."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)


def _bound(A, b: float, C: float) -> float:
    lowest = float(np.linalg.eigvalsh(A)[0])
    return min(1.0, 0.5 / (C * -lowest) if lowest < 0 else 1.0) * C * b


def _projected(Q) -> np.ndarray:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh((Q + Q.T) / 2.0)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
