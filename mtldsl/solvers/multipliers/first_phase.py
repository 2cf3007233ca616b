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
_NEAR = 1e-2  # relative gap from which on Newton's steps take over where a look has not brought half of what was missing
_MOST, _MOST_FAST = 420, 1000  # iterations, and where gaps fall by half and more to the end
_PROXIMAL = 0.1  # the first share of the regularizer's penalty


def first_phase(run: Any, max_iter: int, watch: Watch) -> tuple[int, Point | None]:
    """(iterations, the last point where the run ends with it); the outer steps of `run` go on where it ended."""
    outer, form = run.outer, run.form
    if not Spectra.fits(run.designs, len(run.part.unit)):
        return 0, None
    splitting = Splitting(run.designs, run.scores, run.part, outer.at, outer.penalties)
    best, bound, before = np.inf, -np.inf, np.inf
    for look in count():
        planned = _FIRST[look] if look < len(_FIRST) else _LOOK
        outer.at = splitting.run(min(planned, max_iter - splitting.iterations))
        p = outer.penalties = splitting.penalties
        if run.tasks is not None:
            run.tasks.see(outer, np.arange(run.designs.n_tasks))
        point = run._point(outer, splitting.iterations)
        if watch(point) or splitting.iterations >= max_iter or watch.expired:
            return splitting.iterations, point
        best = min(best, form.value(point.blocks))
        bound = max(bound, dual_bound(form, point.blocks, point.loss_duals, point.function_duals)[0])
        gap = (best - bound) / max(abs(best), abs(bound), 1e-300)
        is_slow, before = gap > 0.5 * before, gap
        if splitting.iterations >= (_MOST if is_slow else _MOST_FAST) or (is_slow and gap <= _NEAR):
            break
    outer.penalties = Penalties(p.loss, p.regularizer, _PROXIMAL * p.regularizer)
    return splitting.iterations, None
