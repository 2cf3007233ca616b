"""Where to start on a model with an exact penalty that is not convex: at the solution of a convex relative."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.atoms.regularizers import Ridge, TraceNorm
from mtldsl.compile.normal_form import Blocks, Entry, FunctionTerm, LinearMap, NormalForm
from mtldsl.proof.certificate import certify
from mtldsl.solvers.registry import get_solver, in_turn
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Until

__all__ = ["relaxed_start"]

#: The duality gap that is close enough, and the most iterations.
_GAP, _STEPS = 1e-3, 300

#: The least coefficient of a trace norm, as a share of that of the penalty in whose place it stands; and of a ridge where nothing
#: else bounds the weights, as a share of the losses' gradient at zero by the features.
_LEAST, _RIDGE = 1e-3, 1e-3


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
            own = LinearMap((Entry(block.name),), block.shape)
            functions.append(
                FunctionTerm(Ridge(), _RIDGE * form.slope_at_zero / block.shape[0], own, "ridge")
            )
    convex = replace(form, functions=tuple(functions))
    name = next(in_turn(convex), None)
    if name is None:
        return form.zeros()

    def is_close(point: Point) -> bool:
        return certify(convex, point.blocks, point.loss_duals, point.function_duals).within(_GAP)

    rough = Until(watch, is_close)
    get_solver(name).solve(convex, tol=_GAP, max_iter=_STEPS, start=None, watch=rough)
    return form.zeros() if rough.last is None else rough.last.blocks


def _coefficient(f: FunctionTerm) -> float:
    """What the penalty charges for a singular value of one."""
    return f.coefficient * max(float(f.atom.value(np.ones((1, 1)))), _LEAST)
