"""Runs solvers on a normal form and believes only the certificate: best primal point, best dual bound, and when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.centred import Moves, moved
from mtldsl.compile.terms.structure import Structures, kept_value, learned_matrices
from mtldsl.errors import InfeasibleError, LostClusterError, SolverError
from mtldsl.proof.attainment import Unattained, unattained
from mtldsl.proof.bound import prove
from mtldsl.proof.certificate import Certificate
from mtldsl.proof.gap import over
from mtldsl.proof.infeasibility import feasibility
from mtldsl.proof.rounding import rounding_of
from mtldsl.solvers.asking import turns_of
from mtldsl.solvers.easier import Easier
from mtldsl.solvers.registry import get_solver
from mtldsl.solvers.solver import Point, breakdowns
from mtldsl.solvers.watcher import Watcher
from mtldsl.system import passes, stops
from mtldsl.system.memory import memory_errors
from mtldsl.system.threads import on_one_blas_thread
from mtldsl.system.told import Listener

__all__ = ["COARSE_INTERCEPTS", "Outcome", "as_typed", "drive"]

#: The note of an objective that lies above the one found, for its intercepts are rounded.
COARSE_INTERCEPTS = "beside numbers so far from zero float64 has no intercepts that are close enough: take their mean off the labels, and off columns"


@dataclass
class Outcome:
    """What came out of a drive: the best point, its certificate, and how it went."""

    blocks: Blocks
    certificate: Certificate
    status: str
    solver: str
    reason: str
    seconds: float
    iterations: int
    history: list[dict] = field(default_factory=list)
    last_point: Point | None = None
    structures: Structures | None = None  # None: the best ones for the weights
    duals: tuple = (None, None)  # multipliers of losses and functions that came with the point
    interrupted: bool = (
        False  # by a signal; the status may say more, where the point is certified all the same
    )
    starts: list[dict] = field(default_factory=list)  # what came of each, where there were several
    unattained: Unattained | None = None  # a proof that no weights are best


@on_one_blas_thread
def drive(
    form: NormalForm,
    *,
    solver: str,
    tol: float,
    max_iter: int | None,
    max_seconds: float | None,
    start: Point | None,
    listener: Listener | None = None,
    options: dict,
    simple_guesses: bool = True,
) -> Outcome:
    """Solve a normal form with one solver, or with the first that certifies where solver="auto".

    simple_guesses : whether zero and the best constants count as points seen too; the start always does
    """
    form.require_memory()
    if form.is_convex and not form.losses:
        start = None  # what is left of other weights would be smaller than a gap can be held against
    watcher = Watcher(form, tol, max_seconds, listener)
    watcher.expect_guesses(None if start is None else start.blocks, simple_guesses)
    status, certified, iterations, tried = "", False, 0, {}
    easier = Easier(form)
    turns = turns_of(easier.form, solver, options)
    while turns:
        turn = turns.next()
        name, chosen = turn.name, get_solver(turn.name)
        usual = getattr(chosen, "usual_passes", None)  # (least, most) of a solver that makes passes
        if usual is not None:
            passes.expect(name, usual(form))
        watcher.begin(name, turn.progress(), chosen.below_guesses)
        point, failure = None, None
        try:
            with (
                stops.time_limit(watcher.remaining),
                stops.at_once(),
                breakdowns(name),
                memory_errors(name),
            ):
                point = easier.solve(
                    chosen,
                    options,
                    tol=tol,
                    max_iter=max_iter if max_iter is not None else chosen.max_iter,
                    start=turn.left_at if turn.left_at and watcher.kept_from == name else start,
                    watch=watcher,
                )
        except KeyboardInterrupt as stop:
            watcher.leave(stop)
        except LostClusterError:
            raise
        except (SolverError, InfeasibleError) as error:
            failure = (
                _proven_infeasible(form, watcher, error) if isinstance(error, InfeasibleError) else error
            )
            # a failed solver must not take the others' chance away; alone, its error is the answer
            if not turns and not watcher.history:
                raise failure from None
        shown = point or watcher.last_point
        iterations += shown.iteration if shown else 0
        if point is not None and watcher.may_restart:
            restart: Any = watcher.restart  # there, where the run may restart
            start = Point(restart, structures=learned_matrices(form, restart))
            turns.again(turn)
            continue
        if point is not None and point.stopped == "selected":
            watcher.insist_on(point)
        else:
            watcher.search_at_the_end()
        watcher.settle()
        watcher.bound_optimum()
        reached = watcher.certificate.within(tol), watcher.certificate.is_stationary(tol)
        certified = any(reached)
        if certified:
            status = "optimal" if reached[0] else "stationary"
        elif watcher.left:
            status = watcher.left
        elif failure is not None:
            status, watcher.note = "stalled", str(failure)
        else:
            assert point is not None  # nothing failed, and the run was not left
            early = not form.is_convex and point.iteration < (max_iter or chosen.max_iter)
            status = watcher.stopped or point.stopped or ("stalled" if early else "iteration_limit")
        if certified or watcher.left or status in ("time_limit", "unattained"):
            break
        how = f"{name} failed ({failure})" if failure else _ended(form, name, watcher, status)
        tried[name] = (bool(failure), how)
        if point is not None and watcher.stopped == "stalled":
            turns.wait(turn, point)
        if not watcher.kept.is_guess or watcher.restart is not None:
            start = watcher.point_to_go_on_from()
    found = watcher.unattained
    if found is None and watcher.left in ("", "time_limit"):
        hurried = bool(watcher.left) or watcher.certificate.within(tol)
        found = unattained(form, watcher.kept.blocks, in_passing=hurried)
    if found is not None:
        # of a convex model no weights are best, however near to the infimum these are
        status = status if watcher.certificate.within(tol) and not found.everywhere else "unattained"
        certified = True  # no more is known by going on
    kept = watcher.kept
    if (
        not (certified or watcher.left or status == "time_limit")
        and kept.violation > tol
        and form.constraints
    ):
        _proven_infeasible(form, watcher)
        kept = watcher.kept
    if not certified and form.is_convex and watcher.bound == -np.inf:
        status = "uncertified" if status in ("stalled", "iteration_limit", "") else status
    reason = _reason(solver, watcher.solver, tried)
    certificate = watcher.certificate if found is None else replace(watcher.certificate, note=str(found))
    return Outcome(
        kept.blocks, certificate, status, watcher.solver, reason, watcher.seconds, iterations,
        watcher.history, watcher.last_point, kept.structures, watcher.duals, watcher.left == "interrupted" or stops.pending(),
        unattained=found,
    )  # fmt: skip


def as_typed(outcome: Outcome, form: NormalForm, typed: NormalForm, moves: Moves, tol: float) -> Outcome:
    """What came out of a drive of labels and columns moved to zero (`Centred`, whose result `form` is), in the units typed.

    The bound is that of the numbers moved; multipliers are handed on as the form as typed takes them, where they prove less. An intercept beside labels of 1e15 is a multiple of 1/8 in float64: the objective is that of the intercepts as they are returned, not
    of those found, and what they do not reach is not called optimal, nor stationary.
    """
    if not moves:
        return outcome
    blocks, found, known = moved(outcome.blocks, moves), outcome.certificate, outcome.structures
    rounded = moved(blocks, moves, -1.0)  # to the last digit
    certificate = replace(
        found,
        objective=form.value(rounded) if known is None else kept_value(form, rounded, known),
        violation=form.violation(rounded),
    )
    if found.proof is not None and found.proof.loss_duals:
        rounding = rounding_of(form, rounded, found.proof, certificate.objective)
        proof = prove(typed, blocks, found.proof.loss_duals, found.proof.function_duals)
        proof = proof if math.isfinite(proof.value) else found.proof
        certificate = replace(certificate, rounding=max(found.rounding, rounding), proof=proof)
    status = outcome.status
    missed = certificate.objective - found.objective > tol * over(abs(found.objective), found.scale)
    if (status == "optimal" and not certificate.within(tol)) or (status == "stationary" and missed):
        status = "stalled"
        certificate = replace(certificate, note=COARSE_INTERCEPTS)
    endless = outcome.unattained
    if endless is not None:
        turned = {name: replace(shift, centre=0.0 * shift.centre) for name, shift in moves.items()}
        endless = replace(endless, direction=moved(endless.direction, turned))
    return replace(outcome, blocks=blocks, certificate=certificate, status=status, unattained=endless)


def _ended(form: NormalForm, name: str, watcher: Watcher, status: str) -> str:
    kind = "relative gap" if form.is_convex else "residual"
    return f"{name} stopped at a {kind} of {watcher.certificate.distance:.1e} ({status.replace('_', ' ')})"


def _proven_infeasible(
    form: NormalForm, watcher: Watcher, word: InfeasibleError | None = None
) -> SolverError:
    """InfeasibleError with a proof of our own; where there is none, the weights found are kept, and what is known is returned."""
    typed = "; ".join(f.typed for f in form.constraints)
    known = feasibility(form, watcher.kept.blocks)
    if known.is_disproven:
        raise InfeasibleError(f"{typed}. Relax or leave out one of them", term=known.said) from word
    if known.violation <= watcher.tol:
        watcher(Point(known.blocks))
        return SolverError(f"{word}; but weights that satisfy them were found")
    return SolverError(
        f"no weights were found that satisfy all constraints at once, nor a proof that there are none: {typed}; the nearest found "
        f"violate them by {known.violation:.1e}. Standardise the features, or relax a constraint"
    )


def _reason(asked: str, used: str, tried: dict[str, tuple[bool, str]]) -> str:
    """Why this solver: what it is for, and how the last turns of the others, name -> (whether it failed, in words), ended."""
    others = [how for name, (failed, how) in tried.items() if failed or name != used]
    summary = get_solver(used).summary if asked == "auto" else f"{used} was asked for"
    return summary + (f" (after {'; '.join(others)})" if others else "")
