"""A quadratic loss as coordinate descent sees it, transposed - tasks first - and divided by the loss's curvature.

An intercept is eliminated: residuals are centred task by task, which is the same as centring the columns of X and the targets
(and leaves a sparse X sparse).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.products import gram, require_gram_memory
from mtldsl.data.row_storage import TransposedRows
from mtldsl.normal_form.form import LossTerm
from mtldsl.solvers.coordinate_descent.quadratic_model import SETTINGS as DESCENT
from mtldsl.solvers.coordinate_descent.quadratic_model import (
    GramState,
    ResidualState,
    SeparateResidualState,
    SeparateState,
    SparseState,
)
from mtldsl.solvers.design.design import SETTINGS
from mtldsl.solvers.design.gram import centred_gram
from mtldsl.solvers.design.row_penalty import RowPenalty
from mtldsl.utils.caching import cached_property
from mtldsl.utils.parallel import in_blocks, inner_product, product, slabs

__all__ = [
    "SeparateRows",
    "SharedRows",
    "make_design",
]


def make_design(loss: LossTerm) -> SharedRows | SeparateRows:
    scale = loss.uniform_scale
    if loss.is_shared_complete and scale is not None:
        tasks, q = loss.tasks, loss.atom.quadratic
        assert q is not None  # refuses() lets through only quadratic losses
        Y = tasks.targets.reshape(tasks.n_tasks, -1)
        transposed = tasks.by_features if tasks.is_sparse else None
        return SharedRows(tasks.X, Y, q * scale, bool(loss.intercepts), transposed)
    return SeparateRows(loss)


class SharedRows:
    """One complete X and one weight for all samples: one Gram matrix serves all tasks.

    curvature : what the problem was divided by
    cross     : (m, d), Y X;  square : ||Y||^2
    """

    def __init__(self, X, Y, curvature: float, centred: bool, transposed=None):
        self.X, self.Y, self.curvature, self.centred = X, Y, curvature, centred
        self.sparse = sparse.issparse(X)
        self.Xt: Any = (transposed or TransposedRows(X)) if self.sparse else X.T
        self.n_samples, self.n_features = X.shape
        self.n_tasks = len(Y)
        self.x_means, self.y_means = np.zeros(self.n_features), np.zeros(self.n_tasks)
        if centred:
            self.x_means = self.Xt @ np.full(self.n_samples, 1.0 / self.n_samples)
            self.y_means = Y.sum(axis=1) / self.n_samples
            self.Y = Y - self.y_means[:, None]
        self.cross = self._onto_features(self.Y)
        self.square = float(np.vdot(self.Y, self.Y))
        self.residuals_are_slow = False  # whether sweeps through the residual have been found to be

    @cached_property
    def squares(self) -> np.ndarray:
        """(d,) squared lengths of the columns of sparse inputs, not centred."""
        return self.Xt.squares

    @property
    def most_new(self) -> int:
        """Rows that a working set may always grow by: columns of sparse inputs cost no Gram matrix."""
        few = int(math.sqrt(self.n_tasks * self.n_features))
        if not self.sparse:
            return few
        # columns of a large X that is not stored by features are copied
        return max(few, self.n_features // (4 if self.Xt.is_stored else 16))

    @property
    def prefers_all_rows(self) -> bool:
        """Tell whether the whole Gram matrix costs no more than the few products with X that it saves, and is worked with (`state`)."""
        return self.n_features <= max(8 * self.n_tasks, 100) and self.n_features <= 2 * self.n_samples

    @property
    def may_take_all_rows(self) -> bool:
        """Tell whether all rows at once cost no more than a few working sets: then one that would hold many may as well hold all."""
        return self._has_cheap_gram or (self.sparse and 2 * self.n_features <= self.n_samples)

    @property
    def _has_cheap_gram(self) -> bool:
        rows = min(DESCENT.one_block_rows, 2 * self.n_samples)
        fits = not self.sparse and self.n_tasks == 1 and self.n_features <= rows
        return fits and self.n_samples * self.n_features**2 <= SETTINGS.cheap_gram_flops

    def state(
        self, penalty: RowPenalty, rows, W, old: GramState | ResidualState | SparseState | None
    ) -> GramState | ResidualState | SparseState:
        """The iterate W (m, d) on these rows. What `old` knows of them is not computed again."""
        own = np.ascontiguousarray(W[:, rows])
        if len(rows) == self.n_features and (self.prefers_all_rows or self._has_cheap_gram):
            return GramState(self, penalty, rows, own, self._whole_gram, None)
        if self.sparse:
            if SparseState.pays(self, rows, old):
                known = old.carried if isinstance(old, SparseState) else None
                return SparseState(self, penalty, rows, own, known)
            return GramState(self, penalty, rows, own, self._gram(rows), None)
        place = np.full(self.n_features, -1)
        if old is not None:
            place[old.rows] = np.arange(len(old.rows))
        known = place[rows] >= 0
        kept, new = np.flatnonzero(known), np.flatnonzero(~known)
        if len(kept):
            assert old is not None and old.columns is not None  # dense inputs' states have them
            columns = np.empty((len(rows), self.n_samples))
            columns[new], columns[kept] = self._columns(rows[new]), old.columns[place[rows[kept]]]
        else:
            columns = self._columns(rows)
        most = SETTINGS.slow_gram_rows if self.residuals_are_slow else DESCENT.one_block_rows
        if len(rows) > max(2 * self.n_samples, most):
            return ResidualState(self, penalty, rows, own, columns)
        if not isinstance(old, GramState) or not len(kept):
            gram = inner_product(columns, columns.T)
        else:
            gram = np.empty((len(rows), len(rows)))
            gram[new] = columns[new] @ columns.T
            before = place[rows[kept]]
            gram[kept[:, None], new] = gram[new[:, None], kept].T
            gram[kept[:, None], kept] = old.gram[before[:, None], before]
        return GramState(self, penalty, rows, own, gram, columns)

    def look(self, state: GramState | ResidualState | SparseState) -> tuple[np.ndarray, float, float]:
        """(the negative gradient of all rows (m, d), ||R||^2, <R, Y>) at the state, freed of its rounding errors."""
        if len(state.rows) == self.n_features and isinstance(state, GramState):
            state.carried = state.gradient(state.W)
            square, along = state.moments()
            return -state.carried, square, along
        if len(state.rows) == 0:  # nothing has been taken off the targets
            return self.cross, self.square, self.square
        if isinstance(state, SparseState):
            state.carried = state.residual(state.W)
            R = np.ascontiguousarray(state.centred(state.W, state.carried).T)
            return self._onto_features(R), float(np.vdot(R, R)), float(np.vdot(R, self.Y))
        R = self.residual(state)
        pull = self._onto_features(R)
        state.carried = R if isinstance(state, ResidualState) else np.negative(pull[:, state.rows], order="C")
        return pull, float(np.vdot(R, R)), float(np.vdot(R, self.Y))

    def look_at_dual(self, state, W) -> tuple[np.ndarray, float, float]:
        """As `look`, with other weights W on the state's rows, and nothing of the state is touched."""
        if len(state.rows) == self.n_features and isinstance(state, GramState):
            gradient = state.gradient(W)
            along, curved = float(np.vdot(state.cross, W)), float(np.vdot(W, gradient))
            return -gradient, self.square - along + curved, self.square - along
        R = np.ascontiguousarray(self.residual(state, W))
        return self._onto_features(R), float(np.vdot(R, R)), float(np.vdot(R, self.Y))

    def residual(self, state, W=None) -> np.ndarray:
        """Y - W X^T (m, n), centred; W (m, p) in place of the state's own where given."""
        W = state.W if W is None else W
        if state.columns is not None:
            return self.Y - product(W, state.columns)
        if isinstance(state, SparseState):
            R = state.residual(W).T
        elif self.sparse:
            whole = np.zeros((self.n_features, self.n_tasks))
            whole[state.rows] = W.T
            R = self.Xt.image(whole)
            np.subtract(self.Y, R, out=R)
        else:
            R = self.Y - W @ (self.Xt if len(state.rows) == self.n_features else self.Xt[state.rows])
        return R - R.sum(axis=1, keepdims=True) / self.n_samples if self.centred else R

    def intercept(self, W) -> np.ndarray:
        return self.y_means - W @ self.x_means

    def _onto_features(self, R) -> np.ndarray:
        """R X for centred R (m, n)."""
        return np.ascontiguousarray((self.Xt @ R.T).T) if self.sparse else inner_product(R, self.X)

    def _columns(self, rows) -> np.ndarray:
        """(p, n): the features' centred columns, one after another in memory."""
        columns = np.empty((len(rows), self.n_samples))

        def fill(_, block: slice) -> None:
            for part in slabs(block.stop - block.start, SETTINGS.cached_samples):
                some = slice(block.start + part.start, min(block.start + part.stop, block.stop))
                columns[:, some] = self.X[some, rows].T

        in_blocks(self.n_samples, SETTINGS.move_flops * columns.size, fill)
        if self.centred:
            columns -= self.x_means[rows, None]
        return columns

    @cached_property
    def _whole_gram(self) -> np.ndarray:
        return self._gram()

    def _gram(self, rows=None) -> np.ndarray:
        """The Gram matrix of all features, or of those rows of W."""
        n_rows = self.n_features if rows is None else len(rows)
        require_gram_memory(n_rows, 1, "select features, or name another solver")
        means = self.x_means if rows is None else self.x_means[rows]
        made = gram(self.X if rows is None else self.Xt[rows].T)
        return centred_gram(made, self.n_samples * means, means) if self.centred else made


class SeparateRows:
    """Inputs, missing labels or weights that differ between tasks: a Gram matrix, or columns of its own, a task.

    weights : one per sample, None where one number serves all;  target : flat Y, weighted by their roots
    """

    may_take_all_rows = False
    _MOST = 5_000_000  # entries of all tasks' Gram matrices that are made at once

    def __init__(self, loss: LossTerm):
        tasks = self.tasks = loss.tasks
        self.n_features, self.n_tasks = tasks.n_features, tasks.n_tasks
        assert loss.atom.quadratic is not None  # refuses() lets through only quadratic losses
        self.curvature = loss.atom.quadratic * (loss.uniform_scale or 1.0)
        self.weights = loss.scale if loss.uniform_scale is None else None
        self.centred = bool(loss.intercepts)
        self.totals = tasks.counts.astype(float) if self.weights is None else self._sums(self.weights)
        self.Y = tasks.targets
        self.x_means, self.y_means = np.zeros((self.n_tasks, self.n_features)), np.zeros(self.n_tasks)
        if self.centred:
            self.x_means = tasks.adjoint(self._weighted(np.ones(tasks.n_samples))).T / self.totals[:, None]
            self.y_means = self._sums(self._weighted(self.Y)) / self.totals
            self.Y = self.Y - np.repeat(self.y_means, tasks.counts)
        self.cross = np.ascontiguousarray(tasks.adjoint(self._weighted(self.Y)).T)
        self.square = float(self.Y @ self._weighted(self.Y))
        self.roots = None if self.weights is None else np.sqrt(self.weights)
        self.target = self.Y if self.roots is None else self.roots * self.Y

    def _sums(self, flat) -> np.ndarray:
        return np.add.reduceat(flat, self.tasks.offsets[:-1])

    def _weighted(self, flat) -> np.ndarray:
        return flat if self.weights is None else self.weights * flat

    @property
    def most_new(self) -> int:
        """Rows that a working set may always grow by."""
        return int(math.sqrt(self.n_tasks * self.n_features))

    @property
    def prefers_all_rows(self) -> bool:
        return self.n_tasks * self.n_features**2 <= self._MOST

    def state(self, penalty: RowPenalty, rows, W, old) -> SeparateState | SeparateResidualState:
        own = np.ascontiguousarray(W[:, rows])
        if self.prefers_all_rows:
            return SeparateState(self, penalty, rows, own, self._whole_gram)
        if len(rows) > self.tasks.n_samples / self.n_tasks:
            return SeparateResidualState(self, penalty, rows, own, self._columns(rows))
        columns = np.split(self._columns(rows), self.tasks.offsets[1:-1], axis=1)
        gram = np.empty((self.n_tasks, len(rows), len(rows)))
        for i, block in enumerate(columns):
            np.matmul(block, block.T, out=gram[i])
        return SeparateState(self, penalty, rows, own, gram)

    def _columns(self, rows) -> np.ndarray:
        """(p, N): the features' columns, centred and weighted by roots, task after task."""
        columns = np.empty((len(rows), self.tasks.n_samples))
        for X, means, a, b in zip(
            self.tasks.inputs, self.x_means, self.tasks.offsets[:-1], self.tasks.offsets[1:], strict=True
        ):
            X = X[:, rows].toarray() if self.tasks.is_sparse else X[:, rows]
            columns[:, a:b] = (X - means[rows]).T
        if self.roots is not None:
            columns *= self.roots
        return columns

    @cached_property
    def _whole_gram(self) -> np.ndarray:
        gram = self.tasks.gram(self.weights)
        if self.centred:
            means = self.x_means
            gram = centred_gram(gram, self.totals[:, None] * means, means)
        return gram

    def look(self, state: Any) -> tuple[np.ndarray, float, float]:
        """state: a SeparateState, or a SeparateResidualState where not all rows are preferred."""
        if self.prefers_all_rows:
            state.carried = state.gradient(state.W)
            return -state.carried, *state.moments()
        R = self.residual(state)
        weighted = self._weighted(R)
        pull = np.ascontiguousarray(self.tasks.adjoint(weighted).T)
        if isinstance(state, SeparateState):
            state.carried = np.negative(pull[:, state.rows], order="C")
        else:
            state.carried = R if self.roots is None else self.roots * R
        return pull, float(R @ weighted), float(weighted @ self.Y)

    def residual(self, state: SeparateState | SeparateResidualState) -> np.ndarray:
        """y - X w, centred, flat."""
        W = np.zeros((self.n_features, self.n_tasks))
        W[state.rows] = state.W.T
        R = self.Y - self.tasks.forward(W)
        if not self.centred:
            return R
        return R - np.repeat(self._sums(self._weighted(R)) / self.totals, self.tasks.counts)

    def intercept(self, W) -> np.ndarray:
        return self.y_means - np.einsum("ij,ij->i", W, self.x_means)
