"""The penalties of low rank that are not convex: log-rank, capped trace norm, and Schatten."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.function import register
from mtldsl.atoms.parameters import checked_number
from mtldsl.atoms.structures.concave_spectrum import ConcaveSpectrum
from mtldsl.errors import ModelError

__all__ = ["CappedTraceNorm", "LogRank", "SchattenNorm"]


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
        tau = checked_number(self.name, "tau", self.tau, lambda t: t > 0, "a number > 0, such as tau=1.0")
        if self.eps >= tau**2:
            raise ModelError(
                "with eps >= tau^2 every singular value is above the cap, and the penalty is a constant",
                term=f"capped_trace_norm(..., tau={tau:g}, eps={self.eps:g})",
                write_instead=f"write an eps well below {tau**2:g}",
            )
        object.__setattr__(self, "tau", tau)

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
        p = checked_number(
            self.name, "p", self.p, lambda p: 0 < p < 1, "a number between 0 and 1, such as p=0.5 (for p = 1 write trace_norm)"
        )  # fmt: skip
        object.__setattr__(self, "p", p)

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
