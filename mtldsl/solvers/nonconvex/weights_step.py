"""Weights' step of an alternation: the convex model that is left with every learned matrix kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.certificates.certificate import certify
from mtldsl.certificates.dual_bound import over
from mtldsl.errors import ModelError, SolverError
from mtldsl.normal_form.form import Blocks, FunctionTerm, NormalForm, single_block
from mtldsl.normal_form.reductions.block_reductions import FixedStructures
from mtldsl.normal_form.reductions.coordinates import WhitenedLosses, WhiteningRecovery
from mtldsl.normal_form.terms.structure_term import Structures, StructureTerm, kept_value
from mtldsl.solvers.design.sufficient_statistics import QuadraticData, quadratic_data, why_not_quadratic
from mtldsl.solvers.linear_systems.sylvester import METHODS, SylvesterPenalty, fitting_method, solve_weights
from mtldsl.solvers.nonconvex.block_updates import RISE_ROUNDING_SHARE
from mtldsl.solvers.routes import accepting_routes, get_solver, refusal
from mtldsl.solvers.solver import Point, StoppingWatch, Watch


@dataclass(frozen=True)
class WeightsSettings:
    """Limits of one step on the weights.

    step_iterations : iterations of an inner solver
    limit_tol       : a gap this small that does not shrink is as small as it gets
    idle_looks      : looks over which it does not shrink
    """

    step_iterations: int = 5000
    limit_tol: float = 1e-9
    idle_looks: int = 4


SETTINGS = WeightsSettings()


def why_not_linear(form: NormalForm) -> str | None:
    """None where the step is one linear system: quadratic losses and penalties of one weight matrix itself."""
    reason = why_not_quadratic(form)
    if reason is not None:
        return reason
    if not form.is_convex:
        convex = [f for f in form.functions if isinstance(f, StructureTerm) and f.atom.convex]
        if convex:
            return f"{convex[0].typed} has a closed form of its own, which is not quadratic."
    for f in form.functions:
        if not isinstance(f, StructureTerm) and _quadratic_of(f) is None:
            return f"{f.typed} is {'a constraint' if f.is_constraint else 'not quadratic'}."
    facts = single_block(form, "affine", several_losses=True)
    return facts if isinstance(facts, str) else None


def _quadratic_of(f: FunctionTerm) -> tuple[SpectralMatrix, SpectralMatrix] | None:
    """(A, B) where the function is 1/2 tr(A V B V^T), without its coefficient."""
    both = f.atom.two_sided_quadratic()
    if both is not None:
        return both
    L = None if f.is_constraint else f.atom.task_quadratic(f.map.shape[1])
    if L is None:
        return None
    return SpectralMatrix.multiple_of_identity(1.0, f.map.shape[0]), SpectralMatrix.of(L)


def weights_step(form: NormalForm, w_step: str, watch: Watch) -> LinearStep | ConvexStep:
    """The step that fits; SolverError where the method asked for does not."""
    if w_step not in ("auto", *METHODS):
        raise SolverError(
            term=f"solve(solver='alternating', w_step={w_step!r})",
            write_instead=f"write one of 'auto', {', '.join(map(repr, METHODS))}",
        )
    reason = why_not_linear(form)
    if reason is None:
        return LinearStep(form, quadratic_data(form), w_step)
    if w_step != "auto":
        raise SolverError(
            f"this step solves a linear system, and {reason} Write w_step='auto'",
            term=f"solve(solver='alternating', w_step={w_step!r})",
        )
    return ConvexStep(form, watch)


@dataclass(eq=False)
class LinearStep:
    """A linear system; the losses enter by their Gram matrices, so that no step's price grows with the samples."""

    form: NormalForm
    data: QuadraticData
    method: str = "auto"
    rise: float = RISE_ROUNDING_SHARE  # of the objective between steps, relative to `size`

    @property
    def name(self) -> str:
        return self.data.block

    def penalties(self, structures: Structures) -> list[SylvesterPenalty]:
        found = []
        for f in self.form.functions:
            if isinstance(f, StructureTerm):
                quadratic = f.structure.quadratic(f.map.shape, f.matrices(structures))
                rows, columns = quadratic.rows, quadratic.columns
            else:
                quadratic: Any = _quadratic_of(f)  # there: the form was asked
                rows, columns = quadratic
            c = f.map.multiple_of(self.name)
            offset = None if f.map.offset is None else f.map.offset / c
            covariance = isinstance(f, StructureTerm) and f.atom.convex
            found.append(SylvesterPenalty(rows.scaled(f.coefficient * c * c), columns, offset, covariance))
        return found

    def solve(self, structures: Structures, x: Blocks, accuracy: float = 1e-13) -> Point:
        """The best weights for the matrices."""
        penalties = self.penalties(structures)
        method = fitting_method(self.data, penalties) if self.method == "auto" else self.method
        W = solve_weights(method, self.data, penalties, x[self.name], accuracy)
        return Point(self.data.blocks(W))

    def value(self, x: Blocks, structures: Structures | None = None) -> float:
        """The objective with the matrices kept; None: each at its best."""
        total = self.data.value(x[self.name]) + self.form.constant
        for f in self.form.functions:
            if structures is not None and isinstance(f, StructureTerm):
                total += f.value_at(x, structures)
            else:
                total += f.value(x)
        return total

    def size(self, x: Blocks) -> float:
        """The size of the terms that the objective is the sum of, which may cancel."""
        return abs(self.data.constant) + sum(abs(f.value(x)) for f in self.form.functions)


class ConvexStep:
    """Any convex model: the first of the fast solvers that reaches the accuracy. Never returns worse weights than it is given."""

    def __init__(self, form: NormalForm, watch: Watch):
        self.form, self.watch = form, watch
        self.before: Point | None = None
        self.reached: str | None = None  # the solver that brought the last step to its accuracy
        self._whitened = WhitenedLosses()
        self.rise = RISE_ROUNDING_SHARE

    def solve(self, structures: Structures, x: Blocks, accuracy: float = 1e-12) -> Point:
        """accuracy: the duality gap of the step, relative to its objective's size."""
        kept, _ = FixedStructures(structures).apply(self.form)
        start = (
            Point(x) if self.before is None else Point(x, self.before.loss_duals, self.before.function_duals)
        )
        easier, white = self._easier(kept)
        if white is not None:
            start = self._whitened.restricted(start, white)
        found = _InnerMonitor(easier, accuracy)
        inner = StoppingWatch(self.watch, found)
        if (
            kept.constraints
        ):  # weights that meet them to an accuracy may lie below those that meet them to a higher one
            self.rise = 100.0 * max(accuracy, kept.violation(x))
        for name in self._order(easier):
            solver = get_solver(name)
            solver.solve(
                easier,
                tol=accuracy,
                max_iter=min(solver.max_iter, SETTINGS.step_iterations),
                start=start,
                watch=inner,
            )
            if inner.satisfied or self.watch.expired:
                self.reached = name if inner.satisfied else self.reached
                break
            assert found.best is not None  # the solver showed a point
            start = Point(found.best.blocks)
        if found.best is None:
            raise ModelError("with its matrices kept, no fast solver takes this model", term=self.form.typed)
        best = Point(found.best.blocks, *found.duals)
        best = best if white is None else self._whitened.invert(best, white)
        # of values that agree to rounding, the new weights: they are nearer to stationary for these matrices
        before = kept.value(x) + 1e-13 * self.size(x)
        if kept.violation(x) <= 1e-12 and before < kept.value(best.blocks):
            best = Point(x, best.loss_duals, best.function_duals)
        self.before = best
        return Point(best.blocks, best.loss_duals, best.function_duals)

    def _order(self, easier: NormalForm) -> Iterator[str]:
        """The solver that reached the last step's accuracy, then the others: steps are alike."""
        if self.reached is not None and refusal(get_solver(self.reached), easier) is None:
            yield self.reached
        yield from (name for name in accepting_routes(easier) if name != self.reached)

    def _easier(self, kept: NormalForm) -> tuple[NormalForm, WhiteningRecovery | None]:
        """The model with a plain ridge in place of its matrices, where it has one, and the way back."""
        return self._whitened.apply(kept) if self._whitened.accepts(kept) is None else (kept, None)

    def value(self, x: Blocks, structures: Structures | None = None) -> float:
        """The objective with the matrices kept; None: each at its best."""
        return self.form.value(x) if structures is None else kept_value(self.form, x, structures)

    def size(self, x: Blocks) -> float:
        """The size of the terms that the objective is the sum of, which may cancel."""
        losses = sum(abs(loss.value(loss.predictions(x))) for loss in self.form.losses)
        return losses + sum(abs(f.value(x)) for f in self.form.functions)


class _InnerMonitor:
    """Judge of an inner solver: it has reached its accuracy, or makes no progress; keeps its best point."""

    def __init__(self, kept: NormalForm, accuracy: float):
        self.kept, self.accuracy = kept, accuracy
        self.best: Point | None = None
        self.bound, self.objective = -np.inf, np.inf
        self.gap, self.idle = np.inf, 0
        self.duals: Any = None  # of losses and functions, once there is a point

    def __call__(self, point: Point) -> bool:
        seen = certify(self.kept, point.blocks, point.loss_duals, point.function_duals)
        if seen.dual_bound > self.bound or self.duals is None:  # the best multipliers may be another point's
            self.bound, self.duals = seen.dual_bound, (point.loss_duals, point.function_duals)
        feasible = seen.violation <= self.accuracy
        if self.best is None or (feasible and seen.objective < self.objective):
            self.best, self.objective = point, seen.objective if feasible else np.inf
        gap = (self.objective - self.bound) / over(abs(self.objective - self.kept.constant), seen.scale)
        # near the limit of double precision more looks bring nothing
        self.idle = self.idle + 1 if gap > 0.7 * self.gap else 0
        self.gap = min(gap, self.gap)
        at_limit = gap <= SETTINGS.limit_tol and self.idle >= SETTINGS.idle_looks
        return feasible and (gap <= self.accuracy or at_limit)
