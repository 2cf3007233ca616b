r"""Concave functions of the spectrum: penalties between the trace norm and the rank, which are not convex.

    g(W) = sum_{j=1..p} r(sigma_j(W)^2 + eps)      for W (p, q), r concave and nondecreasing on [0, inf)

For eps > 0 the function is smooth, and at every W_0 the quadratic tr(D W W^T) + constant, D = r'(W_0 W_0^T + eps I), lies above
it and touches it at W_0: minimising such quadratics again and again is what "reweighting" means. For eps = 0 there is no such
quadratic where a singular value is zero, and an exact proximal step takes its place.

Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, sec. 4.1 (their h(W) = W W^T + eps I).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.calculus.scalar_prox import smallest_minimum
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix, singular_values, thin_svd
from mtldsl.atoms.no_dual import NoDual
from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.structures.structure import Matrices, Quadratic, Structure

__all__ = ["ConcaveSpectrum"]

#: Singular values this small, relative to the largest, are what rounding leaves of zero; where r is steep at zero, as a root is,
#: they would be seen.
_ROUNDING = 1e-14


class ConcaveSpectrum(NoDual, Structure):
    """A subclass has a field `eps`, and gives r as `penalty` and r' as `slope`, functions of x = sigma^2 + eps.

    Its one matrix, H = W W^T + eps I (p, p), is not an unknown of the model: it only says where the majorising quadratic touches.
    """

    eps: float
    exact_formula: ClassVar[str] = ""  # LaTeX for eps = 0
    separable: ClassVar[str] = "spectrum"
    convex: ClassVar[bool] = False
    weak_convexity: ClassVar[float] = np.inf  # m such that g + m/2 ||W||_F^2 is convex (inf: none)

    def __post_init__(self):
        eps = checked_number(
            self.name, "eps", self.eps, lambda e: e >= 0, "a finite number >= 0, such as eps=1e-2"
        )
        object.__setattr__(self, "eps", eps)

    def penalty(self, x) -> np.ndarray:
        """r(x), elementwise for x >= 0."""
        raise NotImplementedError

    def slope(self, x) -> np.ndarray:
        """r'(x), elementwise; may be inf at 0."""
        raise NotImplementedError

    @property
    def kinks(self) -> tuple[float, ...]:
        """Singular values at which the slope jumps down, zero aside."""
        return ()

    def smoothed(self, eps: float) -> ConcaveSpectrum:
        """The same with this eps, or with one as near to it as the function allows."""
        return replace(self, eps=eps)

    def relaxed(self, factor: float) -> ConcaveSpectrum:
        """The same with a larger eps, where the function allows one."""
        larger = self.smoothed(factor * self.eps)
        return larger if larger.eps > self.eps else self

    # ------------------------------------------------------------------------------------------- eliminated

    @property
    def is_reweighted(self) -> bool:
        """Whether a quadratic touches it from above at every W."""
        return self.eps > 0

    @property
    def curvature(self) -> float:
        """The curvature of the steepest majorising quadratic."""
        return 2.0 * float(self.slope(np.float64(self.eps))) if self.eps > 0 else np.inf

    def value(self, W) -> float:
        return self.value_of_spectrum(singular_values(W), W.shape[0])

    def value_of_spectrum(self, s, p: int) -> float:
        """g of any matrix with p rows and the singular values s."""
        if not self.eps:
            s = np.where(s > _ROUNDING * s.max(initial=0.0), s, 0.0)
        at_zero = (p - s.size) * float(self.penalty(np.float64(self.eps)))
        return float(np.sum(self.penalty(s**2 + self.eps))) + at_zero

    def gradient(self, W) -> np.ndarray:
        return self.value_and_gradient(W)[1]

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        U, s, Vt = thin_svd(W)
        return self.value_of_spectrum(s, W.shape[0]), (U * (2.0 * s * self.slope(s**2 + self.eps))) @ Vt

    def prox(self, W, step) -> np.ndarray:
        """Global minimiser: singular value by singular value, since the penalty increases with each (von Neumann)."""
        U, s, Vt = thin_svd(W)
        kept = self.scalar_prox(s, step)
        rank = np.count_nonzero(kept)
        return (U[:, :rank] * kept[:rank]) @ Vt[:rank] if rank < s.size else (U * kept) @ Vt

    def scalar_prox(self, s, step) -> np.ndarray:
        """argmin over x >= 0 of step * r(x^2 + eps) + (x - s)^2 / 2, elementwise for s >= 0, nonincreasing as s is."""
        return smallest_minimum(
            s,
            lambda x, s: step * self.penalty(x**2 + self.eps) + 0.5 * (x - s) ** 2,
            lambda x, s: x - s + 2.0 * step * x * self.slope(x**2 + self.eps),
        )

    def turning_weights(self, W) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """(U, V, w, rest): g'(s_j) / s_j of every singular pair, and of a pair that is zero."""
        U, s, Vt = thin_svd(W)
        return U, Vt.T, 2.0 * self.slope(s**2 + self.eps), 2.0 * float(self.slope(np.float64(self.eps)))

    # ------------------------------------------------------------------------------------------------- kept

    def start(self, shape) -> Matrices:
        return (SpectralMatrix.multiple_of_identity(1.0 + self.eps, shape[0]),)

    def update(self, W) -> Matrices:
        U, s, _ = thin_svd(W)
        return (SpectralMatrix(U, s**2 + self.eps, self.eps),)

    def update_one(self, k: int, W, matrices: Matrices) -> Matrices:
        return self.update(W)

    def value_at(self, W, matrices: Matrices) -> float:
        return self.quadratic(np.shape(W), matrices).value(W)

    def quadratic(self, shape, matrices: Matrices) -> Quadratic:
        (H,) = matrices
        rest = H.rest if H.n_rest else self.eps  # without a rest, any number at which r is defined
        x = np.append(H.values, rest)
        r, d = self.penalty(x), self.slope(x)
        terms = r + d * (self.eps - x)
        constant = float(terms[:-1].sum() + (H.n_rest * terms[-1] if H.n_rest else 0.0))
        rows = SpectralMatrix(H.basis, 2.0 * d[:-1], 2.0 * float(d[-1]))
        return Quadratic(rows, SpectralMatrix.multiple_of_identity(1.0, shape[1]), constant)

    def latex(self, argument: str, symbols=None) -> str:
        text = self.formula if self.eps else self.exact_formula
        return text.replace("{}", argument).replace(r"\varepsilon", f"{self.eps:g}")
