"""Structured losses beside anything else: each becomes a function of its weights, and the general ADMM does the rest."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.solvers.admm.iteration import Iteration
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.oracle import Oracle, has_one_maximum_a_task, intercept_unit
from mtldsl.solvers.planes.plane_function import PlaneFunction
from mtldsl.solvers.solver import Point, Watch
from mtldsl.solvers.watches import Translated

__all__ = ["Lifted"]


class Lifted:
    """One run of the general ADMM on a form in which losses with an oracle have become functions of the weights.

    A copy of a task's weights has d entries where one of its predictions would have n_i, and the prox of a maximum of planes is a
    small quadratic program there.
    """

    def __init__(self, form: NormalForm, tol: float, start: Point | None, relaxation: float, memory: int):
        self.form = form
        self.lifted = [t for t, loss in enumerate(form.losses) if has_one_maximum_a_task(loss)]
        self.kept = [t for t in range(len(form.losses)) if t not in self.lifted]
        state = start.state if start is not None and start.state.get("solver") == "lifted" else {}
        before = state.get("bundles", [])
        before = before if len(before) == len(self.lifted) else [None] * len(self.lifted)
        self.functions = [plane_function(form.losses[t], b) for t, b in zip(self.lifted, before, strict=True)]
        terms = [
            FunctionTerm(function, 1.0, stacked_map(form.losses[t]), form.losses[t].typed)
            for t, function in zip(self.lifted, self.functions, strict=True)
        ]
        inner = NormalForm(
            form.blocks, tuple(form.losses[t] for t in self.kept), (*form.functions, *terms), form.typed
        )
        begin = None if start is None else Point(start.blocks, state=state.get("inner", {}))
        self.iteration = Iteration(inner, tol, begin, relaxation, memory)

    def run(self, max_iter: int, watch: Watch) -> Point:
        return self._outside(self.iteration.run(max_iter, Translated(watch, self._outside)))

    def _outside(self, point: Point) -> Point:
        """The point in terms of the form as given."""
        loss_duals: list = [None] * len(self.form.losses)
        for t, dual in zip(self.kept, point.loss_duals, strict=True):
            loss_duals[t] = dual
        n = len(self.form.functions)
        for t, function, subgradient in zip(
            self.lifted, self.functions, point.function_duals[n:], strict=True
        ):
            W = stacked_map(self.form.losses[t]).forward(point.blocks)
            loss_duals[t] = function.multipliers(W, subgradient)
        state = {"solver": "lifted", "bundles": [f.bundle for f in self.functions], "inner": point.state}
        notes = {
            "oracle_calls": sum(f.oracle.calls for f in self.functions),
            "planes": int(sum(f.bundle.counts.sum() for f in self.functions)),
        }
        return Point(point.blocks, loss_duals, point.function_duals[:n], point.iteration, state, notes)


def plane_function(loss: LossTerm, before: Bundle | None) -> PlaneFunction:
    oracle = Oracle(loss)
    function = PlaneFunction(oracle, Bundle.of(oracle, before))
    if not function.bundle.is_new:
        return function
    constant = stacked_map(loss).offset
    at = np.zeros((oracle.size, loss.tasks.n_tasks)) if constant is None else constant
    function.bundle.add(oracle(np.ascontiguousarray(at.T)), np.arange(loss.tasks.n_tasks))
    return function


def stacked_map(loss: LossTerm) -> LinearMap:
    """Onto the weights of every task and, where the loss has intercepts, these in a last row, in the oracle's unit."""
    if not loss.intercepts:
        return loss.map
    d, m = loss.map.shape
    above = sparse.csr_array(sparse.eye_array(d + 1, d))
    last = sparse.csr_array(([1.0 / intercept_unit(loss)], ([d], [0])), shape=(d + 1, 1))
    entries = [
        Entry(
            entry.block,
            entry.coefficient,
            above if entry.left is None else above @ sparse.csr_array(entry.left),
            entry.right,
        )
        for entry in loss.map.entries
    ]
    offset = None if loss.map.offset is None else np.vstack([loss.map.offset, np.zeros((1, m))])
    return LinearMap((*entries, *(Entry(name, 1.0, last) for name in loss.intercepts)), (d + 1, m), offset)
