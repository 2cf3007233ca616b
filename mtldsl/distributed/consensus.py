"""Consensus by passes over rows elsewhere: parts raise the dual value around weights that they are sent; regularizers answer here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse

from mtldsl.atoms.loss import SeparableLoss
from mtldsl.atoms.losses.regression import SquaredLoss
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.distributed_solver import (
    CheckpointFolder,
    DistributedRun,
    DistributedSolver,
    sum_over_samples,
)
from mtldsl.distributed.distributed_term import DistributedDual, DistributedTerm, seen_of, term_of
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.solvers.design.kernel_arguments import TaskStates
from mtldsl.solvers.sdca.dual_state import FlatSamples, node_places
from mtldsl.solvers.solver import Point, Watch

if TYPE_CHECKING:
    from mtldsl.distributed.partitions import PartitionTasks

# --------------------------------------------------------------------------------------------------------------
# Dual coordinate ascent on the rows of one part, around weights that are sent there: what happens where the rows are.


@dataclass(frozen=True)
class ConsensusSettings:
    """Numbers of the agreement of parts.

    kinked_share      : of a task's rows that lie near a kink, as a guess
    pass_epochs       : epochs over the rows of a part in a pass
    penalty_factor    : by which a penalty changes
    unbalanced_ratio  : where one side moves so much more than the other
    interval_factor   : and between the passes at which it does
    hessian_entries   : second derivatives that may be kept here
    inner_error_share : of what a step moved, that an inner solve may miss
    """

    kinked_share: float = 0.3
    pass_epochs: int = 5
    penalty_factor: float = 2.0
    unbalanced_ratio: float = 2.0
    interval_factor: float = 1.2
    hessian_entries: float = 2e8
    inner_error_share: float = 1e-3


SETTINGS = ConsensusSettings()


@dataclass(frozen=True, eq=False)
class AscentCenter:
    """The weights V (d, m) and intercepts b (m,) that an ascent begins at, and how multipliers move them.

    penalty : (m,), w_i moves by 1 / penalty_i a unit of X^T u, and how far an intercept moves `shift` (m,), zero without any: of all rows of
              a task; a part has its share of the rows
    counts  : (m,) rows of each task
    """

    V: np.ndarray
    b: np.ndarray
    penalty: np.ndarray
    shift: np.ndarray
    counts: np.ndarray


def ascend(
    part: PartitionTasks, state, n_tasks: int, atom, coefficients, V, b, around: AscentCenter, seed: tuple, by_sign: bool
) -> tuple[np.ndarray, dict[str, Any]]:  # fmt: skip
    """(multipliers, sums over one part's rows): what those before (state, None at first) say at weights V, b, and what they are after an ascent.

    seed : numbers that the order of tasks and rows comes from, with that of the part
    """
    samples = FlatSamples(term_of(part, atom, coefficients))
    u = samples.start() if state is None else state
    seen = seen_of(part, n_tasks, atom, coefficients, V, b, by_sign, u)
    new = _ascended(part, samples, u, around, seed)
    which, after, sums, moved = part.which, np.zeros_like(V), np.zeros(n_tasks), np.zeros(n_tasks)
    after[:, which] = part.tasks.adjoint(new)
    sums[which] = np.add.reduceat(new, part.tasks.offsets[:-1])
    change = after[:, which] - seen["adjoint"].sum(axis=0)[:, which]
    moved[which] = around.counts[which] / part.tasks.counts * np.einsum("dk,dk->k", change, change)
    return new, {"seen": seen, "after": after, "sums": sums, "moved": moved}


def _ascended(part: PartitionTasks, samples: FlatSamples, u, around: AscentCenter, seed: tuple) -> np.ndarray:
    from mtldsl.solvers.sdca.sdca_kernels import sweep

    which, T = part.which, samples.n_tasks
    share = around.counts[which] / part.tasks.counts  # one over the share of the rows that is here
    weights = share / around.penalty[which]
    store = np.ascontiguousarray(-around.V[:, which].T / weights[:, None], dtype=float).ravel()
    alone = sparse.eye_array(T, format="csr")  # a node a task
    places, _ = node_places([(slice(None), alone, np.arange(T))], part.tasks.n_features)
    table = samples.table(1)
    table[:, 0] = u
    table[:, 5:] = samples.squared_norms(places.cell_of, 1)
    rng = np.random.default_rng([*seed, part.index])
    random = rng.integers(1, 2**63, size=T).astype(np.uint64)
    states = TaskStates(
        samples.offsets, np.arange(samples.n, dtype=np.int64), np.diff(samples.offsets), around.shift[which] * share,
        np.array(around.b[which], float), random,
    )  # fmt: skip
    bounds, told = np.tile([-np.inf, np.inf], (T, 1)), np.zeros((T, 5))
    sweep(
        rng.permutation(T), SETTINGS.pass_epochs, 0.0, tuple(states), tuple(samples.inputs), tuple(samples.support),
        tuple(places), table, samples.entropic, weights, store, bounds, told, True,
    )  # fmt: skip
    return table[:, 0].copy()


# --------------------------------------------------------------------------------------------------------------
# The agreement of parts on weights, between the passes.


def curvatures(loss: Any) -> np.ndarray:
    """(m,) about what the second derivative of every task's loss is, in a direction of average length: `SETTINGS.kinked_share` of the rows, each with
    that of a loss whose slope changes by its coefficient over the size of a label."""
    facts, tiny = loss.tasks.label_facts, np.finfo(float).tiny
    spread = np.sqrt(np.maximum(facts.squares / facts.counts, tiny))
    return SETTINGS.kinked_share * loss.coefficients * _squares(loss.tasks) / loss.tasks.n_features / spread


def _squares(tasks: Any) -> np.ndarray:
    """(m,) the squares of all inputs of every task."""
    return np.maximum((tasks.column_lengths**2).sum(axis=0), np.finfo(float).tiny)


class Consensus(DistributedSolver):
    """minimize f(A x) + h(x): f a sum over samples with multipliers u in intervals, the rows in parts; h any functions and constraints.

    A pass sends V = map(x), extrapolated, and every part p maximises over its own multipliers -conj(u) + <V~, X_p^T (u - u_old)>
    - 1/2 ||X_p^T (u - u_old)||^2 / rho_p by coordinate ascent, rho_p the share of a penalty rho_i that is the part's share of the rows of
    task i. Here x+ = argmin h(x) + 1/2 ||map(x) - (V - X^T u / rho)||^2_rho, and V~ = 2 V+ - V for the next pass. That is the consensus
    method of multipliers, whose multipliers are X_p^T u: nothing of a part is kept but u. The penalty follows the curvature of the losses,
    ||change of X^T u|| / ||change of V||. Driver and messages: d numbers a task.

    Sources: Boyd, Parikh, Chu, Peleato and Eckstein, "Distributed optimization and statistical learning via the alternating direction
    method of multipliers", 2011, sections 7 and 8; Chambolle and Pock, J. Math. Imaging Vis. 40 (2011), section 4.3, for this form of it.
    """

    name = "consensus"
    summary = "dual ascent inside the parts of rows that are elsewhere, and proximal steps of the regularizers here: d numbers a task"
    usual = 15, 100
    max_iter = 2000

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        loss = sum_over_samples(form)
        if isinstance(loss, str):
            return loss
        atom = cast(SeparableLoss, loss.atom)
        if not atom.entropic and atom.dual_quadratic(np.ones(1)) is None:
            return f"the conjugate of {loss.typed} is neither quadratic on an interval nor an entropy."
        return None


def hessians_are_too_many(form: NormalForm) -> bool:
    """Tell whether a d x d matrix of every task is more than should be kept here."""
    (d, m), *_ = (block.shape for block in form.weight_blocks)
    return m * (d + 1.0) ** 2 > SETTINGS.hessian_entries


class _ConsensusRun(DistributedRun):
    solver = Consensus.name

    def __init__(self, form: NormalForm, start: Point | None, file: CheckpointFolder | None):
        super().__init__(form, start, file)
        (loss,) = form.losses
        assert isinstance(loss, DistributedTerm)
        self.loss, tasks = loss, loss.tasks
        self.counts = np.asarray(tasks.counts, float)
        self.rho = curvatures(loss)
        if self.rho.max() <= 2.0 * self.rho.min():
            self.rho = np.full_like(self.rho, np.exp(np.log(self.rho).mean()))
        # a column of ones counts as a feature of average size
        self.ratio = tasks.n_features * self.counts / _squares(tasks) if loss.intercepts else None
        self.next_change = 2.0
        z = loss.predictions(self.x)
        self.sent = z.V, z.b  # where the next ascent begins
        if self.left is not None and self.left["rows"] is not None:
            self.rows, others = self.left["rows"], self.left["blocks"]
            self.sent, self.rho = (others["V"], others["b"]), others["rho"]
            self.next_change = self.left["numbers"]["next_change"]

    def solve(self, max_iter: int, watch: Watch) -> Point:
        z = self.loss.predictions(self.x)
        V, b = z.V, z.b
        while True:
            told = self._pass(V, b)
            self.loss.known(self.x, told["seen"])
            u, notes = DistributedDual.of(told["seen"]), {"penalty": float(np.median(self.rho))}
            point = Point(self.x, [u], self.inner.duals, self.passes, {}, notes)
            done = watch(point) or self.passes >= max_iter
            if done and self.file is None:
                return point
            self.x = self._answer(V, b, told)
            z = self.loss.predictions(self.x)
            moved = self.rho * np.einsum("dm,dm->m", z.V - V, z.V - V)
            self.sent = 2.0 * z.V - V, 2.0 * z.b - b
            V, b = z.V, z.b
            self._follow(float(moved.sum()), float((told["moved"] / self.rho).sum()))
            others = {"V": self.sent[0], "b": self.sent[1], "rho": self.rho}
            self.keep({"next_change": self.next_change - self.passes}, others, done)
            if done:
                return point

    def _pass(self, V, b) -> dict:
        loss = self.loss
        shift = np.zeros_like(self.rho) if self.ratio is None else 1.0 / (self.rho * self.ratio)
        around = AscentCenter(*self.sent, self.rho, shift, self.counts)
        self.rows, told = loss.tasks.parts.run(
            ascend, loss.tasks.n_tasks, loss.atom, loss.coefficients, V, b, around, (0, self.passes), bool(loss.intercepts),
            state=self.rows, stateful=True,
        )  # fmt: skip
        self.passes += 1
        return told

    def _answer(self, V, b, told: dict) -> Blocks:
        """The minimizer of the functions beside squares around V - X^T u / rho."""
        target = V - told["after"] / self.rho
        new = self._exact(target)
        if new is None:
            change = told["after"] - told["seen"]["adjoint"].sum(axis=0)
            missing = SETTINGS.inner_error_share * float(
                (np.einsum("dm,dm->m", change, change) / self.rho).sum()
            )
            d = len(target)
            like = self.loss.tasks
            rows = Tasks.shared(
                np.eye(d), target, task_names=like.task_names, feature_names=like.feature_names
            )
            term = LossTerm(SquaredLoss(), self.rho, rows, self.loss.map, (), self.loss.typed)
            new = self.inner.solve([term], self.x, missing or np.inf)
        if self.ratio is not None:
            (name,) = self.loss.intercepts
            new[name] = (b - told["sums"] / (self.rho * self.ratio))[None, :]
        return new

    def _exact(self, target: np.ndarray) -> Blocks | None:
        """By one prox, where there is one function, and one penalty for all tasks."""
        block, rho = self.loss.map.identity_of, float(self.rho[0])
        if block is None or len(self.form.weight_blocks) > 1 or (self.rho != rho).any():
            return None
        if not self.form.functions:
            return {block: target}
        (f, *others) = self.form.functions
        if others or f.map.identity_of != block or not f.atom.exact_prox:
            return None
        new = f.prox(target, 1.0 / rho)
        self.inner.duals = [rho * (target - new)]
        return {block: new}

    def _follow(self, here: float, there: float) -> None:
        """The penalty at which weights and multipliers move alike."""
        if self.passes < self.next_change:
            return
        if there > SETTINGS.unbalanced_ratio**2 * here:
            self.rho = self.rho * SETTINGS.penalty_factor
        elif here > SETTINGS.unbalanced_ratio**2 * there:
            self.rho = self.rho / SETTINGS.penalty_factor
        else:
            return
        self.next_change = max(SETTINGS.interval_factor * self.passes, self.passes + 1.0)


SOLVER = Consensus(_ConsensusRun)
