"""Multi-task multiple kernel learning, from its definition: W = sum over m of U_m B_m^T on the rows that similarity m is about,

    1/2 sum over m of ||U_m||_F^2 / theta_m,   theta >= 0, ||theta||_p <= radius          (theta kept)
    1/2 (sum over m of ||U_m||_F^q)^(2/q) / radius,   q = 2p / (p + 1)                    (theta eliminated)

U_m and theta are variables beside W. The atom is read for the model's data only, B_m, the rows, p, the radius or theta given. What
the sum costs at a given W is a problem of its own, whose theta is what cvxpy finds, made better until Lagrange's bound says that it
is the best.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from mtldsl.system.threads import on_one_blas_thread

from . import backends
from .kernel_parts import (
    Ball,
    Kernel,
    inside,
    kernels_of,
    lower_bound,
    parts_of,
    patterns,
    reduced,
    weights_of,
)
from .registry import formula, structure
from .structures import inverse_form

__all__ = ["Least", "Statement", "eliminated", "kept", "least"]

#: Weights are good where the penalty is above its bound by no more than this, relatively.
GOOD = 1e-14

#: So many rounds are made for it at most; each takes a least squares problem.
MOST_ROUNDS = 1000

#: What Clarabel is asked for; where it cannot do the first, it does the second.
ATTEMPTS = (1e-12, 1e-9)

# ---------------------------------------------------------------------------------------------- in variables of its own


class Statement:
    """The penalty of an expression W (d, T): `value`, an expression in U_m and theta, with the constraints `ties`."""

    def __init__(self, W: cp.Expression, kernels: list[Kernel], weights: np.ndarray | Ball, eliminate=False):
        self.W, self.kernels, self.weights = W, kernels, weights
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
        elif eliminate:
            norms = cp.hstack([cp.norm(U, "fro") for U in self.parts])
            q = 2.0 * weights.p / (weights.p + 1.0)
            self.value = 0.5 / weights.radius * cp.square(_norm(norms, q))
        else:
            self.theta = cp.Variable(len(kernels), nonneg=True, name="theta")
            self.value = 0.5 * sum(cp.quad_over_lin(U, self.theta[m]) for m, U in enumerate(self.parts))
            self.ties += [_norm(self.theta, weights.p) <= weights.radius]

    @property
    def expression(self) -> cp.Expression:
        """A convex function of W alone."""
        return self.value + cp.transforms.indicator(self.ties)

    def settle(self) -> None:
        """Give U and theta their best values for the value of W: infinite where it has none."""
        found = _least(np.asarray(self.W.value, float), self.kernels, self.weights)
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


def kept(W, atom) -> Statement:
    """Its statement with theta kept: the formula, whether or not the model has theta as an unknown, because the backends reach more
    digits with it (measured, p = 1: 1e-11 of the optimum of a prox, 3e-5 without theta).
    """
    return Statement(W, kernels_of(atom, W.shape[0]), weights_of(atom))


def eliminated(W, atom) -> Statement:
    """Its statement with theta eliminated, for p < inf."""
    return Statement(W, kernels_of(atom, W.shape[0]), weights_of(atom), eliminate=True)


@formula("mkl_norm", own_variables=kept)
def mkl_norm(W, atom):
    """min over parts W = sum U_m B_m^T and theta of 1/2 sum ||U_m||^2 / theta_m"""
    if isinstance(W, cp.Expression) and W.is_constant():
        return cp.Constant(least(W.value, atom).value)
    return kept(W, atom).expression


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
class Least:
    """The penalty of an array W, and what it is attained at."""

    value: float
    theta: np.ndarray
    parts: list[np.ndarray]  # U_m


def least(W, atom) -> Least:
    """The penalty at an array W (d, T): +inf where W is not a sum of parts."""
    W = np.asarray(W, float)
    return _least(W, kernels_of(atom, len(W)), weights_of(atom))


def _least(W, kernels, weights) -> Least:
    size = np.linalg.norm(W)
    theta = weights if isinstance(weights, np.ndarray) else _best(W / size if size else W, kernels, weights)
    parts, value = parts_of(W, kernels, theta)
    return Least(value, theta, parts)


@on_one_blas_thread
def _best(W, kernels, ball: Ball) -> np.ndarray:
    """The best weights of W, of norm one: cvxpy's, then the best parts and the best weights in turn."""
    if not W.any():
        return np.full(len(kernels), ball.radius * len(kernels) ** (-1.0 / ball.p))
    W, kernels = reduced(W, kernels)
    theta = inside(_by_cvxpy(W, kernels, ball), ball)
    best, value = theta, np.inf
    for _ in range(MOST_ROUNDS):
        parts, now = parts_of(W, kernels, theta)
        if now < value:
            best, value = theta, now
        if not np.isfinite(now) or now - lower_bound(W, kernels, theta, ball) <= GOOD * now:
            break
        # by Hoelder, sum a_m / theta_m is least where theta_m^(p+1) is a multiple of a_m
        a = np.array([np.sum(U**2) for U in parts])
        theta = inside((a / a.max()) ** (1.0 / (ball.p + 1.0)), ball)
    return best


def _by_cvxpy(W, kernels, ball: Ball) -> np.ndarray:
    """Uniform where no backend finds any."""
    stated, best = Statement(cp.Constant(W), kernels, ball), np.ones(len(kernels))
    problem = cp.Problem(cp.Minimize(stated.value), stated.ties)
    for accuracy in ATTEMPTS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate": the bound tells
                backends.solve(
                    problem,
                    solver="CLARABEL",
                    tol_gap_abs=accuracy,
                    tol_gap_rel=accuracy,
                    tol_feas=accuracy,
                )
        except cp.error.SolverError:
            continue
        if stated.theta.value is not None and stated.theta.value.max() > 0:
            best = stated.theta.value
            if problem.status == cp.OPTIMAL:
                break
    return best
