"""The largest expected Delta of a mixture of planes with a given mean slope: a linear program over the planes that it needs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["largest_mixture"]

#: relative gap at which no plane is missing any more
_EXACT = 1e-12
_MOST_ROUNDS = 2000
#: by so much are its equations multiplied: their tolerance, 1e-10, is an absolute one
_FINE = 1e4
#: and planes touch that are as much below the highest, relatively
_TOUCHING = 1e-11


def largest_mixture(
    oracle: Callable, u: np.ndarray, far: float
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """(value, slopes (K, n), weights (K,)): max of <weights, deltas> over mixtures of planes with the mean slope u; None where the program
    cannot be solved.

    oracle : z -> (slope, delta) of a highest plane at z; u : a mixture of such slopes, but for rounding
    far    : the size of scores beyond which planes do not change order; a hundred times as much is what u may be missed at

    In the dual: min over z of f(z) - <u, z>, by cutting planes; the plane that is highest at z is added as long as it is higher
    than the model.
    """
    from scipy.optimize import linprog, nnls

    n = len(u)
    slope, delta = oracle(np.zeros(n))
    slopes, deltas = np.array([np.zeros(n), slope]), np.array([0.0, delta])
    fine, box, miss = _FINE * far, np.eye(n), np.full(2 * n, -100.0 / _FINE)
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    weights, z, height = np.array([1.0, 0.0]), np.zeros(n), 0.0
    for _ in range(_MOST_ROUNDS):
        # weights >= 0 with a sum of 1, and what is missed of u in both directions
        sums = np.append(np.full(len(deltas), _FINE), np.zeros(2 * n))
        A, b = np.vstack([np.hstack([fine * slopes.T, box, -box]), sums]), np.append(fine * u, _FINE)
        solved = linprog(-np.append(deltas, miss), A_eq=A, b_eq=b, method="highs-ds", options=tight)
        if solved.status != 0:
            return None
        z, height = fine * solved.eqlin.marginals[:n], -_FINE * solved.eqlin.marginals[n]
        weights = np.maximum(solved.x[: len(deltas)], 0.0)
        slope, delta = oracle(z)
        size = 1.0 + np.abs(slope) @ np.abs(z)
        known = np.all(slopes == slope, axis=1) & (deltas == delta)
        if delta + slope @ z - height <= _EXACT * size or known.any():
            break
        slopes, deltas = np.vstack([slopes, slope]), np.append(deltas, delta)
        weights = np.append(weights, 0.0)
    # the program is solved to its tolerance; the planes that touch at z have the mean u to the last place, where any have
    touching = np.flatnonzero(
        (deltas + slopes @ z >= height - _TOUCHING * (1.0 + abs(height))) | (weights > 0.0)
    )
    sums = np.vstack([far * slopes[touching].T, np.ones(len(touching))])
    weights = nnls(sums, np.append(far * u, 1.0), maxiter=100 * len(sums))[0]
    used = touching[weights > 0.0]
    weights = weights[weights > 0.0]
    # the mean is missed by rounding, which scores of the size of z or `far` magnify: to the value's disadvantage
    missed = np.maximum(np.abs(z), far) @ np.abs(weights @ slopes[used] - u) + abs(
        height * (1.0 - weights.sum())
    )
    return float(weights @ deltas[used] - missed), slopes[used], weights
