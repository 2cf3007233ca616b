"""A matrix that is learned beside the weights, as it stands in words and constraints."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mtldsl.atoms.structures import Range
from mtldsl.errors import ModelError, Spelled
from mtldsl.language.expressions.latex import number_latex
from mtldsl.language.spelling import made
from mtldsl.language.unknowns.ranges import RangeConstraint, Trace, number_of, shown
from mtldsl.shown.math import matrix_latex
from mtldsl.tasks import Tasks

__all__ = ["LearnedUnknown"]


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
                shown(other)
                if number_of(other) is not None
                else {">>": "0.01", "<<": "100"}.get(better or "")
            )
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
