"""Dual ascent inside the parts, its steps added up safely: losses with kinks beside kernels between tasks, one pass over the data an iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np

from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.distributed import DistributedTerm, RowDual
from mtldsl.solvers.passes.aggregation import curvatures, places_of_tasks, safe_factors
from mtldsl.solvers.passes.by_passes import SolverByPasses
from mtldsl.solvers.passes.checkpoint import Folder
from mtldsl.solvers.passes.local_ascent import Around, SentCell, ascend
from mtldsl.solvers.samples.kernel_form import KernelForm, kernel_form
from mtldsl.solvers.samples.nodes import Nodes
from mtldsl.solvers.samples.weights_step import WeightsStep
from mtldsl.solvers.solver import Point, Watch

__all__ = ["SOLVER", "AscentByPasses"]

#: Epochs over the rows of a part in a pass.
_EPOCHS = 5

#: Passes without progress; parts a task, on average, and the loss's curvature over the regularizer's, beyond which others take fewer passes.
_PATIENCE, _MOST_PARTS, _STEEPEST = 30, 1.5, 4.0

#: The bound on how far steps overshoot together falls towards what was seen of it, this much above it, and by no more than this factor a pass.
_ABOVE, _FASTEST = 1.2, 0.9


class AscentByPasses(SolverByPasses):
    """minimize sum_i l_i(<x_i, w_{t_i}>) + c * (kernel regularizer of W), the rows in parts: `mkl_norm`, a ridge, quadratics between tasks.

    In the dual, -sum_i conj_i(u_i) - 1/(2 c) ||X^T u||^2_K, a part raises the value over its own multipliers, with s_j K_j in the place of
    every node K_j of the kernel, s_j the number of parts that have tasks of the node: then the steps of all parts, added up,
    raise it by no less than each was promised. A task whose rows are in one part has s = 1 for what it does not share. Where steps
    overlap less than that, s falls towards what is seen; whatever it is, the sum of the steps is scaled by the best factor in [0, 1], which
    the same pass tells. Multipliers stay with their rows; kernel weights take a step in closed form between passes.

    checkpoint : folder that weights and the multipliers of the rows are written to, and from which the same model goes on

    Sources: Ma, Smith, Jaggi, Jordan, Richtarik and Takac, "Adding vs. averaging in distributed primal-dual optimization", ICML 2015
    (CoCoA+); Smith, Forte, Ma, Takac, Jordan and Jaggi, "CoCoA: A general framework", JMLR 18 (2018); Liu, Pan and Ho, "Distributed
    multi-task relationship learning", KDD 2017; MT-MKL, (E.1).
    """

    name = "ascent_by_passes"
    summary = "dual ascent inside the parts of rows that are elsewhere, its steps added up safely: kernels between tasks, mkl_norm"
    options: ClassVar[Mapping[str, object]] = {"checkpoint": None}
    writes = ("checkpoint",)
    max_iter = 2000

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        found = kernel_form(form)
        if isinstance(found, str):
            return found
        return f"{found.loss.typed} has an intercept." if found.loss.intercepts else None

    def yields(self, form: NormalForm) -> str | None:
        """Measured: of tasks that lie in a part or two and have few rows, a quarter of the passes of the next best; steps of many parts in the
        same direction, or through a node that all tasks share, have to be short, and those of steep losses are many."""
        found = kernel_form(form)
        assert not isinstance(found, str)
        loss, norm = found.loss, found.norm
        tasks: Any = loss.tasks
        if loss.atom.smooth:
            return "Newton steps on smooth losses take fewer passes."
        if found.name is not None:
            return "learned kernels link tasks in all parts: proximal steps take fewer passes."
        if tasks.label_facts.parts.mean() > _MOST_PARTS:
            return "tasks have rows in many parts, whose steps would have to be short."
        factor = norm.kernels[0].factor
        own = np.asarray(factor.multiply(factor).sum(axis=1)).ravel() / found.coefficient
        if np.median(curvatures(loss) * own) > _STEEPEST:
            return "the loss is steep beside the regularizer: proximal steps take fewer passes."
        return None

    def patience(self, form: NormalForm) -> int:
        return _PATIENCE

    def usual_passes(self, form: NormalForm) -> tuple[int, int]:
        return 5, 30

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, checkpoint: Folder | None = None
    ) -> Point:  # fmt: skip
        found = kernel_form(form)
        assert not isinstance(found, str)  # `refuses` was asked
        return _Run(found, start, checkpoint).run(max_iter, watch)


class _Run:
    def __init__(self, model: KernelForm, start: Point | None, file: Folder | None):
        loss, norm = model.loss, model.norm
        assert isinstance(loss, DistributedTerm) and loss.map.identity_of is not None
        self.model, self.loss, self.norm, self.block = model, loss, norm, loss.map.identity_of
        d, m = loss.tasks.n_features, loss.tasks.n_tasks
        self.nodes = Nodes(norm, d)
        ball: Any = norm.weights_ball
        self.learns = ball is not None and not np.isinf(ball.p) and len(norm.kernels) > 1
        self.theta = np.array(norm.start((d, m))[0], float)
        self.weights_step = WeightsStep(cast(Any, ball), len(norm.kernels)) if self.learns else None
        self.counts = np.asarray(loss.tasks.counts, float)
        self.safe = safe_factors(norm, d, places_of_tasks(loss.tasks)[0])
        self.overlap = 1.0  # of what is safe, what is reckoned with
        self.state, self.taken, self.passes, self.file = None, 1.0, 0, file
        left = {} if start is None or start.state.get("solver") != AscentByPasses.name else start.state
        if left and left["rows"] is not None:  # as a checkpoint left it
            self.state, self.theta = left["rows"], left["blocks"]["theta"]
            self.overlap, self.taken = (left["numbers"][name] for name in ("overlap", "taken"))
            self.nodes.fill(left["blocks"]["Z"])

    def run(self, max_iter: int, watch: Watch) -> Point:
        # an entropy's multipliers start inside their domain: their weights are not known before a pass
        W = self._weights()
        if getattr(self.loss.atom, "entropic", False) and self.state is None:
            W = self._moved_to(self._pass(W, 0)["after"])
        while True:
            told = self._pass(W, _EPOCHS)
            x: Blocks = {self.block: W}
            self.loss.known(x, told["seen"])
            name = self.model.name
            structures: Any = None if name is None else {name: self.theta.copy()}
            u = RowDual(told["seen"], np.ones_like(told["seen"]["sums"]))
            point = Point(x, [u], None, self.passes, {}, {"overlap": self.overlap}, structures)
            done = watch(point) or self.passes >= max_iter
            if done and self.file is None:
                return point
            W, Z = self._step(W, told)
            if self.file is not None:
                numbers = {"overlap": self.overlap, "taken": self.taken}
                others = {"theta": self.theta, "Z": Z}
                self.state = self.file.keep(
                    AscentByPasses.name, {self.block: W}, None, numbers, others, self.state, now=done
                )
            if done:
                return point

    def _weights(self) -> np.ndarray:
        return self.nodes.weights(self.theta / self.model.coefficient)

    def _moved_to(self, Z: np.ndarray) -> np.ndarray:
        self.nodes.fill(Z)
        return self._weights()

    def _pass(self, W: np.ndarray, epochs: int) -> dict:
        loss, nothing = self.loss, np.zeros(self.loss.tasks.n_tasks)
        around = Around(W, nothing, self._cells(), nothing, nothing, self.counts)
        self.state, told = loss.tasks.parts.run(
            ascend, loss.tasks.n_tasks, loss.atom, loss.coefficients, W, nothing, around, self.taken, epochs, (0, self.passes), False,
            state=self.state, stateful=True,
        )  # fmt: skip
        self.passes += 1
        self.taken = 1.0
        return told

    def _cells(self) -> tuple[SentCell, ...]:
        sent = []
        for c, (cell, safe) in enumerate(zip(self.nodes.cells, self.safe, strict=True)):
            s = np.maximum(self.overlap * safe, 1.0)
            weights = cell.of_columns(self.theta) / self.model.coefficient * s
            sent.append(SentCell(cell.rows, cell.factor, weights, self.nodes.of_cell(c) / s[:, None]))
        return tuple(sent)

    def _step(self, W: np.ndarray, told: dict) -> tuple[np.ndarray, np.ndarray]:
        """(the weights, X^T u) after as much of the parts' steps as is best."""
        before = told["seen"]["adjoint"].sum(axis=0)
        change = told["after"] - before
        value_before = float(told["seen"]["conjugate"].sum())
        # along the way a conjugate is at most the line between its ends
        rise = value_before - told["conjugate"] + float(np.vdot(W, change))
        self.nodes.fill(change)
        curved = float(self.theta @ self.nodes.sizes()) / self.model.coefficient
        ratio = rise / curved if curved > 0.0 else 1.0
        self.taken = min(max(ratio, 0.0), 1.0)
        if curved > 0.0:
            # a step that a part made in full has ratio 1 where the bound was met
            seen = _ABOVE / max(ratio, 1e-6)
            self.overlap = min(self.overlap * max(seen, _FASTEST), 1.0)
        Z = before + self.taken * change
        W = self._moved_to(Z)
        if self.weights_step is not None:
            b = self.nodes.sizes()
            primal = float(told["seen"]["value"].sum()) + 0.5 * float(self.theta @ b) / self.model.coefficient
            dual = -value_before - 0.5 * self.norm.weights_ball.support(b) / self.model.coefficient  # type: ignore[union-attr]
            gap = (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)
            self.theta = self.weights_step(self.theta, b, gap)
            W = self._weights()
        return W, Z


SOLVER = AscentByPasses()
