"""The graphical lasso by an interior point method on its dual: for matrices near to singular, where descent takes long."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

__all__ = ["LARGEST_SIDE", "central_path"]

#: The system has a row for every entry above the diagonal: 2,016 of them.
LARGEST_SIDE = 64

_MOST_STEPS = 80

#: How near to the edge a step goes; the share of the complementarity that it aims at.
_TO_THE_EDGE, _SHARE = 0.95, 0.1

#: The complementarity is as small as rounding lets it, relative to the gap's scale n.
_DONE = 1e-14


def central_path(A, r: float) -> np.ndarray:
    """Nearly the minimiser of `graphical_lasso`, with exact zeros: of a matrix near to singular too.

    Primal-dual steps on max log|A + U|, |U_ij| <= r, U_ii = r. With W = (A + U)^-1 the conditions are
    W_ij = z+ - z-, z+ (r - U_ij) = z- (r + U_ij) = mu, with mu -> 0. Entries whose multipliers z vanish faster than their
    distance to the bounds are zero.
    """
    n = len(A)
    rows, columns = np.triu_indices(n, 1)
    K = A + r * np.eye(n)
    W = np.linalg.inv(K)
    above, below, here = np.full(len(rows), r), np.full(len(rows), r), W[rows, columns]
    least = np.abs(here).max(initial=0.0) + 1e-3 / r
    over, under = np.maximum(here, 0.0) + least, np.maximum(-here, 0.0) + least
    for _ in range(_MOST_STEPS):
        complementarity = float(over @ above + under @ below) / max(2 * len(rows), 1)
        residual = np.abs(here - over + under) * np.sqrt(K[rows, rows] * K[columns, columns])
        if complementarity * len(rows) <= _DONE * n and residual.max(initial=0.0) <= 1e-10:
            break
        mu = _SHARE * complementarity
        system = W[np.ix_(rows, rows)] * W[np.ix_(columns, columns)]
        across = W[np.ix_(rows, columns)]
        system += across * across.T
        system[np.diag_indices(len(rows))] += over / above + under / below
        try:
            factor = cho_factor(system, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding
            break
        du = cho_solve(factor, here - mu / above + mu / below, check_finite=False)
        d_over = mu / above - over + over * du / above
        d_under = mu / below - under - under * du / below
        moves = ((above, -du), (below, du), (over, d_over), (under, d_under))
        step = min(1.0, *(_TO_THE_EDGE * _longest(x, dx) for x, dx in moves))
        D = np.zeros((n, n))
        D[rows, columns] = D[columns, rows] = du
        # the smallest eigenvalue of K^-1/2 D K^-1/2 says how far K stays positive definite
        root = np.linalg.cholesky(W)
        lowest = float(np.linalg.eigvalsh(root.T @ D @ root)[0])
        step = min(step, _TO_THE_EDGE / -lowest) if lowest < 0.0 else step
        above, below = above - step * du, below + step * du
        over, under = over + step * d_over, under + step * d_under
        K = K + step * D
        W = np.linalg.inv(K)
        W = 0.5 * (W + W.T)
        here = W[rows, columns]
    zero = np.abs(here) * np.sqrt(K[rows, rows] * K[columns, columns]) < np.minimum(above, below) / r
    S = W.copy()
    S[rows[zero], columns[zero]] = S[columns[zero], rows[zero]] = 0.0
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return W
    return S


def _longest(x, dx) -> float:
    """The longest step for which x stays positive."""
    falls = dx < 0.0
    return float(np.min(-x[falls] / dx[falls], initial=np.inf))
