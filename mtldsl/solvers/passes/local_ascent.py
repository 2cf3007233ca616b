"""Dual coordinate ascent on the rows of one part, around weights that are sent there: what happens where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from mtldsl.compile.terms.distributed import seen_of, term_of
from mtldsl.solvers.kernels.arguments import NodePlaces, TaskStates
from mtldsl.solvers.samples.samples import Samples

if TYPE_CHECKING:
    from mtldsl.tasks.distributed.parts import Part

__all__ = ["Around", "SentCell", "ascend", "which_of"]


@dataclass(frozen=True, eq=False)
class SentCell:
    """Nodes between tasks on some features, as a part needs them: w_t = -sum over k of factor[t, k] weights[k] node_k.

    rows    : of which features;  factor : (T, k) CSR
    weights : (k,) by how much a node moves the weights, made larger by the number of parts that move it too
    store   : (k, features) the nodes, made smaller by as much: at the start the weights are those sent
    """

    rows: slice | np.ndarray
    factor: sparse.csr_array
    weights: np.ndarray
    store: np.ndarray


@dataclass(frozen=True, eq=False)
class Around:
    """The weights V (d, m) and intercepts b (m,) that an ascent begins at, and how multipliers move them.

    cells   : between tasks; None: every task by itself, w_i moves by 1 / penalty_i a unit of X^T u
    penalty : (m,), and how far an intercept moves `shift` (m,), zero without any: of all rows of a task; a part has its share of the rows
    counts  : (m,) rows of each task
    """

    V: np.ndarray
    b: np.ndarray
    cells: tuple[SentCell, ...] | None
    penalty: np.ndarray
    shift: np.ndarray
    counts: np.ndarray


class _Nodes:
    """The nodes of one part's tasks, as the compiled loop has them."""

    def __init__(self, part: Part, around: Around):
        which, d = part.which, part.tasks.n_features
        share = around.counts[which] / part.tasks.counts  # one over the share of the rows that is here
        cells = around.cells
        if cells is None:
            k = which.size
            own = sparse.csr_array((np.ones(k), (np.arange(k), np.arange(k))), (k, k))
            weights = share / around.penalty[which]
            stored = -around.V[:, which].T / weights[:, None]
            found = [(np.arange(d), own, weights, stored)]
        else:
            found = []
            for cell in cells:
                F = cell.factor[which]
                used, at = np.unique(F.indices, return_inverse=True)
                factor = sparse.csr_array((F.data, at, F.indptr), (which.size, used.size))
                found.append((np.arange(d)[cell.rows], factor, cell.weights[used], cell.store[used]))
        self.shift = around.shift[which] * share
        self.cell_of, self.place = np.zeros(d, np.int64), np.zeros(d, np.int64)
        entries, stores, end, before = [], [], 0, 0
        for c, (rows, factor, weights, stored) in enumerate(found):
            self.cell_of[rows], self.place[rows] = c, np.arange(rows.size)
            task = np.repeat(np.arange(which.size), np.diff(factor.indptr))
            node = factor.indices.astype(np.int64)
            entries.append((task, end + node * rows.size, np.full(task.size, c), factor.data, before + node))
            stores.append(np.ascontiguousarray(stored, dtype=float).ravel())
            end, before = end + stores[-1].size, before + weights.size
        task, at, cell, factor, node = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        order = np.argsort(task, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=which.size))])
        self.n_cells, self.store = len(found), np.concatenate(stores)
        self.weights = np.concatenate([weights for _, _, weights, _ in found])
        self.places = NodePlaces(
            self.cell_of, self.place, ends, at[order], cell[order],
            np.ascontiguousarray(factor[order], dtype=float), node[order],
        )  # fmt: skip


def ascend(
    part: Part, state, n_tasks: int, atom, coefficients, V, b, around: Around, taken: float, epochs: int, seed: tuple, by_sign: bool
) -> tuple[np.ndarray, dict[str, Any]]:  # fmt: skip
    """(state, sums over one part's rows): what multipliers u say at weights V, b, and what they are after `epochs` over the rows.

    state : (2, n) multipliers before and after the last ascent, None at first; `taken` of the way between them is gone
    seed  : numbers that the order of tasks and rows comes from, with that of the part
    """
    term = term_of(part, atom, coefficients)
    samples = Samples(term)
    if state is None:
        u = samples.start()
    else:
        u = state[1] if taken == 1.0 else samples.start(state[0] + taken * (state[1] - state[0]))
    seen = seen_of(part, n_tasks, atom, coefficients, V, b, u, by_sign)
    new = _epochs(part, samples, u, around, epochs, seed) if epochs else u
    which, after, sums, moved = part.which, np.zeros_like(V), np.zeros(n_tasks), np.zeros(n_tasks)
    after[:, which] = part.tasks.adjoint(new)
    sums[which] = np.add.reduceat(new, part.tasks.offsets[:-1])
    change = after[:, which] - seen["adjoint"].sum(axis=0)[:, which]
    moved[which] = around.counts[which] / part.tasks.counts * np.einsum("dk,dk->k", change, change)
    told = {
        "seen": seen,
        "after": after,
        "sums": sums,
        "moved": moved,
        "conjugate": float(term.conjugate(new)),
    }
    return np.stack([u, new]), told


def _epochs(part: Part, samples: Samples, u, around: Around, epochs: int, seed: tuple) -> np.ndarray:
    from mtldsl.solvers.kernels.coordinate_ascent import sweep

    nodes, T = _Nodes(part, around), samples.n_tasks
    table = samples.table(nodes.n_cells)
    table[:, 0] = u
    table[:, 5:] = samples.squared_norms(nodes.cell_of, nodes.n_cells)
    rng = np.random.default_rng([*seed, part.index])
    random = rng.integers(1, 2**63, size=T).astype(np.uint64)
    states = TaskStates(
        samples.offsets, np.arange(samples.n, dtype=np.int64), np.diff(samples.offsets),
        np.ascontiguousarray(nodes.shift, dtype=float), np.array(around.b[part.which], float), random,
    )  # fmt: skip
    bounds, told = np.tile([-np.inf, np.inf], (T, 1)), np.zeros((T, 5))
    # tasks that nothing links are left when they are done; else each waits for the others after one pass over it
    apart = around.cells is None
    for _ in range(1 if apart else epochs):
        sweep(
            rng.permutation(T), epochs if apart else 1, 0.0, tuple(states), tuple(samples.inputs), tuple(samples.support),
            tuple(nodes.places), table, samples.entropic, nodes.weights, nodes.store, bounds, told, True,
        )  # fmt: skip
        if not apart:
            least, most = told[:, 3].min(), told[:, 4].max()
            bounds[:] = (least if least < 0 else -np.inf, most if most > 0 else np.inf)
    return table[:, 0].copy()


def which_of(part: Part, n_tasks: int) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """({partition: the tasks that have rows there}, (m,) the squares of all inputs of every task)."""
    squares = np.zeros(n_tasks)
    for i, X in zip(part.which, part.tasks.inputs, strict=True):
        squares[i] = np.vdot(X, X) if isinstance(X, np.ndarray) else np.vdot(X.data, X.data)
    return {part.index: part.which}, squares
