"""ADMM of two blocks: planes of structured losses in one, the regularizer in the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.cutting_planes.oracle import Bundle, Oracle
from mtldsl.solvers.cutting_planes.plane_rounds import PlaneRounds
from mtldsl.solvers.solver import FLOPS_PER_CALL, Point, Watch


@dataclass(frozen=True)
class TwoBlockADMMSettings:
    """Rounds of ADMM between its looks.

    look_rounds    : between two looks at the objective
    balance_rounds : between two looks at the penalty
    idle_rounds    : without weight after which a plane is dropped
    """

    look_rounds: int = 5
    balance_rounds: int = 10
    idle_rounds: int = 30


SETTINGS = TwoBlockADMMSettings()


# --------------------------------------------------------------------------------------------------------------
# A running guess of the gap from what the iteration has anyway; the certificate has the last word.


class DualEstimate:
    """Best dual value so far, for a single norm beside the loss.

    Multipliers become feasible by mixing with the true labelling: a factor s = min(1, 1 / dual norm), one a task where the norm is a
    sum over tasks.
    """

    def __init__(self, form: NormalForm, d: int):
        self.d = d
        only = form.functions[0] if len(form.functions) == 1 else None
        # directions that a norm leaves free have multipliers that scaling cannot make feasible
        is_scalable = (
            only is not None and only.atom.norm and np.isfinite(only.dual_gauge(np.ones(only.map.shape)))
        )
        self.norm = only if is_scalable else None
        self.forget()
        self.bound = -np.inf

    def forget(self) -> None:
        """The kept multipliers; the bound that they proved stays."""
        self.beta, self.shrink = None, None

    def see_dual(self, Z: np.ndarray, expected: np.ndarray, bundle) -> None:
        if self.norm is None:
            return
        shrink = self._shrink(Z[:, : self.d].T)
        value = float(shrink @ expected)
        if value > self.bound or self.beta is None:
            self.bound, self.beta, self.shrink = max(value, self.bound), bundle.beta.copy(), shrink

    def _shrink(self, Z: np.ndarray) -> np.ndarray:
        norm: Any = self.norm  # there, and a norm: these have gauges
        gauges = norm.atom.column_gauges(Z / norm.coefficient)
        gauges = np.full(Z.shape[1], norm.dual_gauge(Z)) if gauges is None else gauges
        return 1.0 / np.maximum(1.0, gauges)

    def gap(self, objective: float) -> float:
        if not (np.isfinite(objective) and np.isfinite(self.bound)):
            return 0.0 if self.norm is None else np.inf  # nothing known: have a look
        return (objective - self.bound) / max(abs(objective), abs(self.bound), 1e-300)

    def best(self, bundle) -> tuple[np.ndarray, np.ndarray | None]:
        """(beta, shrink) of the best dual value since planes were last dropped; otherwise the present ones."""
        if self.beta is None:
            return bundle.beta, self.shrink
        beta = np.zeros_like(bundle.beta)
        beta[:, : self.beta.shape[1]] = self.beta
        return beta, self.shrink


# --------------------------------------------------------------------------------------------------------------
# ADMM between a regularizer with an exact prox and a loss with an oracle: the prox of one, quadratic programs over planes of the other.


class TwoBlockADMM(PlaneRounds):
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
        self.tol, self.relaxation, self.pull = tol, relaxation, pull
        oracle, state = Oracle(form.losses[0]), {} if start is None else start.state
        state = state if state.get("solver") == "two_blocks" else {}
        bundle = Bundle.of(oracle, state.get("bundle"))
        self.m = oracle.tasks.n_tasks
        if bundle.is_new:
            W = np.zeros((self.m, oracle.size)) if start is None else oracle.stacked(start.blocks)
            bundle.add(oracle(W), np.arange(self.m))
            super().__init__(form, oracle, bundle, W, memory)
        else:
            super().__init__(form, oracle, bundle, state["W"].copy(), memory)
            self.S, self.mu = state["S"].copy(), state["mu"]
            self.first_mu = self.mu
        self.estimate = DualEstimate(form, self.d)
        self.rounds_worth = 0.0  # rounds, quadratic programs counted as so many

    # ---------------------------------------------------------------------------------------------- the loop

    def run(self, max_iter: int, watch: Watch) -> Point:
        tasks, shown, next_show = np.arange(self.m), 0, 1
        best_S, best_F = self.S, np.inf
        for iteration in range(1, max_iter + 1):
            self.round(self.relaxation)
            self.estimate.see_dual(self.Z, self.coefficients * self.bundle.expected(), self.bundle)
            asked = self.W if self.pull == 1.0 else best_S + self.pull * (self.W - best_S)
            self.bundle.add(self.oracle(asked), tasks)
            look = iteration % SETTINGS.look_rounds == 0 or iteration == 1
            if look:
                at_S = self.oracle(self.S)
                value = float(self.coefficients @ at_S.values) + self.functions(self.S)
                if value < best_F:
                    best_F, best_S = value, self.S
                self.bundle.add(at_S, tasks)
            last = iteration == max_iter or watch.expired
            close = look and self.estimate.gap(best_F) <= self.tol
            self.rounds_worth = iteration + self.bundle.work / self.oracle.work
            if last or self.rounds_worth >= next_show or (close and iteration > 1.05 * shown):
                shown, next_show = iteration, 2.0 * self.rounds_worth
                point = self._point(best_S, iteration)
                if watch(point) or last:
                    return point
            if iteration % SETTINGS.balance_rounds == 0:
                self.balance()
            if iteration % SETTINGS.idle_rounds == 0:
                self.bundle.drop_idle(SETTINGS.idle_rounds)
                self.estimate.forget()
        raise AssertionError("the last round returns")

    # -------------------------------------------------------------------------------------------- the point

    def _point(self, S: np.ndarray, iteration: int) -> Point:
        beta, shrink = self.estimate.best(self.bundle)
        state = {"solver": "two_blocks", "bundle": self.bundle, "mu": self.mu, "W": self.W, "S": self.S}
        notes = {"oracle_calls": round(self.oracle.calls), "planes": int(self.bundle.counts.sum())}
        return Point(
            self.oracle.blocks(S),
            [self.bundle.duals(beta, shrink)],
            self.shares(),
            iteration,
            state,
            notes,
            work=2.0 * self.oracle.work * self.rounds_worth + FLOPS_PER_CALL * iteration,
        )
