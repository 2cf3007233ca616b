"""Matrices that are learned beside the weights: precisions and covariances of features and of tasks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.atoms.structures import Range
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.expressions.latex import escaped, number_latex
from mtldsl.language.expressions.scalar import Number, Scalar
from mtldsl.language.spelling import made
from mtldsl.tasks import Tasks
from mtldsl.values.number import as_float, is_scalar, quoted

__all__ = [
    "FeatureCovariance",
    "FeaturePrecision",
    "LearnedUnknown",
    "RangeConstraint",
    "TaskCovariance",
    "TaskPrecision",
    "Trace",
    "matrix_latex",
    "number_of",
    "ranges_of",
    "shown",
]


@dataclass(frozen=True, eq=False)
class RangeConstraint:
    """What one comparison says of a learned matrix: a bound on its eigenvalues or on its trace."""

    unknown: LearnedUnknown
    bound: str  # the field of `Range`: "lower", "upper" or "trace"
    value: float
    text: str
    latex: str

    def __bool__(self):
        raise ModelError(
            f"{self.text} has no truth value: write two constraints, subject_to=[S >> l, S << u], not a chain"
        )

    def __repr__(self):
        return self.text

    def _chained(self, other):
        raise ModelError(
            f"{self.text} is a constraint already, and a chain is two: write subject_to=[{self.unknown.text} >> 0.01, "
            f"{self.unknown.text} << 100]"
        )

    __rshift__ = __lshift__ = __rrshift__ = __rlshift__ = _chained

    def tighten(self, before: Range) -> Range:
        """What is known of the matrix with this constraint too; ModelError where the two contradict each other."""
        tightest = max if self.bound == "lower" else min
        now = replace(before, **{self.bound: tightest(self.value, getattr(before, self.bound))})
        if now.lower > now.upper:
            raise ModelError(
                f"no matrix has all eigenvalues >= {now.lower:g} and <= {now.upper:g}",
                term=self.text,
                write_instead=f"exchange or relax the bounds of {self.unknown.text}",
            )
        return now


class LearnedUnknown:
    """Base of the matrices that are learned beside the weights; users make one of the four kinds below."""

    __array_ufunc__ = None  # numpy arrays on the left defer to the operators below
    __hash__ = object.__hash__
    axis: ClassVar[str]  # "features" (d x d) or "tasks" (m x m)
    kind: ClassVar[str]  # "precision" or "covariance"
    precedence = 3
    unconstrained: ClassVar[object] = Range()  # what is known of it before any constraint
    what: ClassVar[str] = "is a matrix that is learned beside the weights"
    where: ClassVar[str] = "matrix_normal(W, Sigma1, Sigma2)"  # a word it stands in

    def __init__(self, tasks: Tasks, name: str):
        word = type(self).__name__
        if not isinstance(tasks, Tasks):
            raise ModelError(
                f"{word}({type(tasks).__name__}): the argument must be a Tasks object; write {word}(Tasks.shared(X, Y))"
            )
        self._be_named(name)
        self.tasks = tasks

    def _be_named(self, name: str) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(
                f"{type(self).__name__}(..., name={name!r}): a name must be a Python identifier such as 'Sigma1'"
            )
        self.name = self.text = name
        self.latex = matrix_latex(name)

    @classmethod
    def declared(cls, tasks: Tasks, name: str) -> LearnedUnknown:
        """The unknown of that name in a model of these tasks."""
        return cls(tasks, name)

    @property
    def declaration(self) -> Spelled:
        """How another of this kind is declared."""
        return made(type(self).__name__, 'tasks, name="..."')

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
        typed = f"{self.text} {symbol} {shown(other)}"
        if self.kind == "covariance":
            raise ModelError(f"{typed}: a covariance is bounded by its trace; write {self.text}.trace() <= 1")
        value = number_of(other)
        if value is None:
            raise ModelError(
                f"{typed}: the bound must be a plain number, which stands for that multiple of the identity; "
                f"write {self.text} {symbol} {'0.01' if bound == 'lower' else '100'}"
            )
        if not (0 < value < np.inf):
            raise ModelError(f"{typed}: a bound on a precision must be a finite number > 0")
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
            bound = shown(other) if number_of(other) is not None else {">>": "0.01", "<<": "100"}.get(better)
            advice = (
                f"write {self.text} {better} {bound}, in the order of semidefinite matrices"
                if better
                else f"write a given matrix in place of {self.text}, as in matrix_normal(W, A, Sigma2)"
            )
        raise ModelError(
            f"{self.text} {symbol} {shown(other)}: {self.text} is a matrix that is learned; {advice}"
        )

    def __ge__(self, other):
        self._refuse(">=", other)

    def __le__(self, other):
        self._refuse("<=", other)

    def __gt__(self, other):
        self._refuse(">", other)

    def __lt__(self, other):
        self._refuse("<", other)

    def __eq__(self, other):
        self._refuse("==", other)

    def __ne__(self, other):
        self._refuse("!=", other)

    def _no_arithmetic(self, *_):
        raise ModelError(
            f"{self.text} {self.what}: it stands inside a word such as {self.where} and in constraints, not in arithmetic"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _no_arithmetic
    __truediv__ = __rtruediv__ = __neg__ = __pos__ = __pow__ = __getitem__ = _no_arithmetic

    @property
    def T(self):
        self._no_arithmetic()


class Trace:
    """tr S in a comparison."""

    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, unknown: LearnedUnknown):
        self.unknown, self.text = unknown, f"{unknown.text}.trace()"

    def __repr__(self):
        return self.text

    def _no_arithmetic(self, *_):
        raise ModelError(f"{self.text}: a trace stands in a comparison by itself; write {self.text} <= 1")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _no_arithmetic
    __lshift__ = __rshift__ = __rlshift__ = __rrshift__ = _no_arithmetic

    def __le__(self, other) -> RangeConstraint:
        return self._compare("<=", other)

    def __eq__(self, other) -> RangeConstraint:
        # the same: the penalty falls where the trace grows, so that the bound is met with equality
        return self._compare("==", other)

    def _compare(self, symbol: str, other) -> RangeConstraint:
        typed, value = f"{self.text} {symbol} {shown(other)}", number_of(other)
        if self.unknown.kind == "precision":
            raise ModelError(
                f"{typed}: a precision is bounded in the order of semidefinite matrices; write "
                f"{self.unknown.text} >> 0.01, {self.unknown.text} << 100"
            )
        if value is None or not (0 < value < np.inf):
            raise ModelError(f"{typed}: the bound of a trace must be a plain, finite number > 0")
        relation = r"\leq" if symbol == "<=" else "="
        latex = rf"\operatorname{{tr}} {self.unknown.latex} {relation} {number_latex(value)}"
        return RangeConstraint(self.unknown, "trace", value, typed, latex)

    def __ge__(self, other):
        raise ModelError(
            f"{self.text} >= {shown(other)}: a trace is bounded from above; write {self.text} <= 1"
        )

    def __gt__(self, other):
        self.__ge__(other)

    def __lt__(self, other):
        raise ModelError(
            f"{self.text} < {shown(other)}: a strict inequality has no closed feasible set; write {self.text} <= 1"
        )

    def __ne__(self, other):
        raise ModelError(
            f"{self.text} != {shown(other)}: this is not a convex constraint; write {self.text} <= 1"
        )


class FeaturePrecision(LearnedUnknown):
    """The precision of the features, Sigma1 (d, d), learned beside W (d, m); its inverse is their covariance.

    It stands in `matrix_normal(W, Sigma1, Sigma2)`, and constraints bound its eigenvalues: `Sigma1 >> 0.01`, `Sigma1 << 100`
    mean 0.01 I <= Sigma1 <= 100 I. On the solution: `solution.Sigma1.precision`, `.covariance`, `.correlation`.

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

    >>> import numpy as np, mtldsl as mtl
    >>> TaskCovariance(mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))).shape
    (2, 2)
    """

    axis, kind = "tasks", "covariance"

    def __init__(self, tasks: Tasks, name: str = "Omega"):
        super().__init__(tasks, name)


_GREEK = re.compile(r"(Sigma|Omega|Lambda|Theta|theta|eta|beta|gamma|Phi|Psi)(\d*)$")


def matrix_latex(name: str) -> str:
    """Sigma1 as \\Sigma_1, D as D, Other as \\mathrm{Other}."""
    greek = _GREEK.match(name)
    if greek:
        index = greek[2] if len(greek[2]) < 2 else f"{{{greek[2]}}}"
        return rf"\{greek[1]}" + (f"_{index}" if index else "")
    return name if len(name) == 1 else rf"\mathrm{{{escaped(name)}}}"


def ranges_of(constraints) -> dict[LearnedUnknown, Range]:
    """What the constraints together say of everything learned; ModelError where they contradict each other."""
    found: dict[LearnedUnknown, Range] = {}
    for constraint in constraints:
        unknown = constraint.unknown
        found[unknown] = constraint.tighten(found.get(unknown, unknown.unconstrained))
    return found


def number_of(value) -> float | None:
    """A plain number as a float, of any size, also an infinite one or NaN; else None."""
    if is_scalar(value):
        return as_float(value)
    return value.value if isinstance(value, Number) else None


def shown(value) -> str:
    """A value as it is quoted in a message."""
    number = as_float(value) if is_scalar(value) else None
    if number is not None:
        return f"{number:.10g}"
    return value.text if isinstance(value, Scalar) else quoted(value)
