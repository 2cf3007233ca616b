"""Ridge on large sparse inputs: conjugate gradients for all tasks at once, without any matrix but X."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

__all__ = ["conjugate_solutions"]

_MOST = 20_000
_ROUNDING = 1e-16  # a gap beside the objective that no step makes smaller
_NEARER = 1e-2  # how much smaller the gap is asked for after a solution that was not exact enough


Product = Callable[[np.ndarray], np.ndarray]


def conjugate_solutions(
    Y, levels, weight: float, image: Product, onto_features: Product, tol: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(V (m, d), A (m, n)) of (Xc Xc^T + l_j / c I) a_j = yc_j, v_j = Xc^T a_j, each more exact than the one before; the first has a
    relative gap of tol / 10 at most, unless steps run out.

    With the residual r the gap between v_j and the multipliers -l_j a_j is c / 2 ||r||^2: in the space of rows, for the gradients of
    the weights would count c s^2 / l times as much in the direction of a singular value s.

    Y (m, n): Yc;  levels (m,): l > 0;  weight: c;  image: V -> V Xc^T;  onto_features: R -> R Xc
    """
    shifts = (levels / weight)[:, None]
    R, A, V = Y.copy(), np.zeros_like(Y), 0.0
    direction, energy, target = R.copy(), np.einsum("ij,ij->i", R, R), 0.1 * tol
    for iteration in range(1, _MOST + 1):
        pulled = onto_features(direction)
        moved = image(pulled) + shifts * direction
        curved = np.einsum("ij,ij->i", direction, moved)
        step = np.divide(energy, curved, out=np.zeros_like(energy), where=curved > 0)[:, None]
        A += step * direction
        V = V + step * pulled
        R -= step * moved
        before, energy = energy, np.einsum("ij,ij->i", R, R)
        left = R + shifts * A
        size = 0.5 * weight * float(np.vdot(left, left))
        size += 0.5 * float(levels @ np.einsum("ij,ij->i", V, V))
        gap = 0.5 * weight * float(energy.sum())
        if gap <= target * size or iteration == _MOST or not step.any():
            yield V, A
            if gap <= _ROUNDING * size or not step.any():
                return
            target *= _NEARER
        turn = np.divide(energy, before, out=np.zeros_like(energy), where=before > 0)[:, None]
        direction = R + turn * direction
