"""What solvers show their points to: the certificate of each, the best of all, and when to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.proof.bound import Bound, infimum
from mtldsl.proof.certificate import Certificate, certify, dual_bound
from mtldsl.proof.finite_steps import finite_steps
from mtldsl.proof.gap import Scale
from mtldsl.proof.rounding import refute, rounding_of
from mtldsl.solvers.best_point import BestPoint, Kept, guesses
from mtldsl.solvers.progress import Progress
from mtldsl.solvers.rays import Lines
from mtldsl.solvers.solver import Point
from mtldsl.system import compiling, stops
from mtldsl.system.told import Listener, line_of

__all__ = ["Watcher"]

log = logging.getLogger("mtldsl")

R = TypeVar("R")

#: From so many lower points, one after another, a solver of a model that is not convex is sent on.
_MOST_RESTARTS = 10

#: a bound is computed even after Ctrl-C up to this many scalars of data (measured: a second where multipliers need least squares)
_QUICK_TO_BOUND = 1_000_000

#: Lines are searched while the relative gap is above this: nearer to the end they would gain little.
_FAR = 1e-2

#: What is searched, and what is proven, after the end of the time limit or a signal takes so many seconds more.
_LAST_SEARCH = _LAST_BOUND = 0.15

_NO_BOUND = "stopped before a bound was computed"


class Watcher:
    """The `watch` handed to a solver. Keeps the best primal point and the best bound seen, whichever solver found them; from the start on
    also the warm start, zero and the best constants (`expect_guesses`).
    """

    def __init__(
        self, form: NormalForm, tol: float, max_seconds: float | None, listener: Listener | None = None
    ):
        self.form, self.tol, self.max_seconds, self.listener = form, tol, max_seconds, listener
        self.started, self.compiled = time.perf_counter(), compiling.spent()
        self.scale = Scale(form)
        self.best = BestPoint(form, tol)
        self.bound, self.note, self.bound_duals = -np.inf, "no bound was computed", (None, None)
        self.proof: Bound | None = None
        self.history: list[dict] = []
        self.last_point: Point | None = None
        self.last: Kept | None = None  # the same with what is known of it
        self.solver = ""
        self.stopped = ""  # why the driver asked for a stop
        self.left = ""  # what ended it from outside: "interrupted", "time_limit" or "stopped" by who listens
        self.restart: Blocks | None = None  # a lower point than one that was about to be called stationary
        self.restarts = 0
        self.kept_from = ""  # the solver that found the best point
        self.progress: Progress | None = None
        self.lines = Lines(form)
        self._guesses: Iterator[Kept] = iter(())
        self._about: tuple = ()
        self._certificate: Any = None  # that of `_about`, once there is something to tell

    @property
    def elapsed(self) -> float:
        """Seconds by the clock on the wall, which time limits are about."""
        return time.perf_counter() - self.started

    @property
    def seconds(self) -> float:
        """The same without what went into compiling, which a second solve does not do again."""
        return self.elapsed - (compiling.spent() - self.compiled)

    @property
    def remaining(self) -> float | None:
        return None if self.max_seconds is None else max(self.max_seconds - self.elapsed, 0.0)

    @property
    def expired(self) -> bool:
        return self.max_seconds is not None and self.elapsed > self.max_seconds

    @property
    def kept(self) -> Kept:
        return self.best.kept

    @property
    def duals(self) -> tuple:
        """The multipliers that came with the best point; where none did, those of the best bound."""
        own = self.kept.duals
        return self.bound_duals if self.kept.is_guess and self.form.is_convex else own

    @property
    def certificate(self) -> Certificate:
        """That of the best point and the best bound so far."""
        kept, about = self.best.kept, self._about
        if not about or about[0] is not kept or about[1:] != (self.bound, self.note, self.proof):
            self._about = kept, self.bound, self.note, self.proof
            self._certificate = Certificate(
                kept.objective, self.bound, kept.violation, self.scale, self.note, kept.stationarity,
                self.form.constant, kept.rounding, self.proof,
            )  # fmt: skip
        return self._certificate

    def expect_guesses(self, start: Blocks | None, simple: bool = True) -> None:
        """Points that need no solver: no other point is returned unless it is better. They are looked at when a solver begins whose points may
        lie above them, else where a run ends without a proof; their certificates wait until they are asked for."""
        self._guesses = guesses(self.form, start, simple)

    def look_at_guesses(self) -> None:
        """At those that have not been looked at."""
        for guess in self._guesses:
            self.best.offer(guess, self.bound)

    def begin(self, solver: str, progress: Progress, below_guesses: bool = False) -> None:
        """From here on points are this solver's, and it runs as long as there is progress."""
        if not (below_guesses and self.form.is_convex):
            self.look_at_guesses()
        self.solver, self.stopped, self.restart, self.progress = solver, "", None, progress

    def __call__(self, point: Point) -> bool:
        structures = point.structures
        # a point far out has the value inf, and loses to any other
        with np.errstate(over="ignore", invalid="ignore"):
            seen = certify(
                self.form, point.blocks, point.loss_duals, point.function_duals,
                structures=structures, scale=self.scale, bound_optimum=self.form.is_convex,
            )  # fmt: skip
            one = Kept(
                point.blocks, seen.objective, seen.violation, structures, seen.stationarity,
                (point.loss_duals, point.function_duals), rounding=seen.rounding,
            )  # fmt: skip
            lower = self._lower_by_a_step(one) if one.is_stationary(self.tol) else None
        with stops.kept():  # a signal now would leave a point with another's certificate
            done = self._keep(point, one, seen, lower)
        if done or self.left:
            return True
        if self.lines.are_due() and self._is_far:
            self._search_lines(one)
        if self.expired:
            self.stopped = "time_limit"
        elif self.progress is not None and self.progress.is_over(
            _effort(point) if self.progress.by_effort else point.iteration, seen
        ):
            self.stopped = "stalled"
        return bool(self.stopped)

    def _keep(self, point: Point, one: Kept, seen: Certificate, lower: Kept | None) -> bool:
        """Whether that is all: certified, or to be gone on with elsewhere."""
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
        before = self.best.kept
        self.best.offer(one, self.bound)
        if self.best.kept is not before and not self.best.kept.is_guess:
            self.kept_from = self.solver
        self._measure_rounding()
        lowest = self.best.lowest
        # of this point and its own bound the certificate has asked already
        known = seen.rounding if self.proof is seen.proof and lowest.objective == seen.objective else 0.0
        if self.form.is_convex and self.proof is not None and self.bound > lowest.objective + known:
            refute(self.form, lowest.blocks, self.proof, lowest.objective)
        self._record(point, seen, one.stationarity)
        if lower is not None:
            self.restart = lower.blocks
        elif one.is_stationary(self.tol) and self.best.lower is not None:
            self.restart = self.best.lower.blocks
        return self.restart is not None or one.is_stationary(self.tol) or self.certificate.within(self.tol)

    def _measure_rounding(self) -> None:
        """What rounding may hide at a point that came without a certificate, where the gap says that it may be the end."""
        kept = self.kept
        if kept.is_guess and self.proof is not None and abs(self.certificate.relative_gap) <= self.tol:
            self.best.kept = replace(
                kept, rounding=rounding_of(self.form, kept.blocks, self.proof, kept.objective)
            )

    @property
    def may_restart(self) -> bool:
        """Whether the same solver is to go on from `restart`; asked once after each run."""
        if self.restart is None or self.restarts >= _MOST_RESTARTS or self.expired:
            return False
        self.restarts += 1
        return True

    def _search_lines(self, shown: Kept | None) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # a line may lead far out
            for blocks in self.lines.plain():
                self._offer(blocks)
            for blocks in self.lines.towards(self.best.lowest, shown):
                self._offer(blocks)

    @property
    def _is_far(self) -> bool:
        return abs(self.certificate.relative_gap) > _FAR

    def _offer(self, blocks: Blocks) -> None:
        one = Kept.guess(self.form, blocks)
        with stops.kept():
            self.best.offer(one, self.bound)

    def search_at_the_end(self) -> None:
        """Lines, of a run that ends without a proof; after a signal no more is computed than needed."""
        if not self.lines.can_be_searched or self.left == "interrupted" or self.certificate.within(self.tol):
            return
        late = self.left or self.expired
        try:
            with stops.time_limit(_LAST_SEARCH if late else self.remaining, late=not late), stops.at_once():
                self._search_lines(self.last if self._is_far else None)
        except KeyboardInterrupt as stop:
            self.leave(stop)

    def _lower_by_a_step(self, one: Kept) -> Kept | None:
        """Where steps of a size, not only infinitely small ones, bring more than tol: the point is not stationary, and the lower one is
        the next start.
        """
        value, blocks = finite_steps(self.form, one.blocks, self.tol)
        gains = one.objective - value > self.tol * one.stationarity.size > 0
        return Kept.guess(self.form, blocks) if gains else None

    def insist_on(self, point: Point) -> None:
        """The point itself, where a rule of the solver's has chosen it, though another was lower on the way."""
        seen = certify(self.form, point.blocks, point.loss_duals, point.function_duals, scale=self.scale)
        duals = point.loss_duals, point.function_duals
        self.best.kept = Kept(
            point.blocks, seen.objective, seen.violation, duals=duals, rounding=seen.rounding
        ).copied()

    def bound_optimum(self) -> None:
        """How far, in a model that is not convex, below the point the global optimum may lie at most.

        Not beyond the time limit: what is left then is said without such a bound, where it may take long.
        """
        if self.form.is_convex or not np.isfinite(self.kept.objective):
            return
        self.note = _NO_BOUND
        if self.left or self.expired:
            self._prove_late(self.kept)
            return
        try:
            with stops.time_limit(self.remaining), stops.at_once():
                self.bound, self.note = dual_bound(self.form, self.kept.blocks)
        except KeyboardInterrupt as stop:
            self.leave(stop)

    def leave(self, stop: KeyboardInterrupt) -> None:
        """What ended it, for the status. Raises a second signal."""
        if stops.insisted():
            raise stop
        self.left = "time_limit" if isinstance(stop, stops.TimeIsUp) else "interrupted"

    @property
    def _is_quick_to_bound(self) -> bool:
        return self.form.data_size <= _QUICK_TO_BOUND

    def settle(self) -> None:
        """What is not known yet of the best point, where it is a guess or no solver came to the end of a first look."""
        if not self.certificate.within(self.tol):
            self.look_at_guesses()
        kept = self.kept
        if not kept.is_guess or (self.form.is_convex and np.isfinite(self.bound)):
            return
        late = self.left in ("time_limit", "interrupted")
        if late and self.form.is_convex:
            self._prove_late(kept)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            seen = self._at_once(self._seen) if late else self._seen()
        if seen is None:
            return
        self.best.kept = replace(
            kept,
            objective=seen.objective,
            violation=seen.violation,
            stationarity=seen.stationarity,
            rounding=seen.rounding,
        )
        if self.bound == -np.inf:
            self.bound, self.note, self.proof = seen.dual_bound, seen.note or self.note, seen.proof
            if np.isfinite(self.bound):
                self.note = ""

    def _seen(self) -> Certificate:
        kept = self.kept
        return certify(
            self.form, kept.blocks, structures=kept.structures, scale=self.scale, bound_optimum=self.form.is_convex
        )  # fmt: skip

    def _prove_late(self, kept: Kept) -> None:
        """A bound of a run that was cut off before it had one: of the gradients at its best point where that can be had at once, at least
        what multipliers of zero prove. Where nothing rings, in a thread, only what is quick for its size is tried."""
        self.note = _NO_BOUND
        least = self._at_once(lambda: infimum(self.form))
        if least is not None and np.isfinite(least.value):
            self.bound, self.note, self.proof = least.value, "", least
            if (
                abs(self.certificate.relative_gap) <= _FAR
            ):  # near the end rounding counts, of which it knows less
                self.bound, self.note, self.proof = -np.inf, _NO_BOUND, None
        if not (stops.can_ring() or self._is_quick_to_bound):
            return
        if not self.form.is_convex:
            found = self._at_once(lambda: dual_bound(self.form, kept.blocks)[0])
            if found is not None and found > self.bound:
                self.bound, self.note, self.proof = found, "", None
            return
        seen = self._at_once(
            lambda: certify(self.form, kept.blocks, structures=kept.structures, scale=self.scale)
        )
        if seen is not None and seen.dual_bound > self.bound:
            self.bound, self.note, self.proof = seen.dual_bound, "", seen.proof
            self.best.kept = replace(kept, rounding=seen.rounding)

    def _at_once(self, function: Callable[[], R]) -> R | None:
        """What it returns, where that takes no longer than a run that is over may still take."""
        try:
            with (
                stops.time_limit(_LAST_BOUND, late=False),
                stops.at_once(),
                np.errstate(over="ignore", invalid="ignore"),
            ):
                return function()
        except stops.TimeIsUp:
            return None
        except KeyboardInterrupt as stop:
            self.leave(stop)
            return None

    def _record(self, point: Point, seen: Certificate, stationarity) -> None:
        self.history.append(
            {
                "solver": self.solver,
                "iteration": point.iteration,
                "seconds": self.seconds,
                "objective": seen.objective,
                "best_objective": (self.kept if self.form.is_convex else self.best.lowest).objective,
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


def _effort(point: Point) -> float:
    effort = getattr(point, "effort", None)  # which the reference's points, a class of its own, do not have
    return point.iteration if effort is None else effort
