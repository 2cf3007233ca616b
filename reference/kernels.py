"""Multi-task multiple kernel learning, from its definition in cvxpy.

W = sum over m of U_m B_m^T on the rows that similarity m is about, at the cost

    1/2 sum over m of ||U_m||_F^2 / theta_m,   theta >= 0, ||theta||_p <= radius.

U_m and theta are variables beside W. The atom is read for the model's data only, B_m, the rows, p, the radius or theta given. What
the sum costs at a given W is a problem of its own, whose theta is what cvxpy finds, made better until Lagrange's bound says that it
is the best.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.reference import backends
from mtldsl.reference.registry import formula, structure
from mtldsl.reference.regularizers import PenaltyStatement
from mtldsl.reference.structures import inverse_form
from mtldsl.utils.parallel import on_one_blas_thread

# --------------------------------------------------------------------------------------------------------------
# The parts of W = sum over m of U_m B_m^T at given arrays, in numpy: what they cost for given weights, and Lagrange's bound.


@dataclass(frozen=True)
class KernelSettings:
    """Limits of penalties of kernels, and of the search for weights."""

    # part of W outside the range of all kernels that counts as a backend's inaccuracy
    outside_share: float = 1e-7
    least_weight: float = 1e-150  # least weight, so that 0 / 0 is 0
    excess_tol: float = 1e-14  # relative excess of the penalty over its bound at which weights are good
    weight_rounds: int = 1000  # rounds of the search, each with a least squares problem
    # accuracies that Clarabel is asked for: where it cannot reach the first, it reaches the second
    accuracies: tuple[float, ...] = (1e-12, 1e-9)


SETTINGS = KernelSettings()


class Kernel(NamedTuple):
    """R = B B^T between the tasks, on some rows of W."""

    name: str
    B: np.ndarray  # (T, r)
    rows: np.ndarray  # (k,)


class KernelWeightDomain(NamedTuple):
    """Domain of theta: >= 0 and ||theta||_p <= radius."""

    p: float
    radius: float


def kernels_of(atom, n_rows: int) -> list[Kernel]:
    every = np.arange(n_rows)
    return [
        Kernel(one.name, one.factor.toarray(), every if one.columns is None else np.asarray(one.columns))
        for one in atom.kernels
    ]


def describe_weights(atom) -> np.ndarray | KernelWeightDomain:
    """theta where it is given, else its ball."""
    if isinstance(atom.about, np.ndarray):
        return np.asarray(atom.about, float)
    p, radius = (atom.p, 1.0) if atom.about is None else (atom.about.p, atom.about.radius)
    return KernelWeightDomain(float(p), float(radius))


def weights_of(atom) -> np.ndarray | KernelWeightDomain:
    """theta where only one can be the best, else its ball."""
    found = describe_weights(atom)
    return (
        np.full(len(atom.kernels), found.radius)
        if isinstance(found, KernelWeightDomain) and np.isinf(found.p)
        else found
    )


def violation(theta, atom) -> float:
    """By how much weights leave what the model allows, relative to its radius or to the largest weight given."""
    weights, theta = describe_weights(atom), np.asarray(theta, float)
    if isinstance(weights, np.ndarray):
        return float(np.abs(theta - weights).max() / weights.max())
    size = np.linalg.norm(theta, weights.p)
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
    return parts, 0.5 * squares if outside <= SETTINGS.outside_share * np.linalg.norm(W) else np.inf


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


def inside(theta, ball: KernelWeightDomain) -> np.ndarray:
    """Weights of the largest norm allowed, none of them zero."""
    theta = np.maximum(theta / theta.max(), SETTINGS.least_weight)
    return ball.radius * theta / np.linalg.norm(theta, ball.p)


def reduce_rows(W, kernels) -> tuple[np.ndarray, list[Kernel]]:
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


# ---------------------------------------------------------------------------------------------- in variables of its own


class KernelPenaltyStatement(PenaltyStatement):
    """The penalty of an expression W (d, T): `value`, an expression in U_m and theta, with the constraints `ties`."""

    def __init__(self, W: cp.Expression, kernels: list[Kernel], weights: np.ndarray | KernelWeightDomain):
        self.W, self.kernels, self.weights = W, kernels, weights
        self._settled: tuple = (np.empty(0), None)
        self.parts = [cp.Variable((len(k.rows), k.B.shape[1]), name=f"part {k.name}") for k in kernels]
        self.theta: cp.Variable | None = None
        d, sums = W.shape[0], 0.0
        for kernel, U in zip(kernels, self.parts, strict=True):
            ones = np.ones(len(kernel.rows))
            placed = sp.csr_array((ones, (kernel.rows, np.arange(len(ones)))), shape=(d, len(ones)))
            sums = sums + (U if len(ones) == d else cp.Constant(placed) @ U) @ kernel.B.T
        self.ties = [sums == W]
        if isinstance(weights, np.ndarray):
            self.value = 0.5 * sum(
                cp.sum_squares(U) / t for U, t in zip(self.parts, weights, strict=True) if t > 0
            )
            self.ties += [U == 0 for U, t in zip(self.parts, weights, strict=True) if t == 0]
        else:
            self.theta = cp.Variable(len(kernels), nonneg=True, name="theta")
            self.value = 0.5 * sum(cp.quad_over_lin(U, self.theta[m]) for m, U in enumerate(self.parts))
            self.ties += [_norm(self.theta, weights.p) <= weights.radius]

    def settle(self) -> None:
        """Give U and theta their best values for the value of W: infinite where it has none."""
        W = np.array(self.W.value, float)
        if not np.array_equal(W, self._settled[0]):  # an objective and a violation are asked for at one W
            self._settled = W, _least(W, self.kernels, self.weights)
        found: KernelPenaltyMinimum = self._settled[1]
        for variable, U in zip(self.parts, found.parts, strict=True):
            variable.value = U if np.isfinite(found.value) else np.full(variable.shape, np.inf)
        if self.theta is not None:
            self.theta.value = found.theta


def _norm(vector, p: float):
    return (
        cp.norm1(vector)
        if p == 1.0
        else cp.norm(vector, 2)
        if p == 2.0
        else cp.pnorm(vector, p, approx=False)
    )


def statement_at_weights(W, atom) -> KernelPenaltyStatement:
    """Its statement with theta kept: the formula, whether or not the model has theta as an unknown, because the backends reach more
    digits with it (measured, p = 1: 1e-11 of the optimum of a prox, 3e-5 without theta).
    """
    return KernelPenaltyStatement(W, kernels_of(atom, W.shape[0]), weights_of(atom))


@formula("mkl_norm", own_variables=statement_at_weights)
def mkl_norm(W, atom):
    """min over parts W = sum U_m B_m^T and theta of 1/2 sum ||U_m||^2 / theta_m"""
    if isinstance(W, cp.Expression) and W.is_constant():
        return cp.Constant(least(W.value, atom).value)
    return statement_at_weights(W, atom).expression


# ---------------------------------------------------------------------------------------------------- as a quadratic form


def _bound(k, W, matrices, atom) -> float:
    return lower_bound(W, kernels_of(atom, len(W)), np.asarray(matrices[0], float), weights_of(atom))


@structure("mkl_norm", bound=_bound)
def mkl_norm_kept(W, matrices, atom):
    """1/2 tr(W K^-1 W^T), K = sum theta_m R_m, on rows with the same similarities"""
    (theta,), total = matrices, 0.0
    kernels = kernels_of(atom, W.shape[0])
    for rows, members in patterns(kernels, W.shape[0]):
        K = sum(theta[m] * (kernels[m].B @ kernels[m].B.T) for m in members)
        total = total + 0.5 * inverse_form(W[rows, :].T, K)
    return total


# --------------------------------------------------------------------------------------------------------- at a given W


@dataclass(frozen=True)
class KernelPenaltyMinimum:
    """The penalty of an array W, and what it is attained at."""

    value: float
    theta: np.ndarray
    parts: list[np.ndarray]  # U_m


def least(W, atom) -> KernelPenaltyMinimum:
    """The penalty at an array W (d, T): +inf where W is not a sum of parts."""
    W = np.asarray(W, float)
    return _least(W, kernels_of(atom, len(W)), weights_of(atom))


def _least(W, kernels, weights) -> KernelPenaltyMinimum:
    size = np.linalg.norm(W)
    theta = weights if isinstance(weights, np.ndarray) else _best(W / size if size else W, kernels, weights)
    parts, value = parts_of(W, kernels, theta)
    return KernelPenaltyMinimum(value, theta, parts)


@on_one_blas_thread
def _best(W, kernels, ball: KernelWeightDomain) -> np.ndarray:
    """The best weights of W, of norm one: cvxpy's, then the best parts and the best weights in turn."""
    if not W.any():
        return np.full(len(kernels), ball.radius * len(kernels) ** (-1.0 / ball.p))
    W, kernels = reduce_rows(W, kernels)
    theta = inside(_by_cvxpy(W, kernels, ball), ball)
    best, value = theta, np.inf
    for _ in range(SETTINGS.weight_rounds):
        parts, now = parts_of(W, kernels, theta)
        if now < value:
            best, value = theta, now
        if not np.isfinite(now) or now - lower_bound(W, kernels, theta, ball) <= SETTINGS.excess_tol * now:
            break
        # by Hoelder, sum a_m / theta_m is least where theta_m^(p+1) is a multiple of a_m
        a = np.array([np.sum(U**2) for U in parts])
        theta = inside((a / a.max()) ** (1.0 / (ball.p + 1.0)), ball)
    return best


def _by_cvxpy(W, kernels, ball: KernelWeightDomain) -> np.ndarray:
    """Uniform where no backend finds any."""
    stated = KernelPenaltyStatement(cp.Constant(W), kernels, ball)
    problem = cp.Problem(cp.Minimize(stated.value), stated.ties)
    with suppress(cp.error.SolverError):
        backends.solve_accurately(problem, backends.solve, SETTINGS.accuracies)
    theta = stated.theta.value
    return np.ones(len(kernels)) if theta is None or not theta.max() > 0 else theta
