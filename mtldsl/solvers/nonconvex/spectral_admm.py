"""ADMM with the exact proximal steps of spectral penalties that are not convex, from convex starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.atoms.regularizers.quadratic import Ridge
from mtldsl.atoms.regularizers.spectral_norms import TraceNorm
from mtldsl.normal_form.form import Blocks, FunctionTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.normal_form.term import LinearMap, MapEntry
from mtldsl.solvers.admm.iteration import ADMMIteration
from mtldsl.solvers.cutting_planes.lifted_admm import LiftedRun
from mtldsl.solvers.multistart import bare_start, solve_roughly
from mtldsl.solvers.nonconvex.fixed_rank import settle_at_rank, why_not_at_rank
from mtldsl.solvers.solver import Point, StoppingWatch, Watch


@dataclass(frozen=True)
class SpectralSettings:
    """Limits of starts, rounds and penalties.

    relaxed_tol             : gap to which the convex relative is solved
    relaxed_iterations      : iterations of its solver
    trace_norm_share        : least coefficient of a trace norm, relative to that of the penalty in whose place it stands
    ridge_share             : of the losses' gradient at zero by the features: a ridge where nothing else bounds the weights
    round_iterations        : iterations of the first round, which is plain; then rounds are accelerated and plain in turn
    round_factor            : from one round's length to the next
    memory_steps            : steps that an extrapolation draws on
    modulus_factor          : of a penalty to the modulus that makes its function convex: its proximal step then has one minimum
    disagreement_tol        : of copies after a plain round, above which they do not settle and the penalty is raised
    penalty_factor          : by which it is raised
    newton_factor           : times the iterations, after which Newton steps are tried again
    """

    relaxed_tol: float = 1e-3
    relaxed_iterations: int = 300
    trace_norm_share: float = 1e-3
    ridge_share: float = 1e-3
    round_iterations: int = 150
    round_factor: float = 1.4
    memory_steps: int = 10
    modulus_factor: float = 2.0
    disagreement_tol: float = 0.03
    penalty_factor: float = 2.0
    newton_factor: float = 2.0


SETTINGS = SpectralSettings()


# --------------------------------------------------------------------------------------------------------------
# Start of a model with an exact penalty that is not convex: at the solution of a convex relative.


def relaxed_start(form: NormalForm, watch: Watch) -> Blocks:
    """About the solution with a trace norm in the place of every penalty that is not convex, and without bounds that are not: a start
    that is pulled to low rank everywhere. Zero where no fast solver takes it.
    """
    functions = []
    for f in form.functions:
        if f.atom.convex:
            functions.append(f)
        elif not f.is_constraint:
            functions.append(FunctionTerm(TraceNorm(), _coefficient(f), f.map, f.typed))
    for block in form.weight_blocks:
        if not any(f.map.multiple_of(block.name) for f in functions):
            own = LinearMap((MapEntry(block.name),), block.shape)
            functions.append(
                FunctionTerm(
                    Ridge(), SETTINGS.ridge_share * form.slope_at_zero / block.shape[0], own, "ridge"
                )
            )
    convex = replace(form, functions=tuple(functions))
    tol, most = SETTINGS.relaxed_tol, SETTINGS.relaxed_iterations
    found = solve_roughly(convex, tol=tol, max_iter=most, watch=watch)
    return form.zeros() if found is None else found.blocks


def _coefficient(f: FunctionTerm) -> float:
    """Return what the penalty charges for a singular value of one."""
    return f.coefficient * max(float(f.atom.value(np.ones((1, 1)))), SETTINGS.trace_norm_share)


# --------------------------------------------------------------------------------------------------------------
# ADMM where functions of the spectrum are not convex but have an exact proximal step; at the end, Newton steps at the rank found.


class SpectralADMM:
    """From a convex relation's solution, in rounds of ADMM with penalties that stay as they are.

    Douglas-Rachford's map of a weakly convex function is one of a convex function if its penalty exceeds the modulus; for others a
    penalty of twice the losses' curvature is enough, and a smaller one that settles is faster.
    Source: Li and Pong, "Global convergence of splitting methods for nonconvex composite optimization", SIAM J. Optim. 25 (2015).
    """

    def __init__(self, form: NormalForm, tol: float, start: Point | None):
        self.form, self.tol, self.start = form, tol, start
        self.rough = [k for k, f in enumerate(form.functions) if not f.atom.convex]

    def run(self, max_iter: int, watch: Watch) -> Point:
        settles = why_not_at_rank(self.form) is None
        point, has_rank = self._first(watch)
        if watch(point) or watch.expired:
            return point
        if settles and has_rank:
            settled = settle_at_rank(self.form, point, tol=self.tol, watch=watch)
            if settled is not None:
                return settled
        options = self.form, self.tol, Point(point.blocks), 1.0, SETTINGS.memory_steps
        lifted = LiftedRun(*options) if any(map(has_one_maximum_a_task, self.form.losses)) else None
        iteration = ADMMIteration(*options) if lifted is None else lifted.iteration
        advance = iteration.run if lifted is None else lifted.run
        iteration.change_penalties(self._penalties(iteration))
        anderson = iteration.anderson
        assert anderson is not None  # its memory is not 0
        done, tried, length, plain = 0, 0, SETTINGS.round_iterations, True
        while True:
            iteration.anderson = None if plain else anderson
            anderson.reset()
            point = advance(min(length, max_iter - done), StoppingWatch(watch))
            done += point.iteration
            point.iteration = done
            if watch(point) or watch.expired or done >= max_iter:
                return point
            if settles and done >= SETTINGS.newton_factor * tried:
                tried = done
                settled = settle_at_rank(self.form, point, tol=self.tol, watch=watch)
                if settled is not None:
                    return settled
            if plain and self._apart(iteration) > SETTINGS.disagreement_tol:
                penalties = iteration.penalties.copy()
                penalties[self._rough_copies(iteration)] *= SETTINGS.penalty_factor
                iteration.change_penalties(penalties)
            else:
                plain = not plain
            length = int(SETTINGS.round_factor * length)

    def _first(self, watch: Watch) -> tuple[Point, bool]:
        """(where to start, whether that has chosen a rank)."""
        if self.start is not None:
            x, weights = self.start.blocks, self.form.weight_blocks
            return Point(x), all(np.linalg.matrix_rank(x[b.name]) < min(b.shape) for b in weights)
        relaxed, bare = relaxed_start(self.form, watch), bare_start(self.form, self.tol, watch)
        found = [relaxed] if bare is None else [relaxed, bare.blocks]
        return Point(min(found, key=self.form.value)), False

    def _rough_copies(self, iteration: ADMMIteration) -> list[int]:
        return [
            j
            for j, copy in enumerate(iteration.split.copies)
            if not copy.is_loss and copy.index in self.rough
        ]

    def _penalties(self, iteration: ADMMIteration) -> np.ndarray:
        penalties = iteration.penalties.copy()
        for j in self._rough_copies(iteration):
            term = iteration.split.copies[j].term
            modulus = term.coefficient * term.atom.weak_convexity
            penalties[j] = SETTINGS.modulus_factor * modulus if np.isfinite(modulus) else penalties[j]
        return penalties

    def _apart(self, iteration: ADMMIteration) -> float:
        """Return how far images and copies are from each other, relative to their size."""
        w = iteration.split.prox(iteration.s, iteration.metric)
        apart: Any = 0.0
        for j in self._rough_copies(iteration):
            rows = iteration.split.copies[j].rows
            apart = max(
                apart,
                float(np.linalg.norm(iteration.image[rows] - w[rows]) / max(np.linalg.norm(w[rows]), 1e-300)),
            )
        return apart
