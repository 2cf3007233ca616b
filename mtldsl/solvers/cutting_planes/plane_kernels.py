"""Quadratic programs over every task's cached planes: sequential by nature, so compiled; imported when first used."""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.structured_prox.polytope_kernels import minimize_on_simplex
from mtldsl.utils.jit import compiled

# Arrays one by one, not in a named tuple: a call takes six microseconds where tasks are few, and a tuple adds one in twenty to that.


@compiled(
    "f8(f8[:, :, ::1], f8[:, :, ::1], f8[:, ::1], f8[:, ::1], i8[::1], i8[:, ::1], f8[::1], f8[:, ::1], f8, f8[:, ::1], f8[::1])",
    error_model="numpy",
)
def proximal_steps(planes, gram, deltas, beta, counts, idle, steps, B, tol, V, promised):
    """For every task i: V[i] = argmin over v of steps[i] * max_k (deltas[k] + <planes[k], v>) + 1/2 ||v - B[i]||^2.

    planes (m, K, D), gram (m, K, K), deltas, beta, idle (m, K); the first counts[i] of K are in use. beta is warm and is changed;
    idle counts rounds without weight; promised[i] = sum_k beta_k (deltas_k + <planes_k, V[i]>). Returns what it cost, about, in
    multiplications.
    """
    m, K, D = planes.shape
    work = 0.0
    for i in range(m):
        n = counts[i]
        c = np.empty(n)
        for k in range(n):
            value = deltas[i, k]
            for j in range(D):
                value += planes[i, k, j] * B[i, j]
            c[k] = value / steps[i]  # which spares a multiple of the Gram matrix, whose first n entries count
        looks = minimize_on_simplex(gram[i], c, beta[i, :n], tol) + 1
        for j in range(D):
            V[i, j] = B[i, j]
        total, used = 0.0, 0
        for k in range(n):
            weight = beta[i, k]
            if weight > 0.0:
                idle[i, k] = 0
                used += 1
                total += weight * deltas[i, k]
                for j in range(D):
                    V[i, j] -= steps[i] * weight * planes[i, k, j]
            else:
                idle[i, k] += 1
        for k in range(n):
            if beta[i, k] > 0.0:
                for j in range(D):
                    total += beta[i, k] * planes[i, k, j] * V[i, j]
        promised[i] = total
        work += float(n + used) * (D + looks * used)
    return work
