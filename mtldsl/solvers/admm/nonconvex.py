"""ADMM where functions of the spectrum are not convex but have an exact proximal step; at the end, Newton steps at the rank found."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.proof.certificate import certify
from mtldsl.solvers.admm.iteration import Iteration
from mtldsl.solvers.admm.relaxed_start import relaxed_start
from mtldsl.solvers.admm.smoothed_start import smoothed_start
from mtldsl.solvers.alternation.fixed_rank import newton_at_rank, why_not_fixed_rank
from mtldsl.solvers.alternation.radial_data import radial_data
from mtldsl.solvers.bare_start import bare_start
from mtldsl.solvers.multipliers.at_rank import settle_at_rank, why_not_at_rank
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Until

__all__ = ["Nonconvex"]

#: Iterations in a round, which first is plain, then accelerated, and so on; each round is longer than the one before by the factor.
_ROUND, _LONGER, _MEMORY = 150, 1.4, 10

#: A penalty is this many times the modulus that makes its function convex: its proximal step then has one minimum.
_MARGIN = 2.0

#: Copies that are further apart than this after a plain round do not settle: the penalty is raised.
_APART, _RAISE = 0.03, 2.0

#: A residual from which on Newton steps are tried, and again after so many times the iterations.
_NEAR, _AGAIN = 0.1, 2.0


class Nonconvex:
    """From a convex relation's solution, in rounds of ADMM with penalties that stay as they are.

    Douglas-Rachford's map of a weakly convex function is one of a convex function if its penalty exceeds the modulus; for others a
    penalty of twice the losses' curvature is enough, and a smaller one that settles is faster.
    Source: Li and Pong, "Global convergence of splitting methods for nonconvex composite optimization", SIAM J. Optim. 25 (2015).
    """

    def __init__(self, form: NormalForm, tol: float, start: Point | None):
        self.form, self.tol, self.start = form, tol, start
        self.rough = [k for k, f in enumerate(form.functions) if not f.atom.convex]

    def run(self, max_iter: int, watch: Watch) -> Point:
        data = radial_data(self.form) if why_not_fixed_rank(self.form) is None else None
        newton = data is not None or why_not_at_rank(self.form) is None
        point, stopped = self._first(data, watch)
        if stopped or watch.expired:
            return point
        if newton and self.start is not None and self._has_low_rank(point):
            finished = self._at_rank(data, point, watch)
            if finished is not None:
                return finished
        iteration = Iteration(self.form, self.tol, Point(point.blocks), relaxation=1.0, memory=_MEMORY)
        iteration.change_penalties(self._penalties(iteration))
        anderson = iteration.anderson
        assert anderson is not None  # its memory is not 0
        done, tried, length, plain = 0, 0, _ROUND, True
        while True:
            iteration.anderson = None if plain else anderson
            anderson.reset()
            point = iteration.run(min(length, max_iter - done), Until(watch))
            done += point.iteration
            point.iteration = done
            if watch(point) or watch.expired or done >= max_iter:
                return point
            near = newton and done >= _AGAIN * tried
            if near and (data is None or self._residual(point) <= _NEAR):
                tried = done
                finished = self._at_rank(data, point, watch)
                if finished is not None:
                    return finished
            if plain and self._apart(iteration) > _APART:
                penalties = iteration.penalties.copy()
                penalties[self._rough_copies(iteration)] *= _RAISE
                iteration.change_penalties(penalties)
            else:
                plain = not plain
            length = int(_LONGER * length)

    def _first(self, data, watch: Watch) -> tuple[Point, bool]:
        """(where to start, whether the caller is content with it already)."""
        if self.start is not None:
            point = Point(self.start.blocks)
            return point, watch(point)
        bare = bare_start(self.form, self.tol, watch)
        found = [Point(relaxed_start(self.form, watch)), *([] if bare is None else [bare])]
        W = smoothed_start(self.form, data, watch) if data is not None else None
        if data is not None and W is not None:
            found.append(Point(data.blocks(W), iteration=1))
        best = min(found, key=lambda point: self.form.value(point.blocks))
        return best, watch(best)

    def _residual(self, point: Point) -> float:
        seen = certify(self.form, point.blocks, point.loss_duals, point.function_duals, bound_optimum=False)
        assert seen.stationarity is not None  # of a form that is not convex
        return seen.stationarity.residual

    def _has_low_rank(self, point: Point) -> bool:
        """Whether a start that was given has chosen a rank."""
        (block,) = self.form.weight_blocks
        return int(np.linalg.matrix_rank(point.blocks[block.name])) < min(block.shape)

    def _at_rank(self, data, point: Point, watch: Watch) -> Point | None:
        """The last point of Newton steps among the matrices of this one's rank, where the run ends with it."""
        if data is None:
            return settle_at_rank(self.form, point, tol=self.tol, watch=watch)
        (name,) = [block.name for block in self.form.weight_blocks]
        W = point.blocks[name]
        W = newton_at_rank(self.form, data, W, int(np.linalg.matrix_rank(W)), lambda: watch.expired)
        finished = Point(data.blocks(W), iteration=point.iteration)
        return finished if watch(finished) or watch.expired else None

    def _rough_copies(self, iteration: Iteration) -> list[int]:
        return [
            j
            for j, copy in enumerate(iteration.split.copies)
            if not copy.is_loss and copy.index in self.rough
        ]

    def _penalties(self, iteration: Iteration) -> np.ndarray:
        penalties = iteration.penalties.copy()
        for j in self._rough_copies(iteration):
            term = iteration.split.copies[j].term
            modulus = term.coefficient * term.atom.weak_convexity
            penalties[j] = _MARGIN * modulus if np.isfinite(modulus) else penalties[j]
        return penalties

    def _apart(self, iteration: Iteration) -> float:
        """How far images and copies are from each other, relative to their size."""
        w = iteration.split.prox(iteration.s, iteration.metric)
        apart: Any = 0.0
        for j in self._rough_copies(iteration):
            rows = iteration.split.copies[j].rows
            apart = max(
                apart,
                float(np.linalg.norm(iteration.image[rows] - w[rows]) / max(np.linalg.norm(w[rows]), 1e-300)),
            )
        return apart
