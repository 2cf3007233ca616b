"""Functions of the spectrum that are not convex, from their definitions, and the spectrum of a matrix.

    g(W) = sum_{j=1..p} r(x_j),   x_j = sigma_j(W)^2 + eps the eigenvalues of W W^T + eps I,   W (p, q)

r is concave and nondecreasing on [0, inf). The rank is the one with r(0) = 0 and r(x) = 1 for x > 0.
"""

from __future__ import annotations

import numpy as np

from .registry import spectrum, spectrum_of

__all__ = ["RANK", "axes", "cut", "eps_of", "excess", "penalty"]

#: Singular values below this, relative to the largest, are what rounding leaves of zero.
ROUNDING = 1e-14

#: Below this they are not directions of W: what the word `rank` says of itself.
RANK = 1e-10

#: Below this, relative to the largest, eigenvectors of W W^T are found anew among themselves: its eigenvalues are squares, and
#: what rounding mixes into the vectors of small ones is of the order of 1e-16 over this.
GRADED = 0.1


# ------------------------------------------------------------------------------------------- the definitions


def _log_slope(x, atom):
    return 0.5 / (x + np.sqrt(x))


@spectrum("log_rank", slope=_log_slope)
def log_rank(x, atom):
    """log(1 + sqrt(x))"""
    return np.log(1.0 + np.sqrt(x))


def _capped_slope(x, atom):
    return np.where(np.sqrt(x) < atom.tau, 0.5 * x**-0.5, 0.0)


@spectrum("capped_trace_norm", slope=_capped_slope)
def capped_trace_norm(x, atom):
    """sqrt(x) up to tau, then tau"""
    return np.where(np.sqrt(x) < atom.tau, np.sqrt(x), atom.tau)


def _schatten_slope(x, atom):
    return 0.5 * atom.p * x ** (0.5 * atom.p - 1.0)


@spectrum("schatten_norm", slope=_schatten_slope)
def schatten_norm(x, atom):
    """sqrt(x)^p"""
    return np.sqrt(x) ** atom.p


def _own_slope(x, atom):
    return np.asarray(atom.derivative(x), float)


@spectrum("spectral_penalty", slope=_own_slope)
def spectral_penalty(x, atom):
    """r(x), the user's"""
    return np.asarray(atom.function(x), float)


def _rank_slope(x, atom):
    return np.where(x > 0.0, 0.0, np.inf)


@spectrum("rank", slope=_rank_slope, cut=RANK)
def rank(x, atom):
    """1 where x > 0"""
    return np.where(x > 0.0, 1.0, 0.0)


@spectrum("rank_at_most", slope=_rank_slope, largest_rank=lambda atom: int(atom.radius), cut=RANK)
def rank_at_most(x, atom):
    """0: where the rank is not too large, which `excess` tells"""
    return np.zeros(np.shape(x))


# ------------------------------------------------------------------------------------------------ the spectrum


def axes(W) -> tuple[np.ndarray, np.ndarray]:
    """(V (p, p), s (p,)): orthonormal eigenvectors of W W^T, and the length of W along each, nonincreasing; s^2 the eigenvalues.

    Lengths are as accurate as singular values are, small ones too: in place of the root of an eigenvalue, the length of a row of
    V^T W. Those below ROUNDING of the largest are 0.
    """
    B = np.array(W, float)
    V, done = np.eye(len(B)), 0
    while done < len(B):
        rest = B[done:]
        _, turn = np.linalg.eigh(
            rest @ rest.T / max(np.abs(rest).max(initial=0.0) ** 2, np.finfo(float).tiny)
        )
        turn = turn[:, ::-1]
        B[done:], V[:, done:] = turn.T @ rest, V[:, done:] @ turn
        lengths = np.linalg.norm(B[done:], axis=1)
        if lengths[0] <= ROUNDING * np.linalg.norm(B[0]):
            break
        done += int(np.count_nonzero(lengths >= GRADED * lengths[0]))
    s = np.linalg.norm(B, axis=1)
    s[s <= ROUNDING * s.max(initial=0.0)] = 0.0
    order = np.argsort(-s, kind="stable")
    return V[:, order], s[order]


def _lengths(W) -> np.ndarray:
    """All p of them, from the smaller of W W^T and W^T W."""
    p, q = W.shape
    return axes(W)[1] if p <= q else np.append(axes(W.T)[1], np.zeros(p - q))


def cut(s, relative) -> np.ndarray:
    """With zeros in place of lengths below this share of the largest."""
    return np.where(s > relative * s.max(initial=0.0), s, 0.0)


def penalty(atom, W) -> float:
    """g(W), from the definition."""
    stated, W = spectrum_of(atom.name, atom.name), np.asarray(W, float)
    s = cut(_lengths(W), stated.cut)
    return float(np.sum(stated(s**2 + eps_of(atom), atom)))


def excess(atom, W) -> float:
    """How far W is from the matrices of the rank allowed: the norm of the singular values that are too many; else 0."""
    stated = spectrum_of(atom.name, atom.name)
    if stated.largest_rank is None:
        return 0.0
    return float(np.linalg.norm(_lengths(np.asarray(W, float))[stated.largest_rank(atom) :]))


def eps_of(atom) -> float:
    """0 where the function has none."""
    return float(getattr(atom, "eps", 0.0))
