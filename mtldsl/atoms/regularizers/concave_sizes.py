"""Concave penalties of entries, or of rows, that are not convex: MCP, SCAD and capped l1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.atom import ENTRIES, ROWS, in_parentheses, register
from mtldsl.atoms.matrix_function import Regularizer, WithoutConjugate
from mtldsl.atoms.regularizers.l1_and_l21_norms import L1Norm, L21Norm
from mtldsl.errors import ModelError
from mtldsl.utils.validation import as_flag


class ConcaveSizes(WithoutConjugate, Regularizer):
    """sum of phi(t) over the sizes t of entries, or with `rows` over the lengths of rows; phi concave, phi(0) = 0, slope 1 at 0 and flat far out.

    A subclass has a field `rows`, and gives `penalty`, phi, its `slope` and `scalar_prox`.
    """

    rows: bool
    convex: ClassVar[bool] = False
    is_bounded: ClassVar[bool] = True
    has_tangent_norms: ClassVar[bool] = True
    row_formula: ClassVar[str] = ""

    def __post_init__(self):
        object.__setattr__(self, "rows", as_flag(self.rows, f"{self.name}(W, rows", ModelError))

    @property
    def separable(self) -> str:
        return "rows" if self.rows else "entries"

    @property
    def scales(self):
        return ROWS if self.rows else ENTRIES

    @property
    def transpose_invariant(self) -> bool:
        return not self.rows

    def penalty(self, t) -> np.ndarray:
        """phi(t), elementwise for t >= 0."""
        raise NotImplementedError

    def slope(self, t) -> np.ndarray:
        """phi'(t), elementwise for t >= 0; at a kink one between those of either side."""
        raise NotImplementedError

    def scalar_prox(self, t, step) -> np.ndarray:
        """The global argmin over x >= 0 of step * phi(x) + (x - t)^2 / 2, elementwise for t >= 0."""
        raise NotImplementedError

    def sizes(self, W) -> np.ndarray:
        """Those of entries (p, q), or of rows (p, 1)."""
        return np.linalg.norm(W, axis=1, keepdims=True) if self.rows else np.abs(W)

    def tangent_norm(self, W):
        slopes = self.slope(self.sizes(W))
        return L21Norm(slopes.ravel()) if self.rows else L1Norm(slopes)

    def value(self, W):
        return float(self.penalty(self.sizes(W)).sum())

    def prox(self, W, step):
        t = self.sizes(W)
        kept = np.asarray(self.scalar_prox(t, step), float)
        return W * np.divide(kept, t, out=np.zeros(t.shape), where=t > 0)

    def latex(self, argument):
        W = in_parentheses(argument)
        return super().latex(W) if not self.rows else self.row_formula.replace("{}", W)


def _cheaper(atom: ConcaveSizes, t, step, near, far) -> np.ndarray:
    """Return `far` where it costs less than `near`."""
    costs = (step * atom.penalty(x) + 0.5 * (x - t) ** 2 for x in (near, far))
    return np.where(np.greater(*costs), far, near)


@register
@dataclass(frozen=True, eq=False)
class MinimaxConcavePenalty(ConcaveSizes):
    r"""The minimax concave penalty (MCP), not convex: sum over entries of phi(|W_ij|), phi(t) = t - t^2 / (2 gamma) up to gamma, then gamma / 2.

    Between the l1 norm and the number of entries: what is larger than gamma is not shrunk. `rows=True` takes
    the lengths of rows, for features that all tasks share. W is (p, q). lam * mcp(W, gamma) is the penalty
    that others write as MCP(lambda=lam, gamma / lam).

    Parameters
    ----------
    gamma : number > 0, default 3.0
        The size from which on the penalty is flat, in the units of W.
    rows : bool, default False

    Raises
    ------
    ModelError
        Where gamma is not a finite number > 0, or rows is not True or False.

    Notes
    -----
    prox of a step < gamma: 0 up to step, then (t - step) / (1 - step / gamma) up to gamma, then t; of a longer
    step t where it is above sqrt(step gamma), else 0.
    Beside losses with a kink `alternating` solves a convex model per stage: the norm whose weights are the slopes at the last stage's sizes.
    Source: Zhang, "Nearly unbiased variable selection under minimax concave penalty", Annals of Statistics 38
    (2010), eq. (2.1).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 1.0], [4.0, 0.0]])
    >>> MinimaxConcavePenalty(gamma=2.0).value(W), MinimaxConcavePenalty(gamma=2.0, rows=True).value(W)
    (2.75, 2.0)
    >>> MinimaxConcavePenalty(gamma=2.0).prox(W, 0.5).round(3)
    array([[3.   , 0.667], [4.   , 0.   ]])
    """

    gamma: float = 3.0
    rows: bool = False

    name: ClassVar[str] = "mcp"
    meaning: ClassVar[str] = (
        r"the minimax concave penalty, $\phi(t) = t - t^2 / (2 \cdot <gamma>)$ up to <gamma>, then flat"
    )
    formula: ClassVar[str] = r"\sum_{jk} \phi(|{}_{jk}|)"
    row_formula: ClassVar[str] = r"\sum_j \phi(\|{}_{j\cdot}\|_2)"

    def __post_init__(self):
        super().__post_init__()
        self.keep_number("gamma", lambda g: g > 0, "a finite number > 0, such as gamma=3.0")

    @classmethod
    def examples(cls):
        return [cls(), cls(gamma=0.7), cls(gamma=2.0, rows=True)]

    @property
    def weak_convexity(self):
        return 1.0 / self.gamma

    def penalty(self, t):
        t = np.minimum(t, self.gamma)
        return t - t * t / (2.0 * self.gamma)

    def slope(self, t):
        return np.maximum(1.0 - t / self.gamma, 0.0)

    def scalar_prox(self, t, step):
        left = np.where(step < self.gamma, 1.0 - step / self.gamma, 1.0)
        firm = np.where(t <= self.gamma, np.maximum(t - step, 0.0) / left, t)
        return np.where(step < self.gamma, firm, np.where(t > np.sqrt(step * self.gamma), t, 0.0))


@register
@dataclass(frozen=True, eq=False)
class SmoothlyClippedDeviation(ConcaveSizes):
    r"""The smoothly clipped absolute deviation (SCAD), not convex: sum over entries of phi(|W_ij|), phi'(t) = 1 up to 1, falling to 0 at a.

    What is larger than a is not shrunk. `rows=True` takes the lengths of rows, for features that all tasks
    share. W is (p, q). lam**2 * scad(W / lam) is the penalty that others write with knots lam and a lam.

    Parameters
    ----------
    a : number > 1, default 3.7
        The size from which on the penalty is flat, (a + 1) / 2.
    rows : bool, default False

    Raises
    ------
    ModelError
        Where a is not a finite number > 1, or rows is not True or False.

    Notes
    -----
    phi(t) = t up to 1, (2 a t - t^2 - 1) / (2 (a - 1)) up to a, then (a + 1) / 2. prox of a step < a - 1:
    (t - step)_+ up to 1 + step, then ((a - 1) t - step a) / (a - 1 - step) up to a, then t; of a longer step
    the better of t > a and of (t - step)_+, at most 1.
    Beside losses with a kink `alternating` solves a convex model per stage: the norm whose weights are the slopes at the last stage's sizes.
    Source: Fan and Li, "Variable selection via nonconcave penalized likelihood and its oracle properties",
    JASA 96 (2001), eq. (2.7) and (2.8).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 1.0], [4.0, 0.0]])
    >>> SmoothlyClippedDeviation(a=3.0).value(W), SmoothlyClippedDeviation(a=3.0, rows=True).value(W)
    (5.0, 4.0)
    >>> SmoothlyClippedDeviation(a=3.0).prox(W, 0.5)
    array([[3. , 0.5], [4. , 0. ]])
    """

    a: float = 3.7
    rows: bool = False

    name: ClassVar[str] = "scad"
    meaning: ClassVar[str] = r"SCAD, a penalty of slope 1 up to 1 that falls to 0 at <a>"
    formula: ClassVar[str] = r"\sum_{jk} \phi(|{}_{jk}|)"
    row_formula: ClassVar[str] = r"\sum_j \phi(\|{}_{j\cdot}\|_2)"

    def __post_init__(self):
        super().__post_init__()
        self.keep_number("a", lambda a: a > 1, "a finite number > 1, such as a=3.7")

    @classmethod
    def examples(cls):
        return [cls(), cls(a=1.4), cls(a=2.5, rows=True)]

    @property
    def weak_convexity(self):
        return 1.0 / (self.a - 1.0)

    def penalty(self, t):
        over = np.clip(t, 1.0, self.a) - 1.0
        return np.minimum(t, 1.0) + over - over * over / (2.0 * (self.a - 1.0))

    def slope(self, t):
        return np.clip((self.a - t) / (self.a - 1.0), 0.0, 1.0)

    def scalar_prox(self, t, step):
        soft = np.maximum(t - step, 0.0)
        left = np.where(step < self.a - 1.0, 1.0 - step / (self.a - 1.0), 1.0)
        between = 1.0 + (t - 1.0 - step) / left
        exact = np.where(t <= 1.0 + step, soft, np.where(t <= self.a, between, t))
        far = _cheaper(self, t, step, np.minimum(soft, 1.0), np.maximum(t, self.a))
        return np.where(step < self.a - 1.0, exact, far)


@register
@dataclass(frozen=True, eq=False)
class CappedL1(ConcaveSizes):
    r"""The capped l1 penalty, not convex: sum over entries of min(|W_ij|, tau).

    What is larger than tau costs no more, and is not shrunk. `rows=True` caps the lengths of rows, for features
    that all tasks share. W is (p, q). `capped_trace_norm` does so to singular values.

    Parameters
    ----------
    tau : number > 0
        The size from which on the penalty is flat, in the units of W.
    rows : bool, default False

    Raises
    ------
    ModelError
        Where tau is not a finite number > 0, or rows is not True or False.

    Notes
    -----
    prox: the better of (t - step)_+, at most tau, and of t, at least tau.
    Beside losses with a kink `alternating` solves a convex model per stage: the norm whose weights are the slopes at the last stage's sizes.
    Source: Zhang, "Analysis of multi-stage convex relaxation for sparse regularization", JMLR 11 (2010); of the rows of
    tasks, Gong, Ye and Zhang, "Multi-stage multi-task feature learning", JMLR 14 (2013), eq. (2).

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[3.0, 1.0], [4.0, 0.0]])
    >>> CappedL1(tau=2.0).value(W), CappedL1(tau=2.0, rows=True).value(W)
    (5.0, 4.0)
    >>> CappedL1(tau=2.0).prox(W, 0.5)
    array([[3. , 0.5], [4. , 0. ]])
    """

    tau: float
    rows: bool = False

    name: ClassVar[str] = "capped_l1"
    meaning: ClassVar[str] = r"sizes up to <tau>, which larger ones count as"
    formula: ClassVar[str] = r"\sum_{jk} \min(|{}_{jk}|,\, {\tau})"
    row_formula: ClassVar[str] = r"\sum_j \min(\|{}_{j\cdot}\|_2,\, {\tau})"
    weak_convexity: ClassVar[float] = np.inf

    def __post_init__(self):
        super().__post_init__()
        self.keep_number("tau", lambda t: t > 0, "a finite number > 0, such as tau=1.0")

    @classmethod
    def examples(cls):
        return [cls(tau=1.0), cls(tau=0.3), cls(tau=1.5, rows=True)]

    @property
    def kinks(self):
        return (self.tau,)

    def penalty(self, t):
        return np.minimum(t, self.tau)

    def slope(self, t):
        return np.where(t < self.tau, 1.0, 0.0)

    def scalar_prox(self, t, step):
        near = np.minimum(np.maximum(t - step, 0.0), self.tau)
        return _cheaper(self, t, step, near, np.maximum(t, self.tau))
