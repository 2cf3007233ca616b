"""Newton steps of reweighted models by conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.solvers.nonconvex.reweighting import (
    Evaluation,
    Reweighting,
)


@dataclass(frozen=True)
class ReweightedNewtonSettings:
    """Limits of Newton steps on reweighted models.

    cg_steps                  : conjugate gradient steps for one direction
    extension_steps           : extensions of a step along negative curvature, each three times as long
    difference_ratio          : relative steps of the differences that stand for second derivatives
    """

    cg_steps: int = 100
    extension_steps: int = 12
    difference_ratio: float = 1e-5


SETTINGS = ReweightedNewtonSettings()


# --------------------------------------------------------------------------------------------------------------
# Newton's step for reweighted models, by conjugate gradients in the metric of the reweighting step.
#
# The majoriser's Hessian M = blockdiag(v_i X_i^T X_i) + A lies above the objective's H: what reweighting gains in an iteration is
# what M^{-1} H lacks of the identity. Its few small eigenvalues, which make reweighting slow, cost conjugate gradients a step each.
# H is not positive semidefinite everywhere: a direction of negative curvature leads away from a saddle, and is returned as such.
#
# With W = U diag(s) V^T and a penalty sum phi(s_j), H acts on U^T P V by the quotients (phi'_i - phi'_j) / (s_i - s_j) on its
# symmetric and (phi'_i + phi'_j) / (s_i + s_j) on its antisymmetric part, and by phi'_j / s_j on what is orthogonal to U or V.
#
# Source: Steihaug, "The conjugate gradient method and trust regions in large scale optimization", SIAM J. Numer. Anal. 20 (1983);
# for the Hessian, Lewis and Sendov, "Twice differentiable spectral functions", SIAM J. Matrix Anal. Appl. 23 (2001).


class SecondOrder:
    """Hessian and metric at one evaluation."""

    def __init__(self, model: Reweighting, at: Evaluation):
        self.model, self.at = model, at
        self.U, self.V = at.basis, at.V
        self.weights = model.task_weights(at)
        self.bend = _bend(model, at)
        a, rest = model.spectral_weights(at)
        self.a = a
        self.metric = model.metric(at, a, rest, self.weights).apply  # G -> M^{-1} G
        self.symmetric, self.antisymmetric = _quotients(model, at.singular, a)

    def hessian(self, P) -> np.ndarray:
        """H P."""
        result = np.empty_like(P)
        for chunk, e in zip(self.model.data.chunks, self.at.residuals, strict=True):
            moved = chunk.products(P)
            along = self.bend[chunk.tasks] * np.einsum("ij,ij->i", e, moved)
            curved = self.weights[chunk.tasks, None] * moved + along[:, None] * e
            result[:, chunk.tasks] = chunk.adjoint(curved).T
        left, right = self.U.T @ P, P @ self.V
        inner = left @ self.V
        even, odd = 0.5 * (inner + inner.T), 0.5 * (inner - inner.T)
        result += self.U @ (self.symmetric * even + self.antisymmetric * odd) @ self.V.T
        if P.shape[1] > self.V.shape[1]:
            result += (self.U * self.a) @ (left - inner @ self.V.T)
        if P.shape[0] > self.U.shape[1]:
            result += ((right - self.U @ inner) * self.a) @ self.V.T
        return result

    def direction(self, gradient, accuracy: float) -> tuple[Any, Any, Any]:
        """Conjugate gradients for H x = -gradient to a relative accuracy in the metric.

        Returns (the truncated Newton direction, None where the first curvature met is negative; the metric's own step; a direction of
        negative curvature, where one is met).
        """
        x, r = np.zeros_like(gradient), -gradient
        z = self.metric(r)
        p, rz = z, float(np.vdot(r, z))
        first, target = z, accuracy**2 * rz
        for k in range(1, SETTINGS.cg_steps + 1):
            Hp = self.hessian(p)
            curvature = float(np.vdot(p, Hp))
            if curvature <= 0.0:
                return x if k > 1 else None, first, p
            t = rz / curvature
            x, r = x + t * p, r - t * Hp
            z = self.metric(r)
            before, rz = rz, float(np.vdot(r, z))
            if rz <= target:
                break
            p = z + (rz / before) * p
        return x, first, None


def newton_step(model: Reweighting, at: Evaluation, gradient, accuracy: float) -> Evaluation | None:
    """Return where a Newton step leads, lengthened along negative curvature; None where that is not down."""
    newton, first, negative = SecondOrder(model, at).direction(gradient, accuracy)
    best, base = at, at.W
    if newton is not None:
        slope, t = min(float(np.vdot(gradient, newton)), 0.0), 1.0
        while t > 0.1:
            after = model.evaluate(at.W + t * newton)
            if after.value <= at.value + 1e-4 * t * slope:
                best, base = after, after.W
                break
            t *= 0.4
    if negative is not None:
        p = negative if np.vdot(gradient, negative) <= 0 else -negative
        length = np.linalg.norm(first if newton is None else newton)
        tau = length / max(np.linalg.norm(p), np.finfo(float).tiny)
        for _ in range(SETTINGS.extension_steps):
            after = model.evaluate(base + tau * p)
            if not after.value < best.value:
                break
            best, tau = after, 3.0 * tau
    return None if best is at else best


def _bend(model: Reweighting, at: Evaluation) -> np.ndarray:
    """(dv/dt) / t of every task's weight v(t), t the norm of its residuals: (m,)."""
    t = np.hypot(at.norms, model.eps)
    h = SETTINGS.difference_ratio * np.where(t > 0, t, 1.0)
    weight = model.data.loss.atom.weight_of_norm
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = (weight(t + h) - weight(t - h)) / (2.0 * h * t)
    return model.data.loss.coefficients * np.where(np.isfinite(bend), bend, 0.0)


def _quotients(model: Reweighting, s, a) -> tuple[np.ndarray, np.ndarray]:
    slopes = a * s
    h = SETTINGS.difference_ratio * (s + SETTINGS.difference_ratio * max(float(s.max(initial=0.0)), 1e-300))
    low = np.maximum(s - h, 0.0)
    second = (model.slope(s + h) - model.slope(low)) / (s + h - low)
    apart, total = s[:, None] - s, s[:, None] + s
    near = np.abs(apart) <= SETTINGS.difference_ratio * total
    with np.errstate(divide="ignore", invalid="ignore"):
        symmetric = np.where(near, 0.5 * (second[:, None] + second), (slopes[:, None] - slopes) / apart)
        antisymmetric = np.where(total > 0, (slopes[:, None] + slopes) / total, a)
    return symmetric, antisymmetric
