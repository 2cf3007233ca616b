"""Points above every cap: solutions of the convex model without penalties that cost no more there, however large weights are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError
from mtldsl.proof.certificate import certify
from mtldsl.solvers.point import Point
from mtldsl.solvers.registry import get_solver, in_turn
from mtldsl.solvers.solver import breakdowns
from mtldsl.solvers.watches import Until, Watch

__all__ = ["bare_start"]

#: The duality gap of the convex model, as a share of tol, and the most iterations.
_GAP, _STEPS = 1e-3, 100


def bare_start(form: NormalForm, tol: float, watch: Watch) -> Point | None:
    """The point found, to be compared with other starts; None where no penalty is bounded, or nothing was found.

    A capped trace norm is a constant where every singular value lies above the cap: the solution without it is then stationary. Where
    inputs have more columns than rows, or the cap is low, that is the usual case, and the hardest for steps that mind the penalty.
    """
    kept = [k for k, f in enumerate(form.functions) if f.atom.convex or f.is_constraint]
    capped = [k for k in range(len(form.functions)) if k not in kept]
    if not capped or not all(form.functions[k].atom.is_bounded for k in capped):
        return None
    bare = replace(form, functions=tuple(form.functions[k] for k in kept))
    name = next(in_turn(bare), None) if bare.is_convex else None
    if name is None:
        return None

    def as_given(point: Point) -> Point:
        duals: list[Any] = [np.zeros(f.map.shape) for f in form.functions]
        for place, k in enumerate(kept):
            duals[k] = None if point.function_duals is None else point.function_duals[place]
        return Point(point.blocks, point.loss_duals, duals, point.iteration)

    def is_solved(point: Point) -> bool:
        return certify(bare, point.blocks, point.loss_duals, point.function_duals).within(_GAP * tol)

    rough = Until(watch, is_solved, asks=_STEPS)
    with suppress(SolverError), breakdowns(name):
        get_solver(name).solve(bare, tol=_GAP * tol, max_iter=_STEPS, start=None, watch=rough)
    if rough.last is None:
        return None
    return as_given(rough.last)
