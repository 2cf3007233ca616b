"""Newton steps on reweighted models, and among the matrices of one rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.prox.spectral_matrix import thin_svd
from mtldsl.normal_form.form import NormalForm
from mtldsl.solvers.design.gram import gram_product
from mtldsl.solvers.design.sufficient_statistics import RadialData
from mtldsl.solvers.nonconvex.reweighting import (
    Evaluation,
    Reweighting,
    TaskInverses,
    ridge_of,
    why_not_radial,
)
from mtldsl.solvers.nonconvex.variable_projection import invert_separate

__all__ = [
    "SETTINGS",
    "NewtonDirection",
    "ReweightedNewtonSettings",
    "SecondOrder",
    "newton_at_rank",
    "newton_step",
    "why_not_fixed_rank",
]


@dataclass(frozen=True)
class ReweightedNewtonSettings:
    """Limits of Newton steps on reweighted models.

    coarse_features           : unknowns of the coarse system of the turning metric: features times singular pairs that are alive
    cg_steps                  : conjugate gradient steps for one direction
    extension_steps           : extensions of a step along negative curvature, each three times as long
    difference_ratio          : relative steps of the differences that stand for second derivatives
    newton_steps              : Newton steps among the matrices of one rank
    residual_tol              : residual on the manifold that ends them
    falling_ratio             : a smallest singular value that falls to this part of itself in a step may be on its way to zero
    smoothing_ratio           : of the smoothing of a kink in the losses to a typical norm of labels
    unweighed_curvature_share : of the losses' curvature, for directions that no penalty weighs, in the metric of the conjugate gradients
    """

    coarse_features: int = 500
    cg_steps: int = 100
    extension_steps: int = 12
    difference_ratio: float = 1e-5
    newton_steps: int = 100
    residual_tol: float = 1e-12
    falling_ratio: float = 0.3
    smoothing_ratio: float = 1e-9
    unweighed_curvature_share: float = 1e-4


SETTINGS = ReweightedNewtonSettings()


# --------------------------------------------------------------------------------------------------------------
# Newton's step for reweighted models, by conjugate gradients in the metric of the reweighting step, or a finer one.
#
# The majoriser's Hessian M = blockdiag(v_i X_i^T X_i) + A lies above the objective's H: what reweighting gains in an iteration is
# what M^{-1} H lacks of the identity. Its few small eigenvalues, which make reweighting slow, cost conjugate gradients a step each.
# Where it can be had, the metric of `metric.py` takes its place, in which singular pairs turn at the price that they really ask.
# H is not positive semidefinite everywhere: a direction of negative curvature leads away from a saddle, and is returned as such.
#
# With W = U diag(s) V^T and a penalty sum phi(s_j), H acts on U^T P V by the quotients (phi'_i - phi'_j) / (s_i - s_j) on its
# symmetric and (phi'_i + phi'_j) / (s_i + s_j) on its antisymmetric part, and by phi'_j / s_j on what is orthogonal to U or V.
#
# Source: Steihaug, "The conjugate gradient method and trust regions in large scale optimization", SIAM J. Numer. Anal. 20 (1983);
# for the Hessian, Lewis and Sendov, "Twice differentiable spectral functions", SIAM J. Matrix Anal. Appl. 23 (2001).


@dataclass(frozen=True, eq=False)
class _WeightedGrams:
    """v_i X_i^T X_i, (m, d, d)."""

    gram: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.gram.shape[1], self.gram.shape[0]

    def product(self, W) -> np.ndarray:
        return gram_product(self.gram, W)


@dataclass(frozen=True, eq=False)
class NewtonDirection:
    """Directions in which to go from a point."""

    newton: (
        np.ndarray | None
    )  # the truncated Newton direction; None where the first curvature met was negative
    first: np.ndarray  # the metric's own step, that of conjugate gradients in one iteration
    negative: np.ndarray | None  # a direction of negative curvature, where one was met


class SecondOrder:
    """Hessian and metric at one evaluation."""

    def __init__(self, model: Reweighting, at: Evaluation):
        self.model, self.at = model, at
        self.U, self.V = at.basis, at.V
        self.weights = model.task_weights(at)
        self.bend = _bend(model, at)
        a, rest = model.spectral_weights(at)
        self.a = a
        self.inverse = self.turning_metric(a, rest) or model.metric(at, a, rest, self.weights).apply
        self.symmetric, self.antisymmetric = _quotients(model, at.singular, a)

    def metric(self, G) -> np.ndarray:
        """M^{-1} G."""
        return self.inverse(G)

    def turning_metric(self, a, rest: float):
        """G -> M^{-1} G for M in which turning one singular pair towards another costs min(a_i, a_j); None for large problems."""
        grams = self.model.task_grams
        alive = int(np.count_nonzero(a < 0.5 * rest))
        if grams is None or alive * len(self.U) > SETTINGS.coarse_features:
            return None
        a = np.append(a, rest)
        weighted: Any = _WeightedGrams(self.weights[:, None, None] * grams)
        return invert_separate(weighted, self.U, self.V, np.minimum(a[:, None], a), 0.0)

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

    def direction(self, gradient, accuracy: float) -> NewtonDirection:
        """Conjugate gradients for H x = -gradient to a relative accuracy in the metric."""
        x, r = np.zeros_like(gradient), -gradient
        z = self.metric(r)
        p, rz = z, float(np.vdot(r, z))
        first, target = z, accuracy**2 * rz
        for k in range(1, SETTINGS.cg_steps + 1):
            Hp = self.hessian(p)
            curvature = float(np.vdot(p, Hp))
            if curvature <= 0.0:
                return NewtonDirection(x if k > 1 else None, first, p)
            t = rz / curvature
            x, r = x + t * p, r - t * Hp
            z = self.metric(r)
            before, rz = rz, float(np.vdot(r, z))
            if rz <= target:
                break
            p = z + (rz / before) * p
        return NewtonDirection(x, first, None)


def newton_step(
    model: Reweighting,
    at: Evaluation,
    gradient,
    accuracy: float,
    second_order: type[SecondOrder] = SecondOrder,
) -> tuple[Evaluation | None, NewtonDirection]:
    """(where a Newton step leads, lengthened along negative curvature, None where that is not down; the direction)."""
    found = second_order(model, at).direction(gradient, accuracy)
    best, base = at, at.W
    if found.newton is not None:
        slope, t = min(float(np.vdot(gradient, found.newton)), 0.0), 1.0
        while t > 0.1:
            after = model.evaluate(at.W + t * found.newton)
            if after.value <= at.value + 1e-4 * t * slope:
                best, base = after, after.W
                break
            t *= 0.4
    if found.negative is not None:
        p = found.negative if np.vdot(gradient, found.negative) <= 0 else -found.negative
        length = np.linalg.norm(found.first if found.newton is None else found.newton)
        tau = length / max(np.linalg.norm(p), np.finfo(float).tiny)
        for _ in range(SETTINGS.extension_steps):
            after = model.evaluate(base + tau * p)
            if not after.value < best.value:
                break
            best, tau = after, 3.0 * tau
    return (None if best is at else best), found


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


# --------------------------------------------------------------------------------------------------------------
# Newton's method among the matrices of one rank, where penalties of the spectrum that have a kink at zero are smooth.
#
# Once the rank r of a solution is known, the exact penalty sum_j phi(s_j) over the r singular values that are not zero is smooth, and
# so is the manifold. With W = U diag(s) V^T, gradient G and N = (I - U U^T) G (I - V V^T), the Hessian on tangent vectors
# xi = U M V^T + P V^T + U Q^T is that of the objective and what the manifold's curvature adds, N Q diag(1/s) V^T + U diag(1/s) P^T N;
# a step is brought back by the SVD, cut off after r. Whether the rank was right is not asked here: the first-order conditions do.
#
# Source: Vandereycken, "Low-rank matrix completion by Riemannian optimization", SIAM J. Optim. 23 (2013), prop. 2.3; Bareilles,
# Iutzeler and Malick, "Newton acceleration on manifolds identified by proximal gradient methods", Math. Program. 200 (2023).


def why_not_fixed_rank(form: NormalForm) -> str | None:
    """None where one radial loss stands beside functions of the spectrum of its weights that are not convex, and ridges."""
    reason = why_not_radial(form)
    if reason is not None:
        return reason
    for f in form.functions:
        if ridge_of(f) is None and (f.atom.separable != "spectrum" or f.atom.convex):
            return (
                f"{f.typed} is neither a function of the spectrum that is not convex nor a multiple of ridge."
            )
    return None


class _FixedRankObjective(Reweighting):
    """The objective at the nearest matrices of rank r; what only counts the rank is a constant there."""

    def __init__(self, form: NormalForm, data: RadialData, rank: int):
        super().__init__(form, data)
        self.rank = rank

    def evaluate(self, W) -> Evaluation:
        U, s, Vt = thin_svd(W)
        U, s, Vt = U[:, : self.rank], s[: self.rank], Vt[: self.rank]
        return self.evaluate_at((U * s) @ Vt, U, s, Vt.T)

    def gradient_parts(self, at: Evaluation) -> tuple[np.ndarray, np.ndarray]:
        """Their tangents."""
        one, other = super().gradient_parts(at)
        return tangent(at, one), tangent(at, other)

    def spectral_weights(self, at: Evaluation):
        a, _ = super().spectral_weights(at)
        return a, float(a.min(initial=np.inf))

    def inverses(self, at: Evaluation, a, rest: float, v) -> TaskInverses:
        least = SETTINGS.unweighed_curvature_share * self.curvature(v)
        return TaskInverses(self, at.basis, 1.0 / np.maximum(a, least), 1.0 / max(rest, least), v)


def tangent(at: Evaluation, G) -> np.ndarray:
    """The part of G in the tangent space at U diag(s) V^T."""
    outside = G - at.basis @ (at.basis.T @ G)
    return G - (outside - (outside @ at.V) @ at.V.T)


class _ManifoldHessian(SecondOrder):
    """Hessian and metric on the tangent space."""

    def __init__(self, model: _FixedRankObjective, at: Evaluation):
        super().__init__(model, at)
        of_losses = model.data.gradient(at.residuals, self.weights)
        self.normal = of_losses - tangent(at, of_losses)

    def turning_metric(self, a, rest):
        """Every singular pair is alive here."""
        return None

    def metric(self, G):
        return tangent(self.at, super().metric(G))

    def hessian(self, P):
        U, V, s = self.U, self.V, self.at.singular
        left, right = P @ V, P.T @ U
        left, right = left - U @ (U.T @ left), right - V @ (V.T @ right)
        curved = (self.normal @ right / s) @ V.T + (U / s) @ (left.T @ self.normal)
        return tangent(self.at, super().hessian(P) + curved)


def newton_at_rank(form: NormalForm, data: RadialData, W, rank: int, expired) -> np.ndarray:
    """Stationary among the matrices of this rank, or of a lower one where a singular value falls to zero on the way, from the one
    nearest to W; or as near as steps lead down until `expired()`.
    """
    model = _FixedRankObjective(form, data, rank)
    if not data.loss.atom.smooth:  # a task that is fitted exactly has no weight otherwise
        model.eps = SETTINGS.smoothing_ratio * data.typical_norm
    at = model.evaluate(W)
    for _ in range(SETTINGS.newton_steps):
        of_losses, of_penalties = model.gradient_parts(at)
        gradient = of_losses + of_penalties
        whole = np.linalg.norm(data.gradient(at.residuals, model.task_weights(at)))  # its tangent may vanish
        size = max(whole, np.linalg.norm(of_penalties), model.least_gradient)
        residual = float(np.linalg.norm(gradient)) / size
        if residual <= SETTINGS.residual_tol or expired():
            break
        after, found = newton_step(model, at, gradient, min(0.1, np.sqrt(residual)), _ManifoldHessian)
        after = _backtrack(model, at, gradient, found.first) if after is None else after
        if after is None:
            break
        if after.singular.size and after.singular[-1] < SETTINGS.falling_ratio * at.singular[-1]:
            lower = _FixedRankObjective(form, data, model.rank - 1)
            lower.eps = model.eps
            without = lower.evaluate(after.W)
            if without.value <= at.value:
                model, after = lower, without
        at = after
    return at.W


def _backtrack(model: _FixedRankObjective, at: Evaluation, gradient, direction) -> Evaluation | None:
    """A shorter and shorter step against the gradient, in the metric; None where none leads down."""
    slope, t = float(np.vdot(gradient, direction)), 1.0
    while t > 1e-6:
        after = model.evaluate(at.W + t * direction)
        if after.value < at.value + 1e-4 * t * slope:
            return after
        t *= 0.3
    return None
