"""Weights over values of one parameter, each with its proof, and nothing else: what a choice on folds asks of a path.

`mtldsl.analysis.path` makes a whole `Solution` of every value, with all that is told of it. Where only scores are asked for, that costs as much as
the solve. Here a value is a turn of the solver that takes the model, from where the path leads to, watched like any other, and one of the next
solver where the first is there to be tried; where these do not end with a certificate of tol, `solve` goes on, with all that it tries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.analysis.ahead import Past, ahead
from mtldsl.analysis.few_rows import FewRows
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.centred import Centred, moved
from mtldsl.errors import InfeasibleError, SolverError
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.proof.certificate import Certificate
from mtldsl.proof.gap import over
from mtldsl.solution.readout import coef_of, intercept_of
from mtldsl.solution.solution import Solution
from mtldsl.solution.solved import facts_of_loss
from mtldsl.solvers import spans
from mtldsl.solvers.asking import turns_of
from mtldsl.solvers.registry import get_solver
from mtldsl.solvers.solver import Point, breakdowns
from mtldsl.solvers.warm_start import starting_point
from mtldsl.solvers.watcher import Watcher
from mtldsl.system import stops
from mtldsl.system.once import Store, remembering
from mtldsl.system.threads import one_blas_thread

__all__ = ["CertifiedPoint", "certified_points"]


#: so many numbers of weights are held at a time, for the scores of several values in one product
_HELD = 1 << 18

#: turns of solvers that a value may take before it is left to `solve`: what the first is there to try, the second is there to end
_TURNS = 2


@dataclass(frozen=True, eq=False)
class CertifiedPoint:
    """The weights at one value, what was proven of them, and what the next solve begins from. `loss` is as in `Solution`."""

    blocks: Blocks
    coef: np.ndarray
    intercept: np.ndarray | None
    certificate: Certificate
    iterations: int
    state: Point | None
    loss: dict[str, Any]


def certified_points(
    problem: Any, parameter: Parameter, values: Sequence[float], solve_options: dict[str, Any]
) -> Iterator[list[CertifiedPoint | Solution]]:
    """The weights at every value, each warm-started from the one before, as many at a time as take little memory; a `Solution` where more
    than a turn of each of two solvers was needed.

    problem       : a Problem
    solve_options : of `Problem.solve`; "solver" and "tol" are read here, and a limit of time leaves every value to `Problem.solve`
    A signal raises KeyboardInterrupt.
    """
    walk, before, at = _Walk(problem, len(values), solve_options), parameter.value, 0
    try:
        while at < len(values):
            points: list = []
            with stops.heard(), remembering(walk.made), one_blas_thread():
                while at < len(values) and sum(one.coef.size for one in points) <= _HELD:
                    parameter.value = float(values[at])
                    points.append(walk.at(float(values[at])))
                    at += 1
                    if stops.pending() or getattr(points[-1], "interrupted", False):
                        raise KeyboardInterrupt
            yield points
    finally:
        parameter.value = before


class _Walk:
    """Where a path has been, and how it goes on."""

    def __init__(self, problem, values: int, solve_options: dict[str, Any]):
        self.problem, self.options, self.tol = problem, solve_options, solve_options["tol"]
        self.loss = facts_of_loss(problem)
        self.made: Store = {}
        self.past, self.last = Past(), None
        self.ended = ""  # the solver that had the last value proven
        form = problem.form()
        # a limit of time counts what `solve` counts
        self.is_plain = form.in_memory and solve_options.get("max_seconds") is None
        pays = self.is_plain and FewRows.pays(form, values)
        self.few = FewRows(Centred().apply(form)[0]) if pays else None

    def at(self, value: float) -> CertifiedPoint | Solution:
        form = self.problem.form()
        found = self._in_few_turns(form, value) if self.is_plain and form.is_convex else None
        if found is not None:
            return found
        if self.few is not None:  # the next values would fare no better on few rows
            self.few, self.past, self.last = None, Past(), None
        start = ahead(form, self.past, self.last, value)
        solution = self.problem.solve(warm_start=start, **self.options)
        self._keep(value, solution)
        return solution

    def _keep(self, value: float, found) -> None:
        self.last, self.past = found, self.past.then(value, found)

    def _in_few_turns(self, form: NormalForm, value: float) -> CertifiedPoint | None:
        """None where it does not end with a certificate of tol."""
        near, moves = Centred().apply(form)
        seen = near if self.few is None else self.few.of(near)
        start = starting_point(seen, ahead(seen, self.past, self.last, value))
        if start is not None and self.few is None:
            start.blocks = moved(start.blocks, moves, -1.0)
        watcher = _watched(seen, start, self.options.get("solver", "auto"), self.tol, first=self.ended)
        if watcher is None or not watcher.certificate.within(self.tol):
            return None
        point, certificate, blocks = watcher.last_point, watcher.certificate, watcher.kept.blocks
        assert point is not None  # that of the certificate, or a later one
        whole = blocks if self.few is None else self.few.whole(blocks)
        typed = moved(whole, moves)
        if moves:
            whole = moved(typed, moves, -1.0)  # intercepts are rounded where they are moved
            certificate = replace(certificate, objective=near.value(whole))
        misplaced = 0.0 if self.few is None else self.few.misplaced(whole)
        if not _within(certificate, misplaced, self.tol):
            return None
        coef = coef_of(self.problem, blocks)
        intercept = intercept_of(self.problem, typed, coef.shape[1])
        found = CertifiedPoint(typed, coef, intercept, certificate, point.iteration, point, self.loss)
        self._keep(value, found)
        self.ended = watcher.solver
        return found


def _within(certificate: Certificate, misplaced: float, tol: float) -> bool:
    """Whether it still is where objective and bound may each be off by so much more."""
    size = over(max(abs(certificate.objective), abs(certificate.dual_bound)), certificate.scale)
    return abs(certificate.relative_gap) + 2.0 * misplaced / size <= tol


def _watched(form: NormalForm, start: Point | None, solver: str, tol: float, first: str) -> Watcher | None:
    """What was seen of the first turns of the solvers that take the form, each from where the one before it got to; None where one failed.

    first : a solver to go before the others where it takes the form; it ended at a value near this one
    """
    turns, watcher = turns_of(form, solver, {}, first=first), Watcher(form, tol, None)
    at = start
    for _ in range(_TURNS):
        if not turns:
            break
        turn = turns.next()
        chosen = get_solver(turn.name)
        watcher.begin(turn.name, turn.progress(), below_guesses=True)
        try:
            with stops.at_once(), breakdowns(turn.name):
                spans.solver_of(chosen, form, {})(
                    form, tol=tol, max_iter=chosen.max_iter, start=at, watch=watcher
                )
        except (SolverError, InfeasibleError):
            return None
        if watcher.certificate.within(tol):
            break
        at = watcher.point_to_go_on_from()
    return watcher
