"""The prox of a maximum of affine functions that is known through an oracle: planes are added until none is violated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["prox_of_planes"]

#: the gap at which a prox is exact, relative to the terms that cancel in it
_EXACT = 1e-14
_MOST_ROUNDS = 10_000


def prox_of_planes(oracle: Callable, z: np.ndarray, step: float, exact: float = _EXACT) -> np.ndarray:
    """argmin over x of step * f(x) + 1/2 ||x - z||^2, f(x) = max_k delta_k + <a_k, x>; oracle(x) -> (a, delta) of a highest plane.

    In the dual, over the simplex of the planes met so far: x = z - step * A^T beta. The plane that is highest at x is added;
    where it is no higher than what beta promises (the Frank-Wolfe gap), x is the minimiser. Finite, since the planes are.
    """
    from mtldsl.atoms.planes.simplex_kernel import solve_on_simplex  # numba is imported where it is used

    a, delta = oracle(z)
    planes, deltas, beta = a[None, :], np.array([delta]), np.ones(1)
    gram = planes @ planes.T
    x = z - step * a
    for _ in range(_MOST_ROUNDS):
        a, delta = oracle(x)
        promised = float(beta @ (deltas + planes @ x))
        gap = delta + a @ x - promised
        size = abs(delta) + np.abs(a) @ np.abs(x) + abs(promised) + np.abs(beta @ planes) @ np.abs(x)
        if gap <= exact * size or np.any(np.all(planes == a, axis=1) & (deltas == delta)):
            return x  # a plane that is known already has no more to say: what is left of the gap is rounding
        cross = planes @ a
        gram = np.block([[gram, cross[:, None]], [cross[None, :], a @ a]])
        planes, deltas, beta = np.vstack([planes, a]), np.append(deltas, delta), np.append(beta, 0.0)
        solve_on_simplex(step * gram, deltas + planes @ z, beta, 1e-15)
        x = z - step * (beta @ planes)
    return x
