"""Smooth losses of one task under a sum of norms of groups of features, perhaps with a ridge: Newton steps on groups that matter.

Within a group the model is turned into the coordinates in which its own Hessian is diagonal, which its norm does not see: an exact step on
the group is then one root in one unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.coordinate_descent.column_newton import design_of
from mtldsl.solvers.coordinate_descent.group_descent import SETTINGS
from mtldsl.solvers.coordinate_descent.smooth_newton import SmoothLossState, WorkingNewton
from mtldsl.solvers.design.design import SmoothLoss, one_smooth_loss
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS, IterateHistory, extrapolate
from mtldsl.solvers.solver import Point, Watch

__all__ = [
    "GroupModel",
    "GroupPenalty",
    "solve",
    "unsupported_reason",
]


def unsupported_reason(form: NormalForm) -> str | None:
    """None for one smooth loss of one task with dense inputs, a sum over samples, under one norm of groups and ridges; else a sentence."""
    facts = one_smooth_loss(form)
    if isinstance(facts, str):
        return facts
    if facts.shape[1] != 1 or facts.loss.tasks.is_sparse:
        return "groups of several tasks' features, or of sparse ones, are left to other solvers."
    found = [f.atom.row_groups(facts.shape) for f in form.functions]
    grouped = [groups for groups in found if groups is not None]
    if len(grouped) != 1:
        return "Newton steps take one norm of groups of rows."
    for f, groups in zip(form.functions, found, strict=True):
        if groups is None and (
            f.is_constraint or f.atom.entry_quadratic is None or np.ndim(f.atom.entry_quadratic)
        ):
            return f"{f.typed} is not a ridge with equal weights."
    labels, weights = grouped[0]
    if labels.min() < 0 or weights.min() <= 0:
        return "some rows are without any penalty."
    if np.bincount(labels).max() > SETTINGS.max_group_features:
        return f"a group has more than {SETTINGS.max_group_features} rows."
    return None


@dataclass(frozen=True)
class GroupPenalty:
    """sum_g thresholds_g ||W_g|| + ridge / 2 ||W||^2 of W (1, d); labels (d,): the group of every feature."""

    labels: np.ndarray
    thresholds: np.ndarray
    ridge: float

    @classmethod
    def of(cls, form: NormalForm, shape) -> GroupPenalty:
        ridge, labels, thresholds = 0.0, np.zeros(0, int), np.zeros(0)
        for f in form.functions:
            groups = f.atom.row_groups(shape)
            if groups is None:
                ridge += _square(f)
            else:
                labels, thresholds = groups[0], f.coefficient * groups[1]
        return cls(labels, thresholds, ridge)

    def on(self, rows) -> GroupPenalty:
        """The same on some groups, of which `rows` are all the features."""
        groups, labels = np.unique(self.labels[rows], return_inverse=True)
        return GroupPenalty(labels, self.thresholds[groups], self.ridge)

    def norms(self, W) -> np.ndarray:
        return np.sqrt(np.bincount(self.labels, np.square(W[0]), minlength=len(self.thresholds)))

    def value(self, W) -> float:
        return float(self.thresholds @ self.norms(W)) + 0.5 * self.ridge * float(np.vdot(W, W))

    def shares(self, pull) -> np.ndarray:
        """(d,): what the dual balls hold of such a negative gradient, as parts of it."""
        return np.minimum(1.0, self.thresholds / np.maximum(self.norms(pull), np.finfo(float).tiny))[
            self.labels
        ]

    @cached_property
    def by_size(self) -> list[np.ndarray]:
        """(k, s) features of the k groups of every size s."""
        members = np.split(np.argsort(self.labels, kind="stable"), np.cumsum(np.bincount(self.labels))[:-1])
        sizes = np.array([len(rows) for rows in members])
        return [np.stack([members[g] for g in np.flatnonzero(sizes == s)]) for s in np.unique(sizes)]


class GroupModel:
    """1/2 <W, W H> - <cross, W> + penalty in the groups' own coordinates, groups one after the other; `carried` is the gradient."""

    def __init__(self, H, gradient, penalty: GroupPenalty, W):
        """H is overwritten."""
        self.penalty, self.slabs = penalty, []
        self.order = np.concatenate([rows.ravel() for rows in penalty.by_size])
        if np.any(self.order[1:] < self.order[:-1]):
            H = H[np.ix_(self.order, self.order)]
        first, starts = 0, [np.zeros(1, int)]
        for rows in penalty.by_size:
            k, s = rows.shape
            slab, each = slice(first, first + k * s), np.arange(k)
            own = H[slab, slab].reshape(k, s, k, s)[each, :, each]
            self.slabs.append((slab, np.linalg.eigh(own)[1]))
            starts.append(first + s * (each + 1))
            first += k * s
        self._turn_rows(H)
        self.gram = np.ascontiguousarray(H.T)
        self._turn_rows(self.gram)
        self.starts = np.concatenate(starts)
        self.thresholds = penalty.thresholds[penalty.labels[self.order[self.starts[:-1]]]]
        self.diagonal = self.gram.diagonal() + penalty.ridge
        self.W, self.carried = self._turned(W), self._turned(gradient)
        self.cross = self.W @ self.gram - self.carried

    def _turn_rows(self, H) -> None:
        for slab, Q in self.slabs:
            rows = H[slab]
            rows[:] = (Q.transpose(0, 2, 1) @ rows.reshape(*Q.shape[:2], -1)).reshape(rows.shape)

    def _turned(self, V) -> np.ndarray:
        own = V[0][self.order]
        parts = [(own[slab].reshape(len(Q), 1, -1) @ Q).ravel() for slab, Q in self.slabs]
        return np.concatenate(parts)[None]

    @property
    def weights(self) -> np.ndarray:
        """(1, p) in the features' coordinates."""
        W = np.empty(self.W.shape)
        for slab, Q in self.slabs:
            own = self.W[0, slab].reshape(len(Q), -1, 1)
            W[0, self.order[slab]] = (Q @ own).ravel()
        return W

    def objective(self, W, carried) -> float:
        norms = np.sqrt(np.add.reduceat(np.square(W[0]), self.starts[:-1]))
        smooth = 0.5 * float(np.vdot(W, carried - self.cross + self.penalty.ridge * W))
        return smooth + float(self.thresholds @ norms)

    def sweep(self) -> float:
        """The sum of curvature * step^2."""
        from mtldsl.solvers.coordinate_descent.extrapolated_sweep_kernels import sweep_groups

        before = self.W.copy()
        sweep_groups(self.gram, self.carried, self.W, self.starts, self.thresholds, self.penalty.ridge)
        return float(self.diagonal @ np.square(self.W - before)[0])

    def descend(self, precision: float) -> None:
        """Until a sweep brings precision^2 of what the first did."""
        first = None
        for _ in range(SETTINGS.max_rounds):
            history = IterateHistory(self, ROUND_SWEEPS)
            history.add(self)
            for _ in range(ROUND_SWEEPS):
                moved = self.sweep()
                first = moved if first is None else first
                if moved <= precision**2 * first:
                    return
                history.add(self)
            extrapolate(self, history)


class GroupNewton(WorkingNewton):
    """Working sets are unions of groups."""

    penalty: Any

    def _prepared(self, penalty):
        return penalty, False

    def _holds(self, columns) -> bool:
        return False  # its model turns the matrix into coordinates of its own

    def _used(self, W) -> np.ndarray:
        return (self.penalty.norms(W) > 0)[self.penalty.labels]

    def _levels(self) -> np.ndarray:
        return self.penalty.thresholds[self.penalty.labels]

    def _next_rows(self, known, state: SmoothLossState, excess):
        rows, is_short = super()._next_rows(known, state, excess)
        if rows is not None:
            held = np.bincount(self.penalty.labels[rows], minlength=len(self.penalty.thresholds)) > 0
            parts = [members[held[self.penalty.labels[members[:, 0]]]] for members in self.penalty.by_size]
            rows = np.concatenate([part.ravel() for part in parts])  # in the order that the model wants
            if rows.size == self.design.n_features:
                rows = self._all()
            self.gave_up |= rows.size > SETTINGS.max_hessian_features
        return rows, is_short

    def _look(self, pull, penalty: GroupPenalty, W):
        own = pull - penalty.ridge * W
        norms = penalty.norms(own)
        over, square, gauge = np.maximum(norms - penalty.thresholds, 0.0), 0.0, 1.0
        if penalty.ridge > 0.0:
            taken = penalty.ridge * W + (1.0 - penalty.shares(own)) * own
            square = float(np.vdot(taken, taken)) / penalty.ridge
        else:
            gauge += float(np.max(over / penalty.thresholds, initial=0.0))
        excess = (norms - penalty.thresholds)[penalty.labels]
        return penalty.value(W), float(np.vdot(pull, W)), gauge, square, excess

    def _minimised(
        self, columns, penalty: GroupPenalty, own, gradient, state: SmoothLossState, curvature, precision
    ):
        H, s = columns.gram(curvature)[0], 0.0
        total, border = 1.0, np.zeros(H.shape[0])
        if self.centred:
            total, border, s = float(curvature.sum()), columns.pull(curvature)[0], float(state.sums[0])
            H -= np.outer(border, border / total)
        model = GroupModel(H, gradient - border * (s / total), penalty, own)
        model.descend(precision)
        dW = model.weights - own
        db = -(s + border @ dW[0]) / total
        return (dW, np.array([db]), columns.forward(dW) + db), 2.0 * H.size


def solve(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    """(the last point, whether that is all: else steps without a working set go on)."""
    facts = single_block(form)
    assert not isinstance(facts, str)  # unsupported_reason() was asked
    penalty, samples = GroupPenalty.of(form, facts.shape), SmoothLoss.of(facts.loss)
    W = np.zeros(facts.shape[::-1]) if start is None else np.array(start.blocks[facts.name].T, order="C")
    b, centred = np.zeros(1), facts.intercept is not None
    if facts.intercept is not None and start is not None:
        b = np.array(start.blocks[facts.intercept][0])
    last: list[Point] = []

    def report(state: SmoothLossState, pull, steps: int) -> bool:
        blocks, duals = {facts.name: state.W.T.copy()}, None
        if facts.intercept is not None:
            blocks[facts.intercept] = state.b[None, :].copy()
        if len(form.functions) > 1:
            own = pull - penalty.ridge * state.W
            of_norm = (penalty.shares(own) * own).T
            rest = pull.T - of_norm
            grouped = [f.atom.row_groups(facts.shape) is not None for f in form.functions]
            duals = [
                of_norm if is_norm else (_square(f) / penalty.ridge if penalty.ridge > 0.0 else 0.0) * rest
                for f, is_norm in zip(form.functions, grouped, strict=True)
            ]
        u = samples.balanced(state.u, state.curvature) if centred else state.u.copy()
        last[:] = [Point(blocks, [u], duals, steps)]
        return watch(last[0])

    groups: Any = penalty  # which stands where rows' penalties do
    steps = GroupNewton(samples, design_of(facts.loss), groups, centred, tol)
    steps.run(W, b, max_iter, report, lambda: watch.expired)
    return last[0], not steps.gave_up


def _square(f) -> float:
    """The one weight of a ridge (`unsupported_reason` has asked for it)."""
    return f.coefficient * float(f.atom.entry_quadratic)
