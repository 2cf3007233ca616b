"""Block coordinate descent with working sets, for quadratic losses under l1 and l21 norms."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.linear_algebra.x_update import has_large_systems
from mtldsl.solvers.rows import groups, tasks_apart
from mtldsl.solvers.rows.designs import make_design
from mtldsl.solvers.rows.penalty import RowPenalty, function_duals, why_not
from mtldsl.solvers.rows.working_set import DEAR, WorkingSet
from mtldsl.solvers.solver import Point, Solver, Watch
from mtldsl.system.once import once

__all__ = ["SOLVER", "CoordinateDescent"]

#: Iterations of ADMM's and operations in their calls, what it usually needs, however badly conditioned columns are: measured 13 to 150, and of the
#: time of sweeps a half to a hundredth where these go on, on time series and generated data at weak penalties. Up to there sweeps are the faster ones.
_ITERATIONS, _CALLS = 50.0, 6e7


class CoordinateDescent(Solver):
    """minimize over W, b    q/2 sum_i c_i ||X_i w_i + b_i - y_i||^2 + l1 and l21 norms + ridge, perhaps with W >= 0.

    A step minimises exactly over one row of W (all tasks' weights of one feature); rows that stay zero are left out. Under a norm of
    groups of rows, with one X for all tasks, a step is one on a group (`groups`).
    """

    name = "coordinate_descent"
    summary = "coordinate descent on working sets: quadratic losses with l1, l21 or group norms"
    below_guesses = True  # it descends, from the start

    def refuses(self, form: NormalForm) -> str | None:
        for loss in form.losses:
            if loss.atom.quadratic is None:
                return f"{loss.typed} is not quadratic."
        facts = single_block(form)
        if isinstance(facts, str):
            return facts
        reason = why_not(form.functions, facts.shape)
        return None if reason is None or groups.why_not(form) is None else reason

    def solves_only(self, form: NormalForm) -> str | None:
        quadratic = all(loss.atom.quadratic is not None for loss in form.losses)
        return None if quadratic else "models with quadratic losses"

    def shift(self, form: NormalForm) -> float:
        """ADMM's turn comes where sweeps have become dear, at once (`_worth`)."""
        return super().shift(form) if math.isinf(_worth(form)) else DEAR / 2

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch
    ) -> Point:
        loss = form.losses[0]
        block = loss.map.identity_of
        assert block is not None  # refuses() lets through only a loss of one block itself
        shape = form.shapes[block]
        worth = _worth(form)
        if _is_of_groups(form):
            own = np.zeros(shape) if start is None else np.array(start.blocks[block])
            return groups.GroupDescent(form, tol, worth).run(own, max_iter, watch)
        penalty = RowPenalty.of(form.functions, shape)
        W = np.zeros(shape[::-1]) if start is None else np.array(start.blocks[block].T, order="C")
        if penalty.nonneg:
            np.maximum(W, 0.0, out=W)
        if tasks_apart.pays(loss, penalty):
            return tasks_apart.TasksApart(form, penalty, tol).run(W, max_iter, watch)
        design = once(loss, "design", lambda: make_design(loss))
        penalty = penalty.scaled(1.0 / design.curvature)
        last: list[Point] = []

        def report(state, sweeps: int) -> bool:
            point = _point(form, design, penalty, state, sweeps)
            last[:] = [replace(point, effort=DEAR) if steps.is_dear else point]
            return watch(last[0])

        steps = WorkingSet(design, penalty, tol, worth)
        steps.run(W, max_iter, report, lambda: watch.expired)
        return last[0]


def _worth(form: NormalForm) -> float:
    """Operations of a run of ADMM, after which its turn comes: inf where its systems are not of one dense X, and for the lasso of one task,
    which sweeps solve in a tenth of its time to twice."""
    loss = form.losses[0]
    if loss.tasks.n_tasks == 1 and not _is_of_groups(form):
        return math.inf
    if len(form.losses) > 1 or loss.tasks.is_sparse or not loss.is_shared_complete or has_large_systems(form):
        return math.inf
    (n, d), m = loss.tasks.X.shape, loss.tasks.n_tasks
    side = min(n, d)
    return side * n * d + side**3 / 3 + 4.0 * _ITERATIONS * n * d * m + _CALLS


def _is_of_groups(form: NormalForm) -> bool:
    if "is of groups" not in form.remembered:
        form.remembered["is of groups"] = groups.why_not(form) is None
    return form.remembered["is of groups"]


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
