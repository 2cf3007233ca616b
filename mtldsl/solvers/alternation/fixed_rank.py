r"""Newton's method among the matrices of one rank, where penalties of the spectrum that have a kink at zero are smooth.

Once the rank r of a solution is known, the exact penalty sum_j phi(s_j) over the r singular values that are not zero is smooth, and
so is the manifold. With W = U diag(s) V^T, gradient G and N = (I - U U^T) G (I - V V^T), the Hessian on tangent vectors
xi = U M V^T + P V^T + U Q^T is that of the objective and what the manifold's curvature adds, N Q diag(1/s) V^T + U diag(1/s) P^T N;
a step is brought back by the SVD, cut off after r. Whether the rank was right is not asked here: the first-order conditions do.

Source: Vandereycken, "Low-rank matrix completion by Riemannian optimization", SIAM J. Optim. 23 (2013), prop. 2.3; Bareilles,
Iutzeler and Malick, "Newton acceleration on manifolds identified by proximal gradient methods", Math. Program. 200 (2023).
"""

from __future__ import annotations

import numpy as np

from mtldsl.atoms.calculus.spectral_matrix import thin_svd
from mtldsl.compile.normal_form import NormalForm
from mtldsl.solvers.alternation.radial_data import RadialData
from mtldsl.solvers.alternation.reweighting import Evaluation, Inverses, Reweighting, ridge_of, why_not_radial
from mtldsl.solvers.alternation.second_order import SecondOrder, newton_step

__all__ = ["newton_at_rank", "why_not_fixed_rank"]

#: Newton steps, and the residual on the manifold that ends them.
_STEPS, _TARGET = 100, 1e-12

#: A smallest singular value that falls to this share of itself in a step may be on its way to zero.
_FALLING = 0.3

#: The smoothing of a kink in the losses, relative to a typical norm of labels.
_SMOOTHING = 1e-9

#: Directions that no penalty weighs have this share of the losses' curvature in the metric of the conjugate gradients.
_LEAST_WEIGHT = 1e-4


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


class _FixedRank(Reweighting):
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

    def inverses(self, at: Evaluation, a, rest: float, v) -> Inverses:
        least = _LEAST_WEIGHT * self.curvature(v)
        return Inverses(self, at.basis, 1.0 / np.maximum(a, least), 1.0 / max(rest, least), v)


def tangent(at: Evaluation, G) -> np.ndarray:
    """The part of G in the tangent space at U diag(s) V^T."""
    outside = G - at.basis @ (at.basis.T @ G)
    return G - (outside - (outside @ at.V) @ at.V.T)


class _OnManifold(SecondOrder):
    """Hessian and metric on the tangent space."""

    def __init__(self, model: _FixedRank, at: Evaluation):
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
    model = _FixedRank(form, data, rank)
    if not data.loss.atom.smooth:  # a task that is fitted exactly has no weight otherwise
        model.eps = _SMOOTHING * data.typical_norm
    at = model.evaluate(W)
    for _ in range(_STEPS):
        of_losses, of_penalties = model.gradient_parts(at)
        gradient = of_losses + of_penalties
        whole = np.linalg.norm(data.gradient(at.residuals, model.task_weights(at)))  # its tangent may vanish
        size = max(whole, np.linalg.norm(of_penalties), model.least_gradient)
        residual = float(np.linalg.norm(gradient)) / size
        if residual <= _TARGET or expired():
            break
        after, found = newton_step(model, at, gradient, min(0.1, np.sqrt(residual)), _OnManifold)
        after = _along(model, at, gradient, found.first) if after is None else after
        if after is None:
            break
        if after.singular.size and after.singular[-1] < _FALLING * at.singular[-1]:
            lower = _FixedRank(form, data, model.rank - 1)
            lower.eps = model.eps
            without = lower.evaluate(after.W)
            if without.value <= at.value:
                model, after = lower, without
        at = after
    return at.W


def _along(model: _FixedRank, at: Evaluation, gradient, direction) -> Evaluation | None:
    """A shorter and shorter step against the gradient, in the metric; None where none leads down."""
    slope, t = float(np.vdot(gradient, direction)), 1.0
    while t > 1e-6:
        after = model.evaluate(at.W + t * direction)
        if after.value < at.value + 1e-4 * t * slope:
            return after
        t *= 0.3
    return None
