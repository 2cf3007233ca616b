"""Easier models on the way to one that is not convex: the same with a larger eps, which has fewer stationary points."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.relaxed import Relaxed
from mtldsl.errors import SolverError
from mtldsl.solvers.alternation.radial_data import RadialData
from mtldsl.solvers.alternation.reweighting import Evaluation, Reweighting

__all__ = ["fitting_stages", "relaxed_forms", "rough_fit"]

#: What eps falls to between two of them.
_FACTOR = 0.1

#: eps relative to the largest squared singular value that Newton's method finds easy (measured on School: 2e-4 is, 2e-6 is not), and
#: how many stages there are at most.
_EASY, _MOST = 2e-4, 8

#: Reweighting steps to tell the size of the singular values, and the smoothing of a loss's kink for these.
_STEPS, _SMOOTHING = 3, 1e-2


def relaxed_forms(form: NormalForm, stages: int) -> list[NormalForm]:
    """As many forms with the eps of every reweighted term made larger, the easiest first. SolverError where stages is not a count."""
    typed = f"solve(solver='alternating', continuation={stages!r})"
    if isinstance(stages, bool) or not isinstance(stages, Integral) or stages < 0:
        raise SolverError(
            term=typed,
            write_instead="write how many easier models to solve before, a whole number such as 3, or 0 for none",
        )
    refused = Relaxed(1.0 / _FACTOR).accepts(form) if stages else None
    if refused is not None:
        raise SolverError(f"{refused}", term=typed, write_instead="leave continuation out")
    return [Relaxed(_FACTOR**-k).apply(form)[0] for k in range(stages, 0, -1)]


def fitting_stages(form: NormalForm, data: RadialData, x: Blocks) -> int:
    """As many as bring eps up to a share of the largest singular value's square."""
    largest = rough_fit(form, data, x[data.block]).singular.max(initial=0.0)
    reweighted: Any = [f for f in form.functions if f.atom.is_reweighted]  # these have an eps
    least = min(f.atom.eps / f.map.multiple_of(data.block) ** 2 for f in reweighted)
    missing = np.log10(max(_EASY * largest**2 / least, 1.0))
    return int(min(np.ceil(missing - 0.5), _MOST))


def rough_fit(form: NormalForm, data: RadialData, W) -> Evaluation:
    """After a few reweighting steps from W: enough to tell the size of the singular values."""
    model = Reweighting(form, data)
    if not data.loss.atom.smooth:
        model.eps = _SMOOTHING * data.typical_norm
    at = model.evaluate(W)
    for _ in range(_STEPS):
        at = model.evaluate(model.step(at))
    return at
