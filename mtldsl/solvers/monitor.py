"""Monitor of a run: certifies every point that a solver shows, keeps the best, and decides when to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from mtldsl.certificates.attainment import UnattainedInfimum, has_recession_direction, prove_unattained
from mtldsl.certificates.certificate import Certificate, certify, dual_bound
from mtldsl.certificates.dual_bound import Bound, check_weak_duality, infimum, objective_scale, rounding_of
from mtldsl.certificates.infeasibility import feasibility
from mtldsl.certificates.stationarity import finite_steps
from mtldsl.normal_form.best_constants import best_constants
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.terms.structure_term import Structures, learned_matrices, structure_terms
from mtldsl.solvers.numerics.line_search import RaySearch, best_between
from mtldsl.solvers.numerics.operator_splitting import project_blocks
from mtldsl.solvers.scheduler import Slot, StallRule
from mtldsl.solvers.solver import Point, Solver
from mtldsl.utils import compilation, interrupts
from mtldsl.utils.progress import Listener, line_of

# --------------------------------------------------------------------------------------------------------------
# The best point of a run, whoever found it: a warm start, zero, the best constants, or any point that any solver has shown.


@dataclass(frozen=True)
class MonitorSettings:
    """Constants of a monitor.

    rounding_share       : of the terms that an objective is the sum of, that rounding leaves
    quick_bound_entries  : of data, up to which a bound is computed even after Ctrl-C (measured: a second where multipliers need least squares)
    searched_gap         : relative gap above which lines are searched: nearer to the end they would gain little
    late_seconds         : that a search of lines, and a proof, may take after the time limit or a signal
    max_restarts         : lower points, one after another, from which a solver of a model that is not convex is sent on
    recession_looks      : after which the monitor asks whether the weights run away
    infeasible_looks     : without a feasible point, after which it asks whether there is one
    """

    rounding_share: float = 1e-13
    quick_bound_entries: int = 1_000_000
    searched_gap: float = 1e-2
    late_seconds: float = 0.15
    max_restarts: int = 10
    recession_looks: int = 6
    infeasible_looks: int = 10


SETTINGS = MonitorSettings()


@dataclass(frozen=True)
class Incumbent:
    """A point with what is known of it. `is_guess`: no solver has shown it, and nothing but its objective and violation is known."""

    blocks: Blocks
    objective: float
    violation: float
    structures: Structures | None = None  # None: the best ones for the weights
    stationarity: Any = None  # a Stationarity; None where no solver has shown the point
    duals: tuple = (None, None)  # multipliers of losses and functions that came with it
    is_guess: bool = False
    rounding: float = 0.0  # of the certificate's numbers, `mtldsl.certificates.dual_bound`

    @classmethod
    def zero(cls, form: NormalForm) -> Incumbent:
        """Weights of zero, whose objective is known."""
        zeros = form.zeros()
        with np.errstate(over="ignore", invalid="ignore"):
            return cls(zeros, form.value_at_zero, form.violation(zeros), is_guess=True)

    @classmethod
    def guess(cls, form: NormalForm, blocks: Blocks) -> Incumbent:
        """A copy of the blocks, with their objective at the price of one product with the data."""
        blocks = {name: np.array(array) for name, array in blocks.items()}
        with np.errstate(over="ignore", invalid="ignore"):  # a guess may be far out
            return cls(blocks, form.value(blocks), form.violation(blocks), is_guess=True)

    def copied(self) -> Incumbent:
        """With blocks of its own: a solver may go on writing into those that it has shown."""
        return replace(self, blocks={name: array.copy() for name, array in self.blocks.items()})

    def is_stationary(self, tol: float) -> bool:
        return self.stationarity is not None and max(self.stationarity.residual, self.violation) <= tol


class IncumbentTracker:
    """`incumbent` is the best point so far; `lowest` the one with the lowest objective, feasible to tol, whatever is proven of it, and of a
    convex model one that meets its constraints exactly.

    Feasible to tol goes before infeasible; among infeasible ones the smaller violation counts. Among feasible ones it is the objective
    nearer to the bound: a point that misses a constraint by less than tol may lie below the optimum, and must not keep out one that meets
    it. Where nothing lies below the bound, that is the lower objective. In a model that is not convex, what is proven stationary goes
    first, then the lower objective.
    """

    def __init__(self, form: NormalForm, tol: float):
        self.convex, self.tol = form.is_convex, tol
        self.incumbent = self.lowest = Incumbent(form.zeros(), np.inf, np.inf, is_guess=True)

    def offer(self, one: Incumbent, bound: float) -> None:
        """Keep it where it is better, as a copy."""
        if not np.isfinite(one.objective):
            return
        allowed = 0.0 if self.convex else self.tol
        is_lowest = one.violation <= allowed and one.objective < self.lowest.objective
        is_better = self._is_better(one, bound)
        if is_lowest or is_better:
            one = one if one.is_guess else one.copied()  # guesses have blocks of their own
        self.lowest = one if is_lowest else self.lowest
        self.incumbent = one if is_better else self.incumbent
        # the bound may have risen above what was incumbent, which then owes its objective to what it misses of its constraints
        if self.convex and self._is_better(self.lowest, bound):
            self.incumbent = self.lowest

    def _is_better(self, one: Incumbent, bound: float) -> bool:
        incumbent = self.incumbent
        feasible, was_feasible = one.violation <= self.tol, incumbent.violation <= self.tol
        if not (feasible and was_feasible):
            return feasible or (not was_feasible and one.violation < incumbent.violation)
        if not self.convex:
            proven, was_proven = one.is_stationary(self.tol), incumbent.is_stationary(self.tol)
            if proven != was_proven:  # a method that does not descend may have been lower on its way
                return proven
            new, old = one.stationarity, incumbent.stationarity
            if (
                new is not None
                and abs(one.objective - incumbent.objective) <= SETTINGS.rounding_share * new.size
            ):
                return (
                    old is None or new.residual < old.residual
                )  # of equal objectives, the more stationary point
            return one.objective < incumbent.objective
        if incumbent.is_guess and one.objective == incumbent.objective:
            return not one.is_guess  # with its multipliers
        if bound == -np.inf:
            return one.objective < incumbent.objective
        return abs(one.objective - bound) < abs(incumbent.objective - bound)

    @property
    def lower(self) -> Incumbent | None:
        """A point that lies below the kept one by more than tol, of which less is proven; None where there is none."""
        incumbent = self.incumbent
        size = 0.0 if incumbent.stationarity is None else incumbent.stationarity.size
        least = incumbent.objective - self.tol * max(size, abs(incumbent.objective))
        return self.lowest if self.lowest.objective < least and incumbent.violation <= self.tol else None


def guesses(form: NormalForm, start: Blocks | None, simple: bool) -> Iterator[Incumbent]:
    """The warm start and, where asked for, zero and the best constants; those that miss constraints also moved into the sets that bind
    single blocks.

    Where a penalty that is not convex has learned matrices of its own, zero says nothing: its log-determinants lie at their bounds there, far
    below the point that is looked for.
    """
    points = [] if start is None else [Incumbent.guess(form, start)]
    learns = any(not (f.atom.convex or f.atom.separable) for f in structure_terms(form))
    if simple and not learns:
        points.append(Incumbent.zero(form))
        constants = best_constants(form)
        points += [] if constants is None else [Incumbent.guess(form, constants)]
    for one in points:
        if one.violation > 0.0:
            yield Incumbent.guess(form, project_blocks(form, one.blocks))
        yield one


# --------------------------------------------------------------------------------------------------------------
# The monitor: what solvers show their points to. It certifies each, keeps the best of all, and decides when to stop.

R = TypeVar("R")

_NO_BOUND = "stopped before a bound was computed"


log = logging.getLogger("mtldsl")


class Monitor:
    """The `watch` handed to a solver. Keeps the best primal point and the best bound seen, whichever solver found them; from the start on
    also the warm start, zero and the best constants (`set_trial_points`).

    left    : what ended the run from outside: "interrupted", "time_limit", or "stopped" by who listens
    stopped : why the monitor itself asked for a stop; "infeasible" where it has disproven the constraints
    restart : a lower point than one that was about to be called stationary
    """

    def __init__(
        self, form: NormalForm, tol: float, max_seconds: float | None, listener: Listener | None = None
    ):
        self.form, self.tol, self.max_seconds, self.listener = form, tol, max_seconds, listener
        self.started, self.compiled = time.perf_counter(), compilation.spent()
        self.scale, self.best, self.lines = (
            objective_scale(form),
            IncumbentTracker(form, tol),
            RaySearch(form),
        )
        self.bound, self.note, self.bound_duals = -np.inf, "no bound was computed", (None, None)
        self.proof: Bound | None = None
        self._about: tuple = ()
        self._certificate: Any = None  # that of `_about`, once there is something to tell
        self._guesses: Iterator[Incumbent] = iter(())
        self.history: list[dict] = []
        self.last: Incumbent | None = None  # what is known of the last point that was shown
        self.last_point: Point | None = None
        self.solver, self.incumbent_route = "", ""  # whose turn it is, and who found the best point
        self.left = self.stopped = ""
        self.restart: Blocks | None = None
        self.restarts = 0
        self.stall_rule: StallRule | None = None
        self.work: Callable[[Point], float] = attrgetter("iteration")
        self.unattained: UnattainedInfimum | None = None  # a proof that no weights are best
        # the look at which it is asked for
        self._asked = SETTINGS.recession_looks if has_recession_direction(form) else np.inf
        self._doubted = SETTINGS.infeasible_looks if form.constraints else np.inf

    # ------------------------------------------------------------------------------------ what is known

    @property
    def seconds(self) -> float:
        """Seconds so far, without what went into compiling, which a second solve does not do again."""
        return time.perf_counter() - self.started - (compilation.spent() - self.compiled)

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, by the clock on the wall, which time limits are about; None where there is no limit."""
        spent = time.perf_counter() - self.started
        return None if self.max_seconds is None else max(self.max_seconds - spent, 0.0)

    @property
    def expired(self) -> bool:
        return self.max_seconds is not None and self.remaining == 0.0

    @property
    def incumbent(self) -> Incumbent:
        return self.best.incumbent

    @property
    def duals(self) -> tuple:
        """The multipliers that came with the best point; where none did, those of the best bound."""
        own = self.incumbent.duals
        return self.bound_duals if self.incumbent.is_guess and self.form.is_convex else own

    @property
    def certificate(self) -> Certificate:
        """Certificate of the best point and the best bound so far."""
        incumbent, about = self.best.incumbent, self._about
        if not about or about[0] is not incumbent or about[1:] != (self.bound, self.note, self.proof):
            self._about = incumbent, self.bound, self.note, self.proof
            self._certificate = Certificate(
                incumbent.objective, self.bound, incumbent.violation, self.scale, self.note, incumbent.stationarity,
                self.form.constant, incumbent.rounding, self.proof,
            )  # fmt: skip
        return self._certificate

    @property
    def _is_far(self) -> bool:
        return abs(self.certificate.relative_gap) > SETTINGS.searched_gap

    # ------------------------------------------------------------------------- points beside a solver's own

    def set_trial_points(self, start: Blocks | None, simple: bool = True) -> None:
        """Points that need no solver: no other point is returned unless it is better. They are looked at when a solver begins whose points may
        lie above them, else where a run ends without a proof; their certificates wait until they are asked for."""
        self._guesses = guesses(self.form, start, simple)

    def look_at_guesses(self) -> None:
        """At those that have not been looked at."""
        for guess in self._guesses:
            self.best.offer(guess, self.bound)

    def _search_lines(self, shown: Incumbent | None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # a line may lead far out
            for blocks in self.lines.plain():
                self._offer(blocks)
            lowest = self.best.lowest
            if shown is not None and lowest.objective < shown.objective < np.inf:
                # what was just shown lies too far out, in a direction that may be good
                between = best_between(self.form, lowest.blocks, shown.blocks)
                if between is not None:
                    self._offer(between)

    def _offer(self, blocks: Blocks) -> None:
        one = Incumbent.guess(self.form, blocks)
        with interrupts.hold_signals():
            self.best.offer(one, self.bound)

    # ------------------------------------------------------------------------------------ the end of a slot

    def close(self, point: Point | None) -> None:
        """After a slot: trial points, and what is not known yet of the best point.

        A run that ends without a proof looks along lines, and at points that it has not looked at. A signal, and a limit of time, leave
        no more time than `SETTINGS.late_seconds` for each of these.
        """
        if point is not None and point.stopped == "selected":
            self.insist_on(point)
        elif (
            not self.certificate.within(self.tol)
            and self.lines.can_be_searched
            and self.left != "interrupted"
        ):
            self._in_time(lambda: self._search_lines(self.last if self._is_far else None))
        if not self.certificate.within(self.tol):
            self.look_at_guesses()
        convex, late = self.form.is_convex, self.left in ("time_limit", "interrupted")
        if self.incumbent.is_guess and not (convex and np.isfinite(self.bound)):
            if convex and late:
                self._prove_late()
            else:
                self._know(self._in_time(self._certified, late=True) if late else self._certified())
        if not convex and np.isfinite(self.incumbent.objective):
            self._bound_optimum()

    def _in_time(self, function: Callable[[], R], late: bool | None = None) -> R | None:
        """Return what a function returns; None where it takes longer than a run, or one that is over, may still take, or a signal ends it."""
        late = bool(self.left or self.expired) if late is None else late
        try:
            with (
                interrupts.time_limit(SETTINGS.late_seconds if late else self.remaining, late=not late),
                interrupts.allow_interrupts(),
                np.errstate(over="ignore", invalid="ignore"),
            ):
                return function()
        except KeyboardInterrupt as stop:
            if not (late and isinstance(stop, interrupts.TimeIsUp)):
                self.leave(stop)
            return None

    def leave(self, stop: KeyboardInterrupt) -> None:
        """Return what ended it, for the status. Raises a second signal."""
        if interrupts.was_insisted():
            raise stop
        self.left = "time_limit" if isinstance(stop, interrupts.TimeIsUp) else "interrupted"

    def _certified(self) -> Certificate:
        incumbent, form = self.incumbent, self.form
        with np.errstate(over="ignore", invalid="ignore"):
            return certify(
                form, incumbent.blocks, structures=incumbent.structures, scale=self.scale, bound_optimum=form.is_convex
            )  # fmt: skip

    def _know(self, seen: Certificate | None) -> None:
        """The certificate of the best point, which had none; None where there was no time for it."""
        if seen is None:
            return
        self.best.incumbent = replace(
            self.incumbent, objective=seen.objective, violation=seen.violation, stationarity=seen.stationarity, rounding=seen.rounding
        )  # fmt: skip
        if self.bound == -np.inf:
            note = "" if np.isfinite(seen.dual_bound) else seen.note or self.note
            self.bound, self.note, self.proof = seen.dual_bound, note, seen.proof

    def _bound_optimum(self) -> None:
        """Bound how far, in a model that is not convex, the global optimum may lie below the point."""
        if self.left or self.expired:
            self._prove_late()
            return
        self.note = _NO_BOUND
        found = self._in_time(lambda: dual_bound(self.form, self.incumbent.blocks))
        if found is not None:
            self.bound, self.note = found

    def _prove_late(self) -> None:
        """A bound of a run that was cut off before it had one: of the gradients at its best point where that can be had at once, at least
        what multipliers of zero prove. Where nothing rings, in a thread, only what is quick for its size is tried."""
        incumbent, self.note = self.incumbent, _NO_BOUND
        least = self._in_time(lambda: infimum(self.form), late=True)
        if least is not None and np.isfinite(least.value):
            self.bound, self.note, self.proof = least.value, "", least
            if abs(self.certificate.relative_gap) <= SETTINGS.searched_gap:
                # near the end rounding counts, of which it knows less
                self.bound, self.note, self.proof = -np.inf, _NO_BOUND, None
        if not (interrupts.can_set_alarm() or self.form.data_size <= SETTINGS.quick_bound_entries):
            return
        if not self.form.is_convex:
            found = self._in_time(lambda: dual_bound(self.form, incumbent.blocks)[0], late=True)
            if found is not None and found > self.bound:
                self.bound, self.note, self.proof = found, "", None
            return
        seen = self._in_time(self._certified, late=True)
        if seen is not None and seen.dual_bound > self.bound:
            self.bound, self.note, self.proof = seen.dual_bound, "", seen.proof
            self.best.incumbent = replace(incumbent, rounding=seen.rounding)

    def insist_on(self, point: Point) -> None:
        """The point itself, where a rule of the solver's has chosen it, though another was lower on the way."""
        seen = certify(self.form, point.blocks, point.loss_duals, point.function_duals, scale=self.scale)
        duals = point.loss_duals, point.function_duals
        one = Incumbent(point.blocks, seen.objective, seen.violation, duals=duals, rounding=seen.rounding)
        self.best.incumbent = one.copied()

    # ----------------------------------------------------------------------------- points that solvers show

    def begin(
        self,
        solver: Solver,
        slot: Slot,
        below_guesses: bool = False,
        limit: Callable[[], float] | None = None,
    ) -> None:
        """From here on points are this solver's, and it runs until it stalls. `limit`: flops of a first slot (`routes.limit_of`)."""
        stall_rule = slot.stall_rule(0.0 if slot.is_lone else solver.flops(self.form), limit)
        if not (below_guesses and self.form.is_convex):
            self.look_at_guesses()
        self.solver, self.stopped, self.restart, self.stall_rule = solver.name, "", None, stall_rule
        self.work = partial(solver.work, self.form) if stall_rule.counts_flops else attrgetter("iteration")

    def __call__(self, point: Point) -> bool:
        structures = point.structures
        # a point far out has the value inf, and loses to any other
        with np.errstate(over="ignore", invalid="ignore"):
            seen = certify(
                self.form, point.blocks, point.loss_duals, point.function_duals,
                structures=structures, scale=self.scale, bound_optimum=self.form.is_convex,
            )  # fmt: skip
            one = Incumbent(
                point.blocks, seen.objective, seen.violation, structures, seen.stationarity,
                (point.loss_duals, point.function_duals), rounding=seen.rounding,
            )  # fmt: skip
            lower = self._lower_by_a_step(one) if one.is_stationary(self.tol) else None
        with interrupts.hold_signals():  # a signal now would leave a point with another's certificate
            done = self._keep(point, one, seen, lower)
        if done or self.left:
            return True
        if self.lines.are_due() and self._is_far:
            self._search_lines(one)
        if self.expired:
            self.stopped = "time_limit"
        elif self._runs_away():
            self.stopped = "unattained"
        elif self._is_disproven():
            self.stopped = "infeasible"
        elif self.stall_rule is not None and self.stall_rule.is_stalled(self.work(point), seen):
            self.stopped = "stalled"
        return bool(self.stopped)

    def _runs_away(self) -> bool:
        """Tell whether there is a proof that weights grow for ever, at the 6th, 12th, 24th, ... look."""
        if len(self.history) >= self._asked:
            self._asked *= 2
            self.unattained = prove_unattained(self.form, self.incumbent.blocks, 0.0)
        return self.unattained is not None

    def _is_disproven(self) -> bool:
        """Tell whether there is a proof that no weights satisfy the constraints, at the 10th, 14th, 18th, ... look without a feasible point.

        Constraints that contradict each other by little more than tol may be met to tol.
        """
        if len(self.history) < self._doubted or self.incumbent.violation <= self.tol:
            return False
        self._doubted = 1 + 1.25 * self._doubted
        known = feasibility(self.form, self.incumbent.blocks, in_passing=True)
        return known.is_far_reaching and known.least > self.tol

    def _keep(self, point: Point, one: Incumbent, seen: Certificate, lower: Incumbent | None) -> bool:
        """Tell whether that is all: certified, or to be gone on with elsewhere."""
        self.last_point, self.last = point, one
        if seen.dual_bound > self.bound:
            self.bound, self.note, self.proof = seen.dual_bound, "", seen.proof
            self.bound_duals = one.duals
        elif self.bound == -np.inf:
            self.note = seen.note
        if lower is not None:
            gained = (one.objective - lower.objective) / one.stationarity.size
            found = replace(one.stationarity, finite=gained, residual=max(gained, one.stationarity.residual))
            one = replace(one, stationarity=found)
            self.best.offer(lower, self.bound)
        before = self.best.incumbent
        self.best.offer(one, self.bound)
        if self.best.incumbent is not before and not self.best.incumbent.is_guess:
            self.incumbent_route = self.solver
        incumbent = self.incumbent
        if incumbent.is_guess and self.proof is not None and abs(self.certificate.relative_gap) <= self.tol:
            # what rounding may hide at a point that came without a certificate, where the gap says that it may be the end
            rounding = rounding_of(self.form, incumbent.blocks, self.proof, incumbent.objective)
            self.best.incumbent = replace(incumbent, rounding=rounding)
        lowest = self.best.lowest
        # of this point and its own bound the certificate has asked already
        known = seen.rounding if self.proof is seen.proof and lowest.objective == seen.objective else 0.0
        if self.form.is_convex and self.proof is not None and self.bound > lowest.objective + known:
            check_weak_duality(self.form, lowest.blocks, self.proof, lowest.objective)
        self._record(point, seen, one.stationarity)
        if lower is not None:
            self.restart = lower.blocks
        elif one.is_stationary(self.tol) and self.best.lower is not None:
            self.restart = self.best.lower.blocks
        return self.restart is not None or one.is_stationary(self.tol) or self.certificate.within(self.tol)

    def _lower_by_a_step(self, one: Incumbent) -> Incumbent | None:
        """Return where steps of a size, not only infinitely small ones, bring more than tol: the point is not stationary, and the lower one is
        the next start.
        """
        value, blocks = finite_steps(self.form, one.blocks, self.tol)
        gains = one.objective - value > self.tol * one.stationarity.size > 0
        return Incumbent.guess(self.form, blocks) if gains else None

    def point_to_go_on_from(self) -> Point:
        """The best point with the multipliers of the best bound, whichever solvers found them; inner state belongs to the solver that made it."""
        loss_duals, function_duals = self.bound_duals
        if loss_duals is not None:
            pairs = zip(self.form.losses, loss_duals, strict=True)
            loss_duals = [loss.plain_multipliers(u) for loss, u in pairs]
        return Point(self.incumbent.blocks, loss_duals, function_duals)

    def point_to_restart_from(self) -> Point | None:
        """The lower point from which the same solver is to go on, with the learned matrices that are best for it; asked once after each run."""
        if self.restart is None or self.restarts >= SETTINGS.max_restarts or self.expired:
            return None
        self.restarts += 1
        return Point(self.restart, structures=learned_matrices(self.form, self.restart))

    def _record(self, point: Point, seen: Certificate, stationarity) -> None:
        self.history.append(
            {
                "solver": self.solver,
                "iteration": point.iteration,
                "seconds": self.seconds,
                "objective": seen.objective,
                "best_objective": (self.incumbent if self.form.is_convex else self.best.lowest).objective,
                "dual_bound": seen.dual_bound,
                "violation": seen.violation,
                "relative_gap": self.certificate.relative_gap,
                **({} if stationarity is None else {"residual": stationarity.residual}),
                **point.notes,
            }
        )
        if self.listener is None and not log.isEnabledFor(logging.DEBUG):
            return
        record = self.history[-1] | {"bound": self.bound, "gap": self.certificate.relative_gap}
        log.debug("%s", line_of(record))
        if self.listener is not None and self.listener(record):
            self.left = "stopped"
