"""The loss's second-order model on some rows plus the penalty, minimised over them and the intercepts by coordinate descent.

The intercepts are eliminated: whatever the weights' step, theirs is the best for it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.solvers.rows.extrapolation import History, extrapolate
from mtldsl.solvers.rows.newton import newton_cost, newton_steps, sweep_cost
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.smooth.column_model import ColumnModel
from mtldsl.solvers.smooth.designs import DenseColumns
from mtldsl.solvers.smooth.one_task import ColumnsOfTask, TaskModel

__all__ = ["minimised", "violation"]

_SWEEPS = 5  # from one extrapolation to the next
_MOST_ROUNDS = 20
_MOST_SWEEPS = 100
_COARSE = 0.2  # precision of models that are descended through predictions: a sweep costs as much as all else of a step
_CHEAP = 200_000  # numbers of Gram matrices that are read before anything but sweeps is tried
_LEAST = 1e-12  # of a column's curvature: below, an intercept explains it


def minimised(
    columns, penalty: RowPenalty, W, gradient, state, curvature, centred: bool, precision: float, goal: float
):
    """(dW (m, p), db (m,), the flat change of the predictions) from W (m, p), where the loss's gradient in W is this, and its slopes are
    the state's.

    precision : of the model's violation, relative to that at W
    goal      : slopes that are off by no more than this part of the l1 norm's are good enough
    """
    loss = state.loss
    if isinstance(columns, ColumnsOfTask):
        total, slopes = (float(curvature.sum()), float(state.sums[0])) if centred else (0.0, 0.0)
        task = TaskModel(columns, penalty, W, gradient, curvature, total, slopes)
        task.descend(precision, goal)
        change = task.change
        if not centred:
            return task.W - W, np.zeros(1), change
        db = -task.sums / total
        change += db
        return task.W - W, db, change
    m = len(W)
    s = state.sums if centred else np.zeros(m)
    if isinstance(columns, DenseColumns):
        held = _held_by(columns, curvature, loss.sums(curvature) if centred else None)
        totals, border = held.totals, held.border
        reduced = gradient - border * (s / totals)[:, None] if centred else gradient.copy()
        step = _by_gram(held, penalty, W, reduced, precision)
    else:
        totals = loss.sums(curvature) if centred else np.ones(m)
        border = columns.pull(curvature) if centred else np.zeros_like(W)
        model = ColumnModel(columns, penalty, W, state.u, curvature, border, totals, s)
        model.descend(max(precision, _COARSE), goal)
        step = model.W - W
        del model  # its arrays are as large as what is made next
    if not centred:
        return step, np.zeros(m), columns.forward(step)
    db = -(s + np.einsum("ij,ij->i", border, step)) / totals
    return step, db, columns.forward(step) + loss.spread(db)


# ------------------------------------------------------------------------------------------ Gram matrices


class _GramModel:
    """1/2 <W, W gram> - <cross, W> + penalty, with a Gram matrix a task (m, p, p); `carried` is the gradient of the quadratic."""

    def __init__(self, gram, gradient, W, penalty: RowPenalty):
        self.gram, self.W, self.penalty, self.carried = gram, W, penalty, gradient

    @cached_property
    def cross(self) -> np.ndarray:
        """The same at any point; most descents end before it is asked for."""
        return self._times(self.W) - self.carried

    def _times(self, W) -> np.ndarray:
        return np.matmul(W[:, None, :], self.gram)[:, 0]

    def gradient(self, W) -> np.ndarray:
        return self._times(W) - self.cross

    def objective(self, W, carried) -> float:
        return 0.5 * float(np.vdot(W, carried - self.cross)) + self.penalty.value(W)

    def sweep(self) -> None:
        from mtldsl.solvers.kernels.row_descent import sweep_separate

        p = self.penalty
        sweep_separate(self.gram, self.carried, self.W, p.l1, p.l21, p.ridge, p.nonneg, 1)

    def descend(self, precision: float, most: int) -> bool:
        from mtldsl.solvers.kernels.weighted_descent import descend_gram

        p = self.penalty
        rest = p.l1, p.l21, p.ridge, p.nonneg, precision, most
        return descend_gram(self.gram, self.carried, self.W, *rest)


class _Held:
    """Gram matrices (m, p, p) under a curvature, the intercepts eliminated: by border (m, p) and totals (m,)."""

    def __init__(self, columns: DenseColumns, curvature, totals):
        self.curvature, self.totals = curvature, totals
        self.border: Any = None if totals is None else columns.pull(curvature)
        self.gram = gram = columns.gram(curvature)
        self.diagonal = diagonal = np.einsum("ijj->ij", gram)
        if totals is not None:
            before = diagonal.copy()
            gram -= self.border[:, :, None] * (self.border / totals[:, None])[:, None, :]  # pyrefly: ignore[unsupported-operation]
            diagonal[diagonal <= _LEAST * before] = 0.0


def _held_by(columns: DenseColumns, curvature, totals) -> _Held:
    """What was made of the very same curvature before, where a step begins with that."""
    if columns.held is None or columns.held.curvature is not curvature:
        columns.held = None  # before there is another
        columns.held = _Held(columns, curvature, totals)
    return columns.held


def _by_gram(held: _Held, penalty, W, gradient, precision):
    gram, diagonal = held.gram, held.diagonal
    model = _GramModel(gram, gradient, W.copy(), penalty)
    # where a sweep costs less than its call, many go at once
    if model.descend(precision, int(min(max(_CHEAP / max(gram.size, 1), 4 * _SWEEPS), _MOST_SWEEPS))):
        return model.W - W
    goal = precision**2 * violation(penalty, W, gradient, diagonal)
    support = None
    for _ in range(_MOST_ROUNDS):
        history = History(model, _SWEEPS)
        history.add(model)
        for _ in range(_SWEEPS):
            model.sweep()
            history.add(model)
        if violation(penalty, model.W, model.carried, diagonal) <= goal:
            break
        extrapolate(model, history)
        before, support = support, model.W != 0
        settled = before is not None and np.array_equal(before, support)
        cheap = newton_cost(model) <= 2.0 * _SWEEPS * sweep_cost(model)
        stepped = (settled or cheap) and newton_steps(model)
        if stepped and violation(penalty, model.W, model.carried, diagonal) <= goal:
            break
    return model.W - W


def violation(penalty: RowPenalty, W, gradient, curvature) -> float:
    """The sum of squares of the smallest subgradients, each divided by its curvature: about twice what there is to gain."""
    slope = gradient + penalty.ridge * W
    left = penalty.remainder(-slope)
    norms = np.sqrt(np.einsum("ij,ij->j", W, W))
    zero = norms == 0.0
    per_row = np.divide(penalty.l21, norms, out=np.zeros_like(norms), where=~zero)
    own = np.where(W != 0, slope + penalty.l1 * np.sign(W) + per_row * W, left)
    sizes = np.sqrt(np.einsum("ij,ij->j", left, left))
    share = np.divide(np.maximum(sizes - penalty.l21, 0.0), sizes, out=np.zeros_like(sizes), where=sizes > 0)
    own = np.where(zero, share * left, own)
    curved = curvature + penalty.ridge
    return float(np.sum(np.divide(own**2, curved, out=np.zeros_like(own), where=curved > 0)))
