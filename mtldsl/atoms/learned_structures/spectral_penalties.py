"""The penalties of low rank that are not convex: log-rank, capped trace norm, and Schatten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import register
from mtldsl.atoms.learned_structures.structure import Matrices, Quadratic, Structure
from mtldsl.atoms.matrix_function import WithoutConjugate
from mtldsl.atoms.prox.shrinkage import smallest_minimum
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix, map_singular_values, singular_values, thin_svd
from mtldsl.errors import ModelError

# --------------------------------------------------------------------------------------------------------------
# Concave functions of the spectrum: penalties between the trace norm and the rank, which are not convex.
#
#     g(W) = sum_{j=1..p} r(sigma_j(W)^2 + eps)      for W (p, q), r concave and nondecreasing on [0, inf)
#
# For eps > 0 the function is smooth, and at every W_0 the quadratic tr(D W W^T) + constant, D = r'(W_0 W_0^T + eps I), lies above
# it and touches it at W_0: minimising such quadratics again and again is what "reweighting" means. For eps = 0 there is no such
# quadratic where a singular value is zero, and an exact proximal step takes its place.
#
# Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, sec. 4.1 (their h(W) = W W^T + eps I).

#: Singular values this small, relative to the largest, are what rounding leaves of zero; where r is steep at zero, as a root is,
#: they would be seen.
_ROUNDING_SHARE = 1e-14


class ConcaveSpectrum(WithoutConjugate, Structure):
    """A subclass has a field `eps`, and gives r as `penalty` and r' as `slope`, functions of x = sigma^2 + eps.

    Its one matrix, H = W W^T + eps I (p, p), is not an unknown of the model: it only says where the majorising quadratic touches.
    """

    eps: float
    exact_formula: ClassVar[str] = ""  # LaTeX for eps = 0
    instead_of_transpose: ClassVar[str] = "{word}({0}), of the same singular values"
    separable: ClassVar[str] = "spectrum"
    convex: ClassVar[bool] = False
    weak_convexity: ClassVar[float] = np.inf  # m such that g + m/2 ||W||_F^2 is convex (inf: none)

    def __post_init__(self):
        self.keep_number("eps", lambda e: e >= 0, "a finite number >= 0, such as eps=1e-2")

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
        """Tell whether a quadratic touches it from above at every W."""
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
            s = np.where(s > _ROUNDING_SHARE * s.max(initial=0.0), s, 0.0)
        at_zero = (p - s.size) * float(self.penalty(np.float64(self.eps)))
        return float(np.sum(self.penalty(s**2 + self.eps))) + at_zero

    def value_and_gradient(self, W) -> tuple[float, np.ndarray]:
        U, s, Vt = thin_svd(W)
        return self.value_of_spectrum(s, W.shape[0]), (U * (2.0 * s * self.slope(s**2 + self.eps))) @ Vt

    def prox(self, W, step) -> np.ndarray:
        """Global minimiser: singular value by singular value, since the penalty increases with each (von Neumann)."""
        return map_singular_values(W, lambda s: self.scalar_prox(s, step))

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


# --------------------------------------------------------------------------------------------------------------
# A user's own penalty of the spectrum, and what is asked of its function.


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


@register
@dataclass(frozen=True, eq=False)
class LogRank(ConcaveSpectrum):
    r"""Log-rank, not convex: sum_{j=1..d} log(1 + sqrt(sigma_j(W)^2 + eps)); with eps=0, sum_j log(1 + sigma_j(W)).

    Between the trace norm and the rank: a singular value s is pulled towards zero by 1 / (1 + s), small ones as by the trace
    norm, large ones hardly, so that what is kept is not shrunk. W is (d, m) with a row for every feature; the sum has d terms.
    The penalty depends on scale (log(1 + c s) is not a multiple of log(1 + s)): standardise the data first.

    Parameters
    ----------
    eps : number >= 0, in the units of sigma^2; 1e-2 suits standardised data. With eps > 0 the penalty is smooth, and
        `solver="alternating"` reweights it; with eps = 0 it is exact, and `solver="admm"` has its proximal step. A larger eps
        has fewer stationary points to end in, and singular values that are small but not zero.

    Raises
    ------
    ModelError
        Where eps is negative or not finite.

    Notes
    -----
    r(x) = log(1 + sqrt(x)), r'(x) = 1 / (2 sqrt(x) (1 + sqrt(x))). prox for eps = 0 and a step t: of a singular value s the
    larger root ((s - 1) + sqrt((s + 1)^2 - 4 t)) / 2 where it is real, positive and better than 0, else 0.
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (7) and (13).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([np.e - 1.0, 0.0])
    >>> LogRank(eps=0.0).value(W)
    1.0
    >>> LogRank(eps=0.0).prox(np.diag([3.0, 0.5]), 1.0).diagonal()
    array([2.73205081, 0.        ])
    """

    eps: float = 1e-2

    name: ClassVar[str] = "log_rank"
    meaning: ClassVar[str] = r"a concave penalty of the singular values $\sigma_j$, near the rank"
    formula: ClassVar[str] = r"\sum_j \log(1 + \sqrt{\sigma_j({})^2 + \varepsilon})"
    exact_formula: ClassVar[str] = r"\sum_j \log(1 + \sigma_j({}))"
    weak_convexity: ClassVar[float] = 1.0

    @classmethod
    def examples(cls):
        return [cls(), cls(0.0), cls(1e-6)]

    def penalty(self, x):
        return np.log1p(np.sqrt(x))

    def slope(self, x):
        root = np.sqrt(x)
        with np.errstate(divide="ignore"):
            return 1.0 / (2.0 * root * (1.0 + root))

    def scalar_prox(self, s, step):
        if self.eps:
            return super().scalar_prox(s, step)
        inside = (s - 1.0) ** 2 + 4.0 * (s - step)
        spread = np.sqrt(np.maximum(inside, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):  # in the branch that is not taken
            root = np.where(s < 1.0, 2.0 * (s - step) / (1.0 - s + spread), 0.5 * (s - 1.0 + spread))
        x = np.where(inside >= 0, np.maximum(root, 0.0), 0.0)
        better = step * np.log1p(x) + 0.5 * (x - s) ** 2 < 0.5 * s**2
        return np.where(better, x, 0.0)


@register
@dataclass(frozen=True, eq=False)
class CappedTraceNorm(ConcaveSpectrum):
    r"""Capped trace norm, not convex: sum_j min(sigma_j(W), tau); with eps > 0, sum_{j=1..d} min(sqrt(sigma_j(W)^2 + eps), tau).

    The trace norm of the singular values below tau alone: larger ones cost tau each and are not shrunk. W is (d, m).

    Parameters
    ----------
    tau : number > 0, in the units of singular values
    eps : number >= 0, in the units of sigma^2; with eps > 0 the penalty is reweighted by `solver="alternating"`; with 0 it is
        exact, and `solver="admm"` has its proximal step

    Raises
    ------
    ModelError
        Where tau is not positive, eps negative, or eps >= tau^2.

    Notes
    -----
    r(x) = min(sqrt(x), tau). prox for eps = 0 and a step t: of a singular value s the better of min((s - t)_+, tau) and max(s, tau).
    Source: Han and Zhang, "Multi-stage multi-task learning with reduced rank", AAAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> W = np.diag([5.0, 0.5])
    >>> CappedTraceNorm(2.0).value(W)
    2.5
    >>> CappedTraceNorm(2.0).prox(W, 1.0).diagonal()
    array([5., 0.])
    """

    tau: float
    eps: float = 0.0

    name: ClassVar[str] = "capped_trace_norm"
    meaning: ClassVar[str] = r"a penalty of the singular values $\sigma_j$ that spares what is above a cap"
    formula: ClassVar[str] = r"\sum_j \min(\sqrt{\sigma_j({})^2 + \varepsilon},\, \tau)"
    exact_formula: ClassVar[str] = r"\sum_j \min(\sigma_j({}),\, \tau)"
    is_bounded: ClassVar[bool] = True

    def __post_init__(self):
        super().__post_init__()
        self.keep_number("tau", lambda t: t > 0, "a number > 0, such as tau=1.0")
        if self.eps >= self.tau**2:
            raise ModelError(
                "with eps >= tau^2 every singular value is above the cap, and the penalty is a constant",
                term=f"capped_trace_norm(..., tau={self.tau:g}, eps={self.eps:g})",
                write_instead=f"write an eps well below {self.tau**2:g}",
            )

    @classmethod
    def examples(cls):
        return [cls(1.0), cls(0.5, 1e-2), cls(30.0)]

    @property
    def kinks(self):
        return (float(np.sqrt(self.tau**2 - self.eps)),)

    def smoothed(self, eps):
        """As far as the cap leaves room: from eps = tau^2 on the penalty is a constant."""
        return replace(self, eps=min(eps, 0.25 * self.tau**2))

    def penalty(self, x):
        return np.minimum(np.sqrt(x), self.tau)

    def slope(self, x):
        with np.errstate(divide="ignore"):
            return np.where(x < self.tau**2, 1.0 / (2.0 * np.sqrt(x)), 0.0)

    def scalar_prox(self, s, step):
        if self.eps:
            return super().scalar_prox(s, step)
        low, high = np.clip(s - step, 0.0, self.tau), np.maximum(s, self.tau)
        at_low = step * low + 0.5 * (low - s) ** 2
        at_high = step * self.tau + 0.5 * (high - s) ** 2
        return np.where(at_high < at_low, high, low)

    def latex(self, argument, symbols=None):
        return super().latex(argument, symbols).replace(r"\tau", f"{self.tau:g}")


@register
@dataclass(frozen=True, eq=False)
class SchattenNorm(ConcaveSpectrum):
    r"""Schatten quasi-norm to the power p, not convex: sum_{j=1..d} (sigma_j(W)^2 + eps)^(p/2), 0 < p < 1, without the root 1/p.

    p = 1 would be the trace norm, p -> 0 the rank. W is (d, m).

    Parameters
    ----------
    p : number between 0 and 1
    eps : number >= 0, in the units of sigma^2; 1e-2 suits standardised data. With eps = 0 the slope at zero is infinite: W = 0 is
        stationary whatever the data say, so start elsewhere, or continue from a larger eps.

    Raises
    ------
    ModelError
        Where p is not between 0 and 1, or eps negative.

    Notes
    -----
    r(x) = x^(p/2). prox for eps = 0 and a step t: of a singular value s the larger root of x + t p x^(p-1) = s where it is better
    than 0, else 0.
    Source: Mohan and Fazel, "Iterative reweighted algorithms for matrix rank minimization", JMLR 13 (2012).

    Examples
    --------
    >>> import numpy as np
    >>> SchattenNorm(0.5, eps=0.0).value(np.diag([4.0, 9.0]))
    5.0
    """

    p: float
    eps: float = 1e-2

    name: ClassVar[str] = "schatten_norm"
    meaning: ClassVar[str] = r"a power of the Schatten quasi-norm, of the singular values $\sigma_j$"
    formula: ClassVar[str] = r"\sum_j (\sigma_j({})^2 + \varepsilon)^{p/2}"
    exact_formula: ClassVar[str] = r"\sum_j \sigma_j({})^{p}"

    def __post_init__(self):
        super().__post_init__()
        must_be = "a number between 0 and 1, such as p=0.5 (for p = 1 write trace_norm)"
        self.keep_number("p", lambda p: 0 < p < 1, must_be)

    @classmethod
    def examples(cls):
        return [cls(0.5), cls(0.9), cls(0.5, 0.0)]

    def penalty(self, x):
        return np.power(x, 0.5 * self.p)

    def slope(self, x):
        with np.errstate(divide="ignore"):
            return 0.5 * self.p * np.power(x, 0.5 * self.p - 1.0)

    def latex(self, argument, symbols=None):
        text = super().latex(argument, symbols)
        return text.replace("{p/2}", f"{{{0.5 * self.p:g}}}").replace("^{p}", f"^{{{self.p:g}}}")

    def scalar_prox(self, s, step):
        if self.eps:
            return super().scalar_prox(s, step)
        t, p = step, self.p
        # x + t p x^(p-1) is convex with its least value where x^(2-p) = t p (1 - p): the larger root is right of that
        turn = (t * p * (1.0 - p)) ** (1.0 / (2.0 - p))
        x = np.maximum(s, turn)
        for _ in range(
            100
        ):  # Newton from the right of the root of a convex function falls to it and never passes it
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = 1.0 + t * p * (p - 1.0) * x ** (p - 2.0)
                after = np.where(slope > 1e-12, x - (x + t * p * x ** (p - 1.0) - s) / slope, turn)
            after = np.clip(after, turn, x)
            if np.all(x - after <= 1e-16 * x):
                break
            x = after
        better = t * x**p + 0.5 * (x - s) ** 2 < 0.5 * s**2
        return np.where(better, x, 0.0)
