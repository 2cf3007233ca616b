"""Block coordinate descent with working sets, for quadratic losses under l1 and l21 norms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtldsl.normal_form.form import LossTerm, NormalForm, single_block
from mtldsl.solvers.coordinate_descent import group_descent
from mtldsl.solvers.coordinate_descent.column_newton import design_of, design_of_task
from mtldsl.solvers.coordinate_descent.smooth_newton import SmoothLossState, WorkingNewton
from mtldsl.solvers.coordinate_descent.working_set import WorkingSet
from mtldsl.solvers.design.design import SmoothLoss, one_smooth_loss
from mtldsl.solvers.design.row_design import SharedRows, make_design
from mtldsl.solvers.design.row_penalty import RowPenalty, function_duals
from mtldsl.solvers.design.row_penalty import unsupported_reason as why_not_of_penalty
from mtldsl.solvers.solver import Method, MethodSolver, Point, Watch
from mtldsl.utils.caching import cached_on_path
from mtldsl.utils.memory import as_dense
from mtldsl.utils.parallel import in_jobs

__all__ = [
    "SOLVER",
    "CoordinateDescent",
    "PerTaskCoordinateDescent",
    "pays",
    "solve",
    "unsupported_reason",
]


# --------------------------------------------------------------------------------------------------------------
# Without a norm that ties tasks together, each is a lasso of its own: solved one by one, each on its own working set.


@dataclass(frozen=True)
class TaskSettings:
    """Constants of tasks that have nothing in common; loops over tasks cost more than small tasks together.

    max_gram_entries      : of all tasks' Gram matrices, up to which tasks go in step, in compiled loops
    max_together_features : up to which smooth tasks go together
    max_together_flops    : multiplications for all Gram matrices of dense inputs, up to which they do
    """

    max_gram_entries: int = 5_000_000
    max_together_features: int = 32
    max_together_flops: int = 20_000_000


SETTINGS = TaskSettings()


def pays(loss: LossTerm, penalty: RowPenalty) -> bool:
    shared = loss.is_shared_complete and loss.uniform_scale is not None
    m, d = penalty.l1.shape
    return not penalty.l21.any() and not shared and m * d * d > SETTINGS.max_gram_entries


class PerTaskCoordinateDescent:
    """One loss of one matrix under an l1 norm, perhaps with a ridge and W >= 0."""

    def __init__(self, form: NormalForm, penalty: RowPenalty, tol: float):
        self.form, self.penalty, self.tol = form, penalty, tol
        self.loss = form.losses[0]
        self.weights = np.broadcast_to(
            1.0 if self.loss.scale is None else self.loss.scale, self.loss.tasks.n_samples
        )

    def run(self, W, max_iter: int, watch: Watch) -> Point:
        """From W (m, d) on, which is changed."""
        tol, done = self.tol, 0
        while True:
            point, sweeps = self._all_tasks(W, tol, max_iter - done, watch)
            done += sweeps
            point.iteration = done
            if watch(point) or done >= max_iter or watch.expired:
                return point
            tol *= 0.1

    def _all_tasks(self, W, tol: float, max_iter: int, watch: Watch) -> tuple[Point, int]:
        tasks, pull, dual = self.loss.tasks, np.empty(W.shape), np.empty(self.loss.tasks.n_samples)
        proving = np.zeros(W.shape)  # the weights whose residuals are the multipliers
        intercepts = np.zeros(len(W))

        def one(i: int, expired) -> int:
            a, b = tasks.offsets[i], tasks.offsets[i + 1]
            design, roots = one_task(self.loss, i, self.weights[a:b])
            own = self.penalty.of_task(i).scaled(1.0 / design.curvature)
            steps = WorkingSet(design, own, tol)
            state = steps.run(W[i : i + 1], max_iter, lambda *_: True, expired)
            W[i] = 0.0
            W[i, state.rows] = state.W[0]
            intercepts[i] = design.intercept(W[i : i + 1])[0]
            # every task's dual point is scaled by itself: one common scale would be the worst of all
            used = state.W if state.dual_W is None else state.dual_W
            found, _, _ = design.look_at_dual(state, used)
            proving[i, state.rows] = used[0]
            shrink = design.curvature / own.inspect(found - own.ridge * proving[i : i + 1]).gauge
            pull[i] = shrink * found[0]
            dual[a:b] = -shrink * roots * design.residual(state, used)[0]
            return steps.sweeps

        sweeps = max(in_jobs(one, range(len(W)), lambda: watch.expired))
        return self._point(W, proving, intercepts, pull, dual), sweeps

    def _point(self, W, proving, intercepts, pull, dual) -> Point:
        block = self.loss.map.identity_of
        assert block is not None  # refuses() lets through only a loss of one block itself
        blocks = {block: np.ascontiguousarray(W.T)}
        for name in self.loss.intercepts:
            blocks[name] = intercepts[None, :].copy()
        duals = None
        if len(self.form.functions) > 1:
            duals = function_duals(self.form.functions, self.penalty, pull, proving.T)
        return Point(blocks, [dual], duals)


def one_task(loss: LossTerm, i: int, weights) -> tuple[SharedRows, np.ndarray | float]:
    """(task i by itself, the roots of the weights that its rows were multiplied by)."""
    tasks, centred = loss.tasks, bool(loss.intercepts)
    X, y, q = tasks.inputs[i], tasks.targets[tasks.offsets[i] : tasks.offsets[i + 1]], loss.atom.quadratic
    assert q is not None  # refuses() lets through only quadratic losses
    if np.all(weights == weights[0]):
        return SharedRows(X, y[None, :], q * weights[0], centred), 1.0
    roots = np.sqrt(weights)
    if not centred:
        X = X.multiply(roots[:, None]).tocsr() if tasks.is_sparse else roots[:, None] * X
        return SharedRows(X, (roots * y)[None, :], q, False), roots
    X = as_dense(X, "all inputs as dense ones", "name another solver")
    x_means, y_mean = weights @ X / weights.sum(), weights @ y / weights.sum()
    design = SharedRows(roots[:, None] * (X - x_means), (roots * (y - y_mean))[None, :], q, False)
    design.x_means, design.y_means = x_means, np.array([y_mean])
    return design, roots


def _weights(form: NormalForm, start: Point | None) -> np.ndarray:
    """(d, m) of the start, or zero."""
    block = form.losses[0].map.identity_of
    assert block is not None  # refuses() lets through only a loss of one block itself
    return np.zeros(form.shapes[block]) if start is None else start.blocks[block]


def _tasks_refusal(form: NormalForm) -> str | None:
    loss, shape = form.losses[0], _weights(form, None).shape
    if pays(loss, RowPenalty.of(form.functions, shape)):
        return None
    return "tasks go in step where a norm ties them, they share X, or their Gram matrices are small."


def _descend_on_groups(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    W = np.array(_weights(form, start))
    return group_descent.GroupDescent(form, tol).run(W, max_iter, watch), True


def _descend_by_task(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    W, penalty = _rows_at(form, start)
    return PerTaskCoordinateDescent(form, penalty, tol).run(W, max_iter, watch), True


def _descend_on_rows(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    W, penalty = _rows_at(form, start)
    design = cached_on_path(form.losses[0], "design", lambda: make_design(form.losses[0]))
    penalty = penalty.scaled(1.0 / design.curvature)
    last: list[Point] = []

    def report(state, sweeps: int) -> bool:
        last[:] = [replace(_point(form, design, penalty, state, sweeps), work=steps.work)]
        return watch(last[0])

    steps = WorkingSet(design, penalty, tol)
    steps.run(W, max_iter, report, lambda: watch.expired)
    return last[0], True


def _rows_at(form: NormalForm, start: Point | None) -> tuple[np.ndarray, RowPenalty]:
    """((m, d) weights that the penalty allows, the penalty)."""
    W = np.array(_weights(form, start).T, order="C")
    penalty = RowPenalty.of(form.functions, W.shape[::-1])
    if penalty.nonneg:
        np.maximum(W, 0.0, out=W)
    return W, penalty


METHODS = (
    Method(
        "groups",
        "steps on groups of rows",
        group_descent.unsupported_reason,
        _descend_on_groups,
    ),
    Method("tasks", "task after task, each on a working set of its own", _tasks_refusal, _descend_by_task),
    Method(
        "rows",
        "exact steps on rows of W, on a working set",
        lambda form: why_not_of_penalty(form.functions, _weights(form, None).shape),
        _descend_on_rows,
    ),
)


class CoordinateDescent(MethodSolver):
    """minimize over W, b    q/2 sum_i c_i ||X_i w_i + b_i - y_i||^2 + l1 and l21 norms + ridge, perhaps with W >= 0.

    A step minimises exactly over one row of W (all tasks' weights of one feature); rows that stay zero are left out. Under a norm of
    groups of rows, with one X for all tasks, a step is one on a group (`groups`).
    """

    name = "coordinate_descent"
    summary = "coordinate descent on working sets: quadratic losses with l1, l21 or group norms"
    below_guesses = True  # it descends, from the start
    methods = METHODS

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if loss.atom.quadratic is None:
                return f"{loss.typed} is not quadratic."
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        reason = why_not_of_penalty(form.functions, facts.shape)
        return None if reason is None or group_descent.unsupported_reason(form) is None else reason

    def solves_only(self, form: NormalForm) -> str | None:
        quadratic = all(loss.atom.quadratic is not None for loss in form.losses)
        return None if quadratic else "models with quadratic losses"


def _point(form: NormalForm, design, penalty: RowPenalty, state, sweeps: int) -> Point:
    """W, the loss's gradient, and every function's multiplier; where one norm stands alone the certificate makes its own."""
    loss = form.losses[0]
    block = loss.map.identity_of
    assert block is not None  # refuses() lets through only a loss of one block itself
    W = np.zeros((design.n_tasks, design.n_features))
    W[:, state.rows] = state.W
    blocks = {block: np.ascontiguousarray(W.T)}
    for name in loss.intercepts:
        blocks[name] = design.intercept(W)[None, :]
    # the residual of other weights may prove more than that of these
    dual_W = state.dual_W
    if dual_W is None and len(state.rows) == design.n_features:
        u = loss.gradient(loss.seen_at(blocks))  # the certificate asks for the value at the same predictions
    else:
        residual = design.residual(state) if dual_W is None else design.residual(state, dual_W)
        weights = getattr(design, "weights", None)
        scale = design.curvature if weights is None else design.curvature * weights
        u = -scale * residual.ravel()
    duals = None
    if len(form.functions) > 1:
        pull, _, _ = design.look(state) if dual_W is None else design.look_at_dual(state, dual_W)
        proving = blocks[block]
        if dual_W is not None:
            proving = np.zeros(W.shape[::-1])
            proving[state.rows] = dual_W.T
        duals = function_duals(form.functions, penalty, pull, proving, design.curvature)
    return Point(blocks, [u], duals, sweeps)


SOLVER = CoordinateDescent()


# --------------------------------------------------------------------------------------------------------------
# Smooth losses under l1 and l21 norms, perhaps with a ridge and W >= 0: all tasks on one working set, or each on its own.


def unsupported_reason(form: NormalForm) -> str | None:
    """None for one smooth loss that is a sum over samples, not quadratic, of one matrix under row-sparse penalties; else a sentence."""
    facts = one_smooth_loss(form)
    if isinstance(facts, str):
        return facts
    return why_not_of_penalty(form.functions, facts.shape)


def solve(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    """(the last point, whether that is all: else steps without a working set go on)."""
    facts = single_block(form)
    assert not isinstance(facts, str)  # unsupported_reason() was asked
    penalty = RowPenalty.of(form.functions, facts.shape)
    W = np.zeros(facts.shape[::-1]) if start is None else np.array(start.blocks[facts.name].T, order="C")
    if penalty.nonneg:
        np.maximum(W, 0.0, out=W)
    b = np.zeros(len(W))
    if facts.intercept is not None and start is not None:
        b = np.array(start.blocks[facts.intercept][0])
    run = _CoordinateDescentRun(form, facts, penalty, tol, max_iter, watch)
    d, samples = W.shape[1], facts.loss.tasks.n_samples
    cheap = samples * d * d <= SETTINGS.max_together_flops and not facts.loss.tasks.is_sparse
    few = d <= SETTINGS.max_together_features or cheap
    apart = not penalty.l21.any() and len(W) > 1 and not few
    if apart:
        return run.apart(W, b), True
    design = design_of(facts.loss)
    if start is not None and design.would_copy_most_of_X(np.flatnonzero(W.any(axis=0))):
        return start, False
    return run.together(W, b, design)


class _CoordinateDescentRun:
    def __init__(self, form: NormalForm, facts, penalty: RowPenalty, tol: float, max_iter: int, watch: Watch):
        self.form, self.facts, self.penalty, self.tol = form, facts, penalty, tol
        self.max_iter, self.watch, self.loss = max_iter, watch, facts.loss
        self.centred = bool(self.loss.intercepts)

    def together(self, W, b, design) -> tuple[Point, bool]:
        last: list[Point] = []

        def report(state: SmoothLossState, pull, steps: int) -> bool:
            u = samples.balanced(state.u, state.curvature) if self.centred else state.u.copy()
            last[:] = [replace(self._point(state.W, state.b, u, pull, steps), work=newton.work)]
            return self.watch(last[0])

        samples = SmoothLoss.of(self.loss)
        newton = WorkingNewton(samples, design, self.penalty, self.centred, self.tol)
        newton.run(W, b, self.max_iter, report, lambda: self.watch.expired)
        return last[0], not newton.gave_up

    def apart(self, W, b) -> Point:
        """Task after task, to the same relative accuracy; sharper where all together are not yet good enough."""
        tasks, tol, done = self.loss.tasks, self.tol, 0
        pull, u = np.empty(W.shape), np.empty(tasks.n_samples)
        shared: Any = design_of(self.loss) if self.loss.is_shared_complete else None
        inputs: Any = None if shared is not None else tasks.inputs
        while True:
            left, target = self.max_iter - done, tol

            def one(i: int, expired, left=left, target=target) -> int:
                if shared is not None:
                    design = design_of_task(shared.X, shared.transposed)
                else:
                    design = design_of_task(inputs[i])
                own = self.penalty.of_task(i)
                samples = SmoothLoss.of_task(self.loss, i)
                steps = WorkingNewton(samples, design, own, self.centred, target)
                seen: list = []

                def keep(state: SmoothLossState, found, count: int) -> bool:
                    seen[:] = [found]
                    return True

                state = steps.run(W[i : i + 1], b[i : i + 1], left, keep, expired)
                b[i] = state.b[0]
                # every task's dual point is scaled by itself: one common scale would be the worst of all
                shrink = 1.0 / own.inspect(seen[0] - own.ridge * state.W).gauge
                rows = slice(tasks.offsets[i], tasks.offsets[i + 1])
                own_u = samples.balanced(state.u, state.curvature) if self.centred else state.u
                pull[i], u[rows] = shrink * seen[0][0], shrink * own_u
                return steps.steps

            most = max(in_jobs(one, range(len(W)), lambda: self.watch.expired))
            done += max(most, 1)
            point = self._point(W, b, u.copy(), pull, done)
            if self.watch(point) or done >= self.max_iter or self.watch.expired:
                return point
            tol *= 0.3

    def _point(self, W, b, u, pull, steps: int) -> Point:
        blocks = {self.facts.name: np.ascontiguousarray(W.T)}
        if self.facts.intercept is not None:
            blocks[self.facts.intercept] = b[None, :].copy()
        duals = None
        if len(self.form.functions) > 1:
            duals = function_duals(self.form.functions, self.penalty, pull, W.T)
        return Point(blocks, [u], duals, steps)
