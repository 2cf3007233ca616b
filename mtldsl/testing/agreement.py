"""Assertions for users' own tests."""

from __future__ import annotations

from mtldsl.check.cross_check import BlockCheck, Checkable, CrossCheck, cross_check
from mtldsl.errors import CrossCheckError
from mtldsl.solution.solution import Solution

__all__ = ["assert_agrees"]


def assert_agrees(
    problem: Checkable, solution: Solution | None = None, *, tol: float | None = None, **options
) -> CrossCheck | BlockCheck:
    """Assert that the fast solver certifies its solution and that the cvxpy reference agrees with it.

    `tol` and the options are those of `mtldsl.check.cross_check.cross_check`. Returns the check; raises
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
