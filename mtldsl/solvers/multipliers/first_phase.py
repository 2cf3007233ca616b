"""Where Newton's steps begin badly: ADMM on the same copies until its bound comes near."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from mtldsl.proof.certificate import dual_bound
from mtldsl.solvers.multipliers.newton import Penalties
from mtldsl.solvers.multipliers.splitting import Spectra, Splitting
from mtldsl.solvers.point import Point
from mtldsl.solvers.watches import Watch

__all__ = ["first_phase"]

_FIRST, _LOOK = (10, 10, 20, 20, 20, 20), 40  # iterations before the first looks, and before each later one
_NEAR = 1e-2  # relative gap from which on Newton's steps take over where they are the faster ones
_MOST, _MOST_FAST = 420, 2000  # iterations, and where they are the faster ones to the end
_RARELY = 1.5  # times as many iterations between two points that are shown, where they are not the end
_STEPS = 4  # Newton steps in which the gap falls by half, as a rule
_PROXIMAL = 0.1  # the first share of the regularizer's penalty


def first_phase(run: Any, max_iter: int, watch: Watch) -> tuple[int, Point | None]:
    """(iterations, the last point where the run ends with it); the outer steps of `run` go on where it ended."""
    outer = run.outer
    if not Spectra.fits(run.designs, len(run.part.unit)):
        return 0, None
    splitting = Splitting(run.designs, run.scores, run.part, outer.at, outer.penalties)
    known, gaps, shown_at = _Known(run), [], 0
    price = _STEPS * _price_of_a_step(run)
    for look in count():
        planned = _FIRST[look] if look < len(_FIRST) else _LOOK
        outer.at = splitting.run(min(planned, max_iter - splitting.iterations))
        p = outer.penalties = splitting.penalties
        iterations = splitting.iterations
        point = known.look(outer, iterations)
        stops = iterations >= max_iter or watch.expired
        if stops or known.gap <= run.tol or iterations >= _RARELY * shown_at:
            shown_at = iterations
            if watch(point or run._point(outer, iterations)) or stops:
                return iterations, point or run._point(outer, iterations)
        gaps.append((iterations, known.gap))
        is_slow = _to_halve(gaps) > price
        if iterations >= (_MOST if is_slow else _MOST_FAST) or (is_slow and known.gap <= _NEAR):
            break
    outer.penalties = Penalties(p.loss, p.regularizer, _PROXIMAL * p.regularizer)
    return splitting.iterations, None


class _Known:
    """The best objective and the best bound of the run so far, which cost less than what a watch has to know."""

    def __init__(self, run: Any):
        self.run, self.best, self.bound = run, np.inf, -np.inf

    def look(self, outer: Any, iterations: int) -> Point | None:
        """At where `outer` is; the point, where it had to be made."""
        run, point = self.run, None
        if run.tasks is not None:  # each by itself
            run.tasks.see(outer, np.arange(run.designs.n_tasks))
            self.best, self.bound = float(run.tasks.objectives.sum()), float(run.tasks.bounds.sum())
        else:
            form, point = run.form, run._point(outer, iterations)
            self.best = min(self.best, form.value(point.blocks))
            self.bound = max(
                self.bound, dual_bound(form, point.blocks, point.loss_duals, point.function_duals)[0]
            )
        return point

    @property
    def gap(self) -> float:
        return (self.best - self.bound) / max(abs(self.best), abs(self.bound), 1e-300)


def _price_of_a_step(run: Any) -> float:
    """The price of a Newton step, in iterations: factorizations against products (measured: 6 with 72 features, 10 with 294, 35 with 600,
    230 with 978 rows of 1,449)."""
    side = min(len(run.part.unit), int(run.designs.counts.max()))
    return 5.0 + max(side / 20.0, side**2 / 8000.0)


def _to_halve(gaps: list[tuple[int, float]]) -> float:
    """Iterations in which the gap falls by half, as it did over the last half of them."""
    iterations, gap = gaps[-1]
    before, was = next(pair for pair in gaps[::-1] if 2 * pair[0] <= iterations or pair == gaps[0])
    if not gap < was < np.inf or gap <= 0.0:
        return np.inf if before < iterations else 0.0
    return (iterations - before) * np.log(2.0) / np.log(was / gap)
