"""Planes of structured hinges whose rows are elsewhere: all that a look at the rows tells is used up before the next one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import why_not
from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.lifted import has_one_maximum_a_task
from mtldsl.compile.single_block import single_block
from mtldsl.compile.terms.structured_elsewhere import StructuredElsewhere
from mtldsl.solvers.passes.by_passes import SolverByPasses
from mtldsl.solvers.passes.checkpoint import EVERY, Folder
from mtldsl.solvers.passes.plane_model import PlaneModel, modulus_of
from mtldsl.solvers.passes.plane_oracle import OracleElsewhere
from mtldsl.solvers.passes.plane_state import kept, recalled_model, recalled_planes
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.solver import Point, Watch

__all__ = ["SOLVER", "PlanesByPasses"]

#: Where a look asks, between the best point (0) and the model's (1): at the share that was best last, nearer, farther, and at the model's own.
#: That share at first, the least of it, and what is nearer.
_FIRST_SHARE, _LEAST_SHARE, _NEARER = 0.3, 0.01, 1.0 / 3.0

#: Looks without weight after which a plane is dropped.
_IDLE = 25


class PlanesByPasses(SolverByPasses):
    """minimize h(W) + sum_i c_i G_i(w_i), G_i a maximum of planes whose rows are elsewhere.

    The model of G_i is the maximum of the planes met so far. The minimizer of h + the model is found here, by quadratic programs over the planes;
    the weights of the planes there are random labellings, which prove a bound. Then one look asks for the highest planes at several
    points on the way from the best point so far to the model's: a product with the rows serves all of them.

    checkpoint : folder that planes, weights and multipliers are written to every five looks, and from which the same model goes on

    Sources: Joachims, "Training linear SVMs in linear time", KDD 2006; Franc and Sonnenburg, "Optimized cutting plane algorithm for support vector
    machines", ICML 2008 (planes at points near the best one).
    """

    name = "planes_by_passes"
    summary = "planes for structured hinges of rows that are elsewhere: scores of a task are put together, and rows tell slopes"
    max_iter = 1000
    options: ClassVar[Mapping[str, object]] = {"checkpoint": None}
    writes = ("checkpoint",)

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not has_one_maximum_a_task(loss):
                return f"{loss.typed} is not a structured_hinge."
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        if not form.functions:
            return "there is no regularizer."
        return why_not([(f.coefficient, f.atom) for f in form.functions]) or None

    def solves_only(self, form: NormalForm) -> str | None:
        fits = all(not loss.tasks.in_memory and has_one_maximum_a_task(loss) for loss in form.losses)
        return None if fits and form.losses else "structured hinges of rows that are elsewhere"

    def is_nearest(self, form: NormalForm) -> bool:
        return any(map(has_one_maximum_a_task, form.losses))

    def usual_passes(self, form: NormalForm) -> tuple[int, int]:
        """Two for a look."""
        return 40, 280

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, checkpoint: Folder | None = None
    ) -> Point:  # fmt: skip
        return _Run(form, start, checkpoint).run(max_iter, watch)


class _Run:
    def __init__(self, form: NormalForm, start: Point | None, file: Folder | None = None):
        self.form, self.file = form, file
        loss: Any = form.losses[0]
        self.loss: StructuredElsewhere = loss
        block = loss.map.identity_of
        assert block is not None  # refuses() lets through only a loss of one block itself
        self.block, self.oracle = block, OracleElsewhere(loss)
        self.d, self.m = form.shapes[block]
        self.terms = [(f.coefficient, f.atom) for f in form.functions]
        state = start.state if start is not None and start.state.get("solver") == SOLVER.name else {}
        left = state if "numbers" in state else None  # by a checkpoint
        if left is None:
            self.bundle = Bundle.of(self.oracle, state.get("bundle"))  # type: ignore[arg-type]
        else:
            self.bundle = recalled_planes(self.oracle, left["numbers"], left["blocks"])
        self.modulus = None if loss.intercepts else modulus_of(form)
        self.best = np.zeros((self.m, self.oracle.size)) if start is None else self._stacked(start)
        self.values, self.seen = np.full(self.m, np.inf), {}
        self.share = np.full(self.m, _FIRST_SHARE)
        if left is None:
            self._ask([self.best])
        self.model = PlaneModel(form, self.oracle, self.bundle, self.best, self.modulus, self.blocks)
        if left is not None:
            self._go_on(left["numbers"], left["blocks"])

    def _go_on(self, numbers: dict, arrays: dict) -> None:
        recalled_model(self.model, numbers, arrays)
        self.best, self.values, self.share = arrays["best"], arrays["values"], arrays["share"]
        self.seen = {n.removeprefix("seen "): a for n, a in arrays.items() if n.startswith("seen ")}

    def _keep(self) -> None:
        if self.file is None:
            return
        numbers, arrays = kept(self.bundle, self.model)
        arrays |= {"best": self.best, "values": self.values, "share": self.share}
        arrays |= {f"seen {name}": array for name, array in self.seen.items()}
        self.file.keep(SOLVER.name, self.blocks(self.best), None, numbers, arrays, now=True)

    def _stacked(self, start: Point) -> np.ndarray:
        rows = [
            start.blocks[self.block],
            *(start.blocks[name] / self.oracle.unit for name in self.loss.intercepts),
        ]
        return np.vstack(rows).T.copy()

    def blocks(self, V: np.ndarray) -> dict[str, np.ndarray]:
        """A point, as the form has it."""
        W, b = self.oracle.point(V)
        return {self.block: W} | {name: b[None, :].copy() for name in self.loss.intercepts}

    def run(self, max_iter: int, watch: Watch) -> Point:
        for iteration in range(1, max_iter + 1):
            S = self.model.minimize(self._objective())
            point = self._point(iteration)
            stopped = watch(point) or iteration == max_iter
            if not stopped:
                self._step(S)
                self.bundle.drop_idle(round(_IDLE * self.model.programs_a_look))
            if stopped or iteration % EVERY == 0:
                self._keep()
            if stopped:
                return point
        raise AssertionError("the last round returns")

    def _objective(self) -> float:
        return float(self.values.sum())

    def _step(self, S: np.ndarray) -> None:
        """Ask on the way to S; the share that was best is the middle one of the next look, each task's own where nothing ties tasks."""
        share, before, way = self.share, self.values, S - self.best
        shares = np.stack(
            [_NEARER * share, share, np.minimum(share / _NEARER, 0.5 * (1.0 + share)), np.ones(self.m)]
        )
        found = self._ask([self.best + one[:, None] * way for one in shares])
        at = np.argmin(found, axis=0)
        lower = found[at, np.arange(self.m)] < before
        self.share = np.maximum(np.where(lower, shares[at, np.arange(self.m)], _NEARER * share), _LEAST_SHARE)

    def _ask(self, points: list[np.ndarray]) -> np.ndarray:
        """(points, m) what tasks add to the objective, equal parts of it where they are tied; the best is kept."""
        found = []
        for V, (seen, planes) in zip(points, self.oracle.looks(points), strict=True):
            values = self._values(V, planes.values)
            better = values < self.values
            self.best = np.where(better[:, None], V, self.best)
            self.values = np.where(better, values, self.values)
            self.seen = {
                name: np.where(better, array, self.seen.get(name, array)) for name, array in seen.items()
            }
            self.bundle.add(planes, np.arange(self.m))
            found.append(values)
        return np.array(found)

    def _values(self, V: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(m,) what tasks add to the objective; where functions tie them, everyone an equal part of the whole."""
        lost = self.oracle.coefficients * values
        if self.modulus is not None:
            return lost + 0.5 * self.modulus * np.einsum("ij,ij->i", V, V)
        x = self.blocks(V)
        return np.full(self.m, (float(lost.sum()) + sum(f.value(x) for f in self.form.functions)) / self.m)

    def _point(self, iteration: int) -> Point:
        x = self.blocks(self.best)
        self.loss.known(x, self.seen)
        state = {"solver": SOLVER.name, "bundle": self.bundle}
        notes = {"looks": self.oracle.calls, "planes": int(self.bundle.counts.sum())}
        return Point(x, [self.model.duals], self.model.shares, iteration, state, notes)


SOLVER = PlanesByPasses()
