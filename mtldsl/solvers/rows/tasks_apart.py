"""Without a norm that ties tasks together, each is a lasso of its own: solved one by one, each on its own working set."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.solvers.rows.designs import SharedRows
from mtldsl.solvers.rows.penalty import RowPenalty, function_duals
from mtldsl.solvers.rows.working_set import WorkingSet
from mtldsl.solvers.solver import Point, Watch
from mtldsl.system.jobs import in_jobs
from mtldsl.system.memory import as_dense

__all__ = ["TasksApart", "pays"]

_MOST = 5_000_000  # entries of Gram matrices; below, all tasks go in step, in compiled loops


def pays(loss: LossTerm, penalty: RowPenalty) -> bool:
    shared = loss.is_shared_complete and loss.uniform_scale is not None
    m, d = penalty.l1.shape
    return not penalty.l21.any() and not shared and m * d * d > _MOST


class TasksApart:
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
