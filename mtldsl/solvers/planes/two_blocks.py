"""ADMM between a regularizer with an exact prox and a loss with an oracle: the prox of one, quadratic programs over planes of the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum
from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.linear_algebra.anderson import Anderson
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.estimate import Estimate
from mtldsl.solvers.planes.linear_finish import LinearFinish
from mtldsl.solvers.planes.oracle import Oracle
from mtldsl.solvers.solver import Point, Watch

__all__ = ["TwoBlocks"]

_LOOK = 5  # rounds between two looks at the objective
_MEMORY = 5  # steps that an extrapolation draws on, at most: older ones belong to a poorer model
_BALANCE = 10  # rounds between two looks at the penalty
_SMALLEST = 1e-150  # norm below which a matrix counts as zero: quotients would overflow
_UNBALANCED = 5.0  # quotient of residuals from which on it changes
_FARTHEST = 1e9  # and it stays within so many times the first one, and such a part of it
_IDLE = 30  # rounds without weight after which a plane is dropped
_NEAR = 1e-3  # relative gap from which on linear programs take over where there are any
_FIRST_PROGRAMS = 80  # they come first where that costs no more than so many rounds, and again where it costs half of those that have been
_OVER = 4.0  # times what they are expected to cost is what they may
_QP = 1e-14  # accuracy of the quadratic programs


class TwoBlocks:
    """minimize h(S) + sum_i c_i G_i(w_i) subject to W = S, by over-relaxed ADMM (matrices here are tasks first, (m, D)).

        S = prox_{h / mu}(W + Z / mu),    B = a S + (1 - a) W - Z / mu,    a the relaxation
        w_i = argmin c_i model_i(w) + mu / 2 ||w - B_i||^2,    Z_i = -c_i sum_k beta_k planes_k

    with model_i the maximum of the planes of G_i met so far. Z + mu (W - a S - (1 - a) W_before) is that Z identically, also where
    the model is still below G_i: the multipliers are proven at every round. One look at the oracle a round adds a plane a task.
    The round is a fixed-point iteration in B alone (W = prox(B), Z = mu (W - B)), which Anderson's extrapolation shortens.
    """

    def __init__(
        self, form: NormalForm, tol: float, start: Point | None, relaxation: float, pull: float, memory: int
    ):
        self.form, self.tol, self.relaxation, self.pull = form, tol, relaxation, pull
        (self.loss,), block = form.losses, form.losses[0].map.identity_of
        assert block is not None  # refuses() lets through only a loss of one block itself
        self.block = block
        self.oracle = Oracle(self.loss)
        self.coefficients = self.oracle.coefficients
        self.d, self.m = form.shapes[self.block]
        self.terms = [(f.coefficient, f.atom) for f in form.functions]
        self.sum_prox: Any = prox_of_sum(self.terms)  # refuses() lets through only sums that have one
        self.estimate = Estimate(form, self.d)
        self.anderson = Anderson(min(memory, _MEMORY)) if memory > 0 else None
        self.finish_at, self.next_programs, self.price = None, np.inf, np.inf
        if LinearFinish.fits(form):
            self.price = LinearFinish.price(self.oracle)
            rounds = self.price / self.oracle.work
            self.as_many = _OVER * rounds
            self.finish_at, self.next_programs = _NEAR, 1 if rounds <= _FIRST_PROGRAMS else self.as_many
        state = start.state if start is not None and start.state.get("solver") == "two_blocks" else {}
        self.bundle = Bundle.of(self.oracle, state.get("bundle"))
        if not self.bundle.is_new:
            self.W, self.S, self.mu = state["W"].copy(), state["S"].copy(), state["mu"]
        else:
            self.W = np.zeros((self.m, self.oracle.size)) if start is None else self._stacked(start)
            self.S = self.W.copy()
            first = self.oracle(self.W)
            self.bundle.add(first, np.arange(self.m))
            self.mu = self._first_penalty(first)
        self.first_mu = self.mu
        self.effort = 0.0
        self.Z = -self.coefficients[:, None] * self.bundle.slopes()

    def _stacked(self, start: Point) -> np.ndarray:
        rows = [
            start.blocks[self.block],
            *(start.blocks[name] / self.oracle.unit for name in self.loss.intercepts),
        ]
        return np.vstack(rows).T.copy()

    def _first_penalty(self, first) -> float:
        """Multipliers over weights: those of norms are as large as their coefficients, those are a step to where a plane is zero."""
        lengths = np.linalg.norm(first.slopes, axis=1)
        reach = np.divide(np.abs(first.values), lengths, out=np.zeros_like(lengths), where=lengths > 0)
        norms = sum(c for c, atom in self.terms if atom.norm)
        size = norms if norms > 0 else float(np.mean(self.coefficients * lengths))
        return size / reach.mean() if reach.mean() > 0 and size > 0 else 1.0

    # ---------------------------------------------------------------------------------------------- the loop

    def run(self, max_iter: int, watch: Watch) -> Point:
        tasks, shown, next_show = np.arange(self.m), 0, 1
        best_S, best_F = self.S, np.inf
        if self.next_programs <= 1:  # before the quadratic programs, which need not be compiled then
            best_S, best_F, is_done = self._by_programs(best_S, best_F, 1, _OVER * self.price, watch)
            if is_done or watch.expired:
                return self.shown
        for iteration in range(1, max_iter + 1):
            mu = self.mu
            S_before, self.S = self.S, self.prox(self.W + self.Z / mu)
            B = self.relaxation * self.S + (1.0 - self.relaxation) * self.W - self.Z / mu
            if self.anderson is not None:
                B = self.anderson.step((self.W - self.Z / mu).ravel(), B.ravel(), 1.0).reshape(B.shape)
            self.W, _ = self.bundle.proximal_steps(B, self.coefficients / mu, _QP)
            self.Z = -self.coefficients[:, None] * self.bundle.slopes()
            self.estimate.see_dual(self.Z, self.coefficients * self.bundle.expected(), self.bundle)
            asked = self.W if self.pull == 1.0 else best_S + self.pull * (self.W - best_S)
            self.bundle.add(self.oracle(asked), tasks)
            look = iteration % _LOOK == 0 or iteration == 1
            if look:
                at_S = self.oracle(self.S)
                value = float(self.coefficients @ at_S.values) + self.estimate.penalty(self.S)
                if value < best_F:
                    best_F, best_S = value, self.S
                self.bundle.add(at_S, tasks)
                gap = self.estimate.gap(best_F)
                is_near = self.finish_at is not None and gap <= self.finish_at
                if is_near or self.next_programs <= iteration:
                    budget = np.inf if is_near else _OVER * self.price
                    best_S, best_F, is_done = self._by_programs(best_S, best_F, iteration, budget, watch)
                    if is_done:
                        return self.shown
                    if is_near and self.finish_at is not None:
                        self.finish_at *= 0.1  # too hard a program yet
            last = iteration == max_iter or watch.expired
            close = look and self.estimate.gap(best_F) <= self.tol
            self.effort = iteration + self.bundle.work / self.oracle.work
            if last or self.effort >= next_show or (close and iteration > 1.05 * shown):
                shown, next_show = iteration, 2.0 * self.effort
                point = self._point(best_S, iteration)
                if watch(point) or last:
                    return point
            if iteration % _BALANCE == 0:
                self._balance(S_before)
            if iteration % _IDLE == 0:
                self.bundle.drop_idle(_IDLE)
                self.estimate.forget()
        raise AssertionError("the last round returns")

    def prox(self, V: np.ndarray) -> np.ndarray:
        """The prox of the functions on the weights; the intercepts are free."""
        S = V.copy()
        if self.terms:
            S[:, : self.d] = self.sum_prox.prox(V[:, : self.d].T, 1.0 / self.mu).T
        return S

    def _balance(self, S_before: np.ndarray) -> None:
        """Double or halve the penalty where one normalised residual is five times the other."""
        size, of_dual = max(np.linalg.norm(self.W), np.linalg.norm(self.S)), np.linalg.norm(self.Z)
        if not (size > _SMALLEST and of_dual > _SMALLEST):  # at zero, neither says anything
            return
        primal = np.linalg.norm(self.W - self.S) / size
        dual = self.mu * np.linalg.norm(self.S - S_before) / of_dual
        if max(primal, dual) > _UNBALANCED * min(primal, dual):
            mu = self.mu * (2.0 if primal > dual else 0.5)
            if not self.first_mu / _FARTHEST <= mu <= self.first_mu * _FARTHEST:
                return
            self.mu = mu
            if self.anderson is not None:
                self.anderson.reset()

    # -------------------------------------------------------------------------------------------- the point

    def _by_programs(
        self, S: np.ndarray, F: float, iteration: int, budget: float, watch: Watch
    ) -> tuple[np.ndarray, float, bool]:
        """The better of S and what linear programs reach from there, its objective, and whether that is all."""
        finish = LinearFinish(self.form, self.oracle, self.bundle)
        found = finish.run(S, 0.3 * self.tol, budget, lambda: watch.expired)
        self.shown = self._point(found.S, iteration, found.beta, found.shrink)
        self.next_programs = max(2 * iteration, self.as_many)
        is_done = watch(self.shown)
        return (found.S, found.objective, is_done) if found.objective < F else (S, F, is_done)

    def _point(self, S: np.ndarray, iteration: int, beta=None, shrink=None) -> Point:
        blocks = self.blocks(S)
        if beta is None:
            beta, shrink = self.estimate.best(self.bundle)
        state = {"solver": "two_blocks", "bundle": self.bundle, "mu": self.mu, "W": self.W, "S": self.S}
        notes = {"oracle_calls": round(self.oracle.calls), "planes": int(self.bundle.counts.sum())}
        return Point(
            blocks,
            [self.bundle.duals(beta, shrink)],
            self._shares(),
            iteration,
            state,
            notes,
            effort=self.effort,
        )

    def blocks(self, S: np.ndarray) -> dict[str, np.ndarray]:
        weights = {self.block: S[:, : self.d].T.copy()}
        return weights | {name: self.oracle.unit * S[:, self.d :].T for name in self.loss.intercepts}

    def _shares(self) -> list[np.ndarray] | None:
        """One multiplier for each of several functions; a single one takes what the loss leaves."""
        if len(self.terms) < 2:
            return None
        V = (self.W + self.Z / self.mu)[:, : self.d].T
        return self.sum_prox(V, 1.0 / self.mu)[1]
