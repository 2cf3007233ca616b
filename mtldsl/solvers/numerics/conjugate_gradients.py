"""Conjugate gradients for a symmetric positive semidefinite system, preconditioned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Product = Callable[[np.ndarray], np.ndarray]


def conjugate_gradients(
    apply: Product,
    rhs: np.ndarray,
    *,
    tol: float,
    most: int,
    precondition: Product = np.copy,
    start: np.ndarray | None = None,
    flat: float = 0.0,
    rounding: float = 0.0,
) -> np.ndarray:
    """x with apply(x) = rhs, arrays of any one shape, after at most so many products.

    tol      : of the residual in the preconditioner's norm, relative to the first one
    start    : a guess, from which it goes on; None: zero
    flat     : curvature along a direction, over its squared length, up to which nothing bends there: x is as good as it gets
    rounding : of the residual, relative to `rhs`: no smaller one is asked for

    >>> H = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> conjugate_gradients(lambda x: H @ x, np.array([3.0, 3.0]), tol=1e-12, most=2)
    array([1., 1.])
    """
    x = np.zeros_like(rhs) if start is None else start.copy()
    r = rhs.copy() if start is None else rhs - apply(start)
    z = precondition(r)
    p, size = z, float(np.vdot(r, z))
    enough = tol**2 * size
    if rounding > 0.0:
        enough = max(enough, rounding**2 * float(np.vdot(rhs, precondition(rhs))))
    for _ in range(most):
        if size <= enough:
            break
        bent = apply(p)
        curvature = float(np.vdot(p, bent))
        if not curvature > flat * float(np.vdot(p, p)):
            break
        x += size / curvature * p
        r -= size / curvature * bent
        z = precondition(r)
        before, size = size, float(np.vdot(r, z))
        p = z + size / before * p
    return x
