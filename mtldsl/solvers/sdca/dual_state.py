"""State of dual ascent: node vectors, samples, and conjugate gradients on samples that are free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mtldsl.normal_form.form import LossTerm
from mtldsl.solvers.design.kernel_arguments import FeatureSupports, NodePlaces, SampleRows
from mtldsl.solvers.numerics.conjugate_gradients import conjugate_gradients
from mtldsl.utils.arrays import read_only

if TYPE_CHECKING:
    from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm


@dataclass(frozen=True)
class FaceSettings:
    """Limits of squares, and of steps on a face.

    batch_entries  : of the inputs that are squared at a time
    interval_share : of the way to an end of its interval, where an entropy's multiplier stops
    halving_steps  : of a projected step before it is given up
    residual_tol   : of the linear system, relative to its right-hand side: bounds change what is to be solved anyway
    """

    batch_entries: int = 1 << 18
    interval_share: float = 0.99
    halving_steps: int = 6
    residual_tol: float = 1e-3


SETTINGS = FaceSettings()


# --------------------------------------------------------------------------------------------------------------
# The dual state of a kernel regularizer: one vector a column of the factors B_m, u_k = sum_i B[t_i, k] u_i x_i.


def node_places(
    cells: Iterable[tuple[Any, Any, np.ndarray]], n_features: int
) -> tuple[NodePlaces, list[int]]:
    """(where the kernels find nodes, where those of each cell begin in the store, and where the last ends).

    cells : (its features, its factor (T, k) CSR, (k,) whose weight each of its nodes has)
    """
    cell_of, place = np.zeros(n_features, dtype=np.int64), np.arange(n_features, dtype=np.int64)
    ends, entries, n_tasks = [0], [], 0
    for c, (own, factor, kernel) in enumerate(cells):
        rows = np.arange(n_features)[own]
        cell_of[rows], place[rows] = c, np.arange(rows.size)
        n_tasks = factor.shape[0]
        task, node = np.repeat(np.arange(n_tasks), np.diff(factor.indptr)), factor.indices.astype(np.int64)
        entries.append((task, ends[-1] + node * rows.size, np.full(task.size, c), factor.data, kernel[node]))
        ends.append(ends[-1] + factor.shape[1] * rows.size)
    task, *columns = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    order = np.argsort(task, kind="stable")
    at, cell, factors, kernels = (column[order] for column in columns)
    entry_of = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=n_tasks))])
    factors = np.ascontiguousarray(factors, dtype=float)
    return NodePlaces(cell_of, place, entry_of, at, cell, factors, kernels.astype(np.int64)), ends


class Nodes:
    """Node vectors over the cells of an `MKLNorm`, and where the kernels find them.

    The weights of task t are w_t = -sum over its entries of factor * theta * node, theta those of the kernels over the term's coefficient.
    """

    def __init__(self, norm: MKLNorm, n_features: int):
        self.norm, self.n_features = norm, n_features
        self.cells = norm.cells(n_features)
        cells = [(cell.rows, cell.factor, cell.members[cell.owner]) for cell in self.cells]
        self.places, self.ends = node_places(cells, n_features)
        self.store = np.zeros(self.ends[-1])

    def of_cell(self, c: int) -> np.ndarray:
        """(nodes, features) of a cell, a view."""
        return self.store[self.ends[c] : self.ends[c + 1]].reshape(self.cells[c].factor.shape[1], -1)

    def fill(self, Z) -> None:
        """Nodes of the multipliers' images Z = X^T u (d, T)."""
        for c, cell in enumerate(self.cells):
            self.of_cell(c)[:] = np.asarray(cell.transposed @ Z[cell.rows].T)

    def sizes(self) -> np.ndarray:
        """b_m = tr(Z R_m Z^T)."""
        b = np.zeros(len(self.norm.kernels))
        for c, cell in enumerate(self.cells):
            vectors = self.of_cell(c)
            b[cell.members] += cell.add_up(np.einsum("ij,ij->i", vectors, vectors))
        return b

    def weights(self, theta) -> np.ndarray:
        """(d, T): W = -Z K_theta."""
        W = np.zeros((self.n_features, self.cells[0].factor.shape[0]))
        for c, cell in enumerate(self.cells):
            factor, scale = cell.factor, theta[cell.members][cell.owner]
            if self._is_identity(factor):
                W[cell.rows] = (-scale[:, None] * self.of_cell(c)).T
                continue
            scaled = sparse.csr_array(
                (-scale[factor.indices] * factor.data, factor.indices, factor.indptr), factor.shape
            )
            W[cell.rows] = np.asarray(scaled @ self.of_cell(c)).T
        return W

    @staticmethod
    def _is_identity(factor) -> bool:
        n = factor.shape[0]
        return (
            factor.shape == (n, n)
            and factor.nnz == n
            and np.array_equal(factor.indices, np.arange(n))
            and bool(np.all(factor.data == 1.0))
        )

    @cached_property
    def tasks_are_apart(self) -> bool:
        """Tell whether no node belongs to two tasks: then tasks may be visited at the same time."""
        return all(np.all(np.diff(cell.transposed.indptr) <= 1) for cell in self.cells)


# --------------------------------------------------------------------------------------------------------------
# A loss as coordinate ascent sees it: rows, multipliers and their conjugates, sample by sample.


class FlatSamples:
    """The flat samples of a separable loss: row `rows_of[i]` of the inputs (row i where that is empty), in tasks by `offsets`.

    conj_i(u) = linear_i u + curvature_i u^2 / 2 on [low_i, high_i], or the entropy on 0 <= -y u <= weight_i where `entropic`.
    """

    def __init__(self, loss: LossTerm):
        tasks = loss.tasks
        atom: Any = loss.atom  # kernel_form lets through only atoms with the conjugate's parts
        self.loss, self.atom, self.n = loss, atom, tasks.n_samples
        self.n_tasks, self.n_features = tasks.n_tasks, tasks.n_features
        # writable, as all that the kernels get: one compilation
        self.offsets = np.array(tasks.offsets, dtype=np.int64)
        X, self.rows_of = _rows(tasks)
        nothing = np.empty(0)
        if sparse.issparse(X):
            of_rows = np.empty((0, 0)), X.data, X.indices, X.indptr
        else:
            of_rows = np.ascontiguousarray(X), nothing, np.empty(0, np.int32), np.empty(0, np.int32)
        self.dense, self.data, self.indices, self.indptr = map(read_only, of_rows)
        self.y, self.entropic = np.asarray(tasks.targets, float), atom.entropic
        self.weight = np.broadcast_to(1.0, (self.n,)) if loss.scale is None else np.asarray(loss.scale, float)
        self.inputs = SampleRows(self.rows_of, self.dense, self.data, self.indices, self.indptr)
        self.support = self._supports()

    @property
    def is_sparse(self) -> bool:
        return self.dense.shape[0] == 0

    def _supports(self) -> FeatureSupports:
        """The features that occur in the rows of each task; all, where inputs are dense."""
        d, T = self.n_features, self.n_tasks
        if not self.is_sparse:
            return FeatureSupports(
                np.arange(T + 1, dtype=np.int64) * d, np.tile(np.arange(d, dtype=np.int32), T)
            )
        rows = self.rows_of if self.rows_of.size else np.arange(self.n)
        return self.supports_of(self.offsets, rows)

    def supports_of(self, offsets, rows) -> FeatureSupports:
        """The features that occur in some sparse rows, task by task at `offsets`."""
        n_rows = self.indptr.size - 1
        of_tasks = sparse.csr_array((np.ones(rows.size, bool), rows, offsets), (self.n_tasks, n_rows))
        there = np.ones(self.indices.size, bool)
        found = of_tasks @ sparse.csr_array((there, self.indices, self.indptr), (n_rows, self.n_features))
        return FeatureSupports(found.indptr.astype(np.int64), found.indices.astype(np.int32))

    def table(self, n_cells: int) -> np.ndarray:
        """(n, 5 + cells): u, low, high and the conjugate's two numbers of every sample, as the kernels want them; norms are still zero."""
        table = np.zeros((self.n, 5 + n_cells))
        table[:, 1], table[:, 2] = self.loss.dual_interval()
        if self.entropic:
            table[:, 3], table[:, 4] = self.y, self.weight
        else:
            linear, curvature = self.atom.dual_quadratic(self.y)
            table[:, 3], table[:, 4] = linear, curvature / self.weight
        return table

    def squared_norms(self, cell_of: np.ndarray, n_cells: int) -> np.ndarray:
        """(n, cells): of every sample's row, over the features of every cell. Some rows at a time, in bounded memory."""
        indicator = np.zeros((self.n_features, n_cells))
        indicator[np.arange(self.n_features), cell_of] = 1.0
        n_rows = len(self.dense) if not self.is_sparse else self.indptr.size - 1
        norms = np.empty((n_rows, n_cells))
        entries = self.n_features if not self.is_sparse else max(self.data.size // max(n_rows, 1), 1)
        size = max(SETTINGS.batch_entries // entries, 1)
        for first in range(0, n_rows, size):
            rows = slice(first, min(first + size, n_rows))
            if self.is_sparse:
                ends = self.indptr[rows.start : rows.stop + 1]
                part = slice(int(ends[0]), int(ends[-1]))
                squares = sparse.csr_array(
                    (np.square(self.data[part], dtype=float), self.indices[part], ends - ends[0]),
                    shape=(rows.stop - rows.start, self.n_features),
                )
            else:
                squares = self.dense[rows] ** 2
            norms[rows] = np.asarray(squares @ indicator)
        return norms[self.rows_of] if self.rows_of.size else norms

    def conjugates(self, rows, u) -> np.ndarray:
        """conj_i(u_i) of some samples, u inside their intervals."""
        s = self.weight[rows]
        return s * self.atom.pointwise_conjugate(u / s, self.y[rows])

    def slopes(self, rows, u) -> tuple[np.ndarray, np.ndarray]:
        """(first, second) derivatives of conj_i at u_i."""
        y, s = self.y[rows], self.weight[rows]
        if self.entropic:
            a = -y * u / s
            return -y * np.log(a / (1.0 - a)), 1.0 / (s * a * (1.0 - a))
        linear, curvature = self.atom.dual_quadratic(y)
        return linear + curvature / s * u, np.broadcast_to(curvature / s, np.shape(u))

    def start(self, u=None) -> np.ndarray:
        """Multipliers to begin with: those given, moved into their intervals; else zero, which every loss of the language allows."""
        if u is None:
            u = np.zeros(self.n)
        u = np.clip(np.asarray(u, float), *self.loss.dual_interval())
        if self.entropic:  # the slope of the entropy is infinite at its ends
            a = np.clip(-self.y * u, 1e-3 * self.weight, (1.0 - 1e-3) * self.weight)
            return -self.y * np.where((-self.y * u > 0) & (-self.y * u < self.weight), -self.y * u, a)
        return u


def _rows(tasks):
    """(inputs, the row of every flat sample; empty where that is its own number)."""
    none = np.empty(0, np.int64)
    if not tasks.is_shared:
        return tasks.stacked, none
    if tasks.mask is not None:
        return tasks.X, np.nonzero(tasks.mask.T)[1].astype(np.int64)
    return tasks.X, np.tile(np.arange(tasks.X.shape[0], dtype=np.int64), tasks.n_tasks)


# --------------------------------------------------------------------------------------------------------------
# Conjugate gradients on a face: all multipliers that are off their bounds move together, where one by one they crawl.


class ActiveFace:
    """The samples `free`, and the dual value as a function of their multipliers: slope and Hessian H = X K_theta X^T / c + diag(curvature),
    with `shift` added inside a task for its intercept. Quadratic unless the conjugate is an entropy; then a step is Newton's.
    """

    def __init__(
        self,
        samples: FlatSamples,
        nodes: Nodes,
        table: np.ndarray,
        theta: np.ndarray,
        shift: np.ndarray,
        intercepts: np.ndarray,
    ):
        u, low, high = table[:, 0], table[:, 1], table[:, 2]
        self.free = np.flatnonzero((u > low) & (u < high))
        self.nodes, self.theta, self.shift = nodes, theta, shift
        self.offsets = np.searchsorted(self.free, samples.offsets).astype(np.int64)
        self.task = np.repeat(np.arange(samples.n_tasks), np.diff(self.offsets))
        rows = samples.rows_of[self.free] if samples.rows_of.size else self.free
        self.w, self.products = np.zeros(samples.n_features), 1
        support = samples.supports_of(self.offsets, rows) if samples.is_sparse else samples.support
        self.found = tuple(samples.inputs._replace(of=rows)), tuple(support), tuple(nodes.places)
        self.samples = samples
        self.u, self.low, self.high = u[self.free], low[self.free], high[self.free]
        self.z = intercepts[self.task] + self._dots(nodes.store)
        first, self.curvature = samples.slopes(self.free, self.u)
        self.slope = first - self.z
        self.conjugate = samples.conjugates(self.free, self.u)
        # Jacobi's preconditioner: kernel values differ as rows and tasks do
        diagonal = table[self.free, 5:].sum(axis=1) * float(theta.max()) + shift[self.task] + self.curvature
        self.scale = np.sqrt(np.maximum(diagonal, np.finfo(float).tiny))

    def _dots(self, store) -> np.ndarray:
        """The predictions of the samples, without intercepts, of the weights that nodes stand for."""
        from mtldsl.solvers.sdca.sdca_kernels import dots

        z = np.zeros(self.free.size)
        dots(store, self.theta, self.offsets, *self.found, self.w, z)
        return z

    def nodes_of(self, v) -> np.ndarray:
        """The node vectors of multipliers v on the face."""
        from mtldsl.solvers.sdca.sdca_kernels import gather

        store = np.zeros(self.nodes.store.size)
        gather(v, self.offsets, *self.found, self.w, store)
        return store

    def kernel(self, v) -> np.ndarray:
        """X K_theta X^T v / c, with the intercepts' part."""
        self.products += 1
        result = -self._dots(self.nodes_of(v))
        if self.shift.any():
            result += (self.shift * np.bincount(self.task, weights=v, minlength=self.shift.size))[self.task]
        return result

    def product(self, v) -> np.ndarray:
        """H v."""
        return self.kernel(v) + self.curvature * v

    def rise(self, change) -> float:
        """By how much the dual value rises with u + change."""
        conjugate = self.samples.conjugates(self.free, self.u + change) - self.conjugate
        return float(change @ (self.z - 0.5 * self.kernel(change)) - conjugate.sum())

    def step(self, most: int) -> tuple[np.ndarray, float, bool]:
        """(change of u on the face, by how much the dual value rises, whether the whole step was best), `most` products for its direction."""
        direction = self._solve(most)
        if not np.isfinite(direction).all():
            return np.zeros(self.free.size), 0.0, False
        low, high = self.low, self.high
        if self.samples.entropic:  # whose slope is infinite at its ends
            low, high = (
                self.u + SETTINGS.interval_share * (low - self.u),
                self.u + SETTINGS.interval_share * (high - self.u),
            )
        best, gain, best_t, t = np.zeros(self.free.size), 0.0, 0.0, 1.0
        for _ in range(SETTINGS.halving_steps):
            change = np.clip(self.u + t * direction, low, high) - self.u
            rise = self.rise(change)
            if rise > gain:
                best, gain, best_t = change, rise, t
            elif gain > 0.0:
                break
            if t == 1.0 and gain > 0.0 and np.array_equal(change, direction):
                break
            t *= 0.5
        return best, gain, best_t == 1.0

    def _solve(self, most: int) -> np.ndarray:
        """H direction = -slope by conjugate gradients in the scale of the diagonal."""
        found = conjugate_gradients(
            lambda v: self.product(v / self.scale) / self.scale,
            -self.slope / self.scale, tol=SETTINGS.residual_tol, most=most, flat=1e-14,
        )  # fmt: skip
        return found / self.scale
