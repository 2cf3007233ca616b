"""Dual ascent by passes over rows elsewhere, for kernel regularizers: parts raise their multipliers together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.distributed.distributed_solver import CheckpointFolder, DistributedRun, DistributedSolver
from mtldsl.distributed.distributed_term import DistributedDual, DistributedTerm, seen_of, term_of
from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.solvers.design.kernel_arguments import TaskStates
from mtldsl.solvers.sdca.dual_ascent import WeightsStep, kernel_form
from mtldsl.solvers.sdca.dual_state import FlatSamples, Nodes, node_places
from mtldsl.solvers.solver import Point, Watch

if TYPE_CHECKING:
    from mtldsl.distributed.partitions import PartitionTasks


# --------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent on the rows of one part, around weights that are sent there: what happens where the rows are.


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
class AscentCenter:
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


@cache
def _identity(size: int) -> sparse.csr_array:
    return sparse.eye_array(size, format="csr")


class _PartNodes:
    """The nodes of one part's tasks, as the compiled loop has them."""

    def __init__(self, part: PartitionTasks, around: AscentCenter):
        which, d = part.which, part.tasks.n_features
        share = around.counts[which] / part.tasks.counts  # one over the share of the rows that is here
        if around.cells is None:
            weights = share / around.penalty[which]
            stored = -around.V[:, which].T / weights[:, None]
            found = [(slice(None), _identity(which.size), weights, stored)]
        else:
            found = []
            for cell in around.cells:
                F = cell.factor[which]
                used, at = np.unique(F.indices, return_inverse=True)
                factor = sparse.csr_array((F.data, at, F.indptr), (which.size, used.size))
                found.append((cell.rows, factor, cell.weights[used], cell.store[used]))
        self.shift, self.n_cells = around.shift[which] * share, len(found)
        self.weights = np.concatenate([weights for _, _, weights, _ in found])
        self.store = np.concatenate([np.ascontiguousarray(one, dtype=float).ravel() for *_, one in found])
        cells, first = [], 0
        for rows, factor, own, _ in found:
            cells.append((rows, factor, first + np.arange(own.size)))
            first += own.size
        self.places, _ = node_places(cells, d)


def ascend(
    part: PartitionTasks, state, n_tasks: int, atom, coefficients, V, b, around: AscentCenter, taken: float, epochs: int, seed: tuple, by_sign: bool
) -> tuple[np.ndarray, dict[str, Any]]:  # fmt: skip
    """(state, sums over one part's rows): what multipliers u say at weights V, b, and what they are after `epochs` over the rows.

    state : (2, n) multipliers before and after the last ascent, None at first; `taken` of the way between them is gone
    seed  : numbers that the order of tasks and rows comes from, with that of the part
    """
    term = term_of(part, atom, coefficients)
    samples = FlatSamples(term)
    if state is None:
        u = samples.start()
    else:
        u = state[1] if taken == 1.0 else samples.start(state[0] + taken * (state[1] - state[0]))
    seen = seen_of(part, n_tasks, atom, coefficients, V, b, by_sign, u)
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


def _epochs(
    part: PartitionTasks, samples: FlatSamples, u, around: AscentCenter, epochs: int, seed: tuple
) -> np.ndarray:
    from mtldsl.solvers.sdca.sdca_kernels import sweep

    nodes, T = _PartNodes(part, around), samples.n_tasks
    table = samples.table(nodes.n_cells)
    table[:, 0] = u
    table[:, 5:] = samples.squared_norms(nodes.places.cell_of, nodes.n_cells)
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


def which_of(part: PartitionTasks, n_tasks: int) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """({partition: the tasks that have rows there}, (m,) the squares of all inputs of every task)."""
    squares = np.zeros(n_tasks)
    for i, X in zip(part.which, part.tasks.inputs, strict=True):
        squares[i] = np.vdot(X, X) if isinstance(X, np.ndarray) else np.vdot(X.data, X.data)
    return {part.index: part.which}, squares


# --------------------------------------------------------------------------------------------------------------
# Safe aggregation: how far the steps of several parts, added up, may overshoot, node by node.


@dataclass(frozen=True)
class DistributedAscentSettings:
    """Numbers of steps on the samples of parts.

    kinked_share        : of a task's rows that lie near a kink, as a guess
    single_nodes        : a kernel of so few nodes that are in several parts is bounded node by node
    pass_epochs         : epochs over the rows of a part in a pass
    overlap_factor      : how far steps overshoot together is bounded by this factor above what was seen of it
    overlap_fall_factor : and falls by no more than this factor a pass
    """

    kinked_share: float = 0.3
    single_nodes: int = 2
    pass_epochs: int = 5
    overlap_factor: float = 1.2
    overlap_fall_factor: float = 0.9


SETTINGS = DistributedAscentSettings()


def places_of_tasks(tasks: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """(the tasks that have rows in each part, (m,) the squares of all inputs of every task); one pass, the first time that it is asked for."""
    known = tasks.__dict__.get("_places_of_tasks")
    if known is None:
        found, squares = tasks.parts.run(which_of, tasks.n_tasks)
        known = tasks.__dict__["_places_of_tasks"] = [found[k] for k in sorted(found)], squares
    return known


def curvatures(loss: Any) -> np.ndarray:
    """(m,) about what the second derivative of every task's loss is, in a direction of average length: `SETTINGS.kinked_share` of the rows, each with
    that of a loss whose slope changes by its coefficient over the size of a label."""
    tasks = loss.tasks
    squares = np.maximum(places_of_tasks(tasks)[1], np.finfo(float).tiny)
    facts = tasks.label_facts
    spread = np.sqrt(np.maximum(facts.squares / facts.counts, np.finfo(float).tiny))
    return SETTINGS.kinked_share * loss.coefficients * squares / tasks.n_features / spread


def safe_factors(norm: MKLNorm, n_features: int, which: list[np.ndarray]) -> list[np.ndarray]:
    """s (k,) of every cell's nodes with   ||sum_p z_p||^2_R <= sum_p ||z_p||^2_{R'},   R' with s_j b_j b_j^T in the place of b_j b_j^T.

    For one node, ||sum_p z_p||^2 <= s sum_p ||z_p||^2 with s the number of parts that have a task of it (Cauchy-Schwarz). For a kernel
    B B^T with dense B every node is in every part; there s is the largest eigenvalue of sum_p P_p, P_p the projection on the
    rows of B that belong to tasks of part p: the least number for which it holds.

    Source: the safe bound sigma' = gamma K of CoCoA+ (Ma et al., ICML 2015, Lemma 4), of a node's parts instead of all; sigma'_min there.
    """
    n_tasks = norm.kernels[0].n_tasks
    member = sparse.csr_array(
        (np.ones(sum(map(len, which))), np.concatenate(which), np.cumsum([0, *map(len, which)])), (len(which), n_tasks)
    )  # fmt: skip
    factors = []
    for cell in norm.cells(n_features):
        touched = sparse.csr_array(cell.factor != 0.0).astype(float)
        s = np.asarray(((member @ touched) > 0.0).sum(axis=0), float).ravel()
        s = np.maximum(s, 1.0)
        for k in range(len(cell.members)):
            own = np.flatnonzero(cell.owner == k) if len(cell.members) < len(cell.owner) else np.array([k])
            if own.size > SETTINGS.single_nodes and s[own].min() > 1.0:
                s[own] = np.minimum(_least_factor(cell.factor[:, own].toarray(), which), s[own].max())
        factors.append(s)
    return factors


def _least_factor(B: np.ndarray, which: list[np.ndarray]) -> float:
    total = np.zeros((B.shape[1], B.shape[1]))
    whole = sum(one.size == len(B) for one in which)
    for one in which:
        if one.size < len(B):
            values, basis = np.linalg.eigh(B[one] @ B[one].T)
            held = values > 1e-12 * values[-1]
            half = (B[one].T @ basis[:, held]) / np.sqrt(values[held])
            total += half @ half.T
    others = float(np.linalg.eigvalsh(total)[-1]) if whole < len(which) else 0.0
    return max((whole + others) * (1.0 + 1e-9), 1.0)


# --------------------------------------------------------------------------------------------------------------
# Dual ascent inside the parts, its steps added up safely: losses with kinks beside kernels between tasks, one pass over the data an iteration.


class AscentByPasses(DistributedSolver):
    """minimize sum_i l_i(<x_i, w_{t_i}>) + c * (kernel regularizer of W), the rows in parts: `mkl_norm`, a ridge, quadratics between tasks.

    In the dual, -sum_i conj_i(u_i) - 1/(2 c) ||X^T u||^2_K, a part raises the value over its own multipliers, with s_j K_j in the place of
    every node K_j of the kernel, s_j the number of parts that have tasks of the node: then the steps of all parts, added up,
    raise it by no less than each was promised. A task whose rows are in one part has s = 1 for what it does not share. Where steps
    overlap less than that, s falls towards what is seen; whatever it is, the sum of the steps is scaled by the best factor in [0, 1], which
    the same pass tells. Multipliers stay with their rows; kernel weights take a step in closed form between passes.

    Sources: Ma, Smith, Jaggi, Jordan, Richtarik and Takac, "Adding vs. averaging in distributed primal-dual optimization", ICML 2015
    (CoCoA+); Smith, Forte, Ma, Takac, Jordan and Jaggi, "CoCoA: A general framework", JMLR 18 (2018); Liu, Pan and Ho, "Distributed
    multi-task relationship learning", KDD 2017; MT-MKL, (E.1).
    """

    name = "ascent_by_passes"
    summary = "dual ascent inside the parts of rows that are elsewhere, its steps added up safely: kernels between tasks, mkl_norm"
    usual = 5, 30
    max_iter = 2000

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        found = kernel_form(form)
        if isinstance(found, str):
            return found
        return f"{found.loss.typed} has an intercept." if found.loss.intercepts else None


class _DistributedAscentRun(DistributedRun):
    solver = AscentByPasses.name

    def __init__(self, form: NormalForm, start: Point | None, file: CheckpointFolder | None):
        super().__init__(form, start, file)
        model = kernel_form(form)
        assert not isinstance(model, str)  # `refuses` was asked
        loss, norm = model.loss, model.norm
        assert isinstance(loss, DistributedTerm) and loss.map.identity_of is not None
        self.model, self.loss, self.norm, self.block = model, loss, norm, loss.map.identity_of
        d, m = loss.tasks.n_features, loss.tasks.n_tasks
        self.nodes = Nodes(norm, d)
        ball: Any = norm.weights_ball
        self.learns = ball is not None and not np.isinf(ball.p) and len(norm.kernels) > 1
        self.theta = np.array(norm.start((d, m))[0], float)
        self.weights_step = WeightsStep(cast(Any, ball), len(norm.kernels)) if self.learns else None
        self.counts = np.asarray(loss.tasks.counts, float)
        self.safe = safe_factors(norm, d, places_of_tasks(loss.tasks)[0])
        self.overlap, self.taken = (
            1.0,
            1.0,
        )  # of what is safe, what is reckoned with; of a step, what was taken
        if self.left is not None and self.left["rows"] is not None:
            self.rows, self.theta = self.left["rows"], self.left["blocks"]["theta"]
            self.overlap, self.taken = (self.left["numbers"][name] for name in ("overlap", "taken"))
            self.nodes.fill(self.left["blocks"]["Z"])

    def solve(self, max_iter: int, watch: Watch) -> Point:
        # an entropy's multipliers start inside their domain: their weights are not known before a pass
        W = self._weights()
        if getattr(self.loss.atom, "entropic", False) and self.rows is None:
            W = self._moved_to(self._pass(W, 0)["after"])
        while True:
            told = self._pass(W, SETTINGS.pass_epochs)
            x: Blocks = {self.block: W}
            self.loss.known(x, told["seen"])
            name = self.model.name
            structures: Any = None if name is None else {name: self.theta.copy()}
            u = DistributedDual.of(told["seen"])
            point = Point(x, [u], None, self.passes, {}, {"overlap": self.overlap}, structures)
            done = watch(point) or self.passes >= max_iter
            if done and self.file is None:
                return point
            W, Z = self._step(W, told)
            self.x = {self.block: W}
            self.keep({"overlap": self.overlap, "taken": self.taken}, {"theta": self.theta, "Z": Z}, done)
            if done:
                return point

    def _weights(self) -> np.ndarray:
        return self.nodes.weights(self.theta / self.model.coefficient)

    def _moved_to(self, Z: np.ndarray) -> np.ndarray:
        self.nodes.fill(Z)
        return self._weights()

    def _pass(self, W: np.ndarray, epochs: int) -> dict:
        loss, nothing = self.loss, np.zeros(self.loss.tasks.n_tasks)
        around = AscentCenter(W, nothing, self._cells(), nothing, nothing, self.counts)
        self.rows, told = loss.tasks.parts.run(
            ascend, loss.tasks.n_tasks, loss.atom, loss.coefficients, W, nothing, around, self.taken, epochs, (0, self.passes), False,
            state=self.rows, stateful=True,
        )  # fmt: skip
        self.passes += 1
        self.taken = 1.0
        return told

    def _cells(self) -> tuple[SentCell, ...]:
        sent = []
        for c, (cell, safe) in enumerate(zip(self.nodes.cells, self.safe, strict=True)):
            s = np.maximum(self.overlap * safe, 1.0)
            weights = cell.of_columns(self.theta) / self.model.coefficient * s
            sent.append(SentCell(cell.rows, cell.factor, weights, self.nodes.of_cell(c) / s[:, None]))
        return tuple(sent)

    def _step(self, W: np.ndarray, told: dict) -> tuple[np.ndarray, np.ndarray]:
        """(the weights, X^T u) after as much of the parts' steps as is best."""
        before = told["seen"]["adjoint"].sum(axis=0)
        change = told["after"] - before
        value_before = float(told["seen"]["conjugate"].sum())
        # along the way a conjugate is at most the line between its ends
        rise = value_before - told["conjugate"] + float(np.vdot(W, change))
        self.nodes.fill(change)
        curved = float(self.theta @ self.nodes.sizes()) / self.model.coefficient
        ratio = rise / curved if curved > 0.0 else 1.0
        self.taken = min(max(ratio, 0.0), 1.0)
        if curved > 0.0:
            # a step that a part made in full has ratio 1 where the bound was met
            seen = SETTINGS.overlap_factor / max(ratio, 1e-6)
            self.overlap = min(self.overlap * max(seen, SETTINGS.overlap_fall_factor), 1.0)
        Z = before + self.taken * change
        W = self._moved_to(Z)
        if self.weights_step is not None:
            b = self.nodes.sizes()
            primal = float(told["seen"]["value"].sum()) + 0.5 * float(self.theta @ b) / self.model.coefficient
            dual = -value_before - 0.5 * self.norm.weights_ball.support(b) / self.model.coefficient  # type: ignore[union-attr]
            gap = (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)
            self.theta = self.weights_step(self.theta, b, gap)
            W = self._weights()
        return W, Z


SOLVER = AscentByPasses(_DistributedAscentRun)
