"""The quadratic program over a simplex that cutting planes lead to; an active set method, sequential by nature, so compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["solve_on_simplex"]

_DEPENDENT = 1e-13  # a plane is affinely dependent on others where less than this of its square is left


@njit(cache=True, error_model="numpy")
def solve_on_simplex(Q, c, beta, tol):
    """argmin over beta >= 0, sum(beta) = 1 of 1/2 beta^T Q beta - c^T beta, in place, from a feasible beta; returns the steps.

    Done where no index gains more than tol times the terms that cancel in the slope.

    Q (K, K) is a Gram matrix, possibly singular. The support is kept affinely independent: the Cholesky factor of Q + shift,
    which differs by a constant on the simplex, exists exactly then. A new index that depends on the support enters along the
    direction in which Q vanishes, as in the simplex method for linear programs.
    """
    K = c.size
    size = 0
    support = np.empty(K, np.int64)
    place = np.full(K, -1)
    L = np.empty((K, K))
    shift = 0.0
    for i in range(K):
        shift += Q[i, i]
    shift = shift / K if shift > 0.0 else 1.0
    l = np.empty(K)
    p = np.empty(K)
    q = np.empty(K)
    x = np.empty(K)
    # the support of the start, as far as it is independent; what is left out gives its weight along the dependence
    for i in range(K):
        if beta[i] <= 0.0:
            beta[i] = 0.0
    if not beta.sum() > 0.0:
        beta[np.argmax(c)] = 1.0
    order = np.argsort(-beta)
    for i in order:
        if beta[i] > 0.0:
            size = _enter(Q, shift, c, beta, support, place, L, l, size, i, False)
    steps = 0
    limit = 50 + 20 * K
    while True:
        # to the minimum over the support's affine hull, or to where the first weight becomes zero
        while True:
            steps += 1
            if size == 1:
                beta[support[0]] = 1.0
                break
            for s in range(size):  # a constant in c changes nothing but rounding
                p[s], q[s] = c[support[s]] - c[support[0]], 1.0
            _solve(L, p, size)
            _solve(L, q, size)
            total_p, total_q = 0.0, 0.0
            for s in range(size):
                total_p += p[s]
                total_q += q[s]
            nu = (total_p - 1.0) / total_q
            step, block = 1.0, -1
            for s in range(size):
                x[s] = p[s] - nu * q[s]
                if x[s] <= 0.0:
                    now = beta[support[s]]
                    ratio = now / (now - x[s]) if now > x[s] else 0.0
                    if ratio < step or (block < 0 and ratio <= step):
                        step, block = ratio, s
            if block < 0:
                _refine(Q, c, L, support, x, p, q, size)
                for s in range(size):
                    beta[support[s]] = x[s]
                break
            for s in range(size):
                i = support[s]
                beta[i] += step * (x[s] - beta[i])
            beta[support[block]] = 0.0
            size = _leave(support, place, L, size, block)
            if steps > limit:
                break
        if steps > limit:
            break
        # the slope on the support, measured there: in nu + shift digits would cancel
        level, cancels = 0.0, 0.0
        for s in range(size):
            slope = c[support[s]]
            total = abs(slope)
            for t in range(size):
                product = Q[support[s], support[t]] * beta[support[t]]
                slope -= product
                total += abs(product)
            level += beta[support[s]] * slope
            cancels = max(cancels, total)
        best, entering = tol * cancels, -1
        for i in range(K):
            if place[i] < 0:
                slope = c[i] - level
                for s in range(size):
                    slope -= Q[i, support[s]] * beta[support[s]]
                if slope > best:
                    best, entering = slope, i
        if entering < 0:
            break
        size = _enter(Q, shift, c, beta, support, place, L, l, size, entering, True)
    total = 0.0
    for i in range(K):
        beta[i] = max(beta[i], 0.0)
        total += beta[i]
    if not (total > 0.0 and np.isfinite(total)):  # sizes beyond double precision: the best vertex
        beta[:] = 0.0
        best, entering = np.inf, 0
        for i in range(K):
            value = 0.5 * Q[i, i] - c[i]
            if value < best:
                best, entering = value, i
        beta[entering] = 1.0
        return steps
    for i in range(K):
        beta[i] /= total
    return steps


@njit(cache=True, error_model="numpy")
def _solve(L, b, size):
    """b <- (L L^T)^-1 b on the leading part."""
    for i in range(size):
        value = b[i]
        for k in range(i):
            value -= L[i, k] * b[k]
        b[i] = value / L[i, i]
    for i in range(size - 1, -1, -1):
        value = b[i]
        for k in range(i + 1, size):
            value -= L[k, i] * b[k]
        b[i] = value / L[i, i]


@njit(cache=True, error_model="numpy")
def _refine(Q, c, L, support, x, p, q, size):
    """One step of iterative refinement of x with the residual of Q alone, where that leaves all of x positive."""
    total = 0.0
    for s in range(size):
        residual = c[support[s]]
        for t in range(size):
            residual -= Q[support[s], support[t]] * x[t]
        p[s], q[s] = residual, 1.0
        total += x[s]
    _solve(L, p, size)
    _solve(L, q, size)
    total_p, total_q = 0.0, 0.0
    for s in range(size):
        total_p += p[s]
        total_q += q[s]
    nu = (total_p - (1.0 - total)) / total_q
    for s in range(size):
        if x[s] + p[s] - nu * q[s] <= 0.0:
            return
    for s in range(size):
        x[s] += p[s] - nu * q[s]


@njit(cache=True, error_model="numpy")
def _enter(Q, shift, c, beta, support, place, L, l, size, i, uphill):
    """Index i joins the support; where it depends on it, weight moves along the dependence until one index has none left.

    uphill: i enters because that gains. Otherwise i has weight already, and any direction along the dependence that does not
    lose is taken.
    """
    left = Q[i, i] + shift
    for s in range(size):
        value = Q[i, support[s]] + shift
        for k in range(s):
            value -= L[s, k] * l[k]
        l[s] = value / L[s, s]
        left -= l[s] * l[s]
    if left > _DEPENDENT * (Q[i, i] + shift):
        for s in range(size):
            L[size, s] = l[s]
        L[size, size] = np.sqrt(left)
        support[size], place[i] = i, size
        return size + 1
    t = np.empty(size)  # a_i = sum of t_s a_s, sum(t) = 1
    for s in range(size - 1, -1, -1):
        value = l[s]
        for k in range(s + 1, size):
            value -= L[k, s] * t[k]
        t[s] = value / L[s, s]
    gain = c[i]
    for s in range(size):
        gain -= t[s] * c[support[s]]
    if not uphill and gain < 0.0:  # its weight goes to the others, unless that would empty one of them first
        share = beta[i]
        block = -1
        for s in range(size):
            if t[s] < 0.0 and beta[support[s]] < -t[s] * share:
                share, block = -beta[support[s]] / t[s], s
        for s in range(size):
            beta[support[s]] += share * t[s]
        beta[i] -= share
        if block < 0:
            beta[i] = 0.0
            return size
        beta[support[block]] = 0.0
        size = _leave(support, place, L, size, block)
        return _enter(Q, shift, c, beta, support, place, L, l, size, i, uphill)
    share, block = np.inf, -1
    for s in range(size):
        if t[s] > 0.0:
            ratio = beta[support[s]] / t[s]
            if ratio < share:
                share, block = ratio, s
    for s in range(size):
        beta[support[s]] = max(beta[support[s]] - share * t[s], 0.0)
    beta[i] += share
    beta[support[block]] = 0.0
    size = _leave(support, place, L, size, block)
    return _enter(Q, shift, c, beta, support, place, L, l, size, i, uphill)


@njit(cache=True, error_model="numpy")
def _leave(support, place, L, size, s):
    """The index at place s leaves the support: its row goes, and rotations make the factor triangular again."""
    place[support[s]] = -1
    for r in range(s, size - 1):
        support[r] = support[r + 1]
        place[support[r]] = r
        for k in range(r + 2):
            L[r, k] = L[r + 1, k]
    size -= 1
    for r in range(s, size):
        a, b = L[r, r], L[r, r + 1]
        h = np.sqrt(a * a + b * b)
        cos, sin = a / h, b / h
        L[r, r] = h
        for k in range(r + 1, size):
            one, two = L[k, r], L[k, r + 1]
            L[k, r] = cos * one + sin * two
            L[k, r + 1] = cos * two - sin * one
    return size
