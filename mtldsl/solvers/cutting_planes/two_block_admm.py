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
    """Limits of ADMM's rounds, and of the linear programs that end them.

    pull_share      : of the way from the best point to the program's, where the oracle is asked
    program_tol     : of the linear programs, relative to the largest offset
    refactor_pivots : after which an inverse is made anew
    patience_rounds : without half of the gap, and as many more as half of the unknowns of a task
    usual_pivots    : of a program that begins with the last one's basis
    pivot_factor    : pivots of one program, times its rows and columns
    look_rounds     : between two looks at the objective
    balance_rounds  : between two looks at the penalty
    idle_rounds     : without weight after which a plane is dropped
    programs_tol    : relative gap from which on linear programs take over where there are any
    programs_rounds : they come at once where they cost no more than so many rounds
    programs_factor : of their expected cost, which they may take then
    """

    pull_share: float = 0.5
    program_tol: float = 1e-13
    refactor_pivots: int = 50
    patience_rounds: int = 10
    usual_pivots: int = 5
    pivot_factor: int = 20
    look_rounds: int = 5
    balance_rounds: int = 10
    idle_rounds: int = 30
    programs_tol: float = 1e-3
    programs_rounds: int = 80
    programs_factor: float = 4.0


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
# Under an l1 norm alone the model is a linear program a task: a simplex method ends what ADMM only approaches.


class LinearFinish:
    """minimize over w_i   sum_j a_ij |w_ij| + c_i G_i(w_i)   for every task by itself, by cutting planes.

    The linear program over the planes met so far gives a lower bound and a vertex; the oracle, asked there and between the best point and
    that vertex, gives the next planes and perhaps a better point. What is solved is the program's dual: a new plane is a column, and the
    last basis is where the next program begins.
    """

    def __init__(self, form: NormalForm, oracle: Oracle, bundle: Bundle):
        self.oracle, self.bundle = oracle, bundle
        (term,) = form.functions
        block, profile = form.losses[0].map.identity_of, term.atom.profile
        assert block is not None and profile is not None and profile.absolute is not None  # `fits` said so
        d, m = form.shapes[block]
        self.d, D = d, oracle.size
        self.a = np.broadcast_to(term.coefficient * profile.absolute, (d, m)).T
        reach = np.zeros((m, D))
        reach[:, :d] = self.a / oracle.coefficients[:, None]
        self.half = (reach > 0.0).astype(float)
        sizes = np.abs(bundle.planes).max(axis=1)
        self.scale = 1.0 / np.where(reach > 0.0, reach, np.where(sizes > 0.0, sizes, 1.0))
        self.basis = np.repeat(
            np.append(-1 - np.arange(D), 0)[None, :], m, axis=0
        )  # the true labelling's plane, and the slacks
        self.place, self.x, self.y = np.zeros((m, D)), np.zeros((m, D + 1)), np.zeros((m, D + 1))
        self.x[:, D] = 1.0
        self.inverse = np.repeat(np.eye(D + 1)[None], m, axis=0)

    @staticmethod
    def fits(form: NormalForm) -> bool:
        profile = form.functions[0].atom.profile if len(form.functions) == 1 else None
        return profile is not None and profile.length is None and profile.square is None

    @staticmethod
    def price(oracle: Oracle) -> float:
        """Return what programs to the end cost, in multiplications: two looks at the oracle a round, some pivots a task, and in the end a few more
        rounds than there are unknowns."""
        pivots = SETTINGS.usual_pivots * 5.0 * oracle.size**2 * oracle.tasks.n_tasks
        return (oracle.size + 10) * (2.0 * oracle.work + pivots)

    def run(self, S: np.ndarray, tol: float, budget: float, expired) -> tuple:
        """From S until the points are proven to tol, while the gap falls and the work is within the budget, in multiplications.

        Returns (points (m, D), weights of the planes, factors that make multipliers of them, the objective).
        """
        c = self.oracle.coefficients
        at = self.oracle(S)
        S, values = S.copy(), self._norms(S) + c * at.values
        bounds = np.full(len(S), -np.inf)
        beta, shrink = self.bundle.beta.copy(), np.zeros(len(S))
        tasks = np.arange(len(S))
        self.bundle.add(at, tasks)
        spent, gaps_seen, patience = 0.0, [], SETTINGS.patience_rounds + self.oracle.size // 2
        while True:
            w, own, work = self._programs(tasks)
            spent += work + 2.0 * self.oracle.work
            self.bundle.work += work + 2.0 * self.oracle.work
            pull = np.abs(np.matmul(own[:, None, :], self.bundle.planes)[:, 0, : self.d]) * c[:, None]
            gauge = np.divide(pull, self.a, out=np.zeros_like(pull), where=self.a > 0).max(axis=1)
            factors = 1.0 / np.maximum(gauge, 1.0)
            found = factors * c * np.einsum("ik,ik->i", own, self.bundle.deltas)
            if own.shape != beta.shape:
                beta = np.hstack([beta, np.zeros((len(beta), own.shape[1] - beta.shape[1]))])
            better = found > bounds
            beta[better], shrink[better], bounds[better] = own[better], factors[better], found[better]
            gaps, total = values - bounds, values.sum()
            gaps_seen.append(gaps.sum())
            stalls = len(gaps_seen) > patience and not gaps_seen[-1] <= 0.5 * gaps_seen[-1 - patience]
            if gaps_seen[-1] <= tol * total or spent > budget or stalls or expired():
                break
            tasks = np.flatnonzero(gaps > 0.5 * tol * total / len(S))
            base = S.copy()
            for share in (SETTINGS.pull_share, 1.0):
                V = base + share * (w - base)
                at = self.oracle(V)
                heights = self._norms(V) + c * at.values
                better = heights < values
                S[better], values[better] = V[better], heights[better]
                self.bundle.add(at, tasks)
        return S, beta, shrink, float(values.sum())

    def _norms(self, S: np.ndarray) -> np.ndarray:
        return (self.a * np.abs(S[:, : self.d])).sum(axis=1)

    def _programs(self, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Vertices (m, D), weights of the planes (m, K) and the work of the programs over the planes met so far; solved anew for `tasks` alone."""
        from mtldsl.solvers.cutting_planes.plane_kernels import solve_program

        bundle, D, work = self.bundle, self.oracle.size, 0.0
        for i in tasks.tolist():
            n = int(bundle.counts[i])
            tol = SETTINGS.program_tol * max(float(bundle.deltas[i].max()), 1e-300)
            for _ in range(SETTINGS.pivot_factor * (D + n) // SETTINGS.refactor_pivots + 1):
                left = solve_program(
                    bundle.planes[i], bundle.deltas[i], n, self.scale[i], self.half[i],
                    self.basis[i], self.place[i], self.inverse[i], self.x[i], self.y[i], SETTINGS.refactor_pivots, tol,
                )  # fmt: skip
                work += (SETTINGS.refactor_pivots - left + 1) * (3.0 * D + n) * D
                if left > 0:
                    break
                self._refactor(i)
        beta = np.zeros_like(bundle.beta)
        rows, at = np.nonzero(self.basis >= 0)
        beta[rows, self.basis[rows, at]] = np.maximum(self.x[rows, at], 0.0)
        return -self.y[:, :D] * self.scale, beta / beta.sum(axis=1, keepdims=True), work

    def _refactor(self, i: int) -> None:
        D = self.oracle.size
        columns, ends = np.zeros((D + 1, D + 1)), np.zeros(D + 1)
        for r, k in enumerate(self.basis[i]):
            if k >= 0:
                columns[:D, r], columns[D, r] = self.bundle.planes[i, k] * self.scale[i], 1.0
            else:
                columns[-1 - k, r] = 1.0
        ends[D] = 1.0
        ends[:D] -= self.place[i] * self.half[i]
        try:
            self.inverse[i] = np.linalg.inv(columns)
        except np.linalg.LinAlgError:  # what rounding made of it stays, and the bounds say how good that is
            return
        self.x[i] = self.inverse[i] @ ends


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
        self.finish_at = SETTINGS.programs_tol if LinearFinish.fits(form) else -np.inf
        self.rounds_worth = 0.0  # rounds, programs counted as so many

    # ---------------------------------------------------------------------------------------------- the loop

    def run(self, max_iter: int, watch: Watch) -> Point:
        tasks, shown, next_show = np.arange(self.m), 0, 1
        best_S, best_F = self.S, np.inf
        price = LinearFinish.price(self.oracle)
        if self.finish_at > 0.0 and price <= SETTINGS.programs_rounds * self.oracle.work:
            # before the quadratic programs, which need not be compiled then
            budget = SETTINGS.programs_factor * price
            best_S, best_F, is_done = self._by_programs(best_S, best_F, 1, budget, watch)
            if is_done or watch.expired:
                return self.shown
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
                gap = self.estimate.gap(best_F)
                if gap <= self.finish_at:
                    best_S, best_F, is_done = self._by_programs(best_S, best_F, iteration, np.inf, watch)
                    if is_done:
                        return self.shown
                    self.finish_at *= 0.1  # too hard a program yet
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

    def _by_programs(
        self, S: np.ndarray, F: float, iteration: int, budget: float, watch: Watch
    ) -> tuple[np.ndarray, float, bool]:
        """The better of S and what linear programs reach from there, its objective, and whether that is all."""
        finish = LinearFinish(self.form, self.oracle, self.bundle)
        found, beta, shrink, objective = finish.run(S, 0.3 * self.tol, budget, lambda: watch.expired)
        self.shown = self._point(found, iteration, beta, shrink)
        is_done = watch(self.shown)
        return (found, objective, is_done) if objective < F else (S, F, is_done)

    def _point(self, S: np.ndarray, iteration: int, beta=None, shrink=None) -> Point:
        if beta is None:
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
