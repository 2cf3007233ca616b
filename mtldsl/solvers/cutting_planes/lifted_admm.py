"""ADMM on structured losses lifted onto their weights, which are known by their planes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.matrix_function import Regularizer
from mtldsl.normal_form.form import LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import LossesOfWeights
from mtldsl.solvers.admm.iteration import ADMMIteration
from mtldsl.solvers.cutting_planes.oracle import Bundle, Oracle
from mtldsl.solvers.solver import MappedWatch, Point, Watch


@dataclass(frozen=True)
class LiftedSettings:
    """Limits of a prox, and of the planes kept for the next.

    prox_tol      : gap of a prox, relative to the terms that cancel in it
    prox_rounds   : of one prox
    idle_programs : quadratic programs without weight after which a plane is dropped
    """

    prox_tol: float = 1e-13
    prox_rounds: int = 1000
    idle_programs: int = 200


SETTINGS = LiftedSettings()


# --------------------------------------------------------------------------------------------------------------
# A loss with an oracle as a function of the weights, with an exact prox: how it enters ADMM beside anything else.


@dataclass(frozen=True, eq=False)
class PlaneFunction(Regularizer):
    """V (D, m) -> sum_i c_i G_i(v_i), v_i the weights of task i, its intercept last. Not a word: made by the solver.

    The prox asks the oracle until no plane is violated, and keeps the planes for the next time.
    """

    oracle: Oracle
    bundle: Bundle

    name: ClassVar[str] = "plane_function"
    separable: ClassVar[str] = "columns"
    absorbs: ClassVar[bool] = False

    @property
    def unit(self) -> float:
        """Return what intercepts are divided by."""
        return self.oracle.unit

    def value(self, W) -> float:
        return float(self.oracle.coefficients @ self.oracle.values(np.ascontiguousarray(W.T)))

    def prox(self, W, step) -> np.ndarray:
        return self._solve(np.ascontiguousarray(W.T), step).T

    def _solve(self, B: np.ndarray, step: float) -> np.ndarray:
        bundle, steps = self.bundle, step * self.oracle.coefficients
        for _ in range(SETTINGS.prox_rounds):
            V, promised = bundle.proximal_steps(B, steps, SETTINGS.prox_tol)
            found = self.oracle(V)
            size = np.abs(found.deltas) + np.einsum("ij,ij->i", np.abs(found.slopes), np.abs(V))
            violated = found.values - promised > SETTINGS.prox_tol * (size + np.abs(promised))
            # a plane that the model has already is violated by rounding alone
            violated &= found.values > bundle.values(V) + SETTINGS.prox_tol * size
            if not violated.any():
                break
            bundle.add(found, np.flatnonzero(violated))
        bundle.drop_idle(SETTINGS.idle_programs)
        return V

    def multipliers(self, W, subgradient) -> list | np.ndarray:
        """The mixture of planes at W whose slope is `subgradient` (both (D, m)), as multipliers of the loss."""
        length, natural = np.linalg.norm(subgradient), 1.0 / self.natural_penalty()
        step: Any = (
            np.clip(np.linalg.norm(W) / length, 1e-6 * natural, 1e6 * natural) if length > 0 else natural
        )
        self._solve(np.ascontiguousarray((W + step * subgradient).T), step)
        return self.bundle.duals()

    def natural_penalty(self) -> float:
        """Multipliers over weights, guessed at zero: slopes over the steps to where the planes are zero."""
        found = self.oracle(np.zeros((len(self.bundle.counts), self.bundle.size)))
        lengths = np.linalg.norm(found.slopes, axis=1)
        sloped = lengths > 1e-12 * lengths.max(initial=0.0)
        if not sloped.any():
            return 1.0
        reach = np.mean(np.abs(found.values[sloped]) / lengths[sloped])
        size = float(np.mean((self.oracle.coefficients * lengths)[sloped]))
        return size / reach if reach > 0 else 1.0


# --------------------------------------------------------------------------------------------------------------
# Structured losses beside anything else: each becomes a function of its weights, and the general ADMM does the rest.


class LiftedRun:
    """One run of the general ADMM on a form that is `LossesOfWeights`.

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

        self.reduction = LossesOfWeights(of_weights)
        inner, self.recipe = self.reduction.apply(form)
        begin = None if start is None else Point(start.blocks, state=state.get("inner", {}))
        self.iteration = ADMMIteration(inner, tol, begin, relaxation, memory)

    def run(self, max_iter: int, watch: Watch) -> Point:
        return self._outside(self.iteration.run(max_iter, MappedWatch(watch, self._outside)))

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
