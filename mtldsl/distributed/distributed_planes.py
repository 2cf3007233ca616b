"""Bundle method by passes over rows elsewhere: planes from workers, a quadratic program here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.prox.composition import unsupported_reason
from mtldsl.certificates.dual_bound import dual_bound
from mtldsl.distributed.distributed_solver import SETTINGS as DISTRIBUTED
from mtldsl.distributed.distributed_solver import CheckpointFolder, DistributedRun, DistributedSolver
from mtldsl.distributed.distributed_structured_term import DistributedStructuredTerm, PlaneDual
from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.normal_form.reductions.block_reductions import has_one_maximum_a_task
from mtldsl.solvers.cutting_planes.oracle import BUNDLE_ARRAYS, Bundle, Oracle, WeightPlanes
from mtldsl.solvers.cutting_planes.plane_rounds import PlaneRounds
from mtldsl.solvers.solver import Point, Watch

# --------------------------------------------------------------------------------------------------------------
# The minimizer of the functions of a model beside the planes met so far: computed here, without a look at the rows.


@dataclass(frozen=True)
class DistributedPlanesSettings:
    """Numbers of the planes of rows elsewhere.

    look_rounds       : rounds between two looks at the model's own gap
    max_rounds        : rounds
    model_gap_share   : of the gap, that the model may leave
    relaxation_factor : over-relaxation
    initial_way_share : of the way from the best point to the model's, at which the first look asks; the next ask at the share that was best last, nearer, farther, and at the model's point
    min_way_share     : of it
    nearer_factor     : of the share, for what is nearer
    idle_looks        : looks without weight after which a plane is dropped
    """

    look_rounds: int = 10
    max_rounds: int = 300
    model_gap_share: float = 0.1
    relaxation_factor: float = 1.6
    initial_way_share: float = 0.3
    min_way_share: float = 0.01
    nearer_factor: float = 1.0 / 3.0
    idle_looks: int = 25


SETTINGS = DistributedPlanesSettings()


def modulus_of(form: NormalForm) -> float | None:
    """r, where the functions are r / 2 ||W||^2 together; else None."""
    total = 0.0
    for f in form.functions:
        squares = f.atom.entry_quadratic
        if squares is None or np.ptp(squares) > 0.0:
            return None
        total += f.coefficient * float(np.ravel(squares)[0])
    return total if total > 0.0 else None


class PlaneModel(PlaneRounds):
    """minimize h(S) + sum_i c_i model_i(w_i) subject to W = S (tasks first): one quadratic program a task beside squares alone, else the rounds
    of `TwoBlockADMM`, which go on from where they ended at the last look.

    duals, function_duals : the multipliers at the last minimizer, of the loss and of the functions
    """

    def __init__(
        self, form: NormalForm, oracle: Any, bundle: Bundle, first: np.ndarray, modulus: float | None
    ):
        super().__init__(form, oracle, bundle, first.copy())
        self.modulus, self.bound = modulus, -math.inf
        self.duals: Any = bundle.duals()
        self.function_duals: list | None = None
        self.programs = self.looks = 0

    def minimize(self, objective: float) -> np.ndarray:
        """S (m, D); objective: of the best point so far, which tells how exact it has to be."""
        self.looks += 1
        if self.modulus is not None:
            self.programs += 1
            W, _ = self.bundle.proximal_steps(np.zeros_like(self.W), self.coefficients / self.modulus)
            self.duals = self.bundle.duals()
            return W
        for k in range(1, SETTINGS.max_rounds + 1):
            self.round(SETTINGS.relaxation_factor)
            self.programs += 1
            if k % SETTINGS.look_rounds:
                continue
            here = self._value()
            bound = self._bound()
            self.bound = max(self.bound, bound)
            if here - bound <= SETTINGS.model_gap_share * (objective - self.bound):
                break
            if k % (2 * SETTINGS.look_rounds) == 0:
                self.balance()
        return self.S

    def _value(self) -> float:
        return float(self.coefficients @ self.bundle.values(self.S)) + self.functions(self.S)

    def _bound(self) -> float:
        self.duals, self.function_duals = self.bundle.duals(), self.shares()
        return dual_bound(self.form, self.oracle.blocks(self.S), [self.duals], self.function_duals)[0]


# --------------------------------------------------------------------------------------------------------------
# The oracle of a structured hinge whose rows are elsewhere, as bundles of planes see it: the slopes in the weights are all that is kept of a plane.

#: Numbers kept of a plane beside its slope, in the order of `PlaneDual`.
N_PLANE_NUMBERS = 5


class DistributedOracle(Oracle):
    """As `Oracle`, for V (m, D): the weights of every task, the intercept last, divided by `unit`. Values and slopes are without coefficients."""

    def point(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(weights (d, m), intercepts (m,))."""
        d = self.tasks.n_features
        b = self.unit * V[:, d] if self.has_intercept else np.zeros(len(V))
        return np.ascontiguousarray(V[:, :d].T), b

    def looks(self, points: Sequence[np.ndarray]) -> list[tuple[dict, WeightPlanes]]:
        """Return what is seen at each of these V, and the planes there, for the price of one look."""
        self.calls += 1
        found = []
        for seen in self.loss.looks([self.point(V) for V in points]):
            slopes, sums = seen["adjoint"].T, seen["sums"]
            told = np.stack(
                [sums, seen["sizes"], seen["work"], np.sqrt(seen["squares"]), seen["promised"]], axis=1
            )
            stored = list(np.hstack([slopes, told]))
            if self.has_intercept:
                # slopes of rankings sum to zero, but for rounding, along which no plane has a slope
                level = np.abs(sums) <= 1e-14 * seen["sizes"]
                slopes = np.hstack([slopes, self.unit * np.where(level, 0.0, sums)[:, None]])
            found.append(
                (seen, WeightPlanes(seen["value"], seen["promised"], np.ascontiguousarray(slopes), stored))
            )
        return found

    def zero(self, i: int) -> np.ndarray:
        """The plane of the true labelling."""
        return np.zeros(self.tasks.n_features + N_PLANE_NUMBERS)

    def duals(self, stored: list[list], weights: list[np.ndarray]) -> PlaneDual:
        """Multipliers of the loss, coefficients included, of the mixtures of planes."""
        rows = []
        for c, planes, w in zip(self.coefficients, stored, weights, strict=True):
            used = np.flatnonzero(w > 0.0)
            total = max(1.0, float(w[used].sum()))  # rounding of probabilities
            rows.append(
                (c / total) * (w[used] @ np.array([planes[k] for k in used]))
                if used.size
                else 0.0 * self.zero(0)
            )
        table, d = np.array(rows), self.tasks.n_features
        return PlaneDual(np.ascontiguousarray(table[:, :d].T), *table[:, d:].T)


# --------------------------------------------------------------------------------------------------------------
# Where a run of planes is, as numbers and arrays of a checkpoint; and planes, and the model of them, that go on from there.

_OF_MODEL = ("W", "S", "Z")
_NUMBERS = ("mu", "bound", "programs", "looks")


def plane_state(bundle: Bundle, model: PlaneModel) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """(numbers, arrays)."""
    arrays = {name: getattr(bundle, name) for name in BUNDLE_ARRAYS}
    arrays["stored"] = np.concatenate([np.array(planes) for planes in bundle.stored])
    arrays |= {name: getattr(model, name) for name in _OF_MODEL}
    return {name: float(getattr(model, name)) for name in _NUMBERS}, arrays


def recalled_planes(oracle: Any, arrays: dict[str, np.ndarray]) -> Bundle:
    """The planes that `plane_state` has written."""
    bundle = Bundle(oracle)
    for name in BUNDLE_ARRAYS:
        setattr(bundle, name, arrays[name].copy())
    ends = np.cumsum(bundle.counts)[:-1]
    bundle.stored = [list(planes) for planes in np.split(arrays["stored"], ends)]
    return bundle


def recalled_model(model: PlaneModel, numbers: dict[str, float], arrays: dict[str, np.ndarray]) -> None:
    """The model of planes as it was."""
    for name in _OF_MODEL:
        setattr(model, name, arrays[name].copy())
    model.mu, model.bound = numbers["mu"], numbers["bound"]
    model.programs, model.looks = int(numbers["programs"]), int(numbers["looks"])


# --------------------------------------------------------------------------------------------------------------
# Planes of structured hinges whose rows are elsewhere: all that a look at the rows tells is used up before the next one.


class PlanesByPasses(DistributedSolver):
    """minimize h(W) + sum_i c_i G_i(w_i), G_i a maximum of planes whose rows are elsewhere.

    The model of G_i is the maximum of the planes met so far. The minimizer of h + the model is found here, by quadratic programs over the planes;
    the weights of the planes there are random labellings, which prove a bound. Then one look asks for the highest planes at several
    points on the way from the best point so far to the model's: a product with the rows serves all of them.

    Sources: Joachims, "Training linear SVMs in linear time", KDD 2006; Franc and Sonnenburg, "Optimized cutting plane algorithm for support vector
    machines", ICML 2008 (planes at points near the best one).
    """

    name = "planes_by_passes"
    summary = "planes for structured hinges of rows that are elsewhere: scores of a task are put together, and rows tell slopes"
    usual = 40, 280  # two for a look

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if not has_one_maximum_a_task(loss):
                return f"{loss.typed} is not a structured_hinge."
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        if not form.functions:
            return "there is no regularizer."
        return unsupported_reason([(f.coefficient, f.atom) for f in form.functions]) or None

    def solves_only(self, form: NormalForm) -> str | None:
        fits = all(not loss.tasks.in_memory and has_one_maximum_a_task(loss) for loss in form.losses)
        return None if fits and form.losses else "structured hinges of rows that are elsewhere"

    def is_nearest(self, form: NormalForm) -> bool:
        return any(map(has_one_maximum_a_task, form.losses))


class _DistributedPlanesRun(DistributedRun):
    solver = PlanesByPasses.name

    def __init__(self, form: NormalForm, start: Point | None, file: CheckpointFolder | None):
        super().__init__(form, start, file)
        loss: Any = form.losses[0]
        self.loss: DistributedStructuredTerm = loss
        self.oracle, self.m = DistributedOracle(loss), loss.tasks.n_tasks
        self.modulus = None if loss.intercepts else modulus_of(form)
        self.best = (
            np.zeros((self.m, self.oracle.size)) if start is None else self.oracle.stacked(start.blocks)
        )
        self.values, self.seen = np.full(self.m, np.inf), {}
        self.share = np.full(self.m, SETTINGS.initial_way_share)
        if self.left is None:
            state = {} if start is None or start.state.get("solver") != self.solver else start.state
            self.bundle = Bundle.of(self.oracle, state.get("bundle"))  # type: ignore[arg-type]
            self._ask([self.best])
        else:
            self.bundle = recalled_planes(self.oracle, self.left["blocks"])
        self.model = PlaneModel(form, self.oracle, self.bundle, self.best, self.modulus)
        if self.left is not None:
            arrays = self.left["blocks"]
            recalled_model(self.model, self.left["numbers"], arrays)
            self.best, self.values, self.share = arrays["best"], arrays["values"], arrays["share"]
            self.seen = {n.removeprefix("seen "): a for n, a in arrays.items() if n.startswith("seen ")}

    def _keep(self) -> None:
        """Planes, weights and multipliers: as much to write as many passes, and so after some of them."""
        numbers, arrays = plane_state(self.bundle, self.model)
        arrays |= {"best": self.best, "values": self.values, "share": self.share}
        arrays |= {f"seen {name}": array for name, array in self.seen.items()}
        self.x, self.inner.duals = self.oracle.blocks(self.best), None
        self.keep(numbers, arrays, now=True)

    def solve(self, max_iter: int, watch: Watch) -> Point:
        for iteration in range(1, max_iter + 1):
            S = self.model.minimize(self._objective())
            point = self._point(iteration)
            stopped = watch(point) or iteration == max_iter
            if not stopped:
                self._step(S)
                self.bundle.drop_idle(round(SETTINGS.idle_looks * self.model.programs / self.model.looks))
            if stopped or iteration % DISTRIBUTED.checkpoint_passes == 0:
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
            [
                SETTINGS.nearer_factor * share,
                share,
                np.minimum(share / SETTINGS.nearer_factor, 0.5 * (1.0 + share)),
                np.ones(self.m),
            ]
        )
        found = self._ask([self.best + one[:, None] * way for one in shares])
        at = np.argmin(found, axis=0)
        lower = found[at, np.arange(self.m)] < before
        self.share = np.maximum(
            np.where(lower, shares[at, np.arange(self.m)], SETTINGS.nearer_factor * share),
            SETTINGS.min_way_share,
        )

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
        x = self.oracle.blocks(V)
        return np.full(self.m, (float(lost.sum()) + sum(f.value(x) for f in self.form.functions)) / self.m)

    def _point(self, iteration: int) -> Point:
        x = self.oracle.blocks(self.best)
        self.loss.known(x, self.seen)
        state = {"solver": self.solver, "bundle": self.bundle}
        notes = {"looks": round(self.oracle.calls), "planes": int(self.bundle.counts.sum())}
        return Point(x, [self.model.duals], self.model.function_duals, iteration, state, notes)


SOLVER = PlanesByPasses(_DistributedPlanesRun)
