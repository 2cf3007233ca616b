"""Losses with kinks beside a function of the spectrum that is not convex: the method of multipliers, by turns of two kinds.

**Descent** (`descent`) takes the function as it is: fast near a solution, and far from one not sure.
**Tilting** (`tilted`) is sure: each of its convex models lies above the objective. It begins, and goes on where a descent lost its way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mtldsl.atoms.prox.spectral_matrix import largest_singular_value
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.augmented_lagrangian.augmented_lagrangian_run import AugmentedLagrangianRun
from mtldsl.solvers.augmented_lagrangian.fixed_rank import SETTINGS as AT_RANK
from mtldsl.solvers.augmented_lagrangian.fixed_rank import (
    ConcaveSpectralTerm,
    LinearizedConcavePart,
    concave_of,
    relax_to_trace_norm,
    settle_at_rank,
    why_not_at_rank,
)
from mtldsl.solvers.augmented_lagrangian.outer_loop import OuterLoop
from mtldsl.solvers.multistart import bare_start, solve_roughly
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class LowRankSettings:
    """Constants of models with one function of the spectrum that is not convex.

    start_tol            : relative gap of the convex relative that is close enough for a start
    max_start_iterations : of the solver that finds it
    initial_weight_share : weight of what a bound on the rank forbids, of the losses' pull at zero
    raise_factor         : times that weight, until the bound holds
    min_weight_ratio     : weight over the losses' pull, once the bound holds, below which it is raised
    raised_weight_ratio  : weight over the losses' pull after that
    tilt_share           : what is missing over the tilt's last move, at which the tilted model is solved
    max_tilt_steps       : outer steps of one tilted model
    restart_factor       : times the Newton steps so far, after which a descent begins anew
    max_descents         : after them others have their turn
    """

    start_tol: float = 1e-3
    max_start_iterations: int = 300
    initial_weight_share: float = 0.1
    raise_factor: float = 2.0
    min_weight_ratio: float = 1.2
    raised_weight_ratio: float = 1.5
    tilt_share: float = 0.1
    max_tilt_steps: int = 12
    restart_factor: float = 1.5
    max_descents: int = 8


SETTINGS = LowRankSettings()


class SpectralRun:
    """One run on a form with one function that is not convex."""

    def __init__(self, form: NormalForm, tol: float, start: Point | None):
        self.form, self.tol, self.start = form, tol, start
        concave = concave_of(form)
        assert isinstance(concave, ConcaveSpectralTerm)  # `refuses` was asked
        self.concave = concave
        self.place = next(k for k, f in enumerate(form.functions) if f is concave.term)
        self.descends = why_not_at_rank(form) is None

    def run(self, max_iter: int, watch: Watch) -> Point:
        if self.concave.rank is not None:
            self.concave.weight = SETTINGS.initial_weight_share * self._pull_at_zero()
        start = self._convex_start(watch) if self.start is None else self.start
        bare = bare_start(self.form, self.tol, watch) if self.start is None else None
        if bare is not None and self.form.value(bare.blocks) < self.form.value(start.blocks) and watch(bare):
            return bare
        if watch.expired:
            watch(start)
            return start
        self.taken, self.limit, self.watch = 0, max_iter, watch
        run = self._tilted_run(start)
        if self.start is not None:
            self._tilt(run)
        moved, shown, again, descents = 1.0, 0, 0, 0
        while True:
            self._settle(run, moved)
            if self._is_raised(run) and not self._is_over:
                moved = 1.0
                continue
            moved = self._tilt(run)
            missing = float(run.outer.residuals.worst.max())
            is_near = max(moved, missing) <= AT_RANK.look_ratio * self.tol
            if self._is_over or is_near or self.taken >= SETTINGS.restart_factor * shown:
                shown = self.taken
                point = self._point(run)
                if watch(point) or self._is_over:
                    return point
            if self.descends and self.taken >= again:
                found = self._descend(run)
                if found is not None:
                    return found
                again, descents = int(SETTINGS.restart_factor * self.taken), descents + 1
                if descents == SETTINGS.max_descents:
                    point = self._point(run)
                    self.watch(point)
                    return point

    @property
    def _is_over(self) -> bool:
        return self.taken >= self.limit or self.watch.expired

    def _point(self, run: AugmentedLagrangianRun) -> Point:
        return run._point(run.outer, self.taken)

    # ---------------------------------------------------------------------------------------------- the start

    def _pull_at_zero(self) -> float:
        """The spectral norm of the losses' gradient there."""
        (loss,), x = self.form.losses, self.form.zeros()
        g = self.form.zeros()
        loss.add_adjoint(loss.gradient(loss.predictions(x)), g)
        return largest_singular_value(g[self.form.weight_blocks[0].name])

    def _convex_start(self, watch: Watch) -> Point:
        """About the solution with a trace norm in the function's place, by the solver that is the fastest for it."""
        convex = relax_to_trace_norm(self.form, self.concave)
        tol, most = SETTINGS.start_tol, SETTINGS.max_start_iterations
        found = solve_roughly(convex, tol=tol, max_iter=most, watch=watch)
        return Point(self.form.zeros()) if found is None else Point(found.blocks, found.loss_duals)

    # ------------------------------------------------------------------------------------------------ tilting

    def _tilted_run(self, start: Point) -> AugmentedLagrangianRun:
        """The method of multipliers for the convex model."""
        convex = relax_to_trace_norm(self.form, self.concave)
        run = AugmentedLagrangianRun(convex, self.tol, Point(start.blocks, _flat(convex, start.loss_duals)))
        run.part = LinearizedConcavePart(convex.functions, run.designs.unit(), self.place)
        run.outer = OuterLoop(run.designs, run.scores, run.part, run.outer.at)
        return run

    def _settle(self, run: AugmentedLagrangianRun, moved: float) -> None:
        for _ in range(SETTINGS.max_tilt_steps):
            self.taken += max(run.outer.step(self.limit - self.taken), 1)
            if self._is_over or run.outer.residuals.worst.max() <= SETTINGS.tilt_share * moved:
                return

    def _tilt(self, run: AugmentedLagrangianRun) -> float:
        """To the tangent at the weights; how far the tilt moves, relative to its size and the multipliers'."""
        outer, part = run.outer, run.part
        new = self.concave.tilt(outer.at.v)
        change = new - part.tilt
        outer.at = replace(outer.at, P=outer.at.P - change)
        part.tilt = new
        size = max(np.linalg.norm(outer.at.P + new), np.linalg.norm(new), np.finfo(float).tiny)
        return float(np.linalg.norm(change) / size)

    def _is_raised(self, run: AugmentedLagrangianRun) -> bool:
        """Raise the weight of what a bound on the rank forbids, where it does not hold or would not by itself; tell whether it was."""
        concave = self.concave
        if concave.rank is None:
            return False
        pull = largest_singular_value(run.designs.adjoint(run.outer.at.u))
        if concave.rank_of(run.outer.at.v) > concave.rank:
            concave.weight *= SETTINGS.raise_factor
        elif concave.weight < SETTINGS.min_weight_ratio * pull:
            concave.weight = SETTINGS.raised_weight_ratio * pull
        else:
            return False
        part = LinearizedConcavePart(
            relax_to_trace_norm(self.form, concave).functions, run.designs.unit(), self.place
        )
        part.tilt = run.part.tilt
        run.part = run.outer.part = run.outer.newton.part = part
        self._tilt(run)
        return True

    # ------------------------------------------------------------------------------------------------ descent

    def _descend(self, run: AugmentedLagrangianRun) -> Point | None:
        """From where the tilted model is, on the matrices of its rank; the last point where the run ends with it."""
        at = self._point(run)
        start = Point(at.blocks, [run.outer.at.u], iteration=self.taken)
        return settle_at_rank(self.form, start, tol=self.tol, watch=self.watch)


def _flat(form: NormalForm, duals: list | None) -> list | None:
    """Multipliers as numbers, one a sample; of structured losses planes have mixtures."""
    if duals is None:
        return None
    return [np.asarray(loss.dual_project(u)) for loss, u in zip(form.losses, duals, strict=True)]
