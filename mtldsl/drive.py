"""Runs solvers on a normal form and believes only the certificate: best primal point, best dual bound, and when to stop."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

import numpy as np

from mtldsl import stops
from mtldsl.compile.choose import LAST, candidates, fast_candidates, get_solver, refusal
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.structure_term import Structures
from mtldsl.errors import InfeasibleError, ModelError, SolverError
from mtldsl.memory import memory_errors
from mtldsl.proof.bound import Bound
from mtldsl.proof.certificate import Certificate, certify, dual_bound, objective_scale
from mtldsl.proof.infeasibility import feasibility
from mtldsl.proof.rounding import refute
from mtldsl.proof.stationarity import Stationarity
from mtldsl.solvers.solver import Point, breakdowns
from mtldsl.threads import fitting_blas_threads
from mtldsl.values.number import quoted

__all__ = ["Outcome", "drive"]

log = logging.getLogger("mtldsl")

#: the reference is tried after a fast solver stalls only up to this many scalars of data and unknowns
_SMALL_ENOUGH_FOR_REFERENCE = 200_000

#: a bound is computed even after Ctrl-C up to this many scalars of data (measured: a second where multipliers need least squares)
_QUICK_TO_BOUND = 1_000_000

_NO_BOUND = "stopped before a bound was computed"


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


class Watcher:
    """The `watch` handed to a solver. Keeps the best primal point and the best bound seen, whichever solver found them."""

    def __init__(self, form: NormalForm, tol: float, max_seconds: float | None, verbose: bool):
        self.form, self.tol, self.max_seconds, self.verbose = form, tol, max_seconds, verbose
        self.started = time.perf_counter()
        self.scale = objective_scale(form)
        self.blocks, self.structures, self.duals = form.zeros(), None, (None, None)
        self.objective = self.violation = np.inf
        self.stationarity: Stationarity | None = None
        self.bound, self.note = -np.inf, "no bound was computed"
        self.proof: Bound | None = None
        self.rounding = 0.0
        self.lowest, self.lowest_blocks = np.inf, self.blocks  # of points that violate nothing
        self.history: list[dict] = []
        self.last_point: Point | None = None
        self.solver = ""
        self.stopped = ""  # why the driver asked for a stop
        self.left = ""  # what ended it from outside: "interrupted" or "time_limit"
        self.improved_at, self.improved_gap = 0, np.inf

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    @property
    def remaining(self) -> float | None:
        return None if self.max_seconds is None else max(self.max_seconds - self.seconds, 0.0)

    @property
    def expired(self) -> bool:
        return self.max_seconds is not None and self.seconds > self.max_seconds

    @property
    def certificate(self) -> Certificate:
        return Certificate(
            self.objective,
            self.bound,
            self.violation,
            self.scale,
            self.note,
            self.stationarity,
            self.form.constant,
            self.rounding,
            self.proof,
        )

    def begin(self, solver: str) -> None:
        self.solver, self.stopped = solver, ""
        self.improved_at, self.improved_gap = 0, np.inf

    def __call__(self, point: Point) -> bool:
        structures = getattr(point, "structures", None)
        # a point far out has the value inf, and loses to any other
        with np.errstate(over="ignore", invalid="ignore"):
            seen = certify(
                self.form, point.blocks, point.loss_duals, point.function_duals,
                structures=structures, scale=self.scale, bound_optimum=self.form.is_convex,
            )  # fmt: skip
        with stops.kept():  # a signal now would leave a point with another's certificate
            self._keep(point, structures, seen)
        best = self.certificate
        if best.within(self.tol) or best.is_stationary(self.tol):
            return True
        if self.expired:
            self.stopped = "time_limit"
        elif self._is_stalled(point.iteration, best):
            self.stopped = "stalled"
        return bool(self.stopped)

    def _keep(self, point: Point, structures: Structures | None, seen: Certificate) -> None:
        self.last_point = point
        if seen.dual_bound > self.bound:
            self.bound, self.note, self.proof, self.rounding = seen.dual_bound, "", seen.proof, seen.rounding
        elif self.bound == -np.inf:
            self.note = seen.note
        if self._is_better(seen):
            self.blocks = {name: np.array(array) for name, array in point.blocks.items()}
            self.objective, self.violation = seen.objective, seen.violation
            self.structures, self.stationarity = structures, seen.stationarity
            self.duals = point.loss_duals, point.function_duals
            self.rounding = seen.rounding
        self._compare_with_lowest(point, seen)
        self._record(point, seen)

    def _compare_with_lowest(self, point: Point, seen: Certificate) -> None:
        """ProofError where the best bound lies above the lowest objective that weights within all constraints attain."""
        if seen.violation == 0.0 and seen.objective < self.lowest:
            self.lowest = seen.objective
            self.lowest_blocks = {name: np.array(array) for name, array in point.blocks.items()}
        if self.proof is not None and self.bound > self.lowest:
            refute(self.form, self.lowest_blocks, self.proof, self.lowest)

    def _is_better(self, seen: Certificate) -> bool:
        """Feasible to tol beats infeasible; among others the smaller violation wins.

        Among feasible points it is the objective nearer to the bound: a point that violates a constraint by less than tol may lie
        below the optimum, and must not keep out one that meets it.
        """
        if not np.isfinite(seen.objective):
            return False
        feasible, was_feasible = seen.violation <= self.tol, self.violation <= self.tol
        if feasible and was_feasible:
            if seen.stationarity is not None:
                proven = seen.is_stationary(self.tol), self.certificate.is_stationary(self.tol)
                if proven[0] != proven[1]:  # a method that does not descend may have been lower on its way
                    return proven[0]
                # of equal objectives, the more stationary point
                rounding = 1e-13 * seen.stationarity.size
                if abs(seen.objective - self.objective) <= rounding:
                    return seen.stationarity.residual < self.stationarity.residual
                return seen.objective < self.objective
            if self.bound == -np.inf:
                return seen.objective < self.objective
            return abs(seen.objective - self.bound) < abs(self.objective - self.bound)
        return feasible or (not was_feasible and seen.violation < self.violation)

    def insist_on(self, point: Point) -> None:
        """The point itself, where a rule of the solver's has chosen it, though another was lower on the way."""
        seen = certify(self.form, point.blocks, point.loss_duals, point.function_duals, scale=self.scale)
        self.blocks = {name: np.array(array) for name, array in point.blocks.items()}
        self.objective, self.violation = seen.objective, seen.violation
        self.duals = point.loss_duals, point.function_duals

    def bound_optimum(self) -> None:
        """Of a model that is not convex, once: how far below the point the global optimum may lie at most.

        Not beyond the time limit: what is left then is said without such a bound, where it may take long.
        """
        if self.form.is_convex or not np.isfinite(self.objective):
            return
        self.note = _NO_BOUND
        if self.left or self.expired:
            if self._is_quick_to_bound:
                self.bound, self.note = dual_bound(self.form, self.blocks)
            return
        try:
            with stops.time_limit(self.remaining), stops.at_once():
                self.bound, self.note = dual_bound(self.form, self.blocks)
        except KeyboardInterrupt as stop:
            self.leave(stop)

    def leave(self, stop: KeyboardInterrupt) -> None:
        """What ended it, for the status. Raises a second signal."""
        if stops.insisted():
            raise stop
        self.left = "time_limit" if isinstance(stop, stops.TimeIsUp) else "interrupted"

    @property
    def _is_quick_to_bound(self) -> bool:
        size = sum(loss.tasks.n_samples * loss.tasks.n_features for loss in self.form.losses)
        return size <= _QUICK_TO_BOUND

    def settle(self) -> None:
        """After an interruption before the end of the first look: the certificate of zero; no more than its objective where a bound
        may take as long as what was interrupted.
        """
        if np.isfinite(self.objective):
            return
        bound_optimum = self.left == "interrupted" and self._is_quick_to_bound
        seen = certify(
            self.form, self.blocks, structures=self.structures, scale=self.scale, bound_optimum=bound_optimum
        )
        self.objective, self.violation, self.stationarity = seen.objective, seen.violation, seen.stationarity
        if self.bound == -np.inf:
            self.bound, self.note = seen.dual_bound, seen.note
            if not bound_optimum and not self.note:
                self.note = _NO_BOUND

    def _record(self, point: Point, seen: Certificate) -> None:
        self.history.append(
            {
                "solver": self.solver,
                "iteration": point.iteration,
                "seconds": self.seconds,
                "objective": seen.objective,
                "dual_bound": seen.dual_bound,
                "violation": seen.violation,
                "relative_gap": self.certificate.relative_gap,
                **({} if seen.stationarity is None else {"residual": seen.stationarity.residual}),
                **getattr(point, "notes", {}),
            }
        )
        line = (
            f"{self.solver:>20} {point.iteration:7d}  objective {seen.objective:.10g}  bound {self.bound:.10g}  "
            + (
                f"gap {self.certificate.relative_gap:.2e}"
                if seen.stationarity is None
                else f"residual {seen.stationarity.residual:.2e}"
            )
            + f"  violation {seen.violation:.1e}  {self.seconds:.2f} s"
        )
        log.debug(line)
        if self.verbose:
            print(line)

    def _is_stalled(self, iteration: int, best: Certificate) -> bool:
        """No 1 % gain in gap and violation over as many iterations again as it took to get here (and at least 3,000)."""
        distance = max(best.distance, best.violation)
        if distance < 0.99 * self.improved_gap:
            self.improved_at, self.improved_gap = iteration, distance
        return iteration > 2 * self.improved_at + 3000


def drive(
    form: NormalForm,
    *,
    solver: str,
    tol: float,
    max_iter: int | None,
    max_seconds: float | None,
    start: Point | None,
    verbose: bool,
    options: dict,
) -> Outcome:
    """Solve a normal form with one solver, or with the first that certifies where solver="auto"."""
    watcher = Watcher(form, tol, max_seconds, verbose)
    names = _to_try(form, solver, options)
    status, certified, iterations, tried = "", False, 0, []
    for name in names:
        watcher.begin(name)
        chosen = get_solver(name)
        try:
            with (
                fitting_blas_threads(form),
                stops.time_limit(watcher.remaining),
                stops.at_once(),
                breakdowns(name),
                memory_errors(name),
            ):
                point = chosen.solve(
                    form,
                    tol=tol,
                    max_iter=max_iter if max_iter is not None else getattr(chosen, "max_iter", 100_000),
                    start=start,
                    watch=watcher,
                    **options,
                )
            iterations += point.iteration
        except KeyboardInterrupt as stop:
            watcher.leave(stop)
            iterations += watcher.last_point.iteration if watcher.last_point else 0
        except (SolverError, InfeasibleError) as error:
            if isinstance(error, InfeasibleError):
                error = _proven_infeasible(form, watcher, error)
            # a failed solver must not take the others' chance away; alone, its error is the answer
            if name == names[-1] and not watcher.history:
                raise error
            tried.append(f"{name} failed ({error})")
            status, iterations = (
                "stalled",
                iterations + (watcher.last_point.iteration if watcher.last_point else 0),
            )
            watcher.bound_optimum()
            watcher.note = str(error)
            continue
        if watcher.left:
            watcher.settle()
        elif point.stopped == "selected":
            watcher.insist_on(point)
        watcher.bound_optimum()
        reached = watcher.certificate.within(tol), watcher.certificate.is_stationary(tol)
        certified = any(reached)
        if certified:
            status = "optimal" if reached[0] else "stationary"
        else:
            early = not (form.is_convex or watcher.left) and point.iteration < (max_iter or chosen.max_iter)
            gave_up = "stalled" if early else "iteration_limit"
            status = watcher.left or watcher.stopped or point.stopped or gave_up
        if certified or watcher.left or status == "time_limit":
            break
        tried.append(
            f"{name} stopped at a {'relative gap' if form.is_convex else 'residual'} of {watcher.certificate.distance:.1e} "
            f"({status.replace('_', ' ')})"
        )
        # the next solver goes on from the best point; multipliers and inner state belong to the solver that made them
        start = Point(watcher.blocks) if np.isfinite(watcher.objective) else start
    if (
        not (certified or watcher.left or status == "time_limit")
        and watcher.violation > tol
        and form.constraints
    ):
        _proven_infeasible(form, watcher)
    if not certified and form.is_convex and watcher.bound == -np.inf:
        status = "uncertified" if status in ("stalled", "iteration_limit", "") else status
    reason = _reason(form, solver, watcher.solver, tried)
    return Outcome(
        watcher.blocks, watcher.certificate, status, watcher.solver, reason, watcher.seconds, iterations,
        watcher.history, watcher.last_point, watcher.structures, watcher.duals,
        watcher.left == "interrupted" or stops.pending(),
    )  # fmt: skip


def _proven_infeasible(
    form: NormalForm, watcher: Watcher, word: InfeasibleError | None = None
) -> SolverError:
    """InfeasibleError with a proof of our own; where there is none, the weights found are kept, and what is known is returned."""
    typed = "; ".join(f.typed for f in form.constraints)
    known = feasibility(form, watcher.blocks)
    if known.is_disproven:
        raise InfeasibleError(
            f"no weights satisfy all constraints at once ({known.how}): {typed}. Relax or leave out one of them"
        ) from word
    if known.violation <= watcher.tol:
        watcher(Point(known.blocks))
        return SolverError(f"{word}; but weights that satisfy them were found")
    return SolverError(
        f"no weights were found that satisfy all constraints at once, nor a proof that there are none: {typed}; the nearest found "
        f"violate them by {known.violation:.1e}. Standardise the features, or relax a constraint"
    )


def _to_try(form: NormalForm, solver: str, options: dict) -> list[str]:
    if not isinstance(solver, str):
        raise SolverError(f'solve(solver={quoted(solver)}): write "auto", or a name that explain() lists')
    if solver != "auto":
        chosen = get_solver(solver)
        reason = refusal(chosen, form)
        if reason is not None:
            accepted = ", ".join(candidates(form)) or "none"
            raise ModelError(
                f"solver={solver!r} does not take this model: {reason} Solvers that take it: {accepted}."
            )
        unknown = [key for key in options if key not in chosen.options]
        if unknown:
            known = ", ".join(f"{key}={value!r}" for key, value in chosen.options.items()) or "none"
            raise SolverError(
                f"solve(solver={solver!r}, {unknown[0]}=...): unknown option; {solver} takes {known}"
            )
        return [solver]
    if options:
        raise SolverError(
            f"solve({', '.join(f'{key}=...' for key in options)}): options belong to one solver; name it with solver=..."
        )
    names = fast_candidates(form)
    size = sum(loss.tasks.n_samples * loss.tasks.n_features for loss in form.losses)
    # the reference is slow even to import, and takes convex models only
    last = refusal(get_solver(LAST), form) if form.is_convex and not names else None
    if not names and (last is not None or not form.is_convex):
        nearest = ["admm"] if form.is_convex else ["admm", "alternating"]
        reasons = [f"{name}: {refusal(get_solver(name), form)}" for name in nearest]
        raise ModelError(
            f"no solver takes this model. {' '.join(reasons)}" + (f" {LAST}: {last}" if last else "")
        )
    takes_last = form.is_convex and last is None and not (names and size > _SMALL_ENOUGH_FOR_REFERENCE)
    return [*names, LAST] if takes_last else names


def _reason(form: NormalForm, asked: str, used: str, tried: list[str]) -> str:
    others = [text for text in tried if not text.startswith(used + " stopped")]
    summary = get_solver(used).summary if asked == "auto" else f"{used} was asked for"
    return summary + (f" (after {'; '.join(others)})" if others else "")
