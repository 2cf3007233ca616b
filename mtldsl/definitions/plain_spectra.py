"""Functions of singular values. s: those of W (p, q), largest first, and zeros up to p of them; W: the matrix itself."""

from __future__ import annotations

import numpy as np

from mtldsl.definitions.formula import defined

__all__ = ["singular_values"]

#: Below this share of the largest a singular value is zero but for rounding; a steep penalty would see it.
_ROUNDING_SHARE = 1e-14

#: Below this share of the largest it does not count in the rank, as the word says of itself.
_RANK_SHARE = 1e-10


def singular_values(W) -> np.ndarray:
    """Return those of W (p, q), largest first."""
    return np.linalg.svd(W, compute_uv=False) if np.any(W) else np.zeros(min(W.shape))


def _seen(s, share: float, eps: float = 0.0):
    return s if eps else np.where(s > share * s.max(initial=0.0), s, 0.0)


@defined("trace_norm", "spectrum")
def trace_norm(s, atom):
    """s"""
    return s


@defined("squared_trace_norm", "matrix")
def squared_trace_norm(W, atom):
    """(sum of the singular values)^2"""
    return np.sum(singular_values(W)) ** 2


@defined("rank", "spectrum")
def rank(s, atom):
    """1 where s > 0"""
    return (_seen(s, _RANK_SHARE) > 0.0).astype(float)


@defined("log_rank", "spectrum")
def log_rank(s, atom):
    """log(1 + sqrt(s^2 + eps))"""
    return np.log1p(np.sqrt(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps))


@defined("capped_trace_norm", "spectrum")
def capped_trace_norm(s, atom):
    """min(sqrt(s^2 + eps), tau)"""
    return np.minimum(np.sqrt(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps), atom.tau)


@defined("schatten_norm", "spectrum")
def schatten_norm(s, atom):
    """sqrt(s^2 + eps)^p"""
    return np.sqrt(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps) ** atom.p


@defined("spectral_penalty", "spectrum")
def spectral_penalty(s, atom):
    """r(s^2 + eps), r the user's"""
    return np.asarray(atom.function(_seen(s, _ROUNDING_SHARE, atom.eps) ** 2 + atom.eps), float)


@defined("squared_cluster_norm", "matrix")
def squared_cluster_norm(W, atom):
    """min of sum s^2 / v over lower <= v <= upper with sum at most trace: v = clip(x s), x by bisection of its logarithm"""
    s = singular_values(W)
    s, trace = s[s > 0.0], atom.trace - atom.lower * (W.shape[1] - np.count_nonzero(s))
    if not s.size:
        return 0.0
    shares, low, high = s / s[0], -400.0, 400.0
    if atom.upper * s.size > trace:
        for _ in range(200):
            middle = 0.5 * (low + high)
            v = np.clip(shares * np.exp(middle), atom.lower, atom.upper)
            low, high = (low, middle) if v.sum() > trace else (middle, high)
        v = np.clip(shares * np.exp(low), atom.lower, atom.upper)
    else:
        v = np.full(s.size, float(atom.upper))
    return np.sum(s * (s / v))
