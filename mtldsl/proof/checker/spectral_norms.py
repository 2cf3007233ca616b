"""Enclosures of spectral and trace norms, and lower bounds of eigenvalues, that hold for every matrix in an enclosure.

A float decomposition is a guess; what it misses is enclosed and added. With W = U diag(s) V^T + E:
||W||_2 <= ||U|| max(s) ||V|| + ||E||_F and ||W||_* <= ||U|| ||V|| sum(s) + sqrt(rank) ||E||_F, where ||U||^2 <= 1 + ||U^T U - I||_F.
"""

from __future__ import annotations

import numpy as np

from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.products import product

__all__ = ["decomposed", "least_eigenvalue", "spectral_norm", "trace_norm"]


def spectral_norm(W: Interval) -> Interval:
    """Encloses the largest singular value; from below, what the leading pair of vectors shows."""
    U, s, Vt, sizes, rest = decomposed(W)
    top = Interval.of(s.max(initial=0.0), W.exact) * sizes + rest
    u, v = (Interval.of(x, W.exact) for x in (U[:, :1], Vt[:1].T))
    shown = (product(u.T, product(W, v)) / (u.square().sum() * v.square().sum()).sqrt()).reshape(-1)[0]
    return Interval(np.maximum(shown.low, 0), top.high)


def trace_norm(W: Interval) -> Interval:
    """Encloses the sum of singular values; from below, <W, U V^T> / (||U|| ||V||)."""
    U, s, Vt, sizes, rest = decomposed(W)
    total = (
        Interval.of(s, W.exact).sum() * sizes
        + rest * Interval.of(float(max(1, min(W.shape))), W.exact).sqrt()
    )
    shown = (W * product(Interval.of(U, W.exact), Interval.of(Vt, W.exact))).sum() / sizes
    return Interval(np.maximum(shown.low, 0), total.high)


def decomposed(W: Interval):
    """(U, s, V^T, an upper bound of ||U|| ||V||, an upper bound of ||W - U diag(s) V^T||_F)."""
    U, s, Vt = np.linalg.svd(W.middle, full_matrices=False)
    u, vt = Interval.of(U, W.exact), Interval.of(Vt, W.exact)
    rest = (W - product(u * s, vt)).square().sum().sqrt()
    return U, s, Vt, (_size(u) * _size(vt.T)).sqrt(), rest


def _size(U: Interval) -> Interval:
    """Enclosure of 1 + ||U^T U - I||_F, which is at least ||U||_2^2."""
    return _defect(U) + 1.0


def _defect(U: Interval) -> Interval:
    return (product(U.T, U) - np.eye(U.shape[1])).square().sum().sqrt()


def least_eigenvalue(A, exact: bool) -> Interval:
    """An interval whose lower end is below all eigenvalues of a symmetric matrix."""
    A = np.asarray(A, float)
    values, basis = np.linalg.eigh(A)
    q = Interval.of(basis, exact)
    rest = (Interval.of(A, exact) - product(q * values, q.T)).square().sum().sqrt()
    least = Interval.of(min(float(values[0]), 0.0) if values[0] <= 0 else float(values[0]), exact)
    return least * (1.0 - _defect(q)) - rest if values[0] > 0 else least * _size(q) - rest
