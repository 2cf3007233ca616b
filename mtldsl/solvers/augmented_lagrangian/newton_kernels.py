"""Newton steps on one task's augmented Lagrangian, a loss with kinks beside a ridge: compiled; imported when first used.

The same steps as `mtldsl.solvers.augmented_lagrangian.semismooth_newton` takes for all tasks with numpy, whose calls cost more than what they compute where a
task is small. Multipliers change on few rows a step, so that X^T y is kept up to date by these.
"""

from __future__ import annotations

import numpy as np

from mtldsl.utils.jit import compiled

__all__ = [
    "minimize_kinked",
]


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _dot(x, y):
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _factor(H, size):
    """The Cholesky factor in the lower triangle of H; False where rounding made it indefinite."""
    for i in range(size):
        for j in range(i + 1):
            left = H[i, j] - _dot(H[i, :j], H[j, :j])
            if i > j:
                H[i, j] = left / H[j, j]
            elif left > 0.0:
                H[i, i] = np.sqrt(left)
            else:
                return False
    return True


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _solve(L, size, x):
    """x <- (L L^T)^-1 x."""
    for i in range(size):
        x[i] = (x[i] - _dot(L[i, :i], x[:i])) / L[i, i]
    for i in range(size - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _by_rows(F, r, d, s, curvature, of_intercept, g, g_b, H, ones, t, dW):
    """(dW in its place, db, whether it is one) of the system, in the space of the r rows F that stand at kinks.

    of_intercept : its own curvature; below zero where there is no intercept
    """
    for i in range(r):
        for j in range(i + 1):
            H[i, j] = _dot(F[i], F[j]) / curvature
        H[i, i] += 1.0 / s
        ones[i] = 1.0
        t[i] = _dot(F[i], g) / -curvature
    if not _factor(H, r):
        return 0.0, False
    _solve(H, r, t)
    db = 0.0
    if of_intercept >= 0.0:
        _solve(H, r, ones)
        least, pulled = of_intercept, -g_b
        for i in range(r):
            least += ones[i]
            pulled -= t[i]
        if not least > 0.0:
            return 0.0, False
        db = pulled / least
        for i in range(r):
            t[i] += db * ones[i]
    for j in range(d):
        dW[j] = -g[j] / curvature
    for i in range(r):
        share = t[i] / curvature
        for j in range(d):
            dW[j] -= share * F[i, j]
    return db, True


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _by_features(F, r, d, s, curvature, of_intercept, g, g_b, H, t, dW):
    """The same in the space of the features and the intercept."""
    size = d + 1 if of_intercept >= 0.0 else d
    for i in range(size):
        for j in range(i + 1):
            H[i, j] = 0.0
    for k in range(r):
        row = F[k]
        for i in range(d):
            share = s * row[i]
            for j in range(i + 1):
                H[i, j] += share * row[j]
        if size > d:
            for j in range(d):
                H[d, j] += s * row[j]
    for i in range(d):
        H[i, i] += curvature
        t[i] = -g[i]
    if size > d:
        H[d, d] = of_intercept + s * r
        t[d] = -g_b
    if not _factor(H, size):
        return 0.0, False
    _solve(H, size, t)
    for j in range(d):
        dW[j] = t[j]
    return (t[d] if size > d else 0.0), True


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _slope(t, z, change, u, kink, low, high, s):
    """The slope of the losses along the change, a step t from z."""
    total = 0.0
    for i in range(z.size):
        y = min(max(u[i] + s * (z[i] + t * change[i] - kink[i]), low[i]), high[i])
        total += y * change[i]
    return total


@compiled(inside=True, fastmath={"contract", "reassoc"})
def _length(z, change, u, kink, low, high, s, straight, bent, first, searches, flat):
    """Return how far to go: 1 if the slope straight + bent t + that of the losses lets it, else about where it is zero."""
    t = 1.0
    value = straight + bent + _slope(t, z, change, u, kink, low, high, s)
    below, at_below, above, at_above, enough = 0.0, first, t, value, flat * abs(first)
    for _ in range(searches):
        if not (value > enough or (value < -enough and t < 1.0)):
            break
        share = -at_below / max(at_above - at_below, 1e-300)
        t = below + (above - below) * min(max(share, 0.1), 0.9)
        value = straight + bent * t + _slope(t, z, change, u, kink, low, high, s)
        if value < 0.0:
            below, at_below = t, value
        else:
            above, at_above = t, value
    return t


@compiled(fastmath={"contract", "reassoc"})
def minimize_kinked(
    X, mean, z, u, y, kink, low, high, s, ridge, proximal, of_intercept, W, b, P, pull, most, searches, accuracy, flat,
    F, held, H, ones, t, g, dW, W0, change
):  # fmt: skip
    """(b, steps taken, whether every system could be solved) of one task, after at most so many steps; W (d,), z and y (n,) in their places.

    X (n, d), mean (d,)    : the inputs, and what is taken off their rows
    u, kink, low, high (n,): y = clip(u + s (z - kink), low, high)
    of_intercept           : its share of the proximal term; below zero where there is no intercept
    P (d,), pull (d,)      : the multipliers of the ridge at the start, and X^T y
    F (k, d), held (k,), H (k, k), ones, t (k,), k = min(n, ...) : room for so many rows at kinks, and for d + 1 unknowns; g, dW, W0 (d,), change (n,)
    """
    n, d = X.shape
    curvature, b0, steps, has_b = ridge + proximal, b, 0, of_intercept >= 0.0
    for j in range(d):
        W0[j] = W[j]
    while steps < most:
        moved, total, least, g_b = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            moved += (y[i] - u[i]) * (y[i] - u[i])
            total += y[i]
        moved /= s
        for j in range(d):
            off = W[j] - W0[j]
            g[j] = pull[j] + ridge * W[j] + proximal * off
            moved += (ridge * W[j] - P[j]) * (ridge * W[j] - P[j]) / ridge + proximal * off * off
            least += g[j] * g[j]
        least /= curvature
        if has_b:
            g_b = total + of_intercept * (b - b0)
            least += g_b * g_b / of_intercept
        enough = accuracy * accuracy * moved
        if not least > enough:
            break
        r = 0
        for i in range(n):
            if low[i] < y[i] < high[i]:
                if r < held.size:
                    held[r] = i
                r += 1
        if r > held.size:
            return b, steps, False
        for k in range(r):
            for j in range(d):
                F[k, j] = X[held[k], j] - mean[j]
        if r <= d:
            db, solved = _by_rows(F, r, d, s, curvature, of_intercept, g, g_b, H, ones, t, dW)
        else:
            db, solved = _by_features(F, r, d, s, curvature, of_intercept, g, g_b, H, t, dW)
        if not solved:
            return b, steps, False
        first = _dot(g, dW) + g_b * db
        if not -first > enough:
            break
        steps += 1
        shift = db - _dot(mean, dW)
        for i in range(n):
            change[i] = _dot(X[i], dW) + shift
        straight, bent = of_intercept * (b - b0) * db if has_b else 0.0, curvature * _dot(dW, dW)
        for j in range(d):
            straight += (ridge * W[j] + proximal * (W[j] - W0[j])) * dW[j]
        if has_b:
            bent += of_intercept * db * db
        length = _length(z, change, u, kink, low, high, s, straight, bent, first, searches, flat)
        b += length * db
        for j in range(d):
            W[j] += length * dW[j]
        total = 0.0
        for i in range(n):
            z[i] += length * change[i]
            new = min(max(u[i] + s * (z[i] - kink[i]), low[i]), high[i])
            if new != y[i]:
                by = new - y[i]
                y[i] = new
                total += by
                for j in range(d):
                    pull[j] += by * X[i, j]
        for j in range(d):
            pull[j] -= total * mean[j]
    return b, steps, True
