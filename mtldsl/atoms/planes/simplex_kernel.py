"""The quadratic program over a simplex that cutting planes lead to; an active set method, sequential by nature, so compiled.

Written in small functions of plain loops with their types, callers below callees: without, numba compiles some of them three times.
"""

from __future__ import annotations

import numpy as np

from mtldsl.system.compiled import compiled

__all__ = ["minimize_on_simplex", "solve_on_simplex"]

_DEPENDENT = 1e-13  # a plane is affinely dependent on others where less than this of its square is left
_HUGE = 1e300


@compiled("void(f8[:, ::1], f8[::1], i8)", inside=True, error_model="numpy")
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


@compiled("i8(i8[::1], i8[::1], f8[:, ::1], i8, i8)", inside=True, error_model="numpy")
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


@compiled("i8(f8[::1], i8[::1], f8[::1], i8, i8, b1)", inside=True, error_model="numpy")
def _shift_weight(beta, support, t, size, i, towards):
    """Weight from the support to i (or back) along t, until one index of the support is empty: its place, or -1 where i is."""
    sign, share, block = 1.0, _HUGE, -1
    if not towards:
        sign, share = -1.0, beta[i]
    for s in range(size):
        if sign * t[s] > 0.0 and beta[support[s]] < sign * t[s] * share:
            share, block = beta[support[s]] / (sign * t[s]), s
    for s in range(size):
        rest = beta[support[s]] - sign * share * t[s]
        beta[support[s]] = rest if rest > 0.0 else 0.0
    beta[i] += sign * share
    if block < 0:
        beta[i] = 0.0
    else:
        beta[support[block]] = 0.0
    return block


@compiled(
    "i8(f8[:, ::1], f8, f8[::1], f8[::1], i8[::1], i8[::1], f8[:, ::1], f8[:, ::1], i8, i8, b1)",
    inside=True,
    error_model="numpy",
)
def _enter(Q, shift, c, beta, support, place, L, work, size, i, uphill):
    """Index i joins the support; where it depends on it, weight moves along the dependence until one index has none left.

    uphill: i enters because that gains. Otherwise i has weight already, and the direction that does not lose is taken.
    """
    l, t = work[1], work[3]
    while True:
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
        gain = c[i]
        for s in range(size - 1, -1, -1):  # a_i = sum of t_s a_s with sum(t) = 1
            value = l[s]
            for k in range(s + 1, size):
                value -= L[k, s] * t[k]
            t[s] = value / L[s, s]
            gain -= t[s] * c[support[s]]
        block = _shift_weight(beta, support, t, size, i, uphill or gain >= 0.0)
        if block < 0:
            return size
        size = _leave(support, place, L, size, block)


@compiled("void(f8[:, ::1], f8[::1], f8[:, ::1], i8[::1], f8[:, ::1], i8)", inside=True, error_model="numpy")
def _face_minimum(Q, c, L, support, work, size):
    """work[0] <- the minimum over the affine hull of the support, refined once with the residual of Q alone."""
    x, p, q = work[0], work[1], work[2]
    for s in range(size):
        x[s] = 0.0
    missing = 1.0
    for attempt in range(2):
        for s in range(size):  # a constant in c changes nothing but rounding
            residual = c[support[s]] - c[support[0]]
            for t in range(size):
                residual -= Q[support[s], support[t]] * x[t]
            p[s], q[s] = residual, 1.0
        _solve(L, p, size)
        _solve(L, q, size)
        total_p, total_q = 0.0, 0.0
        for s in range(size):
            total_p += p[s]
            total_q += q[s]
        nu = (total_p - missing) / total_q
        positive = True
        for s in range(size):
            p[s] = x[s] + p[s] - nu * q[s]
            positive = positive and p[s] > 0.0
        if not positive and attempt == 1:
            return
        missing = 1.0
        for s in range(size):
            x[s] = p[s]
            missing -= x[s]
        if not positive:
            return


@compiled("i8(f8[::1], i8[::1], f8[:, ::1], i8)", inside=True, error_model="numpy")
def _move(beta, support, work, size):
    """To the point work[0], or to where the first weight becomes zero: returns its place, -1 where the point is reached."""
    x = work[0]
    step, block = 1.0, -1
    for s in range(size):
        if x[s] <= 0.0:
            now = beta[support[s]]
            ratio = now / (now - x[s]) if now > x[s] else 0.0
            if ratio < step or block < 0:
                step, block = ratio, s
    for s in range(size):
        i = support[s]
        beta[i] += step * (x[s] - beta[i])
    if block >= 0:
        beta[support[block]] = 0.0
    return block


@compiled("i8(f8[:, ::1], f8[::1], f8[::1], i8[::1], i8[::1], i8, f8)", inside=True, error_model="numpy")
def _steepest(Q, c, beta, support, place, size, tol):
    """The index outside the support that gains most against the support's own slope; -1 where none gains enough."""
    level, cancels = 0.0, 0.0
    for s in range(size):
        slope = c[support[s]]
        total = slope if slope > 0.0 else -slope
        for t in range(size):
            product = Q[support[s], support[t]] * beta[support[t]]
            slope -= product
            total += product if product > 0.0 else -product
        level += beta[support[s]] * slope
        if total > cancels:
            cancels = total
    best, entering = tol * cancels, -1
    for i in range(c.size):
        if place[i] < 0:
            slope = c[i] - level
            for s in range(size):
                slope -= Q[i, support[s]] * beta[support[s]]
            if slope > best:
                best, entering = slope, i
    return entering


@compiled("f8(f8[:, ::1], f8[::1], i8[::1])", inside=True, error_model="numpy")
def _prepare(Q, beta, place):
    """The shift, of the size of Q's diagonal; weights below zero become zero, and some weight there must be."""
    shift, total = 0.0, 0.0
    for i in range(place.size):
        place[i] = -1
        shift += Q[i, i]
        if beta[i] > 0.0:
            total += beta[i]
        else:
            beta[i] = 0.0
    if not total > 0.0:
        beta[0] = 1.0
    return shift / place.size if shift > 0.0 else 1.0


@compiled("void(f8[:, ::1], f8[::1], f8[::1])", inside=True, error_model="numpy")
def _normalize(Q, c, beta):
    """Weights that sum to one; the best vertex where sizes went beyond double precision."""
    total = 0.0
    for i in range(c.size):
        if not beta[i] > 0.0:
            beta[i] = 0.0
        total += beta[i]
    if 0.0 < total < _HUGE:
        for i in range(c.size):
            beta[i] /= total
        return
    best, at = _HUGE, 0
    for i in range(c.size):
        beta[i] = 0.0
        value = 0.5 * Q[i, i] - c[i]
        if value < best:
            best, at = value, i
    beta[at] = 1.0


@compiled("i8(f8[:, ::1], f8[::1], f8[::1], f8)", inside=True, error_model="numpy")
def minimize_on_simplex(Q, c, beta, tol):
    """argmin over beta >= 0, sum(beta) = 1 of 1/2 beta^T Q beta - c^T beta, in place, from a feasible beta; returns the steps.

    Done where no index gains more than tol times the terms that cancel in the slope.

    Q is a Gram matrix, possibly singular, whose first K rows and columns count, K = c.size. The support is kept affinely independent: the Cholesky factor L of Q + shift,
    which differs by a constant on the simplex, exists exactly then. A new index that depends on the support enters along the
    direction in which Q vanishes, as in the simplex method for linear programs.
    """
    K = c.size
    support, place = np.empty(K, np.int64), np.empty(K, np.int64)
    L, work = np.empty((K, K)), np.empty((4, K))
    shift = _prepare(Q, beta, place)
    size = 0
    for i in range(
        K
    ):  # the support of the start; what depends on others gives or takes its weight along the dependence
        if beta[i] > 0.0:
            size = _enter(Q, shift, c, beta, support, place, L, work, size, i, False)
    limit = 50 + 20 * K
    for steps in range(limit):  # noqa: B007  (returned)
        if size == 1:
            beta[support[0]] = 1.0
        else:
            _face_minimum(Q, c, L, support, work, size)
            block = _move(beta, support, work, size)
            if block >= 0:
                size = _leave(support, place, L, size, block)
                continue
        entering = _steepest(Q, c, beta, support, place, size, tol)
        if entering < 0:
            break
        size = _enter(Q, shift, c, beta, support, place, L, work, size, entering, True)
    _normalize(Q, c, beta)
    return steps


@compiled("i8(f8[:, ::1], f8[::1], f8[::1], f8)", error_model="numpy")
def solve_on_simplex(Q, c, beta, tol):
    """`minimize_on_simplex` for callers in Python: compiled apart, as most solves reach it from compiled loops alone."""
    return minimize_on_simplex(Q, c, beta, tol)
