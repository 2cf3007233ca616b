"""Coordinate descent on groups of features, with a working set: squares on one X under a sum of the groups' Frobenius norms.

Each group is turned into the coordinates in which its own Gram matrix is diagonal, which its norm does not see: an exact step on it is
then one root in one unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mtldsl.normal_form.form import NormalForm, single_block
from mtldsl.solvers.coordinate_descent.quadratic_model import SETTINGS as DESCENT
from mtldsl.solvers.design.row_design import SharedRows, make_design
from mtldsl.solvers.numerics.anderson import ROUND_SWEEPS
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.caching import cached_on_path

__all__ = [
    "SETTINGS",
    "GroupDescent",
    "GroupSettings",
    "unsupported_reason",
]


@dataclass(frozen=True)
class GroupSettings:
    """Constants of descent on groups of features.

    max_group_features   : of a group, whose eigenvectors are found
    max_rounds           : of sweeps and an extrapolation, of one model or between two looks at all groups
    max_set_features     : of all groups in a working set of squares
    max_hessian_features : of all groups in a working set of Newton steps, of which a Hessian is made
    """

    max_group_features: int = 300
    max_rounds: int = 40
    max_set_features: int = 4000
    max_hessian_features: int = 2000


SETTINGS = GroupSettings()


def unsupported_reason(form: NormalForm) -> str | None:
    """None where the form is of this kind, else one sentence."""
    facts = single_block(form)
    if isinstance(facts, str):
        return facts
    loss = facts.loss
    if loss.atom.quadratic is None or not loss.is_shared_complete or loss.uniform_scale is None:
        return f"{loss.typed} is not a sum of squares over one X, equally weighted."
    if loss.tasks.is_sparse:
        return "groups of sparse features are left to other solvers."
    grouped = [f for f in form.functions if f.atom.row_groups(facts.shape) is not None]
    others = [f for f in form.functions if f.atom.row_groups(facts.shape) is None]
    if len(grouped) != 1:
        return "coordinate descent takes one norm of groups of rows."
    for f in others:
        if f.is_constraint or f.atom.entry_quadratic is None or np.ndim(f.atom.entry_quadratic):
            return f"{f.typed} is not a ridge with equal weights."
    found = grouped[0].atom.row_groups(facts.shape)
    assert found is not None  # that is what it was chosen for
    labels, weights = found
    if labels.min() < 0 or weights.min() <= 0:
        return f"{grouped[0].typed} leaves some rows without any penalty."
    if np.bincount(labels).max() > SETTINGS.max_group_features:
        return f"{grouped[0].typed} has a group of more than {SETTINGS.max_group_features} rows."
    return None


class _GroupState:
    """Weights W (m, p) of the groups in the working set, in the groups' own coordinates; `carried` is their gradient."""

    def __init__(self, columns, gram, cross, starts, thresholds, ridge, square, W):
        self.columns, self.gram, self.cross = columns, gram, cross
        self.starts, self.thresholds, self.ridge, self.square = starts, thresholds, ridge, square
        self.W = W
        self.carried = W @ gram - cross

    def rounds(self, most: int, target: float) -> tuple[int, bool]:
        """(how many rounds of sweeps and an extrapolation, whether the relative gap of the problem on these groups is at most target)."""
        from mtldsl.solvers.coordinate_descent.extrapolated_sweep_kernels import rounds_of_groups

        done, gap = rounds_of_groups(
            self.gram, self.cross, self.square, self.carried, self.W, self.starts, self.thresholds, self.ridge, most, target
        )  # fmt: skip
        return done, gap <= target


def _relative_gap(norms, thresholds, ridge: float, objective: float, square: float, along: float) -> float:
    """With the dual point R, of which a ridge takes up what is beyond the dual balls; without one, with the best t R within them.

    norms : of the groups' gradients;  square, along : ||R||^2, <R, Y>
    """
    over = np.maximum(norms - thresholds, 0.0)
    if ridge > 0.0:
        bound = along - 0.5 * (square + float(over @ over) / ridge)
    else:
        t = 1.0 / (1.0 + float(np.max(over / thresholds, initial=0.0)))
        if square > 0.0:
            t = min(t, max(along / square, 0.0))
        bound = t * along - 0.5 * t * t * square
    return (objective - bound) / max(abs(objective), abs(bound), np.finfo(float).tiny)


class GroupDescent:
    """`unsupported_reason` said that the form fits."""

    def __init__(self, form: NormalForm, tol: float):
        facts = single_block(form)
        assert not isinstance(facts, str)
        self.form, self.loss, self.name, self.target = form, facts.loss, facts.name, 0.8 * tol
        self.work = 0.0  # in floating point operations
        design = cached_on_path(self.loss, "design", lambda: make_design(self.loss))
        assert isinstance(design, SharedRows)
        self.design, scale = design, 1.0 / design.curvature
        self.ridge = 0.0
        for f in form.functions:
            groups = f.atom.row_groups(facts.shape)
            if groups is None:
                self.ridge += scale * f.coefficient * _square(f)
            else:
                self.labels, weights = groups
                self.thresholds = scale * f.coefficient * weights
        order = np.argsort(self.labels, kind="stable")
        self.members = np.split(order, np.cumsum(np.bincount(self.labels))[:-1])
        self.known: dict[
            int, tuple[np.ndarray, np.ndarray]
        ] = {}  # of a group: (its coordinates, its columns in them)

    def run(self, W: np.ndarray, max_iter: int, watch: Watch) -> Point:
        """From W (d, m) on."""
        design, sweeps, reported, shown_at = self.design, 0, 0, 0.0
        support = self._support(W)
        state = self._state(support, W) if support else None
        while True:
            R = design.Y if state is None else design.Y - state.W @ state.columns
            pull = (R @ design.X).T  # (d, m); centred, as R is
            norms = self._norms(pull)
            square, along = float(np.vdot(R, R)), float(np.vdot(R, design.Y))
            value = (
                0.5 * square
                + float(self.thresholds @ self._norms(W))
                + 0.5 * self.ridge * float(np.vdot(W, W))
            )
            gap = _relative_gap(norms, self.thresholds, self.ridge, value, square, along)
            reached, done = gap <= self.target, sweeps >= max_iter or watch.expired
            is_due = sweeps >= 2 * reported + 100 or self.work >= 2.0 * shown_at + DESCENT.look_flops
            if reached or done or is_due:
                reported, shown_at = sweeps, self.work
                point = replace(self._point(W, R, pull, norms, sweeps), work=self.work)
                if watch(point) or done:
                    return point
                self.target *= 0.3 if reached else 1.0
            groups = self._next_groups(norms, self._support(W))
            if sum(len(self.members[k]) for k in groups) > SETTINGS.max_set_features:
                return self._point(W, R, pull, norms, sweeps)  # another solver goes on
            state = self._state(groups, W)
            sweeps += self._descend(state, max(0.5 * self.target, 0.03 * gap), watch)
            W = np.zeros_like(W)
            for k, first, last in zip(groups, state.starts[:-1], state.starts[1:], strict=True):
                W[self.members[k]] = self.known[k][0] @ state.W[:, first:last].T

    def _support(self, W) -> list[int]:
        """The groups that are not zero."""
        rows = np.flatnonzero(W.any(axis=1))
        return np.unique(self.labels[rows]).tolist()

    def _norms(self, V) -> np.ndarray:
        return np.sqrt(np.bincount(self.labels, np.einsum("ij,ij->i", V, V), minlength=len(self.thresholds)))

    def _next_groups(self, norms, held: list[int]) -> list[int]:
        """Those that are not zero, and the worst of the others that should not be."""
        excess = norms / self.thresholds - 1.0
        excess[held] = -np.inf
        new = np.flatnonzero(excess > 0)
        most = max(int(math.sqrt(len(norms))), 2 * len(held), 5)
        if new.size > most:
            new = new[np.argpartition(-excess[new], most)[:most]]
        return sorted({*held, *new.tolist()})

    def _state(self, groups: list[int], W) -> _GroupState:
        for k in groups:
            if k not in self.known:
                columns = self.design._columns(self.members[k])
                _, Q = np.linalg.eigh(columns @ columns.T)
                self.known[k] = Q, Q.T @ columns
        columns = np.concatenate([self.known[k][1] for k in groups])
        own = np.concatenate([W[self.members[k]].T @ self.known[k][0] for k in groups], axis=1)
        starts = np.concatenate([[0], np.cumsum([len(self.members[k]) for k in groups])])
        return _GroupState(
            columns, columns @ columns.T, self.design.Y @ columns.T, starts, self.thresholds[groups], self.ridge,
            self.design.square, np.ascontiguousarray(own),
        )  # fmt: skip

    def _descend(self, state: _GroupState, target: float, watch: Watch) -> int:
        m, p = state.W.shape
        at_once = max(int(DESCENT.look_flops / (2.0 * ROUND_SWEEPS * m * p * p)), 1)
        done, reached = 0, False
        while done < SETTINGS.max_rounds and not reached and not (done and watch.expired):
            rounds, reached = state.rounds(min(at_once, SETTINGS.max_rounds - done), target)
            done += rounds
        self.work += 4.0 * ROUND_SWEEPS * done * m * p * p
        return ROUND_SWEEPS * done

    def _point(self, W, R, pull, norms, sweeps: int) -> Point:
        blocks = {self.name: W.copy()}
        for name in self.loss.intercepts:
            blocks[name] = self.design.intercept(W.T)[None, :]
        scale, duals = self.design.curvature, None
        if self.ridge > 0.0:  # the norm takes what its dual balls hold, ridges the rest
            share = np.minimum(1.0, self.thresholds / np.maximum(norms, np.finfo(float).tiny))[
                self.labels, None
            ]
            rest = scale * (pull - share * pull)
            duals = []
            for f in self.form.functions:
                if f.atom.row_groups(W.shape) is not None:
                    duals.append(scale * share * pull)
                else:
                    own = f.coefficient * _square(f) / (scale * self.ridge)
                    duals.append(own * rest)
        return Point(blocks, [-scale * R.ravel()], duals, sweeps)


def _square(f) -> float:
    """The one weight of a ridge (`unsupported_reason` has asked for it)."""
    return float(f.atom.entry_quadratic)
