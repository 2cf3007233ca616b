"""Newton's method for a smooth loss under a quadratic penalty, all tasks at once: conjugate gradients, preconditioned by factors of earlier Hessians.

Where a ridge is all there is, each task has steps of its own; a penalty that couples tasks makes one step of them. Where all slopes curve alike - at constant predictions, the start - one Gram matrix gives every task's Hessian. Its factors serve as long
as conjugate gradients come through with few products; then the tasks have new ones of their own.
Source: Dembo, Eisenstat and Steihaug, "Inexact Newton methods", SIAM J. Numer. Anal. 19 (1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from mtldsl.normal_form.form import FunctionTerm, NormalForm, single_block
from mtldsl.solvers.coordinate_descent.column_newton import DenseColumns, Design, design_of
from mtldsl.solvers.design.design import LossState, SmoothLoss, one_smooth_loss
from mtldsl.solvers.linear_systems.task_matrices import QuadraticHessian
from mtldsl.solvers.route_table import ModelFacts
from mtldsl.solvers.solver import FLOPS_PER_CALL, Point, Watch
from mtldsl.utils.caching import cached_on_path


@dataclass(frozen=True)
class RidgeNewtonSettings:
    """Limits of factors and steps.

    diagonal_products : that a diagonal costs, and saves as soon as slopes curve otherwise
    look_products     : from one look at the certificate to the next, beside half of all before
    hessian_rows      : of a Hessian that is formed
    hessian_entries   : of all tasks' Hessians
    coupled_features  : of the Hessian that penalties between tasks are diagonalized with
    cg_iterations     : in one step
    forcing_share     : of the residual, what conjugate gradients leave at most
    decrease_share    : of the promised decrease, which a step keeps
    step_min_share    : of a step, below which a task does not move
    rounding_share    : of a task's loss: a rise below it is rounding
    damping_share     : of the largest curvature, which every sample has at least in the first step
    damping_min_share : the same after long steps
    damping_max_share : the same after short steps
    jitter_share      : of its diagonal, added to a matrix before it is factored
    sure_share        : of the target: an estimate below it need not be made finer
    free_share        : of the largest weight between tasks, up to which a direction has none
    """

    diagonal_products: int = 8
    look_products: int = 100
    hessian_rows: int = 1500
    hessian_entries: int = 20_000_000
    coupled_features: int = 600
    cg_iterations: int = 200
    forcing_share: float = 0.1
    decrease_share: float = 1e-4
    step_min_share: float = 2.0**-20
    rounding_share: float = 1e-14
    damping_share: float = 0.1
    damping_min_share: float = 1e-6
    damping_max_share: float = 1.0
    jitter_share: float = 1e-13
    sure_share: float = 0.1
    free_share: float = 1e-12


SETTINGS = RidgeNewtonSettings()


# --------------------------------------------------------------------------------------------------------------
# The inputs with a column of ones for an intercept: products, and factors of Hessians or what stands for them.


@dataclass
class FactorCache:
    """Gram matrices, sums of columns and of curvatures, and what they have cost since by being old: products beyond those of the first system."""

    parts: tuple = ()
    first: int | None = None
    excess: int = 0

    def serve(self, products: int) -> None:
        """A system took so many."""
        self.first = products if self.first is None else self.first
        self.excess += max(products - self.first, 0)


@dataclass(frozen=True, eq=False)
class PenaltyHessian:
    """Hessian of 1/2 <V, ridge * V + coupling V> for V (m, d + 1), whose last column, the intercepts, has neither.

    ridge    : (m, d + 1); with a coupling, one number per task
    coupling : (m, m), or None where tasks are apart
    """

    ridge: np.ndarray
    coupling: np.ndarray | None = None

    @property
    def is_uniform(self) -> bool:
        """Tell whether it is the same for all features, so that a rotation of them changes nothing."""
        return bool(np.all(self.ridge[:, :-1] == self.ridge[:, :1]))

    def product(self, V) -> np.ndarray:
        image = self.ridge * V
        if self.coupling is not None:
            image[:, :-1] += self.coupling @ V[:, :-1]
        return image

    def pooled(self, per_task) -> np.ndarray:
        """Every task's number; with a coupling, for which tasks move as one, the sum at each."""
        return per_task if self.coupling is None else np.full_like(per_task, per_task.sum())

    @cached_property
    def between_tasks(self) -> np.ndarray:
        """(m, m): what the coupling and the ridges make of a feature's row."""
        assert self.coupling is not None
        return self.coupling + np.diag(self.ridge[:, 0])

    @cached_property
    def _inverse(self) -> np.ndarray:
        return np.linalg.pinv(self.between_tasks, rcond=SETTINGS.free_share, hermitian=True)

    def conjugate(self, slope) -> np.ndarray:
        """(m,) whose sum is the conjugate at the slopes, without what no penalty holds."""
        if self.coupling is None:
            squares = np.divide(slope**2, self.ridge, out=np.zeros_like(slope), where=self.ridge > 0)
            return 0.5 * np.sum(squares, axis=1)
        inner = slope[:, :-1]
        return np.full(len(slope), 0.5 * float(np.vdot(inner, self._inverse @ inner)) / len(slope))

    def free(self, slope) -> np.ndarray:
        """The part of the slopes that no penalty holds."""
        if self.coupling is None:
            return np.where(self.ridge > 0, 0.0, slope)
        inner = slope[:, :-1]
        left = slope.copy()
        left[:, :-1] = inner - self.between_tasks @ (self._inverse @ inner)
        return left


class DesignWithIntercept:
    """Products of V (m, d + 1) with [X_i, 1]; the ones are left out where there is no intercept.

    made : of what the last factors were made; that of an earlier run on the same inputs may be handed in
    """

    def __init__(self, design: Design, centred: bool, made: FactorCache | None = None):
        self.design, self.centred = design, centred
        self.made = FactorCache() if made is None else made
        self.columns: Any = design.columns(np.arange(design.n_features))
        self.offsets, self.m = np.asarray(design.offsets), design.n_tasks
        self.counts = np.diff(self.offsets)
        p = design.n_features + 1
        self.has_factors = (
            isinstance(self.columns, DenseColumns)
            and p <= SETTINGS.hessian_rows
            and self.m * p * p <= SETTINGS.hessian_entries
        )
        # a product with a vector runs at a quarter of the speed of a product of matrices
        self.products_worth_factors = (
            max(p / 15.0 if self.m == 1 else p / 6.0, 1.0) if self.has_factors else SETTINGS.diagonal_products
        )

    def forward(self, V) -> np.ndarray:
        z = self.columns.forward(np.ascontiguousarray(V[:, :-1]))
        if self.centred:
            z += V[0, -1] if self.m == 1 else np.repeat(V[:, -1], self.counts)
        return z

    def pull(self, u) -> np.ndarray:
        out = np.zeros((self.m, self.design.n_features + 1))
        out[:, :-1] = self.columns.pull(u)
        if self.centred:
            out[:, -1] = self._sums(u)
        return out

    def _sums(self, flat) -> np.ndarray:
        return flat.sum()[None] if self.m == 1 else np.add.reduceat(flat, self.offsets[:-1])

    def factors(
        self, D, penalty: PenaltyHessian, jitter: float, anew: bool = True
    ) -> Callable[[np.ndarray], np.ndarray]:
        """r (m, d + 1) -> about H^-1 r, H the blocks [X_i, 1]^T diag(D_i) [X_i, 1] beside the penalty's Hessian.

        anew : False: of the curvatures D that they were last made for, where there are such and they still serve
        """
        # what is rented is bought when the rents come up to the price
        if self.made.parts and not anew and self.made.excess <= self.products_worth_factors:
            return self._of_made(penalty, jitter)
        if not self.has_factors:
            diagonal = np.column_stack([self.columns.squared_pull(D), self._sums(D)]) + penalty.ridge
            diagonal[diagonal <= 0] = 1.0
            return lambda r: r / diagonal
        gram = self.columns.gram(D) if penalty.coupling is None else self._mean_gram(D)
        self.made.parts = gram, self.columns.pull(D), self._sums(D)
        self.made.first, self.made.excess = None, 0
        return self._of_made(penalty, jitter)

    def _mean_gram(self, D) -> np.ndarray:
        """The mean of the tasks' Gram matrices, (1, d, d), of one X."""
        columns = self.columns.columns[0]
        return ((columns * D.reshape(self.m, -1).mean(axis=0)) @ columns.T)[None]

    def _of_made(self, penalty: PenaltyHessian, jitter: float) -> Callable[[np.ndarray], np.ndarray]:
        gram, border, totals = self.made.parts
        ridge = penalty.ridge
        if penalty.coupling is not None:
            border = border if self.centred else np.zeros_like(border)
            mean = border.mean(axis=0)
            centred = gram[0] - np.outer(mean, mean) / totals.mean()
            return _coupled(*np.linalg.eigh(centred), border, totals, penalty, jitter)
        if len(gram) == 1 and np.all(ridge == ridge[0]):  # one Hessian for all tasks
            one = self._factor(gram[0], border[0], totals[0], ridge[0], jitter)
            return lambda r: _solve(one, r.T).T
        each = zip(np.broadcast_to(gram, (self.m, *gram.shape[1:])), border, totals, ridge, strict=True)
        made = [self._factor(*parts, jitter) for parts in each]
        return lambda r: np.stack([_solve(f, r_i) for f, r_i in zip(made, r, strict=True)])

    def _factor(self, gram, border, total, ridge, jitter: float):
        p = len(ridge)
        H = np.zeros((p, p))
        H[:-1, :-1] = gram
        if self.centred:
            H[:-1, -1] = H[-1, :-1] = border
            H[-1, -1] = total
        else:
            H[-1, -1] = 1.0
        entries = H.reshape(-1)[:: p + 1]  # on the diagonal
        entries += ridge
        diagonal = np.where(entries > 0.0, entries, 1.0)
        while True:
            entries += jitter * diagonal
            factor, failed = dpotrf(H, lower=True, clean=False)
            if not failed:
                return factor
            jitter *= 100.0


def _coupled(
    values, vectors, border, totals, penalty: PenaltyHessian, jitter: float
) -> Callable[[np.ndarray], np.ndarray]:
    """r -> about H^-1 r with a coupling of tasks, as if a task's Gram matrix were totals_i / mean(totals) times one Q diag(values) Q^T.

    border : (m, d) what a Gram matrix has beside intercepts
    """
    root = np.sqrt(totals / totals.mean())
    levels, rotation = np.linalg.eigh(penalty.between_tasks / np.outer(root, root))
    left = rotation.T / root
    values, levels = np.maximum(values, 0.0), np.maximum(levels, 0.0)
    over = levels[:, None] + values
    over = 1.0 / (over + jitter * over.max())

    def apply(r):
        inner, last = r[:, :-1], r[:, -1]
        image = left @ (inner - border * (last / totals)[:, None])
        image = left.T @ (over * (image @ vectors)) @ vectors.T
        return np.column_stack([image, (last - np.einsum("ij,ij->i", border, image)) / totals])

    return apply


def _solve(factor, r) -> np.ndarray:
    """As scipy's cho_solve, whose questions about its arguments take longer than a small system."""
    return dpotrs(factor, r, lower=True)[0]


class RidgeNewton:
    """Minimises loss + penalty over V (m, d + 1), the last column being the intercepts. `report(state, steps)` as a look pays; True ends the run."""

    def __init__(self, loss: SmoothLoss, inputs: DesignWithIntercept, penalty: PenaltyHessian, tol: float):
        self.loss, self.inputs, self.penalty, self.target = loss, inputs, penalty, 0.8 * tol
        self.factors: Callable[[np.ndarray], np.ndarray] | None = None
        self.products, self.products_made, self.damping = 0, 0, SETTINGS.damping_share
        self.unit = loss.largest_curvature()

    def run(self, V, max_iter: int, report: Callable[[LossState, int], bool], expired: Callable[[], bool]):
        z = self.inputs.forward(V)
        state, steps, stuck, next_look = LossState(self.loss, z, V), 0, False, SETTINGS.look_products
        while True:
            pulled = self.penalty.product(V)
            slope = self.inputs.pull(state.u) + pulled
            gaps = self._gaps(state, slope)
            objective = float(state.values.sum()) + 0.5 * float(np.vdot(pulled, V))
            scale = max(abs(objective), np.finfo(float).tiny)
            gap = float(gaps.sum()) / scale
            if SETTINGS.sure_share * self.target < gap <= self.target and self.inputs.centred:
                gap = self._balanced_gap(state) / scale
            done = steps >= max_iter or expired() or stuck
            if gap <= self.target or done or self.products_made >= next_look:
                reached, next_look = gap <= self.target, 1.5 * self.products_made + SETTINGS.look_products
                if report(state, steps) or done:
                    return state
                self.target = min(0.3 * self.target, 0.1 * gap) if reached else self.target
            steps += 1
            # a task that is within its share of the target has arrived
            open_ = gaps > 0.3 * self.target * scale / len(gaps)
            goal = np.sqrt(0.1 * self.target * scale / len(gaps) / np.maximum(gaps, np.finfo(float).tiny))
            step = self._newton(
                state, np.where(open_[:, None], slope, 0.0), np.clip(goal, 1e-4, SETTINGS.forcing_share)
            )
            stuck = not self._move(state, step, slope)
            V = state.W

    def _balanced_gap(self, state: LossState) -> float:
        """With the slopes balanced, as intercepts ask of a dual point: exact but for third orders, at the price of a product."""
        sums, totals = state.sums, self.loss.sums(state.curvature)
        slope = self.inputs.pull(self.loss.balanced(state.u, state.curvature))
        slope += self.penalty.product(state.W)
        paid = np.divide(sums**2, totals, out=np.zeros_like(sums), where=totals > 0)
        return float(self.penalty.conjugate(slope).sum()) + 0.5 * float(np.sum(paid))

    def _gaps(self, state: LossState, slope) -> np.ndarray:
        """Every task's duality gap with the slopes as dual point; what intercepts and other free weights would still bring is estimated."""
        gaps, free = self.penalty.conjugate(slope), self.penalty.free(slope)
        if not free.any():
            return gaps
        if self.penalty.coupling is None:
            return gaps + np.sum(free**2, axis=1) / self.loss.sums(self._curved(state))
        if self.factors is None:  # the start
            return np.full_like(gaps, np.inf)
        return gaps + float(np.vdot(free, self.factors(free))) / len(gaps)

    # ----------------------------------------------------------------------------------------------- steps

    def _curved(self, state: LossState) -> np.ndarray:
        """The slopes' curvature, damped: of a loss that is flat wherever the samples are (a Huber loss far from its targets), by what it may be at most."""
        largest = float(state.curvature.max(initial=0.0))
        return np.maximum(state.curvature, self.damping * (largest if largest > 0.0 else self.unit))

    def _newton(self, state: LossState, slope, goal) -> np.ndarray:
        """- H^-1 slope, within `goal` of the preconditioned residual's norm, task by task."""
        D = self._curved(state)
        if self.factors is None or self.products > self.inputs.products_worth_factors:
            self.factors = self.inputs.factors(
                D, self.penalty, SETTINGS.jitter_share, self.factors is not None
            )
        step = self._conjugate_gradients(D, slope, goal)
        self.products_made += self.products
        self.inputs.made.serve(self.products)
        return step

    def _conjugate_gradients(self, D, slope, goal) -> np.ndarray:
        assert self.factors is not None
        x, r = np.zeros_like(slope), -slope
        y = self.factors(r)
        p, size = y.copy(), self._products(r, y)
        enough, self.products = goal**2 * size, 0
        while self.products < SETTINGS.cg_iterations:
            self.products += 1
            Hp = self.inputs.pull(D * self.inputs.forward(p)) + self.penalty.product(p)
            along = self._products(p, Hp)
            t = np.divide(size, along, out=np.zeros_like(size), where=along > 0)
            x += t[:, None] * p
            r -= t[:, None] * Hp
            y = self.factors(r)
            before, size = size, self._products(r, y)
            if np.all(size <= enough):
                break
            share = np.divide(size, before, out=np.zeros_like(size), where=before > 0)
            p = y + np.where(size > enough, share, 0.0)[:, None] * p
            p[size <= enough] = 0.0
        return x

    def _products(self, V, U) -> np.ndarray:
        """(m,) inner products task by task, or of all tasks that move as one."""
        return self.penalty.pooled(np.einsum("ij,ij->i", V, U))

    def _move(self, state: LossState, step, slope) -> bool:
        """As far as each task's objective falls as promised; whether any moved."""
        dz = self.inputs.forward(step)
        image, pooled = self.penalty.product(step), self.penalty.pooled
        promised = self._products(slope, step)
        linear, square = self._products(image, state.W), 0.5 * self._products(image, step)
        fraction = np.where(promised < 0, 1.0, 0.0)
        while True:
            z = state.z + (dz if fraction.min() == 1.0 else self.loss.spread(fraction) * dz)
            values = self.loss.values(z)
            change = pooled(values - state.values) + fraction * (linear + fraction * square)
            rounding = SETTINGS.rounding_share * pooled(np.abs(state.values))
            allowed = SETTINGS.decrease_share * fraction * promised + rounding
            fails = ~(change <= allowed) & (fraction > 0)
            if not fails.any():
                break
            fraction = np.where(fails, 0.5 * fraction, fraction)
            fraction[fraction < SETTINGS.step_min_share] = 0.0
        if not fraction.any():
            return False
        smallest = float(fraction[promised < 0].min())
        if smallest == 1.0:
            self.damping = max(0.1 * self.damping, SETTINGS.damping_min_share)
        elif smallest < 0.3:
            self.damping = min(max(10.0 * self.damping, 1e-3), SETTINGS.damping_max_share)
        state.W = state.W + fraction[:, None] * step
        state.move_to(z, values)
        return True


# --------------------------------------------------------------------------------------------------------------
# Smooth losses under quadratic penalties and nothing else.


def unsupported_reason(form: NormalForm) -> str | None:
    """None for one smooth loss that is a sum over samples, not quadratic, of one matrix under ridges of all its entries or quadratic
    penalties between tasks; else a sentence."""
    facts = one_smooth_loss(form)
    if isinstance(facts, str):
        return facts
    for f in form.functions:
        if QuadraticHessian.of(f) is None:
            return f"{f.typed} is not quadratic."
    penalty = _penalty(form, facts.shape)
    if penalty.coupling is None:
        return None if np.all(penalty.ridge[:, :-1] > 0) else "some entries have no ridge."
    tasks = facts.loss.tasks
    if not facts.loss.is_shared_complete or tasks.is_sparse or facts.shape[0] > SETTINGS.coupled_features:
        return (
            f"a penalty between tasks needs one dense X here, of up to {SETTINGS.coupled_features} features."
        )
    return None if penalty.is_uniform else "features have ridges of their own beside a penalty between tasks."


def _penalty(form: NormalForm, shape) -> PenaltyHessian:
    """All of the form's functions together."""
    d, m = shape
    ridge, coupling = np.zeros((m, d + 1)), None
    for hessian in map(_hessian, form.functions):
        if hessian.weights is not None:
            ridge[:, :-1] += np.broadcast_to(hessian.weights, shape).T
        else:
            coupling = hessian.coupling if coupling is None else coupling + hessian.coupling
    return PenaltyHessian(ridge, coupling)


def _hessian(f: FunctionTerm) -> QuadraticHessian:
    hessian = QuadraticHessian.of(f)
    assert hessian is not None  # unsupported_reason() was asked
    return hessian


def solve(form: NormalForm, tol: float, max_iter: int, start: Point | None, watch: Watch) -> Point:
    facts = single_block(form)
    assert not isinstance(facts, str)  # unsupported_reason() was asked
    penalty, samples, centred = (
        _penalty(form, facts.shape),
        SmoothLoss.of(facts.loss),
        facts.intercept is not None,
    )
    d, m = facts.shape
    V = np.zeros((m, d + 1))
    if start is not None:
        V[:, :-1] = start.blocks[facts.name].T
        if facts.intercept is not None:
            V[:, -1] = start.blocks[facts.intercept][0]
    last: list[Point] = []

    def report(state: LossState, steps: int) -> bool:
        blocks = {facts.name: np.ascontiguousarray(state.W[:, :-1].T)}
        if facts.intercept is not None:
            blocks[facts.intercept] = state.W[:, -1][None, :].copy()
        duals: Any = None
        if len(form.functions) > 1:
            duals = [_hessian(f).product(blocks[facts.name]) for f in form.functions]
        u = samples.balanced(state.u, state.curvature) if centred else state.u.copy()
        work = flops * (steps + run.products_made)
        last[:] = [Point(blocks, [u], duals, steps, work=work)]
        return watch(last[0])

    # along a path those of the value before do: what penalties add to them is known
    kind = "hessians" if penalty.coupling is None else "mean hessian"
    hessians = cached_on_path(facts.loss, kind, FactorCache)
    inputs = DesignWithIntercept(design_of(facts.loss), centred, hessians)
    flops = FLOPS_PER_CALL + 2.0 * ModelFacts.of(form).product
    run = RidgeNewton(samples, inputs, penalty, tol)
    run.run(V, max_iter, report, lambda: watch.expired)
    return last[0]
