"""Functions of singular values and their second derivatives, by divided differences.

Source: Lewis and Sendov, "Twice differentiable spectral functions", SIAM J. Matrix Anal. Appl. 23 (2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import FunctionTerm, NormalForm


@dataclass(frozen=True)
class SpectralFunctionSettings:
    """Limits of differences between singular values.

    difference_share : of a singular value: the step of differences, and the distance within which two are one
    zero_share       : of the largest one, below which one is zero
    """

    difference_share: float = 1e-6
    zero_share: float = 1e-12


SETTINGS = SpectralFunctionSettings()


def divided_differences(
    s: np.ndarray, slopes: np.ndarray, second: np.ndarray, at_zero: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """(symmetric, skew) (r, r), by which sum_j phi(s_j) bends along the symmetric and the skew part of U^T P V.

    (phi'_i - phi'_j) / (s_i - s_j), phi'' where these are one; (phi'_i + phi'_j) / (s_i + s_j), `at_zero` where both are zero.
    """
    apart, together = s[:, None] - s, s[:, None] + s
    near = np.abs(apart) <= SETTINGS.difference_share * together
    symmetric = np.where(
        near, 0.5 * (second[:, None] + second), (slopes[:, None] - slopes) / np.where(near, 1.0, apart)
    )
    lost = together <= SETTINGS.zero_share * s.max(initial=0.0)
    skew = np.where(lost, at_zero, (slopes[:, None] + slopes) / np.where(lost, 1.0, together))
    return symmetric, skew


def ridge_of(f: FunctionTerm) -> float | None:
    """c where the function is c/2 ||W||_F^2, its coefficient included; else None."""
    if f.is_constraint:
        return None
    L = f.atom.task_quadratic(f.map.shape[1])
    if L is None or not np.array_equal(L, L[0, 0] * np.eye(len(L))):
        return None
    return f.coefficient * float(L[0, 0])


@dataclass(frozen=True)
class SpectrumFunction:
    """phi(s) = ridge s^2 / 2 + sum_k c_k r_k((f_k s)^2 + eps_k), smooth where s > 0.

    terms : (c_k, the function of the spectrum that r_k is of, f_k)
    """

    ridge: float
    terms: tuple[tuple[float, Any, float], ...] = ()

    @classmethod
    def of(cls, form: NormalForm, block: str) -> SpectrumFunction:
        """The function of a form's penalties: what only counts the rank is a constant."""
        multiples = [(f, f.map.multiple_of(block)) for f in form.functions]
        ridge = sum(multiple**2 * (ridge_of(f) or 0.0) for f, multiple in multiples)
        terms = ((f.coefficient, f.atom, multiple) for f, multiple in multiples if hasattr(f.atom, "slope"))
        return cls(ridge, tuple(terms))

    def value(self, s: np.ndarray) -> float:
        own = sum(c * float(np.sum(atom.penalty((f * s) ** 2 + atom.eps))) for c, atom, f in self.terms)
        return 0.5 * self.ridge * float(s @ s) + own

    def ratios(self, s: np.ndarray) -> np.ndarray:
        """phi'(s) / s; of what is steep at zero, only the ridge's there."""
        total = np.full(s.size, self.ridge)
        for c, atom, f in self.terms:
            slopes = 2.0 * c * f * f * atom.slope((f * s) ** 2 + atom.eps)
            total += np.where(np.isfinite(slopes), slopes, 0.0)
        return total

    def quotients(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The `divided_differences` at s."""
        ratios, step = self.ratios(s), SETTINGS.difference_share * s
        ends = [self.ratios(s + t) * (s + t) for t in (step, -step)]
        alive = step > 0
        second = np.where(alive, (ends[0] - ends[1]) / (2.0 * np.where(alive, step, 1.0)), ratios)
        return divided_differences(s, ratios * s, second, 0.5 * (ratios[:, None] + ratios))
