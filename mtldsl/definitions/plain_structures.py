"""Penalties with what they learn beside the weights. W (p, q); a matrix S is (basis, values, rest), as solutions hold it, or an array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mtldsl.definitions.formula import defined

__all__ = ["Spectrum", "spectrum_of"]

#: Up to this share of the squared length of W, what a singular covariance leaves no room for is rounding.
_OUTSIDE_SHARE = 1e-13

#: Likewise of its length, where kernels leave none.
_BEYOND_SHARE = 1e-7

#: Above this share of the largest pivots tell that a kernel has full rank.
_PIVOT_SHARE = 1e-5

#: Tasks between which a kernel is written out: 30 MB, and a second for its factor.
MOST_TASKS = 2_000


class Spectrum(NamedTuple):
    """U diag(values) U^T + rest (I - U U^T)."""

    basis: np.ndarray
    values: np.ndarray
    rest: float

    @property
    def n_rest(self) -> int:
        return len(self.basis) - len(self.values)

    def form(self, W, power: int) -> float:
        """Return tr(W^T S^power W), power 1 or -1; +inf where S has no inverse on a part of W."""
        along = self.basis.T @ W
        parts = np.append(np.sum(along**2, axis=1), np.sum(np.square(W - self.basis @ along)))
        values = np.append(self.values, self.rest if self.n_rest else 1.0)
        parts = parts if self.n_rest else np.append(parts[:-1], 0.0)
        if power > 0:
            return float(parts @ values)
        held = values > 0.0
        if np.sum(parts[~held]) > _OUTSIDE_SHARE * np.sum(parts):
            return np.inf
        return float(np.sum(parts[held] / values[held]))

    def log_determinant(self) -> float:
        rest = self.n_rest * np.log(self.rest) if self.n_rest else 0.0
        return float(np.sum(np.log(self.values)) + rest)

    def dense(self) -> np.ndarray:
        return (self.basis * (self.values - self.rest)) @ self.basis.T + self.rest * np.eye(len(self.basis))

    def root(self, W) -> np.ndarray:
        """Return S^1/2 W."""
        along = self.basis.T @ W
        found = self.basis @ (np.sqrt(self.values)[:, None] * along)
        return found + (np.sqrt(self.rest) * (W - self.basis @ along) if self.n_rest else 0.0)


def spectrum_of(matrix: Any) -> Spectrum:
    """Return that of an array, or of what holds `basis`, `values` and `rest`."""
    if hasattr(matrix, "basis"):
        rest = float(matrix.rest) if matrix.basis.shape[1] < len(matrix.basis) else 0.0
        return Spectrum(np.asarray(matrix.basis, float), np.asarray(matrix.values, float), rest)
    values, basis = np.linalg.eigh(np.asarray(matrix, float))
    return Spectrum(basis, values, 0.0)


def _logs(W, matrices, atom) -> tuple[float, float]:
    first, second = matrices
    return W.shape[1] * first.log_determinant(), W.shape[0] * second.log_determinant()


def _size_of_prior(W, matrices, atom):
    logs = [
        count * (np.sum(np.abs(np.log(S.values))) + S.n_rest * abs(np.log(S.rest or 1.0)))
        for count, S in zip(W.shape[::-1], matrices, strict=True)
    ]
    return atom.eta * matrices[1].form(matrices[0].root(W).T, 1) + atom.rho * sum(logs)


@defined("matrix_normal", "kept", size=_size_of_prior)
def matrix_normal(W, matrices, atom):
    """eta tr(Sigma1 W Sigma2 W^T) - rho (m log|Sigma1| + d log|Sigma2|)"""
    first, second = matrices
    return atom.eta * second.form(first.root(W).T, 1) - atom.rho * sum(_logs(W, matrices, atom))


@defined("feature_covariance_norm", "kept")
def feature_covariance_norm(W, matrices, atom):
    """tr(W^T D^-1 W)"""
    return matrices[0].form(W, -1)


@defined("task_covariance_norm", "kept")
def task_covariance_norm(W, matrices, atom):
    """tr(W Omega^-1 W^T)"""
    return matrices[0].form(W.T, -1)


@defined("mkl_norm", "kept")
def mkl_norm(W, matrices, atom):
    """1/2 tr(W K^+ W^T), K the sum of theta_k B_k B_k^T over the kernels that act on a row"""
    theta, T, total, beyond = np.asarray(matrices[0], float), W.shape[1], 0.0, 0.0
    if T > MOST_TASKS:
        return None
    acts = np.ones((len(W), len(theta)), bool)
    for k, kernel in enumerate(atom.kernels):
        if kernel.columns is not None:
            acts[:, k] = False
            acts[kernel.columns, k] = True
    for pattern in np.unique(acts, axis=0):
        rows, used = W[np.all(acts == pattern, axis=1)], np.flatnonzero(pattern & (theta > 0.0))
        if not used.size:
            beyond += float(np.sum(rows * rows))
            continue
        B = sparse.hstack([np.sqrt(theta[k]) * atom.kernels[k].factor for k in used], format="csr")
        value, outside = _inverse_form(rows, (B @ B.T).toarray())
        total, beyond = total + 0.5 * value, beyond + outside
    return total if beyond <= _BEYOND_SHARE**2 * np.sum(W * W) else np.inf


def _inverse_form(W, K) -> tuple[float, float]:
    """Return (tr(W K^+ W^T), the squared length of what of W lies outside the range of K)."""
    from scipy.linalg import solve_triangular  # slow to import: where it is first used

    try:
        L = np.linalg.cholesky(K)
    except np.linalg.LinAlgError:
        L = np.zeros_like(K)
    pivots = np.diag(L)
    if pivots.min() > _PIVOT_SHARE * pivots.max():
        return float(np.sum(np.square(solve_triangular(L, W.T, lower=True)))), 0.0
    values, basis = np.linalg.eigh(K)
    held, along = values > 1e-14 * len(K) * values[-1], W @ basis
    return float(np.sum(along[:, held] ** 2 / values[held])), float(np.sum(along[:, ~held] ** 2))
