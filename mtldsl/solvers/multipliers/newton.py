"""Semismooth Newton steps on the augmented Lagrangian: one outer step of the method of multipliers.

At weights W, with multipliers u of the losses and P of the regularizer, penalties s and M, and the proximal term T,

    phi(W) = sum_i env_{s_i} L_i(X_i w_i + u_i / s_i) + env_M R(W + P / M) + 1/2 ||W - W_k||_T^2

is convex and differentiable; its gradient X^T y + Q + T (W - W_k) holds the new multipliers y and Q. Newton's matrix of a task is
s X^T (I - D_L) X + M (I - D_R) + T. The slope along a direction costs no product with the data: the line search is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.systems import TaskSystem, held_rows

__all__ = ["Newton", "Penalties", "State"]

_MOST = 40  # Newton steps of an outer step
_ACCURACY = (
    0.1  # Newton's decrement, as a share of the change of the multipliers, at which an outer step ends
)
_FORCING = 0.02  # of conjugate gradients
_FLAT = 0.3  # slope, as a share of the first, at which the line search ends


@dataclass
class State:
    """W (d, m), b (m,), z = X W + b flat, u flat, P (d, m), v = the regularizer's copy."""

    W: np.ndarray
    b: np.ndarray
    z: np.ndarray
    u: np.ndarray
    P: np.ndarray
    v: np.ndarray


@dataclass
class Penalties:
    """One a task: of the losses (on their scores), of the regularizer (times unit^2), and of the proximal term (times unit^2)."""

    loss: np.ndarray
    regularizer: np.ndarray
    proximal: np.ndarray


class Newton:
    """The steps for the tasks of `designs`."""

    def __init__(self, designs: Designs, scores, part):
        self.designs, self.scores, self.part = designs, scores, part

    def pooled(self, per_task: np.ndarray) -> np.ndarray:
        """What each task decides by: its own number, or everyone's sum where the regularizer ties tasks together."""
        return per_task if self.part.is_separable else np.full(len(per_task), per_task.sum())

    def minimize(self, at: State, penalties: Penalties, most: int = _MOST) -> tuple[State, np.ndarray]:
        """(the state at the minimiser of phi, about; Newton steps taken (m,)), after at most so many steps."""
        designs, part = self.designs, self.part
        s = designs.spread(penalties.loss)
        M = part.metric(penalties.regularizer)
        T = penalties.proximal * part.unit[:, None] ** 2
        T_b = penalties.proximal * 1e-3
        W, b, z = at.W.copy(), at.b.copy(), at.z.copy()
        steps = np.zeros(designs.n_tasks, int)
        for taken in range(min(most, _MOST) + 1):
            y = self.scores.multipliers(z, at.u, s)
            V = W + at.P / M
            v = part.prox(V, M)
            Q = M * (V - v)
            pull = T * (W - at.W)
            g, g_b = designs.adjoint(y) + Q + pull, designs.sums(y) + T_b * (b - at.b)
            moved = designs.sums((y - at.u) ** 2) / penalties.loss + ((Q - at.P) ** 2 / M).sum(axis=0)
            moved = self.pooled(moved + (pull * (W - at.W)).sum(axis=0))
            if taken == min(most, _MOST):
                break
            dW, db = self._direction(g, g_b, y, V, v, penalties, M, T, T_b, _FORCING)
            decrement = -self.pooled((g * dW).sum(axis=0) + (g_b * db if designs.has_intercepts else 0.0))
            open_ = decrement > _ACCURACY**2 * moved
            if not open_.any():
                break
            dW[:, ~open_] = 0.0
            db[~open_] = 0.0
            steps[open_] += 1
            change = designs.forward(dW, db)
            t = self._line_search(at, W, b, z, dW, db, change, s, M, T, T_b, -decrement)
            W += t * dW
            b += t * db
            z += designs.spread(t) * change
        return State(W, b, z, y, Q, v), steps

    def _slopes(self, at, W, b, z, dW, db, change, s, M, T, T_b, t):
        designs = self.designs
        y = self.scores.multipliers(z + designs.spread(t) * change, at.u, s)
        moved = W + t * dW
        V = moved + at.P / M
        Q = M * (V - self.part.prox(V, M))
        slope = designs.sums(y * change) + ((Q + T * (moved - at.W)) * dW).sum(axis=0)
        if designs.has_intercepts:
            slope = slope + T_b * (b + t * db - at.b) * db
        return self.pooled(slope)

    def _line_search(self, at, W, b, z, dW, db, change, s, M, T, T_b, first):
        low, at_low = np.zeros_like(first), first
        high = np.ones_like(first)
        at_high = self._slopes(at, W, b, z, dW, db, change, s, M, T, T_b, high)
        t, value = high, at_high
        for _ in range(12):
            off = value > _FLAT * np.abs(first)
            off |= (value < -_FLAT * np.abs(first)) & (t < 1.0)
            if not off.any():
                break
            with np.errstate(all="ignore"):
                new = low + (high - low) * np.clip(at_low / (at_low - at_high), 0.1, 0.9)
            t = np.where(off, new, t)
            value = self._slopes(at, W, b, z, dW, db, change, s, M, T, T_b, t)
            below = value < 0
            low, at_low = np.where(off & below, t, low), np.where(off & below, value, at_low)
            high, at_high = np.where(off & ~below, t, high), np.where(off & ~below, value, at_high)
        return t

    def _direction(self, g, g_b, y, at_V, v, penalties, M, T, T_b, forcing):
        designs, part = self.designs, self.part
        stacked = np.vstack([g, g_b]) if designs.has_intercepts else g
        product = None
        if hasattr(part, "derivative"):
            product, mean = part.derivative(at_V, v, M)
            diagonal = M * max(mean, 1e-3) + T
        else:
            diagonal = part.diagonal(M) + T
        if designs.has_intercepts:
            diagonal = np.vstack([diagonal, T_b])
        systems = [
            TaskSystem(held_rows(designs, k, one), penalties.loss[k], diagonal[:, k])
            for k, one in enumerate(self.scores.parts(y, designs))
        ]
        d = len(g)

        def apart(r):
            return np.column_stack([system.solve(r[:, k]) for k, system in enumerate(systems)])

        if product is None:
            x = -apart(stacked)
            tie = part.coupling(M)
            if tie is not None:
                x = x + self._correction(systems, tie, x)
        else:
            spare = M * max(mean, 1e-3)

            def apply(x):
                Hx = np.column_stack([system.product(x[:, k]) for k, system in enumerate(systems)])
                Hx[:d] += M * product(x[:d]) - spare * x[:d]
                return Hx

            x = _conjugate_gradients(apply, -stacked, apart, forcing)
        return x[:d], (x[d] if designs.has_intercepts else np.zeros(designs.n_tasks))

    def _correction(self, systems, tie, x):
        """Woodbury over the rows that tie tasks: (H - U C U^T)^-1 r = H^-1 r + H^-1 U (C^-1 - U^T H^-1 U)^-1 U^T H^-1 r."""
        rows, vectors, scales = tie
        inner = np.diag(1.0 / scales)
        images = []
        D = x.shape[0]
        for k, system in enumerate(systems):
            E = np.zeros((D, len(rows)))
            E[rows, np.arange(len(rows))] = vectors[:, k]
            image = system.solve(E)
            inner -= vectors[:, k : k + 1] * image[rows]
            images.append(image)
        w = np.linalg.solve(inner, (vectors * x[rows]).sum(axis=1))
        return np.column_stack([image @ w for image in images])


def _conjugate_gradients(apply, rhs, precondition, accuracy, most=100):
    x, r = np.zeros_like(rhs), rhs.copy()
    z = precondition(r)
    p, rz = z, np.vdot(r, z)
    first = rz
    for _ in range(most):
        Ap = apply(p)
        curved = np.vdot(p, Ap)
        if not curved > 0:
            break
        alpha = rz / curved
        x += alpha * p
        r -= alpha * Ap
        z = precondition(r)
        new = np.vdot(r, z)
        if new <= accuracy**2 * first:
            break
        p = z + (new / rz) * p
        rz = new
    return x
