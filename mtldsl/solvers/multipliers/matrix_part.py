"""The regularizer's copy where it is anything with an exact prox: its derivative comes as products, for conjugate gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum
from mtldsl.compile.normal_form import FunctionTerm
from mtldsl.system.long_calls import svd

__all__ = ["MatrixPart"]

_DIFFERENCE = 1e-7  # relative step of differences


class MatrixPart:
    """The joint prox of functions of one matrix, in a metric that is one number.

    unit : one scale for all rows, so that penalties mean the same as in `RowPart`
    """

    is_separable = False
    has_copy = True
    least_slope = 0.0  # of what a prox takes away, by the singular value: of a function that is not convex it may be negative

    def __init__(self, functions: tuple[FunctionTerm, ...], unit: np.ndarray):
        self.functions = functions
        self.sum_prox: Any = prox_of_sum([(f.coefficient, f.atom) for f in functions])
        self.unit = np.full(len(unit), float(np.sqrt(np.mean(unit**2))))
        atoms = [f.atom for f in functions]
        # one number for all entries is a function of singular values too; numbers of their own are not
        self.is_spectral = all(
            atom.separable == "spectrum"
            or (atom.entry_quadratic is not None and np.ndim(atom.entry_quadratic) == 0)
            for atom in atoms
        )

    def metric(self, penalties: np.ndarray) -> np.ndarray:
        return np.full((len(self.unit), len(penalties)), self.unit[0] ** 2 * penalties[0])

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        """M (t - prox(t)), t = W + P / M; the derivative is the one there."""
        self.at = W + P / M
        self.found = self.prox(self.at, M)
        return M * (self.at - self.found)

    def copy(self, W: np.ndarray, P: np.ndarray, Q: np.ndarray, M: np.ndarray) -> np.ndarray:
        """prox(t), as the prox gave it."""
        return self.found

    def prox(self, V: np.ndarray, M: np.ndarray) -> np.ndarray:
        return self.sum_prox.prox(V, 1.0 / M[0, 0])

    def derivative(self, M: np.ndarray):
        """(H -> (I - D) H, its mean eigenvalue, guessed)."""
        V, v = self.at, self.found
        if self.is_spectral:
            return _spectral(lambda A: self.prox(A, M), V, v, self.least_slope)
        size = np.linalg.norm(V)

        def product(H):
            norm = np.linalg.norm(H)
            if norm == 0.0:
                return H
            step = _DIFFERENCE * max(size, 1e-12) / norm
            return H - (self.prox(V + step * H, M) - v) / step

        return product, 0.5

    def shares(self, V: np.ndarray, M: np.ndarray) -> list[np.ndarray]:
        """The multiplier of every function where the prox is taken of V."""
        return self.sum_prox(V, 1.0 / M[0, 0])[1]


def _spectral(prox, V: np.ndarray, v: np.ndarray, least: float):
    """I - D of a prox that moves singular values one by one, s -> f(s), by divided differences.

    Source: Lewis and Sendov, "Nonsmooth analysis of singular values", Set-Valued Analysis 13 (2005).
    """
    U, s, Vt = svd(V)
    kept = s - np.einsum("ij,ij->j", U, v @ Vt.T)  # s - f(s)
    moved = s * (1.0 + _DIFFERENCE) + 1e-300
    f = np.einsum("ij,ij->j", U, prox((U * moved) @ Vt) @ Vt.T)
    slopes = np.clip(((moved - f) - kept) / np.maximum(moved - s, 1e-300), least, 1.0)
    slopes = np.where(s > 0, slopes, 1.0)
    top = max(s.max(initial=0.0), 1e-300)
    apart, together = s[:, None] - s[None, :], s[:, None] + s[None, :]
    same = np.abs(apart) < 1e-9 * top
    symmetric = np.where(
        same,
        0.5 * (slopes[:, None] + slopes[None, :]),
        (kept[:, None] - kept[None, :]) / np.where(same, 1.0, apart),
    )
    skew = np.where(
        together > 1e-12 * top, (kept[:, None] + kept[None, :]) / np.maximum(together, 1e-300), 1.0
    )
    outside = np.where(s > 1e-12 * top, kept / np.maximum(s, 1e-300), 1.0)
    tall, wide = V.shape[0] > len(s), V.shape[1] > len(s)
    both, half = 0.5 * (symmetric + skew), 0.5 * (symmetric - skew)

    def product(H):
        UH = U.T @ H
        A = UH @ Vt.T
        result = U @ ((both * A + half * A.T) @ Vt)
        if tall:
            result += ((H - U @ UH) @ Vt.T * outside) @ Vt
        if wide:
            result += U @ (outside[:, None] * (UH - A @ Vt))
        return result

    p, q = V.shape
    total = both.sum() + (p - len(s) + q - len(s)) * outside.sum()
    return product, float(total / (len(s) * (p + q - len(s))))
