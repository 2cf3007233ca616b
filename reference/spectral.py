"""Functions of the spectrum that are not convex, from their definitions, and the spectrum of a matrix.

    g(W) = sum_{j=1..p} r(x_j),   x_j = sigma_j(W)^2 + eps the eigenvalues of W W^T + eps I,   W (p, q)

r is concave and nondecreasing on [0, inf). The rank is the one with r(0) = 0 and r(x) = 1 for x > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cvxpy as cp
import numpy as np

from mtldsl.atoms.matrix_function import Regularizer, Set
from mtldsl.normal_form.reductions.reduction import Majorant
from mtldsl.reference.registry import auxiliary, spectrum, spectrum_of

#: Singular values below this, relative to the largest, are what rounding leaves of zero.
ROUNDING_SHARE = 1e-14


#: Below this they are not directions of W: what the word `rank` says of itself.
RANK_SHARE = 1e-10


@dataclass(frozen=True)
class SpectrumSettings:
    """Limits of slopes at zero."""

    # singular values at which the slope at zero is looked for
    zero_values: tuple[float, ...] = (1e-100, 1e-98)
    # relative change between these of a slope that is the one at zero, and rise of one that is not concave
    slope_tol: float = 1e-6


SETTINGS = SpectrumSettings()


# ------------------------------------------------------------------------------------------- the definitions


@spectrum("log_rank", slope=lambda x, atom: 0.5 / (x + np.sqrt(x)))
def log_rank(x, atom):
    """log(1 + sqrt(x))"""
    return np.log(1.0 + np.sqrt(x))


@spectrum("capped_trace_norm", slope=lambda x, atom: np.where(np.sqrt(x) < atom.tau, 0.5 * x**-0.5, 0.0))
def capped_trace_norm(x, atom):
    """sqrt(x) up to tau, then tau"""
    return np.where(np.sqrt(x) < atom.tau, np.sqrt(x), atom.tau)


@spectrum("schatten_norm", slope=lambda x, atom: 0.5 * atom.p * x ** (0.5 * atom.p - 1.0))
def schatten_norm(x, atom):
    """sqrt(x)^p"""
    return np.sqrt(x) ** atom.p


@spectrum("spectral_penalty", slope=lambda x, atom: np.asarray(atom.derivative(x), float))
def spectral_penalty(x, atom):
    """r(x), the user's"""
    return np.asarray(atom.function(x), float)


@spectrum("mcp", slope=lambda x, atom: 0.5 * np.maximum(x**-0.5 - 1.0 / atom.gamma, 0.0), of_sizes=True)
def mcp(x, atom):
    """t - t^2 / (2 gamma) up to gamma, then gamma / 2, t = sqrt(x)"""
    t = np.sqrt(x)
    return np.where(t < atom.gamma, t - 0.5 * x / atom.gamma, 0.5 * atom.gamma)


def _scad_slope(x, atom):
    t = np.sqrt(x)
    return 0.5 * np.where(t <= 1.0, 1.0, np.clip((atom.a - t) / (atom.a - 1.0), 0.0, 1.0)) / t


@spectrum("scad", slope=_scad_slope, of_sizes=True)
def scad(x, atom):
    """t up to 1, (2 a t - t^2 - 1) / (2 (a - 1)) up to a, then (a + 1) / 2, t = sqrt(x)"""
    t = np.sqrt(x)
    between = (2.0 * atom.a * t - x - 1.0) / (2.0 * (atom.a - 1.0))
    return np.where(t <= 1.0, t, np.where(t < atom.a, between, 0.5 * (atom.a + 1.0)))


@spectrum(
    "capped_l1", slope=lambda x, atom: np.where(np.sqrt(x) < atom.tau, 0.5 * x**-0.5, 0.0), of_sizes=True
)
def capped_l1(x, atom):
    """min(t, tau), t = sqrt(x)"""
    return np.minimum(np.sqrt(x), atom.tau)


def _rank_slope(x, atom):
    return np.where(x > 0.0, 0.0, np.inf)


@spectrum("rank", slope=_rank_slope, cut=RANK_SHARE)
def rank(x, atom):
    """1 where x > 0"""
    return np.where(x > 0.0, 1.0, 0.0)


@spectrum("rank_at_most", slope=_rank_slope, largest_rank=lambda atom: int(atom.radius), cut=RANK_SHARE)
def rank_at_most(x, atom):
    """0: where the rank is not too large, which `excess` tells"""
    return np.zeros(np.shape(x))


# ------------------------------------------------------------------------------------------------ the spectrum


def axes(W) -> tuple[np.ndarray, np.ndarray]:
    """(V (p, p), s (p,)): orthonormal eigenvectors of W W^T, and the length of W along each, nonincreasing; s^2 the eigenvalues.

    Lengths below ROUNDING_SHARE of the largest are 0.
    """
    V, s, _ = np.linalg.svd(np.asarray(W, float))
    return V, cut(np.append(s, np.zeros(len(V) - len(s))), ROUNDING_SHARE)


def _lengths(W) -> np.ndarray:
    """All p of them."""
    s = np.linalg.svd(W, compute_uv=False)
    return cut(np.append(s, np.zeros(len(W) - len(s))), ROUNDING_SHARE)


def cut(s, relative) -> np.ndarray:
    """With zeros in place of lengths below this share of the largest."""
    return np.where(s > relative * s.max(initial=0.0), s, 0.0)


def penalty(atom, W) -> float:
    """g(W), from the definition."""
    stated, W = spectrum_of(atom.name, atom.name), np.asarray(W, float)
    if stated.of_sizes:
        return float(np.sum(stated(_sizes(atom, W) ** 2, atom)))
    s = cut(_lengths(W), stated.cut)
    return float(np.sum(stated(s**2 + eps_of(atom), atom)))


def _sizes(atom, W) -> np.ndarray:
    """Return the sizes of entries (p, q), or of rows (p,)."""
    return np.sqrt(np.sum(W * W, axis=1)) if atom.rows else np.abs(W)


def excess(atom, W) -> float:
    """Return how far W is from the matrices of the rank allowed: the norm of the singular values that are too many; else 0."""
    stated = spectrum_of(atom.name, atom.name)
    if stated.largest_rank is None:
        return 0.0
    return float(np.linalg.norm(_lengths(np.asarray(W, float))[stated.largest_rank(atom) :]))


def eps_of(atom) -> float:
    """0 where the function has none."""
    return float(getattr(atom, "eps", 0.0))


# --------------------------------------------------------------------------------------------------------------
# Convex functions that lie above one of the spectrum and touch it.
#
# None of the functions of `spectral` is convex, so cvxpy never sees them: it sees, at a given W0, one of four kinds of convex
# function h >= g with h(W0) = g(W0), or, of the first and the last, h on a subspace that W0 is in:
#
# 1. tr(D W W^T) + constant, D = r'(W0 W0^T + eps I), where r'(eps) is finite: the tangent of a concave function of W W^T.
# 2. c ||W||_* - <G, W> + constant, where phi(s) = r(s^2) is itself concave with a finite slope c at zero and eps = 0, as log(1 + s)
#    is: with W0 = U diag(s) V^T and G = U diag(c - phi'(s)) V^T. It is sum_j c sigma_j(W) - (c - phi'(s_j)) sigma_j(W) at least
#    (von Neumann), and that is the tangent of sum_j phi(sigma_j) at s.
# 3. of sizes of entries or rows in the place of singular values, their tangent: weights times the sizes.
# 4. where the slope at zero is infinite or r jumps there, 1. on the matrices with the column space of W0, and on those with its row
#    space: W0 is the best on both where it is a local minimum.

#: Singular values among which a slope must not rise.
TRIED_VALUES = np.geomspace(1e-8, 1e8, 161)


@dataclass(frozen=True, eq=False)
class SpectralQuadratic(Regularizer):
    """tr(D W W^T), D = root^T root; of the columns, `of_rows`: tr(D W^T W)."""

    root: np.ndarray
    of_rows: bool = False

    name: ClassVar[str] = "quadratic above a spectrum"

    def on_columns(self, columns, shape):
        return None if self.of_rows else self


@auxiliary(SpectralQuadratic.name)
def spectral_quadratic(W, atom):
    """||root W||_F^2"""
    if not len(atom.root):
        return cp.Constant(0.0)
    return cp.sum_squares(W @ atom.root.T if atom.of_rows else atom.root @ W)


@dataclass(frozen=True, eq=False)
class LinearizedTraceNorm(Regularizer):
    """steepness ||W||_* - <tilt, W>."""

    steepness: float
    tilt: np.ndarray

    name: ClassVar[str] = "tilted trace norm above a spectrum"


@auxiliary(LinearizedTraceNorm.name, semidefinite=True)
def tilted_trace_norm(W, atom):
    """c ||W||_* - <G, W>"""
    return atom.steepness * cp.normNuc(W) - cp.sum(cp.multiply(atom.tilt, W))


@dataclass(frozen=True, eq=False)
class WeightedSizes(Regularizer):
    """sum of weights times the sizes of entries, or of rows."""

    weights: np.ndarray

    name: ClassVar[str] = "weighted sizes above concave ones"

    def on_columns(self, columns, shape):
        return WeightedSizes(self.weights[:, columns]) if self.weights.ndim == 2 else None


@auxiliary(WeightedSizes.name)
def weighted_sizes(W, atom):
    """sum c |W_ij|, or sum c ||W_j||"""
    sizes = cp.abs(W) if atom.weights.ndim == 2 else cp.norm(W, 2, axis=1)
    return cp.sum(cp.multiply(atom.weights, sizes))


@dataclass(frozen=True, eq=False)
class Subspace(Set):
    """The matrices whose columns (`of_rows`: rows) are orthogonal to those of `outside`."""

    outside: np.ndarray
    of_rows: bool = False

    name: ClassVar[str] = "subspace of a spectrum"

    def on_columns(self, columns, shape):
        return None if self.of_rows else self


@auxiliary(Subspace.name)
def subspace(W, atom):
    """outside^T W = 0"""
    if not atom.outside.shape[1]:
        return []
    return [(W @ atom.outside if atom.of_rows else atom.outside.T @ W) == 0]


def ways(atom, W0, rng) -> list[Majorant]:
    """Return what cvxpy is given in place of g, touching g at W0: one convex function, or two on subspaces.

    rng : for directions to search in where W0 has a lower rank than is allowed
    """
    stated, W0 = spectrum_of(atom.name, atom.name), np.asarray(W0, float)
    if stated.of_sizes:
        return [_weighted(stated, atom, _sizes(atom, W0))]
    if stated.largest_rank is not None:
        r = stated.largest_rank(atom)
        return [
            _kept_space(stated, atom, W0, of_rows, min(r, min(W0.shape)), rng) for of_rows in (False, True)
        ]
    if eps_of(atom) > 0.0 or not _jumps(stated, atom):
        V, s = axes(W0)
        if np.isfinite(_slope(stated, atom, np.array([eps_of(atom)]))[0]):
            return [_quadratic(stated, atom, V, s)]
        steepness = _steepness(stated, atom)
        if steepness is not None:
            return [_tilted(stated, atom, W0, V, s, steepness)]
    return [_kept_space(stated, atom, W0, of_rows, None, rng) for of_rows in (False, True)]


def _weighted(stated, atom, t) -> Majorant:
    """The tangent of phi(t) = r(t^2) at these sizes; at zero that with the slope next to it."""
    near = np.maximum(t, SETTINGS.zero_values[0])
    slope = 2.0 * near * _slope(stated, atom, near**2)
    constant = float(np.sum(stated(t**2, atom) - slope * t))
    return Majorant("{} majorised", (WeightedSizes(slope),), constant)


def _slope(stated, atom, x) -> np.ndarray:
    """r'(x); a user's function may have no number at 0."""
    with np.errstate(all="ignore"):
        slope = np.asarray(stated.slope(x, atom), float)
    return np.where(np.isnan(slope), np.inf, slope)


def _jumps(stated, atom) -> bool:
    """Tell whether r does at 0, as that of the rank."""
    beside = stated(np.array([SETTINGS.zero_values[0] ** 2]), atom)[0]
    return bool(beside - _at_zero(stated, atom) > SETTINGS.slope_tol)


def _steepness(stated, atom) -> float | None:
    """phi'(0), where phi(s) = r(s^2) is concave and this is finite."""
    near = [float(2.0 * s * _slope(stated, atom, np.array([s**2]))[0]) for s in SETTINGS.zero_values]
    slopes = 2.0 * TRIED_VALUES * _slope(stated, atom, TRIED_VALUES**2)
    if not np.all(np.isfinite([*near, *slopes])) or abs(near[1] - near[0]) > SETTINGS.slope_tol * near[0]:
        return None
    return near[0] if np.all(np.diff(np.append(near[0], slopes)) <= SETTINGS.slope_tol * near[0]) else None


def _quadratic(stated, atom, V, s) -> Majorant:
    x = s**2 + eps_of(atom)
    slope = _slope(stated, atom, x)
    constant = float(np.sum(stated(x, atom) - slope * s**2))
    root = np.sqrt(slope)[:, None] * V.T
    return Majorant("{} majorised", (SpectralQuadratic(root[slope > 0.0]),), constant)


def _tilted(stated, atom, W0, V, s, steepness) -> Majorant:
    held = s > 0.0
    V, s = V[:, held], s[held]
    slope = 2.0 * s * _slope(stated, atom, s**2)
    tilt = (V * ((steepness - slope) / s)) @ (V.T @ W0)
    constant = float(np.sum(stated(s**2, atom) - slope * s)) + (len(W0) - s.size) * _at_zero(stated, atom)
    return Majorant("{} majorised", (LinearizedTraceNorm(steepness, tilt),), constant)


def _at_zero(stated, atom) -> float:
    return float(stated(np.zeros(1), atom)[0])


def _kept_space(stated, atom, W0, of_rows: bool, dimension: int | None, rng) -> Majorant:
    """`dimension` of the subspace where it is given: more than the rank of W0 needs has directions drawn at random."""
    V, s = axes(W0.T if of_rows else W0)
    k = int(np.count_nonzero(cut(s, RANK_SHARE)))
    if dimension is not None and dimension > k:
        drawn = np.linalg.qr(rng.normal(size=(len(V) - k, len(V) - k)))[0]
        V = np.hstack([V[:, :k], V[:, k:] @ drawn])
    slope = _slope(stated, atom, s[:k] ** 2)
    root = (np.sqrt(slope)[:, None] * V[:, :k].T)[slope > 0.0]
    outside = Subspace(V[:, k if dimension is None else dimension :], of_rows)
    constant = penalty(atom, W0) - float(np.sum(slope * s[:k] ** 2))
    text = f"{{}} with its {'row' if of_rows else 'column'} space kept"
    return Majorant(text, (SpectralQuadratic(root, of_rows),) if len(root) else (), constant, (outside,))
