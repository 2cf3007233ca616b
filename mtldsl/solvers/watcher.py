"""What solvers show their points to: the certificate of each, the best of all, and when to stop."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.proof.attainment import Unattained, falls_for_ever, unattained
from mtldsl.proof.certificate import Certificate, certify
from mtldsl.proof.finite_steps import finite_steps
from mtldsl.proof.rounding import refute, rounding_of
from mtldsl.solvers.best_point import Kept
from mtldsl.solvers.closing import Closing
from mtldsl.solvers.point import effort_of
from mtldsl.solvers.progress import Progress
from mtldsl.solvers.solver import Point
from mtldsl.system import stops
from mtldsl.system.told import Listener, line_of

__all__ = ["Watcher"]

log = logging.getLogger("mtldsl")

#: From so many lower points, one after another, a solver of a model that is not convex is sent on.
_MOST_RESTARTS = 10

#: Looks after which it is asked whether the weights run away.
_FIRST_ASKED = 6


class Watcher(Closing):
    """The `watch` handed to a solver. Keeps the best primal point and the best bound seen, whichever solver found them; from the start on
    also the warm start, zero and the best constants (`expect_guesses`).
    """

    def __init__(
        self, form: NormalForm, tol: float, max_seconds: float | None, listener: Listener | None = None
    ):
        super().__init__(form, tol, max_seconds)
        self.listener = listener
        self.history: list[dict] = []
        self.last_point: Point | None = None
        self.solver = ""
        self.stopped = ""  # why the driver asked for a stop
        self.restart: Blocks | None = None  # a lower point than one that was about to be called stationary
        self.restarts = 0
        self.kept_from = ""  # the solver that found the best point
        self.progress: Progress | None = None
        self.unattained: Unattained | None = None  # a proof that no weights are best
        self._asked = _FIRST_ASKED if falls_for_ever(form) else np.inf  # the look at which it is asked for

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
        elif self._runs_away():
            self.stopped = "unattained"
        elif self.progress is not None and self.progress.is_over(
            effort_of(point) if self.progress.by_effort else point.iteration, seen
        ):
            self.stopped = "stalled"
        return bool(self.stopped)

    def _runs_away(self) -> bool:
        """Whether there is a proof that weights grow for ever, at the 6th, 12th, 24th, ... look."""
        if len(self.history) >= self._asked:
            self._asked *= 2
            self.unattained = unattained(self.form, self.kept.blocks, in_passing=True)
        return self.unattained is not None

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

    def _lower_by_a_step(self, one: Kept) -> Kept | None:
        """Where steps of a size, not only infinitely small ones, bring more than tol: the point is not stationary, and the lower one is
        the next start.
        """
        value, blocks = finite_steps(self.form, one.blocks, self.tol)
        gains = one.objective - value > self.tol * one.stationarity.size > 0
        return Kept.guess(self.form, blocks) if gains else None

    def point_to_go_on_from(self) -> Point:
        """The best point with the multipliers of the best bound, whichever solvers found them; inner state belongs to the solver that made it."""
        loss_duals, function_duals = self.bound_duals
        if loss_duals is not None:
            pairs = zip(self.form.losses, loss_duals, strict=True)
            loss_duals = [loss.plain_multipliers(u) for loss, u in pairs]
        return Point(self.kept.blocks, loss_duals, function_duals)

    def insist_on(self, point: Point) -> None:
        """The point itself, where a rule of the solver's has chosen it, though another was lower on the way."""
        seen = certify(self.form, point.blocks, point.loss_duals, point.function_duals, scale=self.scale)
        duals = point.loss_duals, point.function_duals
        self.best.kept = Kept(
            point.blocks, seen.objective, seen.violation, duals=duals, rounding=seen.rounding
        ).copied()

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
