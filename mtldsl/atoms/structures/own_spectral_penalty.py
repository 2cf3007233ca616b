"""A user's own penalty of the spectrum, and what is asked of its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.structures.concave_spectrum import ConcaveSpectrum
from mtldsl.errors import ModelError

__all__ = ["SpectralPenalty"]


@register
@dataclass(frozen=True, eq=False)
class SpectralPenalty(ConcaveSpectrum):
    r"""A user's own concave penalty of the spectrum: sum_{j=1..d} r(sigma_j(W)^2 + eps), not convex unless r makes it so.

    The paper's general Algorithm 2: r is any concave, nondecreasing function of an eigenvalue x of W W^T + eps I.

    Parameters
    ----------
    function : r, called with an array of numbers >= eps, returns an array
    derivative : r', the same; both are tried on numbers from eps to 1e8 and compared
    eps : number >= 0, in the units of sigma^2; with 0, r(0) must be finite, and proximal steps are found numerically

    Raises
    ------
    ModelError
        Where the function decreases, is not concave, is not finite, or the derivative is not its derivative; the message names
        the numbers at which that shows.

    Notes
    -----
    Cannot be typed in a problem file, where there are no functions.
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (49) and Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> def laplace(x):
    ...     return 1.0 - np.exp(-x)
    >>> SpectralPenalty(laplace, lambda x: np.exp(-x), eps=0.0).value(np.diag([10.0, 0.0]))
    1.0
    """

    function: Callable
    derivative: Callable
    eps: float = 1e-2

    name: ClassVar[str] = "spectral_penalty"
    meaning: ClassVar[str] = r"a concave penalty $r$ of the squared singular values $\sigma_j^2$"
    formula: ClassVar[str] = r"\sum_j r(\sigma_j({})^2 + \varepsilon)"
    exact_formula: ClassVar[str] = r"\sum_j r(\sigma_j({})^2)"

    def __post_init__(self):
        super().__post_init__()
        _check_own(self)

    @classmethod
    def examples(cls):
        return [
            cls(_laplace, _laplace_slope),
            cls(_geman, _geman_slope, 1e-3),
            cls(_laplace, _laplace_slope, 0.0),
        ]

    def penalty(self, x):
        return np.asarray(self.function(np.asarray(x, float)), float)

    def slope(self, x):
        with np.errstate(divide="ignore"):  # it may be inf at 0
            return np.asarray(self.derivative(np.asarray(x, float)), float)


def _laplace(x):
    return -np.expm1(-x)


def _laplace_slope(x):
    return np.exp(-x)


def _geman(x):
    return np.sqrt(x) / (1.0 + np.sqrt(x))


def _geman_slope(x):
    root = np.sqrt(x)
    return 1.0 / (2.0 * root * (1.0 + root) ** 2)


#: Where a user's own function is tried, beyond eps.
_TRIED = np.concatenate([[0.0], np.geomspace(1e-6, 1e8, 200)])


def _check_own(atom: SpectralPenalty) -> None:
    typed = f"spectral_penalty(..., function={_name(atom.function)}, derivative={_name(atom.derivative)})"
    for what, given in (("function", atom.function), ("derivative", atom.derivative)):
        if not callable(given):
            raise ModelError(
                f"{what} must be a function of an array, such as lambda x: 1 - np.exp(-x), not {given!r}",
                term=typed,
            )
    x = atom.eps + _TRIED
    inner = x[1:] if atom.eps == 0 else x
    try:
        with np.errstate(all="ignore"):  # what is not finite is said below
            r, slope, first = atom.penalty(x), atom.slope(inner), atom.penalty(x[:1])
            h = 1e-4 * inner
            secant = (
                (atom.penalty(inner + h) - atom.penalty(inner - h)) / (2.0 * h)
                if atom.eps == 0
                else (atom.penalty(inner + h) - atom.penalty(inner)) / h
            )
    except Exception as error:  # whatever a user's function raises is a mistake in it
        raise ModelError(
            f"it fails with {type(error).__name__}: {error}; both are called with arrays", term=typed
        ) from error
    if r.shape != x.shape or slope.shape != inner.shape or first.shape != (1,):
        raise ModelError("both must return an array of the shape they are given, elementwise", term=typed)
    if not (np.all(np.isfinite(r)) and np.all(np.isfinite(slope))):
        bad = (
            float(x[~np.isfinite(r)][0])
            if not np.all(np.isfinite(r))
            else float(inner[~np.isfinite(slope)][0])
        )
        raise ModelError(
            f"not finite at x = {bad:g}; it must be finite for every x >= eps = {atom.eps:g}", term=typed
        )
    if np.any(slope < 0):
        raise ModelError(
            f"the derivative is negative at x = {inner[slope < 0][0]:g}; the function must not decrease",
            term=typed,
        )
    if np.any(np.diff(slope) > 1e-9 * slope[:-1]):
        k = int(np.argmax(np.diff(slope) > 1e-9 * slope[:-1]))
        raise ModelError(
            f"not concave, the derivative rises from {slope[k]:g} at x = {inner[k]:g} to {slope[k + 1]:g} at "
            f"x = {inner[k + 1]:g}; r'(x) must not increase with x = sigma^2 + eps",
            term=typed,
        )
    # a secant of a concave function lies between the slopes at its ends
    wrong = np.abs(secant - slope) > 0.01 * slope + 1e-12 * np.abs(atom.penalty(inner)) / h
    if np.any(wrong):
        k = int(np.argmax(wrong))
        raise ModelError(
            f"at x = {inner[k]:g} the derivative says {slope[k]:g}, and differences of the function say {secant[k]:g}; "
            "it must be the derivative with respect to x = sigma^2 + eps",
            term=typed,
        )
    # and so does a chord, however far apart: a jump is seen too
    across, rounding = np.diff(r), 1e-12 * np.abs(r).max()
    gap = np.diff(x)
    most = np.append(np.inf, slope[:-1]) if atom.eps == 0 else slope[:-1]
    least = slope if atom.eps == 0 else slope[1:]
    outside = (across > 1.01 * most * gap + rounding) | (across < 0.99 * least * gap - rounding)
    if np.any(outside):
        k = int(np.argmax(outside))
        raise ModelError(
            f"from x = {x[k]:g} to x = {x[k + 1]:g} the function rises by {across[k]:g}, and its derivative allows "
            f"{least[k] * gap[k]:g} to {most[k] * gap[k]:g}; it must be concave and without jumps",
            term=typed,
        )


def _name(function) -> str:
    return getattr(function, "__name__", repr(function)[:40])
