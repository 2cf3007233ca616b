"""The parts of W = sum over m of U_m B_m^T at given arrays, in numpy: what they cost for given weights, and Lagrange's bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "Ball",
    "Kernel",
    "described",
    "inside",
    "kernels_of",
    "lower_bound",
    "parts_of",
    "patterns",
    "reduced",
    "violation",
    "weights_of",
]

#: The part of W outside the range of all kernels that counts as a backend's inaccuracy, relatively.
OUTSIDE = 1e-7

#: No weight below this, so that 0 / 0 is 0.
SMALLEST = 1e-150


class Kernel(NamedTuple):
    """R = B B^T between the tasks, on some rows of W."""

    name: str
    B: np.ndarray  # (T, r)
    rows: np.ndarray  # (k,)


class Ball(NamedTuple):
    """What theta may be: >= 0 and ||theta||_p <= radius."""

    p: float
    radius: float


def kernels_of(atom, n_rows: int) -> list[Kernel]:
    every = np.arange(n_rows)
    return [
        Kernel(one.name, one.factor.toarray(), every if one.columns is None else np.asarray(one.columns))
        for one in atom.kernels
    ]


def described(atom) -> np.ndarray | Ball:
    """theta where it is given, else its ball."""
    if isinstance(atom.about, np.ndarray):
        return np.asarray(atom.about, float)
    return (
        Ball(float(atom.p), 1.0)
        if atom.about is None
        else Ball(float(atom.about.p), float(atom.about.radius))
    )


def weights_of(atom) -> np.ndarray | Ball:
    """theta where only one can be the best, else its ball."""
    found = described(atom)
    return (
        np.full(len(atom.kernels), found.radius) if isinstance(found, Ball) and np.isinf(found.p) else found
    )


def violation(theta, atom) -> float:
    """By how much weights leave what the model allows, relative to its radius or to the largest weight given."""
    weights, theta = described(atom), np.asarray(theta, float)
    if isinstance(weights, np.ndarray):
        return float(np.abs(theta - weights).max() / weights.max())
    size = (
        np.abs(theta).max()
        if np.isinf(weights.p)
        else np.sum(np.abs(theta) ** weights.p) ** (1.0 / weights.p)
    )
    return float(max(size - weights.radius, -theta.min()) / weights.radius)


def patterns(kernels: list[Kernel], d: int) -> list[tuple[np.ndarray, list[int]]]:
    """(rows of W, the kernels that are about them)."""
    about = np.array([np.isin(np.arange(d), kernel.rows) for kernel in kernels])
    found, which = np.unique(about.T, axis=0, return_inverse=True)
    which = which.ravel()
    return [(np.flatnonzero(which == c), np.flatnonzero(pattern).tolist()) for c, pattern in enumerate(found)]


def parts_of(W, kernels, theta) -> tuple[list[np.ndarray], float]:
    """(U_m, the penalty) for given weights, by least squares: V_m = U_m / sqrt(theta_m) of least norm."""
    parts, squares, outside = [np.zeros((len(k.rows), k.B.shape[1])) for k in kernels], 0.0, 0.0
    for rows, members, B, owner in _stacked(kernels, theta, len(W)):
        V = np.linalg.lstsq(B, W[rows].T, rcond=None)[0].T
        squares += float(np.sum(V**2))
        outside = np.hypot(outside, np.linalg.norm(W[rows] - V @ B.T))
        for m in members:
            place = np.searchsorted(kernels[m].rows, rows)
            parts[m][place] = np.sqrt(theta[m]) * V[:, owner == m]
    return parts, 0.5 * squares if outside <= OUTSIDE * np.linalg.norm(W) else np.inf


def _stacked(kernels, theta, d: int):
    """(rows, kernels about them, their factors side by side times sqrt(theta), the kernel of every column)."""
    for rows, members in patterns(kernels, d):
        owner = np.repeat(members, [kernels[m].B.shape[1] for m in members]).astype(int)
        factors = [np.sqrt(theta[m]) * kernels[m].B for m in members]
        yield rows, members, np.hstack([np.zeros((kernels[0].B.shape[0], 0)), *factors]), owner


def lower_bound(W, kernels, theta, weights) -> float:
    """By Lagrange, for every Z: at least max over t of t <W, Z> - t^2 / 2 max over theta of sum theta_m ||Z B_m||^2; here for
    Z = W K^+ at the given theta.
    """
    b, product = np.zeros(len(kernels)), 0.0
    for rows, members, B, _ in _stacked(kernels, theta, len(W)):
        V = np.linalg.lstsq(B, W[rows].T, rcond=None)[0]
        Z = np.linalg.lstsq(B.T, V, rcond=None)[0].T
        product += float(np.vdot(W[rows], Z))
        for m in members:
            b[m] += np.sum((Z @ kernels[m].B) ** 2)
    if isinstance(weights, np.ndarray):
        most = float(weights @ b)
    else:
        dual = np.inf if weights.p == 1.0 else weights.p / (weights.p - 1.0)
        most = weights.radius * float(np.linalg.norm(b, dual))
    return 0.5 * product**2 / most if most > 0 else 0.0


def inside(theta, ball: Ball) -> np.ndarray:
    """Weights of the largest norm allowed, none of them zero."""
    theta = np.maximum(theta / theta.max(), SMALLEST)
    return ball.radius * theta / np.sum(theta**ball.p) ** (1.0 / ball.p)


def reduced(W, kernels) -> tuple[np.ndarray, list[Kernel]]:
    """A matrix of fewer rows that costs the same, since only W^T W matters on rows with the same similarities."""
    pieces, rows_of, d = [], [[] for _ in kernels], 0
    for rows, members in patterns(kernels, len(W)):
        piece = np.linalg.qr(W[rows], mode="r") if len(rows) > W.shape[1] else W[rows]
        for m in members:
            rows_of[m] += range(d, d + len(piece))
        pieces.append(piece)
        d += len(piece)
    return np.vstack(pieces), [
        k._replace(rows=np.array(rows, int)) for k, rows in zip(kernels, rows_of, strict=True)
    ]
