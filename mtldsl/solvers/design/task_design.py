"""Design of some tasks as Newton steps need it: products with their inputs, and single rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.normal_form.form import LossTerm


class Designs:
    """z_i = X_i w_i + b_i for the tasks `ids` of a loss; vectors over samples are flat, task after task.

    Where there are intercepts and the inputs are dense, columns are centred task by task, without a copy: the intercepts of these
    columns are `b`, those of the columns as given `intercepts(W, b)`.
    """

    def __init__(self, loss: LossTerm, ids: np.ndarray | None = None):
        self.loss, tasks = loss, loss.tasks
        self.ids = np.arange(tasks.n_tasks) if ids is None else ids
        self.has_intercepts = bool(loss.intercepts)
        self.counts = np.asarray(tasks.counts)[self.ids]
        self.offsets = np.concatenate([[0], np.cumsum(self.counts)])
        self.starts = self.offsets[:-1]
        self.is_shared, self.is_sparse = tasks.is_shared, tasks.is_sparse
        self.X: Any = tasks.X if self.is_shared else None
        self.rows_of: list | None = None
        if not self.is_shared:
            inputs = tasks.inputs
            self.inputs = [inputs[i] for i in self.ids]
        elif tasks.mask is not None:
            self.rows_of = [np.flatnonzero(tasks.mask[:, i]) for i in self.ids]
            n = tasks.mask.shape[0]
            self.kept = np.concatenate([k * n + rows for k, rows in enumerate(self.rows_of)])
            self.size = n * len(self.ids)
        if self.is_shared:
            self.Xt: Any = tasks.by_features if self.is_sparse else self.X.T  # pyrefly: ignore[missing-attribute]
        self.means = self._means() if self.has_intercepts and not self.is_sparse else None

    def on(self, keep: np.ndarray) -> Designs:
        """Some of its tasks."""
        return Designs(self.loss, self.ids[keep])

    @property
    def n_tasks(self) -> int:
        return len(self.ids)

    def spread(self, per_task: np.ndarray) -> np.ndarray:
        """One number a task -> one a sample."""
        return np.repeat(per_task, self.counts)

    def sums(self, flat: np.ndarray) -> np.ndarray:
        """(m,) sums over the samples of every task."""
        return np.add.reduceat(flat, self.starts)

    def forward(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        if self.is_shared:
            z = (self.Xt.image(W) if self.is_sparse else W.T @ self.Xt).ravel()
            z = z if self.rows_of is None else z[self.kept]
        else:
            columns = np.ascontiguousarray(W.T)
            z = np.concatenate([X @ w for X, w in zip(self.inputs, columns, strict=True)])
        return z + self.spread(self.intercepts(W, b)) if self.has_intercepts else z

    def intercepts(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(m,) those of the columns as given."""
        return b if self.means is None else b - np.einsum("ij,ij->j", self.means, W)

    def centred(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """(m,) those of the centred columns, of those as given."""
        return b if self.means is None else b + np.einsum("ij,ij->j", self.means, W)

    def _means(self) -> np.ndarray:
        """(d, m) of every task's columns."""
        if not self.is_shared:
            return np.column_stack([X.mean(axis=0) for X in self.inputs])
        if self.rows_of is None:
            return np.broadcast_to(self.X.mean(axis=0)[:, None], (self.X.shape[1], self.n_tasks))
        return np.column_stack([self.X[rows].mean(axis=0) for rows in self.rows_of])

    def adjoint(self, u: np.ndarray) -> np.ndarray:
        """(d, m) X_i^T u_i."""
        pull = self._adjoint(u)
        return pull if self.means is None else pull - self.means * self.sums(u)

    def _adjoint(self, u: np.ndarray) -> np.ndarray:
        if not self.is_shared:
            parts = np.split(u, self.offsets[1:-1])
            return np.column_stack([X.T @ part for X, part in zip(self.inputs, parts, strict=True)])
        if self.rows_of is not None:
            full = np.zeros(self.size)
            full[self.kept] = u
            u = full
        table = u.reshape(self.n_tasks, -1)
        return np.asarray(self.Xt @ table.T) if self.is_sparse else (table @ self.X).T

    def inputs_of(self, k: int):
        """All rows of the k-th task's inputs, as given: a view where they are its own."""
        if not self.is_shared:
            return self.inputs[k]
        return self.X if self.rows_of is None else self.X[self.rows_of[k]]

    def rows(self, k: int, chosen: np.ndarray):
        """The chosen rows of the k-th task's inputs."""
        if not self.is_shared:
            rows = self.inputs[k][chosen]
        else:
            rows = self.X[chosen if self.rows_of is None else self.rows_of[k][chosen]]
        return rows if self.means is None else rows - self.means[:, k]

    def unit(self) -> np.ndarray:
        """(d,) root mean squares of the columns; 1 for a column of zeros."""
        counts = np.full(self.n_tasks, self.X.shape[0]) if self.is_shared else self.counts
        n = float(np.sum(counts))
        squares = np.square(self.loss.tasks.column_lengths[:, self.ids]).sum(axis=1) / n
        spread = squares
        if self.means is not None:
            spread = squares - self.means**2 @ counts / n
            spread = np.where(spread > 1e-12 * squares, spread, squares)
        return np.sqrt(np.where(spread > 0, spread, 1.0))
