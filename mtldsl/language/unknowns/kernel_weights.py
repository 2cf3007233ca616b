"""The weights of task similarities as an unknown, and the ball that a model keeps them in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.structures import Ball
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.expressions.latex import number_latex
from mtldsl.language.spelling import INFINITY, made
from mtldsl.language.unknowns.learned import LearnedUnknown
from mtldsl.language.unknowns.ranges import RangeConstraint, number_of, shown
from mtldsl.language.unknowns.task_similarity import TaskSimilarity
from mtldsl.values.number import as_whole

__all__ = ["BallConstraint", "KernelWeights", "WeightsNorm", "p_norm"]

#: more similarities than a model can hold
_MANY = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class BallConstraint(RangeConstraint):
    """||theta||_p <= value; p None: theta >= 0 alone, which holds anyway."""

    p: float | None = 2.0

    def tighten(self, before: Ball | None) -> Ball | None:
        if self.p is None:
            return before
        if before is None:
            return Ball(self.p, self.value)
        if before.p != self.p:
            raise ModelError(
                f"{self.unknown.text} is bounded in the {before.p:g}-norm already; the closed form of its update is known for one "
                "norm, so keep one of the two",
                term=self.text,
            )
        return Ball(self.p, min(self.value, before.radius))


class KernelWeights(LearnedUnknown):
    """The weights theta (M,) >= 0 of M task similarities, learned beside W: `mkl_norm(W, similarities, theta)`.

    number : M, or the list of similarities; None: as many as the similarities of the term it stands in
    The model bounds them: `p_norm(theta, 2) <= 1`, also `theta.sum() <= 1` (p = 1) and `theta <= 1` (p = inf). On the solution:
    `solution.theta.values`, `.names`, and `solution.kernel_weights`.

    >>> from mtldsl import KernelWeights, p_norm
    >>> theta = KernelWeights(3)
    >>> p_norm(theta, 2) <= 1
    p_norm(theta, 2) <= 1
    """

    axis: ClassVar[str] = "similarities"
    kind: ClassVar[str] = "weights"
    unconstrained: ClassVar[object] = None
    what = "is the weights of similarities, learned beside W"
    where = "mkl_norm(W, similarities, theta)"

    def __init__(self, number=None, name: str = "theta"):
        if isinstance(number, TaskSimilarity):
            number = [number]
        self.similarities = tuple(number) if isinstance(number, (list, tuple)) else ()
        if isinstance(number, (list, tuple)):
            number = None if all(isinstance(one, TaskSimilarity) for one in number) and number else 0
        if number is not None and not 1 <= (as_whole(number) or 0) <= _MANY:
            raise ModelError(
                term="KernelWeights(...)",
                write_instead="write the number of similarities, KernelWeights(3), or the list of them, KernelWeights(similarities)",
            )
        self._be_named(name)
        self.number = None if number is None else as_whole(number)

    @classmethod
    def declared(cls, tasks, name: str) -> KernelWeights:
        return cls(name=name)

    def of_tasks(self, tasks) -> KernelWeights:
        return KernelWeights(list(self.similarities) or self.number, self.name)

    @property
    def declaration(self) -> Spelled:
        return made("KernelWeights", 'similarities, name="..."')

    def sum(self) -> WeightsNorm:
        """The 1-norm, to be bounded: `theta.sum() <= 1`."""
        return WeightsNorm(self, 1.0, f"{self.text}.sum()")

    def _compare(self, bound: str, symbol: str, other):
        raise ModelError(
            f"{self.text} {symbol} {shown(other)}: {self.text} are weights, no matrix",
            write_instead=f"write p_norm({self.text}, 2) <= 1",
        )

    def trace(self):
        raise ModelError(
            f"{self.text}.trace(): {self.text} are weights, no matrix",
            write_instead=f"write p_norm({self.text}, 2) <= 1",
        )

    def __ge__(self, other):
        if number_of(other) != 0.0:
            raise ModelError(
                f"{self.text} >= {shown(other)}: kernel weights are >= 0 and bounded from above",
                write_instead=f"write p_norm({self.text}, 2) <= 1",
            )
        return BallConstraint(self, "norm", 0.0, f"{self.text} >= 0", rf"{self.latex} \geq 0", None)

    def __le__(self, other):
        return WeightsNorm(self, np.inf, self.text) <= other

    def _refuse(self, symbol: str, other):
        raise ModelError(
            f"{self.text} {symbol} {shown(other)}: {self.text} are weights that are learned",
            write_instead=f"write p_norm({self.text}, 2) <= 1, or in "
            f"place of {self.text} an array of given weights",
        )


class WeightsNorm:
    """||theta||_p in a comparison."""

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, unknown: KernelWeights, p: float, text: str):
        self.unknown, self.p, self.text = unknown, p, text

    def __repr__(self):
        return self.text

    def __le__(self, other) -> BallConstraint:
        return self._bounded("<=", other)

    def __eq__(self, other) -> BallConstraint:
        # the same: the penalty falls where weights grow, so that the bound is met with equality
        return self._bounded("==", other)

    def _bounded(self, symbol: str, other) -> BallConstraint:
        typed, radius = f"{self.text} {symbol} {shown(other)}", number_of(other)
        if radius is None or not 0 < radius < np.inf:
            raise ModelError("the bound must be a plain, finite number > 0, such as 1", term=typed)
        p = r"\infty" if np.isinf(self.p) else f"{self.p:g}"
        relation = r"\leq" if symbol == "<=" else "="
        latex = rf"\|{self.unknown.latex}\|_{{{p}}} {relation} {number_latex(radius)}"
        return BallConstraint(self.unknown, "norm", radius, typed, latex, self.p)

    def _refuse(self, symbol: str, other):
        raise ModelError(
            f"{self.text} {symbol} {shown(other)}: the weights are bounded from above",
            write_instead=f"write {self.text} <= 1",
        )

    def __ge__(self, other):
        self._refuse(">=", other)

    def __gt__(self, other):
        self._refuse(">", other)

    def __lt__(self, other):
        self._refuse("<", other)

    def __ne__(self, other):
        self._refuse("!=", other)

    def _no_arithmetic(self, *_):
        raise ModelError(
            "a norm of kernel weights stands in a comparison by itself",
            term=self.text,
            write_instead=f"write {self.text} <= 1",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _no_arithmetic


def p_norm(theta, p: float = 2.0) -> WeightsNorm:
    """||theta||_p of kernel weights, p in [1, inf], to be bounded: `p_norm(theta, p) <= 1`.

    p = 1 leaves some weights at zero, p = inf makes all of them 1 (`p_norm(theta, np.inf) <= 1`).
    """
    typed = f"p_norm({getattr(theta, 'text', shown(theta))}, {shown(p)})"
    if not isinstance(theta, KernelWeights):
        raise ModelError(
            "the first argument must be "
            + Spelled("KernelWeights, as in p_norm(KernelWeights(3), 2) <= 1", made("KernelWeights").file),
            term=typed,
        )
    return WeightsNorm(theta, checked_exponent(p, typed), typed)


def checked_exponent(p, typed: str) -> float:
    """p as a float; ModelError outside [1, inf]."""
    value = np.inf if isinstance(p, str) and p == "inf" else number_of(p)
    if value is None or not value >= 1.0:
        raise ModelError("p must be a number in [1, inf], such as 1, 2 or " + INFINITY, term=typed)
    return float(value)
