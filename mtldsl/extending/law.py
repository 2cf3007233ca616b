"""A law: a sentence that holds of every function of a kind, and the check of it on one example."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from mtldsl.errors import CrossCheckError, MTLError
from mtldsl.problems.cross_check import BlockCheck, CrossCheck, cross_check
from mtldsl.solution.solution import Solution

# --------------------------------------------------------------------------------------------------------------
# Assertions for users' own tests.


def assert_agrees(
    problem: Any, solution: Solution | None = None, *, tol: float | None = None, **options
) -> CrossCheck | BlockCheck:
    """Assert that the fast solver certifies its solution and that the cvxpy reference agrees with it.

    `tol` and the options are those of `mtldsl.problems.cross_check.cross_check`. Returns the check; raises
    CrossCheckError, which is an AssertionError and carries the table, where the two disagree or the fast
    solution is not certified.

    >>> import numpy as np, mtldsl as mtl
    >>> from mtldsl.testing import assert_agrees
    >>> tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0, 1], [1, -1]]))
    >>> W = mtl.Weights(tasks)
    >>> check = assert_agrees(mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W)))
    >>> check.solver != "cvxpy", check.agrees
    (True, True)
    """
    check = cross_check(problem, solution, tol=tol, **options)
    if not check.agrees or not check.certified:
        raise CrossCheckError(str(check))
    return check


class LawError(MTLError, AssertionError):
    """A law does not hold of a function or a solver; the message names the law, the example and both numbers."""


@dataclass(frozen=True)
class Law:
    """`check(subject, **case)` raises where the law does not hold; `applies(subject)` says whether it is about it.

    cases : name of an argument -> its values by name, or a function of the subject that gives these
    """

    name: str
    says: str
    check: Callable
    kind: type
    applies: Callable[[Any], object]
    cases: dict[str, Any]

    def cases_of(self, subject) -> Iterator[dict[str, tuple[str, object]]]:
        """Every combination of arguments: name -> (what it is called, value)."""
        if not (isinstance(subject, self.kind) and self.applies(subject)):
            return
        choices = []
        for argument, values in self.cases.items():
            found: Any = values(subject) if callable(values) else values
            named: Mapping[str, Any] = (
                found if isinstance(found, Mapping) else {str(value): value for value in found}
            )
            choices.append([(argument, (name, value)) for name, value in named.items()])
        for chosen in product(*choices):
            yield dict(chosen)


def law(into: list[Law], kind: type, applies: Callable[[Any], object] = lambda subject: True, **cases):
    """Function decorator: this is a law about subjects of that kind, checked in every combination of cases. Its docstring says it."""

    def enter(check: Callable) -> Callable:
        says = " ".join((check.__doc__ or check.__name__.replace("_", " ")).split())
        into.append(Law(check.__name__, says, check, kind, applies, cases))
        return check

    return enter


@dataclass(frozen=True)
class Case:
    """One law on one example, ready to run."""

    law: Law
    subject: object
    about: str  # the example in words
    arguments: dict[str, tuple[str, object]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return "-".join([self.law.name, self.about, *(name for name, _ in self.arguments.values())])

    def run(self) -> None:
        """LawError where the law does not hold, or where something is raised or warned of on the way."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                self.law.check(self.subject, **{name: value for name, (_, value) in self.arguments.items()})
        except AssertionError as error:
            raise LawError(f"{self._place()}: {error}\n  the law: {self.law.says}") from error
        except Exception as error:
            raise LawError(
                f"{self._place()}: {type(error).__name__}: {error}\n  the law: {self.law.says}"
            ) from error

    def _place(self) -> str:
        given = ", ".join(f"{argument}={name}" for argument, (name, _) in self.arguments.items())
        return f"{self.about} breaks {self.law.name}{f' ({given})' if given else ''}"


def cases_of(laws: list[Law], subject, about: str) -> list[Case]:
    """Everything that the laws say of a subject."""
    return [Case(one, subject, about, arguments) for one in laws for arguments in one.cases_of(subject)]


# ------------------------------------------------------------------------------ what laws are written with


def holds(condition, what: str) -> None:
    """AssertionError with the sentence `what` where the condition does not hold."""
    if not condition:
        raise AssertionError(what)


def same(found, expected, what: str, rel: float = 1e-6, abs: float = 1e-12) -> None:
    """AssertionError where two numbers differ by more than rel of the second, and by more than abs."""
    if not (found == expected or np.abs(found - expected) <= max(rel * np.abs(expected), abs)):
        raise AssertionError(f"{what}: {found!r} is not {expected!r} (allowed: {rel:g} of it, {abs:g})")


def same_arrays(found, expected, what: str, rtol: float = 1e-7, atol: float = 0.0) -> None:
    """AssertionError where arrays differ by more than atol plus rtol of the second."""
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=what)
