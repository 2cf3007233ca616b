"""Unknowns learned beside the weights: precisions, covariances, kernel weights, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall
from mtldsl.data.tasks import Tasks
from mtldsl.display.math import matrix_latex
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.constraints import (
    RangeConstraint,
    Trace,
    UpperBounded,
    number_of,
    quote_value,
    refused_comparison,
)
from mtldsl.language.scalars import INFINITY, constructor_text, number_latex, require_identifier
from mtldsl.language.task_similarity import TaskSimilarity
from mtldsl.utils.validation import as_whole

# --------------------------------------------------------------------------------------------------------------
# A matrix that is learned beside the weights, as it stands in words and constraints.


class LearnedUnknown:
    """Base of the matrices that are learned beside the weights; users make one of the kinds in `covariances` and `kernel_weights`."""

    __array_ufunc__ = None  # numpy arrays on the left defer to the operators below
    __hash__ = object.__hash__
    axis: ClassVar[str]  # "features" (d x d) or "tasks" (m x m)
    kind: ClassVar[str]  # "precision" or "covariance"
    precedence = 3
    unconstrained: ClassVar[object] = Range()  # what is known of it before any constraint
    what: ClassVar[str] = "is a matrix that is learned beside the weights"
    where: ClassVar[str] = "matrix_normal(W, Sigma1, Sigma2)"  # a word it stands in
    parts: ClassVar[tuple] = ()  # of weights, as the argument of a term: l1_norm(Sigma2)
    offset: ClassVar[None] = None

    def __init__(self, tasks: Tasks, name: str):
        word = type(self).__name__
        if not isinstance(tasks, Tasks):
            raise ModelError(
                f"{word}({type(tasks).__name__}): the argument must be a Tasks object",
                write_instead=f"write {word}(Tasks.shared(X, Y))",
            )
        self._be_named(name)
        self.tasks = tasks

    def _be_named(self, name: str) -> None:
        require_identifier(name, type(self).__name__, "'Sigma1'")
        self.name = self.text = name
        self.latex = matrix_latex(name)

    @classmethod
    def declared(cls, tasks: Tasks, name: str) -> LearnedUnknown:
        """The unknown of that name in a model of these tasks."""
        return cls(tasks, name)

    @property
    def declaration(self) -> Spelled:
        """Return how another of this kind is declared."""
        return constructor_text(type(self).__name__, 'tasks, name="..."')

    @property
    def side(self) -> int:
        return self.tasks.n_features if self.axis == "features" else self.tasks.n_tasks

    @property
    def shape(self) -> tuple[int, int]:
        return self.side, self.side

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its rows and columns."""
        return tuple(self.tasks.feature_names if self.axis == "features" else self.tasks.task_names)

    def __repr__(self):
        return self.text

    def of_tasks(self, tasks: Tasks) -> LearnedUnknown:
        """The same unknown for other data."""
        return type(self)(tasks, self.name)

    # --------------------------------------------------------------------------------------- constraints

    def __rshift__(self, other):
        return self._compare("lower", ">>", other)

    def __lshift__(self, other):
        return self._compare("upper", "<<", other)

    def __rlshift__(self, other):  # l << S
        return self._compare("lower", ">>", other)

    def __rrshift__(self, other):  # u >> S
        return self._compare("upper", "<<", other)

    def _compare(self, bound: str, symbol: str, other) -> RangeConstraint:
        typed = f"{self.text} {symbol} {quote_value(other)}"
        if self.kind == "covariance":
            raise ModelError(
                "a covariance is bounded by its trace",
                term=typed,
                write_instead=f"write {self.text}.trace() <= 1",
            )
        value = number_of(other)
        if value is None:
            raise ModelError(
                "the bound must be a plain number, which stands for that multiple of the identity",
                term=typed,
                write_instead=f"write {self.text} {symbol} {'0.01' if bound == 'lower' else '100'}",
            )
        if not (0 < value < np.inf):
            raise ModelError("a bound on a precision must be a finite number > 0", term=typed)
        sign = r"\succeq" if bound == "lower" else r"\preceq"
        multiple = "I" if value == 1.0 else f"{number_latex(value)} I"
        return RangeConstraint(self, bound, value, typed, f"{self.latex} {sign} {multiple}")

    def trace(self) -> Trace:
        """The trace, to be bounded: `D.trace() <= 1`."""
        return Trace(self)

    def _refuse(self, symbol: str, other):
        if self.kind == "covariance":
            advice = f"write {self.text}.trace() <= 1"
        else:
            better = {">=": ">>", ">": ">>", "<=": "<<", "<": "<<"}.get(symbol)
            bound = (
                quote_value(other)
                if number_of(other) is not None
                else {">>": "0.01", "<<": "100"}.get(better or "")
            )
            advice = (
                f"write {self.text} {better} {bound}, in the order of semidefinite matrices"
                if better
                else f"write a given matrix in place of {self.text}, as in matrix_normal(W, A, Sigma2)"
            )
        raise ModelError(
            f"{self.text} {symbol} {quote_value(other)}: {self.text} is a matrix that is learned; {advice}"
        )

    __ge__, __le__, __gt__, __lt__, __eq__, __ne__ = map(
        refused_comparison, (">=", "<=", ">", "<", "==", "!=")
    )

    def _no_arithmetic(self, *_):
        raise ModelError(
            f"{self.text} {self.what}: it stands inside a word such as {self.where} and in constraints, not in arithmetic"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _no_arithmetic
    __truediv__ = __rtruediv__ = __neg__ = __pos__ = __pow__ = __getitem__ = _no_arithmetic

    @property
    def T(self):
        self._no_arithmetic()


# --------------------------------------------------------------------------------------------------------------
# Precisions and covariances of features and of tasks: the matrices that FETR, MTFL and MTRL learn.


class FeaturePrecision(LearnedUnknown):
    """The precision of the features, Sigma1 (d, d), learned beside W (d, m); its inverse is their covariance.

    It stands in `matrix_normal(W, Sigma1, Sigma2)`, and constraints bound its eigenvalues: `Sigma1 >> 0.01`, `Sigma1 << 100`
    mean 0.01 I <= Sigma1 <= 100 I. On the solution: `solution.Sigma1.precision`, `.covariance`, `.correlation`.

    >>> from mtldsl import FeaturePrecision
    >>> import numpy as np, mtldsl as mtl
    >>> Sigma1 = FeaturePrecision(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    >>> Sigma1.shape, Sigma1 >> 0.01
    ((3, 3), Sigma1 >> 0.01)
    """

    axis, kind = "features", "precision"

    def __init__(self, tasks: Tasks, name: str = "Sigma1"):
        super().__init__(tasks, name)


class TaskPrecision(LearnedUnknown):
    """The precision of the tasks, Sigma2 (m, m), learned beside W (d, m); see `FeaturePrecision`.

    >>> from mtldsl import TaskPrecision
    >>> import numpy as np, mtldsl as mtl
    >>> TaskPrecision(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))) << 100
    Sigma2 << 100
    """

    axis, kind = "tasks", "precision"

    def __init__(self, tasks: Tasks, name: str = "Sigma2"):
        super().__init__(tasks, name)


class FeatureCovariance(LearnedUnknown):
    """The covariance of the features, D (d, d), learned beside W (d, m): MTFL's.

    It stands in `feature_covariance_norm(W, D)`, and a constraint bounds its trace: `D.trace() <= 1`.

    >>> from mtldsl import FeatureCovariance
    >>> import numpy as np, mtldsl as mtl
    >>> FeatureCovariance(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))).trace() <= 1
    D.trace() <= 1
    """

    axis, kind = "features", "covariance"

    def __init__(self, tasks: Tasks, name: str = "D"):
        super().__init__(tasks, name)


class TaskCovariance(LearnedUnknown):
    """The covariance of the tasks, Omega (m, m), learned beside W (d, m): MTRL's.

    It stands in `task_covariance_norm(W, Omega)`, and a constraint bounds its trace: `Omega.trace() <= 1`.

    >>> from mtldsl import TaskCovariance
    >>> import numpy as np, mtldsl as mtl
    >>> TaskCovariance(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))).shape
    (2, 2)
    """

    axis, kind = "tasks", "covariance"

    def __init__(self, tasks: Tasks, name: str = "Omega"):
        super().__init__(tasks, name)


# --------------------------------------------------------------------------------------------------------------
# The weights of task similarities as an unknown, and the ball that a model keeps them in.


#: Largest number of similarities that may be typed, more than a model can hold.
ALLOWED_SIMILARITIES = 1 << 31


@dataclass(frozen=True, eq=False, repr=False)
class BallConstraint(RangeConstraint):
    """||theta||_p <= value; p None: theta >= 0 alone, which holds anyway."""

    p: float | None = 2.0

    def tighten(self, before: KernelWeightBall | None) -> KernelWeightBall | None:
        if self.p is None:
            return before
        if before is None:
            return KernelWeightBall(self.p, self.value)
        if before.p != self.p:
            raise ModelError(
                f"{self.unknown.text} is bounded in the {before.p:g}-norm already; the closed form of its update is known for one "
                "norm, so keep one of the two",
                term=self.text,
            )
        return KernelWeightBall(self.p, min(self.value, before.radius))


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
        if number is not None and not 1 <= (as_whole(number) or 0) <= ALLOWED_SIMILARITIES:
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
        return constructor_text("KernelWeights", 'similarities, name="..."')

    def sum(self) -> WeightsNorm:
        """The 1-norm, to be bounded: `theta.sum() <= 1`."""
        return WeightsNorm(self, 1.0, f"{self.text}.sum()")

    def _compare(self, bound: str, symbol: str, other):
        raise ModelError(
            f"{self.text} {symbol} {quote_value(other)}: {self.text} are weights, no matrix",
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
                f"{self.text} >= {quote_value(other)}: kernel weights are >= 0 and bounded from above",
                write_instead=f"write p_norm({self.text}, 2) <= 1",
            )
        return BallConstraint(self, "norm", 0.0, f"{self.text} >= 0", rf"{self.latex} \geq 0", None)

    def __le__(self, other):
        return WeightsNorm(self, np.inf, self.text) <= other

    def _refuse(self, symbol: str, other):
        raise ModelError(
            f"{self.text} {symbol} {quote_value(other)}: {self.text} are weights that are learned",
            write_instead=f"write p_norm({self.text}, 2) <= 1, or in "
            f"place of {self.text} an array of given weights",
        )


class WeightsNorm(UpperBounded):
    """||theta||_p in a comparison."""

    what = "a norm of kernel weights stands"
    refused = dict.fromkeys((">=", ">", "<", "!="), "the weights are bounded from above")

    def __init__(self, unknown: KernelWeights, p: float, text: str):
        super().__init__(unknown, text)
        self.p = p

    def bounded(self, symbol: str, other) -> BallConstraint:
        typed, radius = f"{self.text} {symbol} {quote_value(other)}", number_of(other)
        if radius is None or not 0 < radius < np.inf:
            raise ModelError("the bound must be a plain, finite number > 0, such as 1", term=typed)
        p = r"\infty" if np.isinf(self.p) else f"{self.p:g}"
        relation = r"\leq" if symbol == "<=" else "="
        latex = rf"\|{self.unknown.latex}\|_{{{p}}} {relation} {number_latex(radius)}"
        return BallConstraint(self.unknown, "norm", radius, typed, latex, self.p)


def p_norm(theta, p: float = 2.0) -> WeightsNorm:
    """||theta||_p of kernel weights, p in [1, inf], to be bounded: `p_norm(theta, p) <= 1`.

    p = 1 leaves some weights at zero, p = inf makes all of them 1 (`p_norm(theta, np.inf) <= 1`).
    """
    typed = f"p_norm({getattr(theta, 'text', quote_value(theta))}, {quote_value(p)})"
    if not isinstance(theta, KernelWeights):
        raise ModelError(
            "the first argument must be "
            + Spelled(
                "KernelWeights, as in p_norm(KernelWeights(3), 2) <= 1",
                constructor_text("KernelWeights").file,
            ),
            term=typed,
        )
    return WeightsNorm(theta, checked_exponent(p, typed), typed)


def checked_exponent(p, typed: str) -> float:
    """p as a float; ModelError outside [1, inf]."""
    value = np.inf if isinstance(p, str) and p == "inf" else number_of(p)
    if value is None or not value >= 1.0:
        raise ModelError("p must be a number in [1, inf], such as 1, 2 or " + INFINITY, term=typed)
    return float(value)
