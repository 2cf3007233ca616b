"""Consensus by passes over rows elsewhere: parts raise the dual value around weights that they are sent; regularizers answer here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from mtldsl.atoms.loss import SeparableLoss
from mtldsl.atoms.losses.regression import SquaredLoss
from mtldsl.data.tasks import Tasks
from mtldsl.distributed.distributed_ascent import SETTINGS as ASCENT
from mtldsl.distributed.distributed_ascent import AscentCenter, ascend, curvatures, places_of_tasks
from mtldsl.distributed.distributed_solver import (
    CheckpointFolder,
    DistributedRun,
    DistributedSolver,
    sum_over_samples,
)
from mtldsl.distributed.distributed_term import DistributedDual, DistributedTerm
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class ConsensusSettings:
    """Numbers of the agreement of parts.

    penalty_factor    : by which a penalty changes
    unbalanced_ratio  : where one side moves so much more than the other
    interval_factor   : and between the passes at which it does
    hessian_entries   : second derivatives that may be kept here
    inner_error_share : of what a step moved, that an inner solve may miss
    """

    penalty_factor: float = 2.0
    unbalanced_ratio: float = 2.0
    interval_factor: float = 1.2
    hessian_entries: float = 2e8
    inner_error_share: float = 1e-3


SETTINGS = ConsensusSettings()


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
        squares = np.maximum(places_of_tasks(tasks)[1], np.finfo(float).tiny)
        self.counts = np.asarray(tasks.counts, float)
        self.rho = curvatures(loss)
        if self.rho.max() <= 2.0 * self.rho.min():
            self.rho = np.full_like(self.rho, np.exp(np.log(self.rho).mean()))
        # a column of ones counts as a feature of average size
        self.ratio = tasks.n_features * self.counts / squares if loss.intercepts else None
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
        around = AscentCenter(*self.sent, None, self.rho, shift, self.counts)
        self.rows, told = loss.tasks.parts.run(
            ascend, loss.tasks.n_tasks, loss.atom, loss.coefficients, V, b, around, 1.0, ASCENT.pass_epochs, (0, self.passes), bool(loss.intercepts),
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
