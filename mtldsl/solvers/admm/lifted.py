"""Structured losses beside anything else: each becomes a function of its weights, and the general ADMM does the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.compile.reductions.lifted import Lifted
from mtldsl.solvers.admm.iteration import Iteration
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.oracle import Oracle
from mtldsl.solvers.planes.plane_function import PlaneFunction
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Translated

__all__ = ["LiftedRun", "plane_function"]


class LiftedRun:
    """One run of the general ADMM on a form that is `Lifted`.

    A copy of a task's weights has d entries where one of its predictions would have n_i, and the prox of a maximum of planes is a
    small quadratic program there.
    """

    def __init__(self, form: NormalForm, tol: float, start: Point | None, relaxation: float, memory: int):
        state = start.state if start is not None and start.state.get("solver") == "lifted" else {}
        before = iter(state.get("bundles", []))
        self.functions: list[PlaneFunction] = []

        def of_weights(loss: LossTerm) -> PlaneFunction:
            self.functions.append(plane_function(loss, next(before, None)))
            return self.functions[-1]

        self.reduction = Lifted(of_weights)
        inner, self.recipe = self.reduction.apply(form)
        begin = None if start is None else Point(start.blocks, state=state.get("inner", {}))
        self.iteration = Iteration(inner, tol, begin, relaxation, memory)

    def run(self, max_iter: int, watch: Watch) -> Point:
        return self._outside(self.iteration.run(max_iter, Translated(watch, self._outside)))

    def _outside(self, point: Point) -> Point:
        """The point in terms of the form as given."""
        found = self.reduction.invert(point, self.recipe)
        notes = {
            "oracle_calls": sum(f.oracle.calls for f in self.functions),
            "planes": int(sum(f.bundle.counts.sum() for f in self.functions)),
        }
        state = {"solver": "lifted", "bundles": [f.bundle for f in self.functions], "inner": point.state}
        return replace(found, state=state, notes=notes)


def plane_function(loss: LossTerm, before: Bundle | None = None) -> PlaneFunction:
    """The loss as a function of its weights, with the planes of an earlier run where it is the same loss."""
    oracle = Oracle(loss)
    function = PlaneFunction(oracle, Bundle.of(oracle, before))
    if not function.bundle.is_new:
        return function
    at = np.zeros((loss.tasks.n_tasks, oracle.size))
    if loss.map.offset is not None:
        at[:, : loss.tasks.n_features] = np.transpose(loss.map.offset)
    function.bundle.add(oracle(at), np.arange(loss.tasks.n_tasks))
    return function
