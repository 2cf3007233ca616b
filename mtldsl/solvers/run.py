"""Run loop of `solve()`: routes in turn on a normal form, until one is certified or none gets on."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from mtldsl.certificates.attainment import UnattainedInfimum, prove_unattained
from mtldsl.certificates.certificate import Certificate
from mtldsl.certificates.dual_bound import over, prove, rounding_of
from mtldsl.certificates.infeasibility import feasibility
from mtldsl.errors import InfeasibleError, LostClusterError, SolverError
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.reductions.coordinates import Moves, SampleSpan, shift_intercepts
from mtldsl.normal_form.reductions.null_space import NullSpace, NullSpaceRecovery
from mtldsl.normal_form.terms.structure_term import Structures, kept_value
from mtldsl.solvers.monitor import Monitor
from mtldsl.solvers.routes import get_solver, limit_of, schedule_for
from mtldsl.solvers.scheduler import Slot
from mtldsl.solvers.solver import MappedWatch, Point, Solver, Watch, breakdowns
from mtldsl.utils import interrupts, progress
from mtldsl.utils.memory import memory_errors
from mtldsl.utils.parallel import on_one_blas_thread
from mtldsl.utils.progress import Listener
from mtldsl.utils.validation import as_flag, as_float, as_whole, quoted

# --------------------------------------------------------------------------------------------------------------
# Runs of a solver in the span of the samples, where these are few: every step is cheaper, and the points shown are those of the model given.


@dataclass(frozen=True)
class SpanSettings:
    """Sizes up to which steps in the span of the samples pay: its coordinates take n^2 d flops, once, and a step saves some n d per task.

    samples             : most of them, n
    samples_per_task    : and no more than so many times the tasks
    features_per_sample : least of them, d / n
    """

    samples: int = 1000
    samples_per_task: int = 400
    features_per_sample: float = 2.0


SPAN_SETTINGS = SpanSettings()


def pays(form: NormalForm) -> bool:
    """Tell whether there are so few samples that steps in their span pay for its coordinates."""
    if not form.is_convex or len(form.losses) != 1 or form.losses[0].atom.quadratic is not None:
        return False
    tasks = form.losses[0].tasks
    if not tasks.is_shared or tasks.is_sparse:
        return False
    n, d = tasks.X.shape
    return (
        SPAN_SETTINGS.features_per_sample * n <= d
        and n <= min(SPAN_SETTINGS.samples, SPAN_SETTINGS.samples_per_task * tasks.n_tasks)
        and SampleSpan().accepts(form) is None
    )


# --------------------------------------------------------------------------------------------------------------
# A form as solvers see it: without equations that are solved beforehand. Points that they show are those of the form as given.


class ReducedForm:
    """The easier form of one form, which is the form itself where there is no other."""

    def __init__(self, given: NormalForm):
        self.form: NormalForm = given
        self.recipe: NullSpaceRecovery | None = None
        if not given.is_convex and NullSpace().accepts(given) is None:
            self.form, self.recipe = NullSpace().apply(given)

    def solve(self, solver: Solver, options: dict, *, start: Point | None, watch: Watch, **limits) -> Point:
        """The solver's last point, of the form given, as all that it shows to `watch`. limits : tol and max_iter.

        In the span of the samples where that pays, and nothing is asked of the run that is about the model as given.
        """
        in_span = solver.takes_spans and not options and pays(self.form)
        reduction: Any = SampleSpan() if in_span else NullSpace()
        form, recipe = reduction.apply(self.form) if in_span else (self.form, self.recipe)
        if recipe is None:
            return solver.solve(form, start=start, watch=watch, **limits, **options)
        back = partial(_taken_back, reduction, recipe)
        if start is not None:  # matrices of the given size are none of this form
            start = reduction.restricted(replace(start, structures=None), recipe)
        return back(solver.solve(form, start=start, watch=MappedWatch(watch, back), **limits, **options))


def _taken_back(reduction: Any, recipe: Any, point: Point) -> Point:
    """With its matrices those that are best for the weights."""
    steps = (
        replace(step, before=recipe.out(step.before), after=recipe.out(step.after))
        for step in point.majorizations
    )
    return replace(reduction.invert(point, recipe), structures=None, majorizations=tuple(steps))


# --------------------------------------------------------------------------------------------------------------
# Runs solvers on a normal form and believes only the certificate: best primal point, best dual bound, and when to stop.

#: The note of an objective that lies above the one found, for its intercepts are rounded.
COARSE_INTERCEPTS = "beside numbers so far from zero float64 has no intercepts that are close enough: take their mean off the labels, and off columns"


@dataclass
class SolveResult:
    """Result of a run: the best point, its certificate, and how it went."""

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
    unattained: UnattainedInfimum | None = None  # a proof that no weights are best


@on_one_blas_thread
def run_routes(
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
) -> SolveResult:
    """Solve a normal form with one solver, or with the first that certifies where solver="auto".

    simple_guesses : whether zero and the best constants count as points seen too; the start always does
    """
    form.require_memory()
    if form.is_convex and not form.losses:
        start = None  # what is left of other weights would be smaller than a gap can be held against
    monitor = Monitor(form, tol, max_seconds, listener)
    monitor.set_trial_points(None if start is None else start.blocks, simple_guesses)
    easier = ReducedForm(form)
    schedule = schedule_for(easier.form, solver, options)
    status, iterations, flops, tried = "", 0, 0.0, {}
    while (slot := schedule.next()) is not None:
        point, failure = _run_slot(slot, easier, monitor, options, max_iter, start)
        if monitor.stopped == "infeasible":
            _proven_infeasible(form, monitor)
            monitor.stopped = "stalled"  # the whole search proves less than the one in passing
        if failure is not None and not monitor.history and schedule.is_empty():
            raise failure from None  # alone, a failed solver's error is the answer
        shown = point or monitor.last_point
        iterations += shown.iteration if shown else 0
        if point is not None and (lower := monitor.point_to_restart_from()) is not None:
            start = lower
            schedule.again(slot)
            continue
        monitor.close(point)
        status = _status_of(monitor, point, failure, max_iter)
        if status in DONE or monitor.left:
            break
        kind = "relative gap" if form.is_convex else "residual"
        ended = f"stopped at a {kind} of {monitor.certificate.distance:.1e} ({status.replace('_', ' ')})"
        tried[slot.route] = bool(failure), f"{slot.route} {f'failed ({failure})' if failure else ended}"
        if point is not None and monitor.stopped == "stalled":
            flops += get_solver(slot.route).work(form, point)
            monitor.unattained = prove_unattained(form, monitor.incumbent.blocks, flops)
            if monitor.unattained is not None:
                break
            schedule.put_back(slot, point)
        if not monitor.incumbent.is_guess or monitor.restart is not None:
            start = monitor.point_to_go_on_from()
    # why this solver: what it is for, and how the last turns of the others ended
    reason = get_solver(monitor.solver).summary if solver == "auto" else f"{monitor.solver} was asked for"
    others = [how for name, (failed, how) in tried.items() if failed or name != monitor.solver]
    reason += f" (after {'; '.join(others)})" if others else ""
    return _result(form, monitor, status, iterations, reason)


#: Statuses after which no other route is tried.
DONE = ("optimal", "stationary", "time_limit", "unattained")


def _run_slot(
    slot: Slot,
    easier: ReducedForm,
    monitor: Monitor,
    options: dict,
    max_iter: int | None,
    start: Point | None,
) -> tuple[Point | None, SolverError | None]:
    """Run a route until it ends, or is stopped: (its last point, None), (None, its error), or (None, None) where a signal ended it."""
    chosen = get_solver(slot.route)
    usual = getattr(chosen, "usual_passes", None)  # (least, most) of a solver that makes passes
    if usual is not None:
        progress.expect(slot.route, usual(monitor.form))
    monitor.begin(chosen, slot, chosen.below_guesses, limit_of(slot, easier.form))
    own = slot.point if slot.point and monitor.incumbent_route == slot.route else None
    try:
        with (
            interrupts.time_limit(monitor.remaining),
            interrupts.allow_interrupts(),
            breakdowns(slot.route),
            memory_errors(slot.route),
        ):
            most = max_iter if max_iter is not None else chosen.max_iter
            point = easier.solve(
                chosen, options, tol=monitor.tol, max_iter=most, start=own or start, watch=monitor
            )
    except KeyboardInterrupt as stop:
        monitor.leave(stop)
        return None, None
    except LostClusterError:
        raise
    except InfeasibleError as error:
        return None, _proven_infeasible(monitor.form, monitor, error)
    except SolverError as error:
        return None, error
    return point, None


def _status_of(
    monitor: Monitor, point: Point | None, failure: SolverError | None, max_iter: int | None
) -> str:
    """Return what the certificate says; without one, what ended the slot."""
    if monitor.certificate.within(monitor.tol):
        return "optimal"
    if monitor.certificate.is_stationary(monitor.tol):
        return "stationary"
    if monitor.left:
        return monitor.left
    if failure is not None:
        monitor.note = str(failure)
        return "stalled"
    assert point is not None  # nothing failed, and the run was not left
    most = max_iter or get_solver(monitor.solver).max_iter
    early = not monitor.form.is_convex and point.iteration < most
    return monitor.stopped or point.stopped or ("stalled" if early else "iteration_limit")


def _result(form: NormalForm, monitor: Monitor, status: str, iterations: int, reason: str) -> SolveResult:
    """Return the best point with its certificate, after a last question: whether any weights are best, or satisfy the constraints at all."""
    found = monitor.unattained
    if found is None and monitor.left in ("", "time_limit"):
        is_hurried = bool(monitor.left) or monitor.certificate.within(monitor.tol)
        found = prove_unattained(form, monitor.incumbent.blocks, 0.0 if is_hurried else math.inf)
    if found is not None and (found.everywhere or not monitor.certificate.within(monitor.tol)):
        status = "unattained"  # of a convex model no weights are best, however near to the infimum these are
    is_open = found is None and status not in DONE and not monitor.left
    if is_open and monitor.incumbent.violation > monitor.tol and form.constraints:
        _proven_infeasible(form, monitor)
    is_proven = found is not None or status in ("optimal", "stationary")
    if not is_proven and form.is_convex and monitor.bound == -np.inf:
        status = "uncertified" if status in ("stalled", "iteration_limit", "") else status
    certificate = monitor.certificate if found is None else replace(monitor.certificate, note=str(found))
    best, interrupted = monitor.incumbent, monitor.left == "interrupted" or interrupts.is_signal_pending()
    return SolveResult(
        best.blocks, certificate, status, monitor.solver, reason, monitor.seconds, iterations, monitor.history,
        monitor.last_point, best.structures, monitor.duals, interrupted, unattained=found,
    )  # fmt: skip


def in_original_units(
    outcome: SolveResult, form: NormalForm, typed: NormalForm, moves: Moves, tol: float
) -> SolveResult:
    """Return what came out of a drive of labels and columns moved to zero (`CenterLabels`, whose result `form` is), in the units typed.

    The bound is that of the numbers moved; multipliers are handed on as the form as typed takes them, where they prove less. An intercept beside labels of 1e15 is a multiple of 1/8 in float64: the objective is that of the intercepts as they are returned, not
    of those found, and what they do not reach is not called optimal, nor stationary.
    """
    blocks, found, known = shift_intercepts(outcome.blocks, moves), outcome.certificate, outcome.structures
    rounded = shift_intercepts(blocks, moves, -1.0)  # to the last digit
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
    last = outcome.last_point
    if last is not None and last.majorizations:
        steps = (
            replace(
                step, before=shift_intercepts(step.before, moves), after=shift_intercepts(step.after, moves)
            )
            for step in last.majorizations
        )
        last = replace(last, majorizations=tuple(steps))
    endless = outcome.unattained
    if endless is not None:
        turned = {name: replace(shift, centre=0.0 * shift.centre) for name, shift in moves.items()}
        endless = replace(endless, direction=shift_intercepts(endless.direction, turned))
    return replace(
        outcome, blocks=blocks, certificate=certificate, status=status, last_point=last, unattained=endless
    )


def _proven_infeasible(
    form: NormalForm, monitor: Monitor, word: InfeasibleError | None = None
) -> SolverError:
    """InfeasibleError with a proof of our own; where there is none, the weights found are kept, and what is known is returned."""
    typed = "; ".join(f.typed for f in form.constraints)
    known = feasibility(form, monitor.incumbent.blocks)
    if known.is_disproven:
        raise InfeasibleError(f"{typed}. Relax or leave out one of them", term=known.said) from word
    if known.violation <= monitor.tol:
        monitor(Point(known.blocks))
        return SolverError(f"{word}; but weights that satisfy them were found")
    return SolverError(
        f"no weights were found that satisfy all constraints at once, nor a proof that there are none: {typed}; the nearest found "
        f"violate them by {known.violation:.1e}. Standardise the features, or relax a constraint"
    )


# --------------------------------------------------------------------------------------------------------------
# How exactly and how long to solve, as typed into `solve`.


def checked_jobs(n_jobs) -> int | None:
    """Return how many threads, -1 being one a core; None where nobody said. SolverError for everything else."""
    if n_jobs is None:
        return None
    whole = as_whole(n_jobs)
    if whole is None or (whole < 1 and whole != -1):
        raise SolverError(
            term=f"solve(n_jobs={quoted(n_jobs)})",
            write_instead="write a positive whole number of threads, -1 for one a core, or None",
        )
    return (os.cpu_count() or 1) if whole == -1 else whole


def checked_limits(tol, max_iter, max_seconds, verbose) -> tuple[float, int | None, float | None, bool]:
    """The four, as Python's own types; SolverError where one of them cannot be meant."""
    gap, seconds, iterations = as_float(tol), as_float(max_seconds), as_whole(max_iter)
    if gap is None or not 0 < gap < 1:
        raise SolverError(
            "tol is a relative gap between 0 and 1, such as 1e-6", term=f"solve(tol={quoted(tol)})"
        )
    if max_iter is not None and (iterations is None or iterations < 1):
        raise SolverError(
            term=f"solve(max_iter={quoted(max_iter)})", write_instead="write a positive whole number, or None"
        )
    if max_seconds is not None and not 0 < (seconds or 0) <= inf:
        raise SolverError(
            term=f"solve(max_seconds={quoted(max_seconds)})",
            write_instead="write a positive number of seconds, or None",
        )
    seconds = None if seconds is not None and seconds > 1e9 else seconds  # longer than a life
    return gap, iterations, seconds, as_flag(verbose, "solve(verbose", SolverError)
