"""Semismooth Newton steps that minimise the augmented Lagrangian over weights and intercepts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.solvers.augmented_lagrangian.active_rows import (
    TaskSystem,
    factor_of,
    gram_of,
    held_rows,
    solve_factored,
    work_of_factor,
)
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.numerics.conjugate_gradients import conjugate_gradients
from mtldsl.solvers.solver import FLOPS_PER_CALL, MATRIX_SPEEDUP


@dataclass(frozen=True)
class SemismoothNewtonSettings:
    """Constants of semismooth Newton steps.

    max_search_steps             : looks of a line search
    max_newton_steps             : of an outer step
    decrement_share              : Newton's decrement, of the change of the multipliers, at which an outer step ends
    conjugate_gradient_tol       : in the preconditioner's norm
    max_conjugate_gradient_steps : where no system says how many
    dense_unknowns               : of all tasks, tied by a sum over rows, up to which one factor has them all
    min_curvature_share          : the regularizer's mean curvature in the preconditioner
    intercept_share              : of the proximal term, that intercepts feel
    slope_share                  : of the first slope, at which the line search ends
    """

    max_search_steps: int = 12
    max_newton_steps: int = 40
    decrement_share: float = 0.03
    conjugate_gradient_tol: float = 0.05
    max_conjugate_gradient_steps: int = 150
    dense_unknowns: int = 2500
    min_curvature_share: float = 1e-3
    intercept_share: float = 1e-3
    slope_share: float = 0.3


SETTINGS = SemismoothNewtonSettings()


# --------------------------------------------------------------------------------------------------------------
# Semismooth Newton steps on the augmented Lagrangian: one outer step of the method of multipliers.
#
# At weights W, with multipliers u of the losses and P of the regularizer, penalties s and M, and the proximal term T,
#
#     phi(W) = sum_i env_{s_i} L_i(X_i w_i + u_i / s_i) + env_M R(W + P / M) + 1/2 ||W - W_k||_T^2
#
# is convex and differentiable; its gradient X^T y + Q + T (W - W_k) holds the new multipliers y and Q. Newton's matrix of a task is
# s X^T (I - D_L) X + M (I - D_R) + T. The slope along a direction costs no product with the data: the line search is exact.


@dataclass
class NewtonState:
    """W (d, m), b (m,), z = X W + b flat, u flat, P (d, m), v = the regularizer's copy."""

    W: np.ndarray
    b: np.ndarray
    z: np.ndarray
    u: np.ndarray
    P: np.ndarray
    v: np.ndarray


@dataclass
class TaskPenalties:
    """One a task: of the losses (on their scores), of the regularizer (times unit^2), and of the proximal term (times unit^2)."""

    loss: np.ndarray
    regularizer: np.ndarray
    proximal: np.ndarray


class _Lagrangian:
    """phi around a state: metrics, made once an outer step."""

    def __init__(self, designs: Designs, scores, part, at: NewtonState, penalties: TaskPenalties):
        self.designs, self.scores, self.part, self.at, self.penalties = designs, scores, part, at, penalties
        self.s = designs.spread(penalties.loss)
        self.M = part.metric(penalties.regularizer)
        self.T = penalties.proximal * part.unit[:, None] ** 2
        self.T_b = SETTINGS.intercept_share * penalties.proximal

    def multipliers(self, W, z):
        """(y, Q) at weights W, whose scores are z."""
        return self.scores.multipliers(z, self.at.u, self.s), self.part.multipliers(W, self.at.P, self.M)

    def gradient(self, W, b, y, Q):
        """(of the weights, of the intercepts, (m,) the change of the multipliers and weights in their metric)."""
        designs, at = self.designs, self.at
        pull = self.T * (W - at.W)
        moved = designs.sums((y - at.u) ** 2) / self.penalties.loss
        moved += ((Q - at.P) ** 2 / self.M).sum(axis=0) + np.einsum("ij,ij->j", pull, W - at.W)
        g_b = designs.sums(y) + self.T_b * (b - at.b) if designs.has_intercepts else np.zeros_like(b)
        return designs.adjoint(y) + Q + pull, g_b, moved

    def most_decrement(self, g, g_b):
        """(m,) what g^T H^-1 g is at most: Newton's matrices are at least as large as their diagonal parts, which need no system."""
        least = self.T + self.part.diagonal(self.M) if self.part.is_separable else self.T
        most = (g**2 / least).sum(axis=0)
        return most + g_b**2 / self.T_b if self.designs.has_intercepts else most


class SemismoothNewton:
    """The steps for the tasks of `designs`.

    work : flops of the systems so far, as those of products with a vector
    """

    def __init__(self, designs: Designs, scores, part):
        self.designs, self.scores, self.part = designs, scores, part
        self.work = 0.0

    def pooled(self, per_task: np.ndarray) -> np.ndarray:
        """Return what each task decides by: its own number, or everyone's sum where the regularizer ties tasks together."""
        return per_task if self.part.is_separable else np.full(len(per_task), per_task.sum())

    def minimize(
        self, at: NewtonState, penalties: TaskPenalties, most: int = SETTINGS.max_newton_steps
    ) -> tuple[NewtonState, np.ndarray]:
        """(the state at the minimiser of phi, about; Newton steps taken (m,)), after at most so many steps."""
        designs, part, most = self.designs, self.part, min(most, SETTINGS.max_newton_steps)
        here = _Lagrangian(designs, self.scores, part, at, penalties)
        W, b, z = at.W.copy(), at.b.copy(), at.z.copy()
        y, Q = here.multipliers(W, z)
        steps = np.zeros(designs.n_tasks, int)
        for _ in range(most):
            g, g_b, moved = here.gradient(W, b, y, Q)
            enough = SETTINGS.decrement_share**2 * self.pooled(moved)
            goes_on = self.pooled(here.most_decrement(g, g_b)) > enough
            if not goes_on.any():
                break
            dW, db = self._direction(g, g_b, y, here, goes_on)
            decrement = -self.pooled(np.einsum("ij,ij->j", g, dW) + g_b * db)
            goes_on = decrement > enough
            if not goes_on.any():
                break
            if not goes_on.all():
                dW[:, ~goes_on], db[~goes_on] = 0.0, 0.0
            steps[goes_on] += 1
            change = designs.forward(dW, db)
            t, y, Q = self._line_search(here, W, b, z, dW, db, change, -decrement)
            W += t * dW
            b += t * db
            z += designs.spread(t) * change
        return NewtonState(W, b, z, y, Q, part.copy(W, at.P, Q, here.M)), steps

    def _line_search(self, here, W, b, z, dW, db, change, first):
        """(t, the multipliers there): where the slope, which increases in t, is small against the first one; 1 if it may be."""

        def look(t):
            moved = W + t * dW
            y, Q = here.multipliers(moved, z + (change if t is ones else here.designs.spread(t) * change))
            slope = here.designs.sums(y * change) + np.einsum(
                "ij,ij->j", Q + here.T * (moved - here.at.W), dW
            )
            return self.pooled(slope + here.T_b * (b + t * db - here.at.b) * db), y, Q

        t = ones = np.ones_like(first)
        value, y, Q = look(t)
        low, at_low, high, at_high = np.zeros_like(first), first, t, value
        enough = SETTINGS.slope_share * np.abs(first)
        for _ in range(SETTINGS.max_search_steps):
            off = (value > enough) | ((value < -enough) & (t < 1.0))
            if not off.any():
                break
            fall = np.maximum(at_high - at_low, 1e-300)
            t = np.where(off, low + (high - low) * np.clip(-at_low / fall, 0.1, 0.9), t)
            value, y, Q = look(t)
            below = value < 0
            low, at_low = np.where(off & below, t, low), np.where(off & below, value, at_low)
            high, at_high = np.where(off & ~below, t, high), np.where(off & ~below, value, at_high)
        return t, y, Q

    def _direction(self, g, g_b, y, here, wanted):
        """-H^-1 g: by factorizations where tasks are not tied and these are cheap, else by conjugate gradients.

        wanted : (m,) tasks whose directions are asked for, where they are not tied; those of others are zero
        """
        designs, part, M, d = self.designs, self.part, here.M, len(g)
        stacked = np.vstack([g, g_b]) if designs.has_intercepts else g
        is_direct = getattr(part, "is_of_rows", False) and stacked.size <= SETTINGS.dense_unknowns
        if is_direct:
            diagonal = here.T
        elif hasattr(part, "derivative"):
            product, mean = part.derivative(M)
            spare = M * max(mean, SETTINGS.min_curvature_share)
            diagonal = spare + here.T
        else:
            diagonal = part.diagonal(M) + here.T
        if designs.has_intercepts:
            diagonal = np.vstack([diagonal, here.T_b])
        parts = self.scores.parts(y, designs)

        def system_of(k: int) -> TaskSystem:
            return TaskSystem(held_rows(designs, k, parts[k]), here.penalties.loss[k], diagonal[:, k])

        if part.is_separable:  # one system at a time: rows of all tasks may be m times the inputs
            x = np.zeros_like(stacked)
            for k in np.flatnonzero(wanted).tolist():
                x[:, k] = self._task_direction(system_of(k), -stacked[:, k])
            return _unstacked(x, d)
        if is_direct:
            halves = [held_rows(designs, k, one) for k, one in enumerate(parts)]
            return _unstacked(self._direct(halves, here, diagonal, -stacked), d)
        systems = [system_of(k) for k in range(len(parts))]
        self.work += sum(system.work for system in systems)
        a_product = sum(system.work_of_product for system in systems)

        def apply(x):
            self.work += FLOPS_PER_CALL + a_product
            Hx = np.column_stack([system.product(x[:, k]) for k, system in enumerate(systems)])
            if hasattr(part, "derivative"):
                Hx[:d] += M * product(x[:d]) - spare * x[:d]
            else:
                rows, vectors, scales = part.coupling(M)
                Hx[rows] -= scales[:, None] * vectors * np.einsum("ij,ij->i", vectors, x[rows])[:, None]
            return Hx

        def precondition(r):
            return np.column_stack([system.solve(r[:, k]) for k, system in enumerate(systems)])

        return _unstacked(_solved(apply, -stacked, precondition), d)

    def _task_direction(self, system: TaskSystem, r: np.ndarray) -> np.ndarray:
        self.work += system.work
        if system.is_direct:
            return system.solve(r)

        def product(x):
            self.work += system.work_of_product
            return system.product(x)

        return _solved(product, r, system.solve, system.most_products)

    def _direct(self, halves, here: _Lagrangian, diagonal: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """H^-1 rhs by one factor over all tasks, whose regularizer is a sum over rows.

        halves : F_k of every task, whose loss has the Hessian  penalty_k F_k^T F_k
        """
        depth, m = rhs.shape
        H = np.zeros((m, depth, m, depth))
        for k, F in enumerate(halves):
            H[k, :, k, :] = here.penalties.loss[k] * gram_of(F) + np.diag(diagonal[:, k])
        blocks = here.M[0, 0] * self.part.blocks(here.M)
        for j, block in enumerate(blocks):
            H[:, j, :, j] += block
        self.work += sum(work_of_factor(F) for F in halves) + float(rhs.size) ** 3 / MATRIX_SPEEDUP
        return solve_factored(factor_of(H.reshape(rhs.size, rhs.size)), rhs.T.ravel()).reshape(m, depth).T


def _unstacked(x: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """(of the weights, of the intercepts): zeros where there are none."""
    return x[:d], x[d] if len(x) > d else np.zeros(x.shape[1])


def _solved(apply, rhs, precondition, most=SETTINGS.max_conjugate_gradient_steps):
    tol = SETTINGS.conjugate_gradient_tol
    return conjugate_gradients(apply, rhs, tol=tol, most=most, precondition=precondition)
