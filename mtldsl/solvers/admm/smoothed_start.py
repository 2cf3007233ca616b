"""Where to start on a model with exact penalties of the spectrum: near a stationary point of it, by way of smoothed ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.alternation.continuation import rough_fit
from mtldsl.solvers.alternation.fixed_rank import newton_at_rank
from mtldsl.solvers.alternation.radial_data import RadialData
from mtldsl.solvers.alternation.reweighted import minimize_reweighted
from mtldsl.solvers.alternation.reweighting import why_not_reweighted
from mtldsl.solvers.solver import Watch
from mtldsl.solvers.watches import Until
from mtldsl.system.long_calls import svd

__all__ = ["smoothed_start"]

#: eps of the first and of the last smoothed model, relative to the largest squared singular value; tenfold steps between them.
_FIRST, _LAST = 1e-3, 1e-10

#: The residual to which the last one is solved, and the most iterations of all together: so many multiplications of small matrices
#: are a start worth.
_TOL, _FEWEST, _MOST, _WORK = 1e-5, 40, 400, 2e10

#: Singular values above this many times the root of the last eps are not zero.
_ALIVE = 10.0


def smoothed_start(form: NormalForm, data: RadialData, watch: Watch) -> np.ndarray | None:
    """The weights, stationary at their rank if all goes well; None where the penalties have no smoothed form."""
    first = _smoothed(form, 1.0)
    if first is None or why_not_reweighted(first) is not None:
        return None
    x = form.zeros()
    form.losses[0].add_adjoint(form.losses[0].tasks.targets, x)
    at = rough_fit(first, data, x[data.block])
    stages = np.geomspace(_FIRST, _LAST, 8) * max(at.singular.max(initial=0.0) ** 2, np.finfo(float).tiny)
    forms = tuple(one for eps in stages if (one := _smoothed(form, eps)) is not None)
    step = sum(10.0 * chunk.R.size * chunk.R.shape[-2] for chunk in data.chunks)
    most = int(min(max(_WORK / step, _FEWEST), _MOST))
    point = minimize_reweighted(
        forms, data, {data.block: at.W}, method="newton", tol=_TOL, max_iter=most, watch=Until(watch)
    )
    W = point.blocks[data.block]
    rank = int(np.count_nonzero(svd(W, compute_uv=False) > _ALIVE * np.sqrt(stages[-1])))
    last = Until(watch, asks=most // 4)
    return newton_at_rank(form, data, W, rank, lambda: last.expired)


def _smoothed(form: NormalForm, eps: float) -> NormalForm | None:
    functions = []
    for f in form.functions:
        if not f.atom.convex:
            atom: Any = f.atom
            if not hasattr(atom, "smoothed"):
                return None
            multiple = f.map.multiple_of(form.weight_blocks[0].name) or 1.0
            f = replace(f, atom=atom.smoothed(eps * multiple**2))
        functions.append(f)
    return replace(form, functions=tuple(functions))
