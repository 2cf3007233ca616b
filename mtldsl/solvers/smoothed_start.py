"""Where to start on a model with exact penalties of the spectrum: near a stationary point of it, by way of smoothed ones."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.structure_term import StructureTerm
from mtldsl.errors import ModelError
from mtldsl.solvers.alternation.fixed_rank import newton_at_rank
from mtldsl.solvers.alternation.radial_data import RadialData
from mtldsl.solvers.alternation.reweighted import minimize_reweighted
from mtldsl.solvers.alternation.reweighting import Reweighting, why_not_reweighted
from mtldsl.solvers.solver import Watch

__all__ = ["smoothed_start"]

#: eps of the first and of the last smoothed model, relative to the largest squared singular value; tenfold steps between them.
_FIRST, _LAST = 1e-3, 1e-10

#: The residual to which the last one is solved, and the most iterations of all together.
_TOL, _MOST = 1e-5, 400

#: Seconds that a start is worth, and again for its last steps.
_SECONDS = 2.0

#: Singular values above this many times the root of the last eps are not zero.
_ALIVE = 10.0


def smoothed_start(form: NormalForm, data: RadialData, watch: Watch) -> np.ndarray | None:
    """The weights, stationary at their rank if all goes well; None where the penalties have no smoothed form."""
    first = _smoothed(form, 1.0)
    if first is None or why_not_reweighted(first) is not None:
        return None
    x = form.zeros()
    form.losses[0].add_adjoint(form.losses[0].tasks.targets, x)
    model = Reweighting(first, data)
    model.eps = 1e-2 * float(np.median(data.norms(data.residuals(np.zeros(data.shape)))))
    at = model.evaluate(x[data.block])
    for _ in range(3):
        at = model.evaluate(model.step(at))
    largest = max(float(at.singular.max(initial=0.0)) ** 2, np.finfo(float).tiny)
    stages = np.geomspace(_FIRST, _LAST, 8) * largest
    forms = tuple(_smoothed(form, eps) for eps in stages)
    quiet = _Quiet(watch)
    point = minimize_reweighted(
        forms, data, {data.block: at.W}, method="newton", tol=_TOL, max_iter=_MOST, watch=quiet
    )
    W = point.blocks[data.block]
    rank = int(np.count_nonzero(np.linalg.svd(W, compute_uv=False) > _ALIVE * np.sqrt(stages[-1])))
    last = _Quiet(watch)
    return newton_at_rank(form, data, W, rank, lambda: last.expired)


def _smoothed(form: NormalForm, eps: float) -> NormalForm | None:
    functions = []
    for k, f in enumerate(form.functions):
        if not f.atom.convex:
            if not hasattr(f.atom, "slope"):
                return None
            multiple = f.map.multiple_of(form.weight_blocks[0].name) or 1.0
            f = StructureTerm(
                _with_eps(f.atom, eps * multiple**2),
                f.coefficient,
                f.map,
                f.typed,
                (f"spectrum of term {k}",),
            )
        functions.append(f)
    return replace(form, functions=tuple(functions))


def _with_eps(atom, eps: float):
    try:
        return replace(atom, eps=eps)
    except ModelError:  # a cap leaves less room
        return replace(atom, eps=0.25 * atom.tau**2)


class _Quiet:
    """Stops at nothing but the time, its own or the caller's."""

    def __init__(self, watch: Watch):
        self.watch, self.end = watch, time.perf_counter() + _SECONDS

    @property
    def expired(self) -> bool:
        return self.watch.expired or time.perf_counter() > self.end

    def __call__(self, point) -> bool:
        return self.expired
