"""Outer steps of the method of multipliers, after a first phase of ADMM on the same copies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from mtldsl.certificates.certificate import dual_bound
from mtldsl.solvers.augmented_lagrangian.semismooth_newton import NewtonState, SemismoothNewton, TaskPenalties
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.numerics.operator_splitting import SETTINGS as OPERATOR_SPLITTING
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import eigh

# --------------------------------------------------------------------------------------------------------------
# A first phase of ADMM on the same copies: cheap steps that end where Newton's begin, with penalties that balance task by task.


@dataclass(frozen=True)
class FirstPhaseSettings:
    """Constants of the first phase, ADMM.

    balance_iterations   : between two looks at the penalties
    balance_ratio        : of one residual over the other, from which on a penalty is multiplied by its root
    max_balance_factor   : of a penalty at a time
    min_score_share      : of their usual size, which smaller scores count as
    min_multiplier_share : of their usual size, which smaller multipliers count as
    max_penalty_ratio    : penalties over the first ones, and the first ones over them
    centred_rows         : of the inputs, that are centred at a time
    max_system_rows      : unknowns or rows of one task's system, up to which its eigenvalues are computed
    max_system_entries   : of all eigenvectors
    early_iterations     : before each of the first looks
    look_iterations      : before each later one
    newton_tol           : relative gap from which on Newton's steps take over
    newton_iterations    : and the least iterations before
    patience_iterations  : from which on the gap must fall by half as they double
    shown_ratio          : iterations at a point that is shown, over those at the one before, where it is not the end
    """

    balance_iterations: int = 10
    balance_ratio: float = 3.0
    max_balance_factor: float = 10.0
    min_score_share: float = 1e-2
    min_multiplier_share: float = 1e-6
    max_penalty_ratio: float = 1e6
    centred_rows: int = 1000
    max_system_rows: int = 3000
    max_system_entries: int = 1 << 25
    early_iterations: tuple[int, ...] = (10, 10, 20, 20, 20, 20)
    look_iterations: int = 40
    newton_tol: float = 1e-2
    newton_iterations: int = 300
    patience_iterations: int = 1000
    shown_ratio: float = 1.5


PHASE_SETTINGS = FirstPhaseSettings()


class GramSpectra:
    """X^T X of every task, in the unit of the weights and about the columns' means where there are intercepts, by its eigenvalues: a
    change of penalties costs nothing.

    means (d, m) : what the designs leave to be taken off
    """

    def __init__(self, designs: Designs, unit: np.ndarray):
        self.designs, self.unit = designs, unit
        self.is_common = self.are_common(designs)
        parts = [self._of(k) for k in range(1 if self.is_common else designs.n_tasks)]
        self.values, self.vectors = [part[1] for part in parts], [part[2] for part in parts]
        means = np.column_stack([part[0] for part in parts])
        self.means = np.repeat(means, designs.n_tasks, axis=1) if self.is_common else means

    @staticmethod
    def are_common(designs: Designs) -> bool:
        """Tell whether all tasks have the rows of one input matrix."""
        return designs.is_shared and designs.rows_of is None

    @staticmethod
    def fits(designs: Designs, d: int) -> bool:
        sides = np.minimum(d, designs.counts)
        systems = sides[:1] if GramSpectra.are_common(designs) else sides
        is_small = systems.max() <= PHASE_SETTINGS.max_system_rows
        return is_small and d * systems.sum() <= PHASE_SETTINGS.max_system_entries

    def _of(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        designs, X = self.designs, self.designs.inputs_of(k)
        (n, d), zero = X.shape, np.zeros(X.shape[1])
        gram: Any
        if not designs.is_sparse:
            gram, rows = (np.zeros((d, d)), PHASE_SETTINGS.centred_rows) if d <= n else (None, n)
            for start in range(0, n, rows):  # without a copy of all rows
                block = X[start : start + rows]
                block = (block if designs.means is None else block - designs.means[:, k]) / self.unit
                if gram is None:
                    return zero, *_of_few_rows(block @ block.T, block.T)
                gram += block.T @ block
            return zero, *_positive(gram)  # pyrefly: ignore[bad-argument-type]
        X = X.multiply(1.0 / self.unit[None, :]).tocsr()
        mean = np.asarray(X.mean(axis=0)).ravel() if designs.has_intercepts else zero
        if d <= n:
            return mean, *_positive((X.T @ X).toarray() - n * np.outer(mean, mean))
        across = np.asarray(X @ mean).ravel()
        kernel = (X @ X.T).toarray() - across[:, None] - across[None, :] + mean @ mean
        return mean, *_of_few_rows(kernel, X.T.tocsr(), mean)

    def solve(self, rhs: np.ndarray, s: np.ndarray, r: np.ndarray) -> np.ndarray:
        """(d, m) in units of the weights: (s_i X^T X + r_i)^-1 rhs_i."""
        if self.is_common:
            return self._one(self.values[0], self.vectors[0], rhs, s, r)
        return np.column_stack(
            [
                self._one(values, vectors, rhs[:, k : k + 1], s[k : k + 1], r[k : k + 1])
                for k, (values, vectors) in enumerate(zip(self.values, self.vectors, strict=True))
            ]
        )

    @staticmethod
    def _one(values, vectors, rhs, s, r) -> np.ndarray:
        # 1 / (s v + r) = 1 / r - s v / (r (s v + r)): vectors need not be a whole basis
        share = (s * values[:, None]) / (s * values[:, None] + r)
        return (rhs - vectors @ (share * (vectors.T @ rhs))) / r


def _positive(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = eigh(gram)
    return np.maximum(values, 0.0), vectors


def _of_few_rows(kernel: np.ndarray, Xt: Any, mean: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Those that are not zero, of X X^T."""
    values, left = eigh(kernel)
    kept = values > 1e-12 * max(values[-1], 1e-300)
    values, left = values[kept], left[:, kept]
    vectors = np.asarray(Xt @ left)
    if mean is not None:
        vectors -= np.outer(mean, left.sum(axis=0))
    return values, vectors / np.sqrt(values)


class Splitting:
    """Over-relaxed ADMM between the weights and the copies of scores and weights."""

    def __init__(self, designs: Designs, scores: Any, part: Any, at: NewtonState, penalties: TaskPenalties):
        self.designs, self.scores, self.part, self.penalties = designs, scores, part, penalties
        self.spectra = GramSpectra(designs, part.unit)
        self.at, self.copy, self.iterations = at, at.z, 0
        # a task whose scores, or multipliers, are zero in the end has nothing that its residual could be compared with
        roots = np.sqrt(designs.counts)
        self.least = (
            PHASE_SETTINGS.min_score_share * roots * scores.spread_of_scores(designs),
            PHASE_SETTINGS.min_multiplier_share * roots * scores.sizes(designs),
        )
        self.first = penalties

    def run(self, iterations: int) -> NewtonState:
        designs, part, unit = self.designs, self.part, self.part.unit[:, None]
        means = self.spectra.means
        W, b, u, P, v, copy = self.at.W, self.at.b, self.at.u, self.at.P, self.at.v, self.copy
        z, factor = self.at.z, OPERATOR_SPLITTING.relaxation_factor
        for _ in range(iterations):
            p = self.penalties
            s, M = designs.spread(p.loss), part.metric(p.regularizer)
            wanted = s * copy - u
            totals = designs.sums(wanted)
            rhs = designs.adjoint(wanted) / unit + (M * v - P) / unit
            if designs.has_intercepts:
                rhs -= means * totals
            scaled = self.spectra.solve(rhs, p.loss, p.regularizer)
            W = scaled / unit
            if designs.has_intercepts:
                b = totals / (p.loss * designs.counts) - (means * scaled).sum(axis=0)
            z = designs.forward(W, b)
            mixed = factor * z + (1.0 - factor) * copy
            y = self.scores.multipliers(mixed, u, s)
            before, copy = copy, mixed + (u - y) / s
            u = y
            between = factor * W + (1.0 - factor) * v
            Q = part.multipliers(between, P, M)
            v_before, v, P = v, part.copy(between, P, Q, M), Q
            self.iterations += 1
            if self.iterations % PHASE_SETTINGS.balance_iterations == 0:
                self._balance(
                    z - copy,
                    copy - before,
                    copy,
                    u,
                    unit * (W - v),
                    unit * (v - v_before),
                    unit * v,
                    P / unit,
                )
        self.copy = copy
        self.at = NewtonState(W, b, z, u, P, v)
        return self.at

    def _balance(self, apart, moved, copy, u, v_apart, v_moved, v, P) -> None:
        """Multiply a penalty by the root of the ratio of its normalised residuals, where one is three times the other."""
        designs, p = self.designs, self.penalties

        def norms(flat):
            return np.sqrt(designs.sums(flat * flat))

        def columns(V):
            own = np.sqrt((V * V).sum(axis=0))
            return own if self.part.is_separable else np.full(len(own), np.linalg.norm(V))

        if designs.has_intercepts:
            copy = copy - designs.spread(designs.sums(copy) / designs.counts)
        tiny = 1e-300
        of_loss = _factors(
            norms(apart) / np.maximum(norms(copy), self.least[0]),
            p.loss * norms(moved) / np.maximum(norms(u), self.least[1]),
        )
        size = np.maximum(columns(v), columns(v_apart + v))
        of_weights = _factors(
            columns(v_apart) / (size + tiny), p.regularizer * columns(v_moved) / (columns(P) + tiny)
        )
        first, ratio = self.first, PHASE_SETTINGS.max_penalty_ratio
        loss = np.clip(of_loss * p.loss, first.loss / ratio, first.loss * ratio)
        regularizer = np.clip(
            of_weights * p.regularizer, first.regularizer / ratio, first.regularizer * ratio
        )
        self.penalties = TaskPenalties(loss, regularizer, p.proximal)


def _factors(primal: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """Return the root of their ratio, within limits; 1 where they are near (Wohlberg, arXiv:1704.06209)."""
    ratio, most = np.maximum(primal, 1e-300) / np.maximum(dual, 1e-300), PHASE_SETTINGS.max_balance_factor
    are_near = np.maximum(ratio, 1.0 / ratio) <= PHASE_SETTINGS.balance_ratio
    return np.where(are_near, 1.0, np.clip(np.sqrt(ratio), 1.0 / most, most))


# --------------------------------------------------------------------------------------------------------------
# Where Newton's steps begin badly: ADMM on the same copies until its bound comes near.


def first_phase(run: Any, max_iter: int, watch: Watch) -> tuple[int, Point | None]:
    """Run ADMM until a few hundred iterations brought its bound near; the outer steps of `run` go on where it ended.

    Returns (iterations, the last point where the run ends with it).
    """
    outer = run.outer
    if not GramSpectra.fits(run.designs, len(run.part.unit)):
        return 0, None
    splitting = Splitting(run.designs, run.scores, run.part, outer.at, outer.penalties)
    known, gaps, shown_at = _KnownBounds(run), [], 0
    early = PHASE_SETTINGS.early_iterations
    for look in count():
        planned = early[look] if look < len(early) else PHASE_SETTINGS.look_iterations
        splitting.run(min(planned, max_iter - splitting.iterations))
        p = outer.penalties = splitting.penalties
        iterations = splitting.iterations
        known.see(splitting.at)
        stops = iterations >= max_iter or watch.expired
        if stops or known.gap <= run.tol or iterations >= PHASE_SETTINGS.shown_ratio * shown_at:
            shown_at, point = iterations, known.point(iterations)
            if watch(point) or stops:
                return iterations, point
        gaps.append((iterations, known.distance))
        is_late = iterations >= PHASE_SETTINGS.newton_iterations
        if (is_late and known.gap <= PHASE_SETTINGS.newton_tol) or _has_stalled(gaps):
            break
    outer.penalties = TaskPenalties(p.loss, p.regularizer, SETTINGS.proximal_share * p.regularizer)
    return splitting.iterations, None


class _KnownBounds:
    """The best objective and the best bound of the run so far, which cost less than what a watch has to know."""

    def __init__(self, run: Any):
        self.run, self.best, self.bound = run, np.inf, -np.inf
        self._lowest: Any = None
        self._proven: Any = None

    def see(self, at: NewtonState) -> None:
        """Keep what is best of a state's weights, and of the bound that its multipliers prove."""
        run, outer = self.run, self.run.outer
        outer.at = at
        if run.tasks is not None:  # each by itself
            run.tasks.see(outer, np.arange(run.designs.n_tasks))
            self.best, self.bound = float(run.tasks.objectives.sum()), float(run.tasks.bounds.sum())
            return
        form, point = run.form, run._point(outer, 0)
        objective = form.value(point.blocks)
        bound = float(dual_bound(form, point.blocks, point.loss_duals, point.function_duals)[0])
        if objective < self.best:
            self.best, self._lowest = objective, point
        if bound > self.bound:
            self.bound, self._proven = bound, point

    def point(self, iterations: int) -> Point:
        """Return the weights with the best objective, and the multipliers of the best bound."""
        if self._lowest is None or self._proven is None:
            return self.run._point(self.run.outer, iterations)
        proven = self._proven
        return replace(
            proven, blocks=self._lowest.blocks, iteration=iterations, work=self.run._work(iterations)
        )

    @property
    def gap(self) -> float:
        """The gap over the larger of objective and bound, as `tol` is one."""
        return (self.best - self.bound) / max(abs(self.best), abs(self.bound), 1e-300)

    @property
    def distance(self) -> float:
        """The gap over the smaller of them, which tells a bound that rises from zero."""
        return (self.best - self.bound) / max(min(abs(self.best), abs(self.bound)), 1e-300)


def _has_stalled(gaps: list[tuple[int, float]]) -> bool:
    """Tell whether the gap has not fallen by half as the iterations doubled."""
    iterations, gap = gaps[-1]
    earlier = [was for at, was in gaps if 2 * at <= iterations]
    return iterations >= PHASE_SETTINGS.patience_iterations and not gap <= 0.5 * earlier[-1]


# --------------------------------------------------------------------------------------------------------------
# The method of multipliers: outer steps, whose penalties grow by what is missing and by what Newton's method makes of them.


@dataclass(frozen=True)
class OuterLoopSettings:
    """Constants of outer steps.

    easy_steps            : Newton steps of an outer step that is easy
    quick_steps           : of one after which the proximal term gives way by up to `quick_fall_factor`
    slow_steps            : of one after which it gives way by `fall_factor`
    hard_steps            : from which on an outer step is hard
    easy_factor           : times the penalties after an easy step
    usual_factor          : after a usual one
    hard_factor           : after a hard one
    fall_factor           : times the speed at which the proximal term gives way, where its pull is the worst of what is missing
    quick_fall_factor     : the same after a quick step, at most
    firm_factor           : times the proximal term after a hard step: it is what makes Newton's systems regular
    agreeing_score_share  : disagreement of scores, of the worst, that needs no higher penalty
    agreeing_weight_share : the same of weights
    lower_weight_share    : the same of weights that needs a lower penalty
    lower_factor          : times that penalty
    proximal_share        : of the regularizer's penalty, for the first proximal term
    patience_steps        : outer steps in which what is missing must fall by half
    """

    easy_steps: int = 2
    quick_steps: int = 8
    slow_steps: int = 20
    hard_steps: int = 30
    easy_factor: float = 2.0
    usual_factor: float = 1.4
    hard_factor: float = 0.7
    fall_factor: float = 2.0
    quick_fall_factor: float = 10.0
    firm_factor: float = 2.0
    agreeing_score_share: float = 0.3
    agreeing_weight_share: float = 0.1
    lower_weight_share: float = 0.03
    lower_factor: float = 0.2
    proximal_share: float = 0.1
    patience_steps: int = 15


SETTINGS = OuterLoopSettings()


@dataclass
class Residuals:
    """Residuals, relative, one number a task: scores from their copies, weights from theirs, and the pull of the proximal term."""

    scores: np.ndarray
    weights: np.ndarray
    pull: np.ndarray

    @property
    def worst(self) -> np.ndarray:
        return np.maximum(np.maximum(self.scores, self.weights), self.pull)


def first_state(
    designs: Designs, W: np.ndarray, b: np.ndarray, u: np.ndarray | None, P: np.ndarray | None
) -> NewtonState:
    """At weights W and intercepts b (of centred columns), with multipliers where they are known."""
    z = designs.forward(W, b)
    u = np.zeros(len(z)) if u is None else np.array(u, float)
    return NewtonState(W.copy(), b.copy(), z, u, np.zeros_like(W) if P is None else P, W.copy())


class OuterLoop:
    """A run for the tasks of `designs`; each by itself where the regularizer is separable."""

    def __init__(
        self,
        designs: Designs,
        scores,
        part,
        at: NewtonState,
        penalties: TaskPenalties | None = None,
    ):
        self.designs, self.scores, self.part, self.at = designs, scores, part, at
        self.newton = SemismoothNewton(designs, scores, part)
        self.spread = np.maximum(scores.spread_of_scores(designs), 1e-12)
        self.penalties = self._first_penalties() if penalties is None else penalties
        self.best, self.since = np.inf, 0

    def step(self, most: int) -> int:
        """One outer step of at most so many Newton steps; how many it took."""
        new, steps = self.newton.minimize(self.at, self.penalties, most)
        self.residuals = self._residuals(new)
        self.at = new
        self._raise(steps)
        worst = float(self.residuals.worst.max())
        self.best, self.since = (worst, 0) if worst < 0.5 * self.best else (self.best, self.since + 1)
        return int(steps.max(initial=0))

    @property
    def is_stalled(self) -> bool:
        return self.since >= SETTINGS.patience_steps

    def on(self, keep: np.ndarray) -> OuterLoop:
        """The run of some tasks alone, where they are not tied."""
        designs = self.designs.on(keep)
        flat = np.concatenate(
            [
                np.arange(a, b)
                for a, b in zip(self.designs.starts[keep], self.designs.offsets[1:][keep], strict=True)
            ]
        )
        at, p = self.at, self.penalties
        state = NewtonState(
            *(
                np.ascontiguousarray(A)
                for A in (at.W[:, keep], at.b[keep], at.z[flat], at.u[flat], at.P[:, keep], at.v[:, keep])
            )
        )
        penalties = TaskPenalties(p.loss[keep], p.regularizer[keep], p.proximal[keep])
        run = OuterLoop(designs, self.scores.on(keep, flat), self.part.on(keep), state, penalties)
        run.best, run.since = self.best, self.since
        return run

    def _first_penalties(self) -> TaskPenalties:
        """A loss: the size of its multipliers over that of its scores; the regularizer: the curvature that the losses' copies put on
        weights; the proximal term: a share of that."""
        loss = self.newton.pooled(self.scores.sizes(self.designs) / self.spread)
        curvature = loss * self.designs.counts
        if not self.part.is_separable:
            loss = loss / self.designs.n_tasks
            curvature = np.full(len(loss), (loss * self.designs.counts).mean())
        return TaskPenalties(loss, curvature, SETTINGS.proximal_share * curvature)

    def _residuals(self, new: NewtonState) -> Residuals:
        designs, at, p, unit = self.designs, self.at, self.penalties, self.part.unit[:, None]
        pooled = self.newton.pooled
        apart = pooled(designs.sums((new.u - at.u) ** 2) / p.loss**2)
        scores = np.sqrt(apart / pooled(designs.counts * self.spread**2))
        size = np.maximum(pooled(((unit * new.W) ** 2).sum(axis=0)), 1e-300)
        apart = pooled((((new.P - at.P) / unit) ** 2).sum(axis=0) / p.regularizer**2)
        weights = np.minimum(np.sqrt(apart / size), 1.0)
        size = np.maximum(pooled(((new.P / unit) ** 2).sum(axis=0)), 1e-300)
        pull = np.sqrt(pooled(((unit * (new.W - at.W)) ** 2).sum(axis=0) * p.proximal**2) / size)
        return Residuals(scores, weights, np.minimum(pull, 10.0))

    def _raise(self, steps: np.ndarray) -> None:
        """Penalties grow while Newton's method is quick, but for those of what agrees well already; the proximal term gives way."""
        p, now, s = self.penalties, self.residuals, SETTINGS
        factor = np.where(steps < s.hard_steps, s.usual_factor, s.hard_factor)
        factor = np.where(steps <= s.easy_steps, s.easy_factor, factor)
        if not self.part.is_separable:
            factor = np.full(len(factor), factor.min())
        others = np.maximum(np.maximum(now.scores, now.weights), 1e-300)
        most = np.where(steps <= s.slow_steps, s.fall_factor, 1.0)
        most = np.where(steps <= s.quick_steps, s.quick_fall_factor, most)
        give = np.clip(np.sqrt(now.pull / others), np.minimum(most, s.fall_factor), most)
        give = np.where(now.pull >= now.worst, give, 1.0)
        give = np.where(steps >= s.hard_steps, 1.0 / s.firm_factor, give)
        if not self.part.is_separable:
            give = np.full(len(give), give.min())
        hard, shares = steps > s.easy_steps, (s.agreeing_score_share, s.agreeing_weight_share)
        of_scores, of_weights = (
            np.where(hard & (missing < share * now.worst), np.minimum(factor, 1.0), factor)
            for missing, share in zip((now.scores, now.weights), shares, strict=True)
        )
        of_weights = np.where(now.weights < s.lower_weight_share * now.worst, s.lower_factor, of_weights)
        self.penalties = TaskPenalties(
            p.loss * of_scores, p.regularizer * of_weights, p.proximal / (factor * give)
        )
