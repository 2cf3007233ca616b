"""What a solver is: it takes a normal form it accepts and reports primal-dual points until it is told to stop."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import contextmanager
from typing import ClassVar, Protocol

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError
from mtldsl.solvers.point import Point
from mtldsl.solvers.watches import Watch

__all__ = ["Point", "Solver", "Watch", "breakdowns"]


class Solver(Protocol):
    """All that is asked of a solver. A class that inherits from it says only where it differs; objects with all these members will do.

    name            : as in solve(solver=...)
    summary         : one line for explain() and the docs
    options         : option -> its default, each a further keyword argument of `solve`; others are refused by the caller
    choices         : of options that are one of some words, these words
    writes          : options that name a file to write
    max_iter        : the iterations that a run has where nobody says how many
    takes_nonconvex : whether it is asked about forms with functions that are not convex
    needs_rows      : whether it is asked only about losses whose rows are in this process
    takes_spans     : whether models of few samples go to it in the coordinates of their span (`spans`)
    below_guesses   : whether no point that it ends at lies above its start, zero or the best constants by more than the accuracy asked for;
                      then these are not even looked at where it ends with a proof
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[Mapping[str, object]] = {}
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    writes: ClassVar[tuple[str, ...]] = ()
    max_iter: ClassVar[int] = 100_000
    takes_nonconvex: ClassVar[bool] = False
    needs_rows: ClassVar[bool] = True
    takes_spans: ClassVar[bool] = False
    below_guesses: ClassVar[bool] = False

    @abstractmethod
    def refuses(self, form: NormalForm) -> str | None:
        """None where this solver takes the form, otherwise one sentence that a user understands."""

    def solves_only(self, form: NormalForm) -> str | None:
        """The kind of models that it is for ("models with smooth losses"), where the form is of another one; None where it is of that
        kind, and `refuses` says what stands in the way."""
        return None

    def yields(self, form: NormalForm) -> str | None:
        """Why another solver that takes the form too should be tried first; None where there is no reason."""
        return None

    def is_nearest(self, form: NormalForm) -> bool:
        """Whether its refusal is among those that are told where no solver takes the form; asked of the package's own solvers."""
        return False

    def patience(self, form: NormalForm) -> int:
        """Iterations without progress after which another solver, where one takes the form too, has its turn."""
        return 300

    def pace(self, form: NormalForm) -> float:
        """Share to which the gap must fall, whenever the iterations of a first turn double, for that to be progress: less than a half
        where the run is short on easy models, and another solver is faster on those where it begins slowly."""
        return 0.5

    def shift(self, form: NormalForm) -> float:
        """Iterations after which a first turn ends, whatever its progress: fewer than no limit where this solver is the fastest on easy
        models and another one, which takes the form too, on hard ones."""
        return math.inf

    @abstractmethod
    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        """Run until `watch` returns True or max_iter is reached; return the last point.

        tol is the relative duality gap the caller is after: it may steer inner accuracies and how often `watch` is called.
        A solver calls `watch` at its first point, at its last, and in between at a rhythm that costs it little."""


@contextmanager
def breakdowns(name: str):
    """What linear algebra and arithmetic refuse inside, as SolverError: a model with numbers far apart is not a fault of the program.

    An overflow, a division by zero and a NaN that comes of numbers count among it, which numpy would only warn about: what a
    solver makes of them is worth nothing. Where one is meant (the exponential of a large score, in a step that is then refused),
    `np.errstate(over="ignore")` says so.

    >>> with breakdowns("admm"):
    ...     np.linalg.inv(np.zeros((2, 2)))
    Traceback (most recent call last):
    mtldsl.errors.SolverError: admm broke down numerically (Singular matrix); bring parameters and data to similar sizes
    """
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (np.linalg.LinAlgError, ArithmeticError) as error:
        raise SolverError(
            f"{name} broke down numerically ({error})",
            write_instead="bring parameters and data to similar sizes",
        ) from error
