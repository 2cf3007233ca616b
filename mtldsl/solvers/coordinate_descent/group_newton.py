"""Smooth losses under a sum of norms of groups of features, perhaps with a ridge: Newton steps on groups that matter.

Within a group the model is turned into the coordinates in which its own Hessian is diagonal, which its norm does not see: an exact step on
the group is then one root in one unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.coordinate_descent.smooth_newton import (
    EliminatedIntercepts,
    NewtonRun,
    WorkingNewton,
)
from mtldsl.solvers.design.design import LossState, one_smooth_loss
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS, IterateHistory, extrapolate
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class GroupSettings:
    """Constants of descent on groups of features.

    max_group_features   : of a group, whose eigenvectors are found
    max_rounds           : of sweeps and an extrapolation, of one model
    max_hessian_features : of all groups in a working set, of which a Hessian is made
    """

    max_group_features: int = 300
    max_rounds: int = 40
    max_hessian_features: int = 4000


SETTINGS = GroupSettings()


def unsupported_reason(form: NormalForm, quadratic: bool = False) -> str | None:
    """None for one smooth loss with dense inputs, a sum over samples, under one norm of groups and ridges; else a sentence.

    One Hessian has to serve all tasks: there is one task, or the loss is `quadratic`, its samples weigh the same, and X is shared.
    """
    facts = one_smooth_loss(form, quadratic)
    if isinstance(facts, str):
        return facts
    loss, m = facts.loss, facts.shape[1]
    if loss.tasks.is_sparse:
        return "groups of sparse features are left to other solvers."
    if m > 1 and not (quadratic and loss.is_shared_complete and loss.uniform_scale is not None):
        return f"{loss.typed} is not a sum of squares over one X, equally weighted, nor of one task."
    found = [f.atom.row_groups(facts.shape) for f in form.functions]
    grouped = [groups for groups in found if groups is not None]
    if len(grouped) != 1:
        return "coordinate descent takes one norm of groups of rows."
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
    """sum_g thresholds_g ||W_g|| + ridge / 2 ||W||^2 of W (m, d); labels (d,): the group of every feature."""

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
        return np.sqrt(np.bincount(self.labels, np.einsum("ij,ij->j", W, W), minlength=len(self.thresholds)))

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


class _TurnedGram:
    """The one Gram matrix (p, p) of a working set in its groups' own coordinates, groups one after the other, and the way there."""

    def __init__(self, held: EliminatedIntercepts, penalty: GroupPenalty):
        """held.gram is overwritten."""
        self.curvature, self.totals, self.border, H = held.curvature, held.totals, held.border, held.gram[0]
        self.slabs: list[tuple[slice, Any]] = []
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

    def _turn_rows(self, H) -> None:
        for slab, Q in self.slabs:
            rows = H[slab]
            rows[:] = (Q.transpose(0, 2, 1) @ rows.reshape(*Q.shape[:2], -1)).reshape(rows.shape)

    def turned(self, V) -> np.ndarray:
        """V (m, p) in the groups' coordinates."""
        own = V.T[self.order]
        self._turn_rows(own)
        return np.ascontiguousarray(own.T)

    def turned_back(self, V) -> np.ndarray:
        own, W = V.T, np.empty(V.shape)
        for slab, Q in self.slabs:
            W[:, self.order[slab]] = (Q @ own[slab].reshape(*Q.shape[:2], -1)).reshape(-1, len(V)).T
        return W


class GroupModel:
    """1/2 <W, W gram> - <cross, W> + penalty in the groups' own coordinates; `carried` is the gradient of the quadratic."""

    def __init__(self, made: _TurnedGram, gradient, ridge: float, W):
        self.made, self.ridge = made, ridge
        self.W, self.carried = made.turned(W), made.turned(gradient)
        self.cross = self.W @ made.gram - self.carried

    def objective(self, W, carried) -> float:
        norms = np.sqrt(np.add.reduceat(np.einsum("ij,ij->j", W, W), self.made.starts[:-1]))
        smooth = 0.5 * float(np.vdot(W, carried - self.cross + self.ridge * W))
        return smooth + float(self.made.thresholds @ norms)

    def minimize(self, precision: float) -> None:
        """Until a sweep brings precision^2 of what the first did."""
        from mtldsl.solvers.coordinate_descent.sweep_kernels import sweep_groups

        made, first = self.made, None
        for _ in range(SETTINGS.max_rounds):
            history = IterateHistory(self, ROUND_SWEEPS)
            history.add(self)
            for _ in range(ROUND_SWEEPS):
                moved = sweep_groups(
                    made.gram, self.carried, self.W, made.starts, made.thresholds, self.ridge
                )
                first = moved if first is None else first
                if moved <= precision**2 * first:
                    return
                history.add(self)
            extrapolate(self, history)


class GroupNewton(WorkingNewton):
    """Working sets are unions of groups."""

    penalty: Any

    def _used(self, W) -> np.ndarray:
        return (self.penalty.norms(W) > 0)[self.penalty.labels]

    def _levels(self) -> np.ndarray:
        return self.penalty.thresholds[self.penalty.labels]

    def _next_rows(self, known, state: LossState, excess):
        rows, is_short = super()._next_rows(known, state, excess)
        if rows is not None:
            held = np.bincount(self.penalty.labels[rows], minlength=len(self.penalty.thresholds)) > 0
            parts = [members[held[self.penalty.labels[members[:, 0]]]] for members in self.penalty.by_size]
            rows = np.concatenate([part.ravel() for part in parts])  # in the order that the model wants
            if rows.size == self.design.n_features:
                rows = self.every
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
        self, columns, penalty: GroupPenalty, own, gradient, state: LossState, curvature, precision
    ):
        made: Any = columns.held
        if made is None or made.curvature is not curvature:
            made = columns.held = None  # before there is another
            totals = self.loss.sums(curvature)
            held = EliminatedIntercepts(columns, curvature, totals, self.centred)
            made = columns.held = _TurnedGram(held, penalty)
        sums = state.sums if self.centred else np.zeros(len(own))
        model = GroupModel(made, gradient - made.border * (sums / made.totals)[:, None], penalty.ridge, own)
        model.minimize(precision)
        dW = made.turned_back(model.W) - own
        db = -(sums + np.einsum("ij,ij->i", made.border, dW)) / made.totals
        return (dW, db, columns.forward(dW) + self.loss.spread(db)), 2.0 * made.gram.size


class GroupRun(NewtonRun):
    """The same under one norm of groups of rows."""

    newton = GroupNewton

    def _penalty(self) -> GroupPenalty:
        return GroupPenalty.of(self.form, self.facts.shape)

    def _duals(self, pull, W) -> list:
        """The norm takes what its dual balls hold, ridges the rest."""
        penalty = self.penalty
        own = pull - penalty.ridge * W
        of_norm = (penalty.shares(own) * own).T
        rest = pull.T - of_norm
        return [
            of_norm
            if f.atom.row_groups(self.facts.shape) is not None
            else (_square(f) / penalty.ridge if penalty.ridge > 0.0 else 0.0) * rest
            for f in self.form.functions
        ]


def solve(
    form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch
) -> tuple[Point, bool]:
    """(the last point, whether that is all: else steps without a working set go on)."""
    return GroupRun(form, tol, max_iter, start, watch).together()


def _square(f) -> float:
    """The one weight of a ridge (`unsupported_reason` has asked for it)."""
    return f.coefficient * float(f.atom.entry_quadratic)
