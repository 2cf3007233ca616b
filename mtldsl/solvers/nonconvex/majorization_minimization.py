"""Majorisation-minimisation by reweighting, accelerated by Anderson's extrapolation and by Newton steps; monotone throughout."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtldsl.normal_form.form import Blocks, NormalForm
from mtldsl.normal_form.terms.structure_term import MajorizationLog
from mtldsl.solvers.design.sufficient_statistics import RadialData
from mtldsl.solvers.nonconvex.block_updates import RISE_ROUNDING_SHARE, assert_descent
from mtldsl.solvers.nonconvex.reweighting import Evaluation, Reweighting
from mtldsl.solvers.numerics.anderson import AndersonExtrapolation
from mtldsl.solvers.solver import Point, Watch


@dataclass(frozen=True)
class MajorizationSettings:
    """Limits of reweighting steps, and of the Newton steps and smoothed stages between them.

    memory_steps            : steps that an extrapolation draws on
    accelerated_start_steps : accelerated steps before the first Newton step
    accelerated_max_steps   : the same after a Newton step that fails: 4, 8, ... up to this
    smoothing_start_ratio   : where losses have a kink, of the first smoothing to a typical norm of labels
    smoothing_factor        : from one smoothing to the next
    stage_tol               : residual to which a stage is solved
    kink_clearance_ratio    : of every norm to the smoothing, above which stages are left out
    kink_steps              : steps after which that is asked
    smoothing_tol_share     : the smoothing that stays, as a share of tol
    smoothing_min_ratio     : the least that rounding allows to stay, of a typical norm of labels
    look_interval_steps     : between looks at the certificate, which cost passes over the data, no fewer than this
    look_interval_share     : and no less than this share of all steps
    residual_min_tol        : a residual of its own that is small enough, whatever the caller finds
    idle_steps              : steps in a row that gain nothing but rounding, which end a descent
    cg_steps                : conjugate gradient steps for one Newton direction
    extension_steps         : extensions of a Newton step along negative curvature, each three times as long
    difference_ratio        : relative steps of the differences that stand for second derivatives
    """

    memory_steps: int = 8
    accelerated_start_steps: int = 8
    accelerated_max_steps: int = 60
    smoothing_start_ratio: float = 1e-2
    smoothing_factor: float = 0.1
    stage_tol: float = 1e-2
    kink_clearance_ratio: float = 5.0
    kink_steps: int = 4
    smoothing_tol_share: float = 0.1
    smoothing_min_ratio: float = 1e-9
    look_interval_steps: int = 25
    look_interval_share: float = 0.5
    residual_min_tol: float = 1e-13
    idle_steps: int = 20
    cg_steps: int = 100
    extension_steps: int = 12
    difference_ratio: float = 1e-5


SETTINGS = MajorizationSettings()


@dataclass(eq=False)
class _MajorizationRun:
    """Memory of a run."""

    model: Reweighting
    watch: Watch
    max_iter: int
    tol: float
    iteration: int = 0
    at: Evaluation | None = None  # where it is
    negligible: float = 0.0  # smoothing of a kink
    settled: bool = False  # steps gain nothing but rounding
    looked: int = 0  # the step of the last look
    values: list[float] = field(default_factory=list)
    steps: MajorizationLog = field(default_factory=lambda: MajorizationLog(False, reweights_losses=True))

    def remember(self, at: Evaluation, after) -> None:
        """A step of the model itself, not of an easier one on the way, to the least of the majoriser itself."""
        if self.model.eps <= self.negligible and self.model.weighs_all(at):
            blocks = self.model.data.blocks
            self.steps.add(self.iteration + 1, blocks(at.W), blocks(after))

    def is_due(self) -> bool:
        """Tell whether it is time for a look at the certificate."""
        wait = max(SETTINGS.look_interval_steps, SETTINGS.look_interval_share * self.looked)
        if not self.watch.expired and self.iteration - self.looked < wait:
            return False
        self.looked = self.iteration
        return True

    def point(self, at: Evaluation) -> Point:
        blocks, loss = self.model.data.blocks(at.W), self.model.data.loss
        duals = None
        if not loss.atom.smooth:
            # a multiplier where residuals vanish: what the smoothed loss has for one
            radial: Any = loss  # a loss of the norm alone: its term weighs residuals
            duals = [radial.weighted_residuals(loss.predictions(blocks), self.model.task_weights(at))]
        values, self.values = self.values, []
        return Point(
            blocks, duals, iteration=self.iteration, notes={"objectives": values},
            majorizations=self.steps.steps,
        )  # fmt: skip


def minimize_reweighted(
    forms: tuple[NormalForm, ...],
    data: RadialData,
    x: Blocks,
    *,
    method: str,
    tol: float,
    max_iter: int,
    watch: Watch,
) -> Point:
    """The last form from the weights x, until `watch` is content; the forms before it are stages on the way, solved roughly.

    method: "newton", "joint" (Anderson alone) or "block" (plain steps).
    """
    run = _MajorizationRun(Reweighting(forms[0], data), watch, max_iter, tol)
    try:
        return _in_stages(run, forms, run.model.evaluate(x[data.block]), method)
    except KeyboardInterrupt:  # looks are rare: the caller has not seen where it was
        if run.at is not None:
            watch(run.point(run.at))
        raise


def _in_stages(run: _MajorizationRun, forms: tuple[NormalForm, ...], at: Evaluation, method: str) -> Point:
    data, watch, max_iter = run.model.data, run.watch, run.max_iter
    for form in forms:
        run.model, run.steps.wanted = Reweighting(form, data), form is forms[-1]
        at, stopped = _through_kinks(run, at, method)
        if not stopped and form is not forms[-1]:
            at, stopped = _descend(run, run.model.evaluate(at.W), method, SETTINGS.stage_tol)
        if stopped or run.iteration >= max_iter:
            point = run.point(at)
            if not stopped:
                watch(point)
            return point
    at, target = run.model.evaluate(at.W), 0.3 * run.tol
    while True:
        run.settled = False
        at, stopped = _descend(run, at, method, target)
        if stopped:
            return run.point(at)
        run.remember(at, run.model.step(at))
        point = run.point(at)
        ended = run.settled or run.iteration >= max_iter or target < SETTINGS.residual_min_tol
        if watch(point) or watch.expired or ended:
            return point
        target *= 0.1


def _through_kinks(run: _MajorizationRun, at: Evaluation, method: str) -> tuple[Evaluation, bool]:
    """Return where the loss has a kink at zero: smoothed less and less, and hardly at all once no residual is near zero."""
    model = run.model
    if model.data.loss.atom.smooth:
        return at, False
    typical = model.data.typical_norm
    model.eps, least = (
        SETTINGS.smoothing_start_ratio * typical,
        max(SETTINGS.smoothing_tol_share * run.tol, SETTINGS.smoothing_min_ratio) * typical,
    )
    at = model.evaluate(at.W)
    while run.iteration < min(SETTINGS.kink_steps, run.max_iter):
        at = _plain(run, at)
    while at.norms.min() <= SETTINGS.kink_clearance_ratio * model.eps:
        at, stopped = _descend(run, model.evaluate(at.W), method, SETTINGS.stage_tol)
        model.eps = max(SETTINGS.smoothing_factor * model.eps, least)
        if stopped or run.iteration >= run.max_iter or model.eps == least:
            break
    else:
        stopped = False
    model.eps = run.negligible = least
    return at, stopped


def _plain(run: _MajorizationRun, at: Evaluation) -> Evaluation:
    run.iteration += 1
    after = run.model.evaluate(run.model.step(at))
    assert_descent(at.value, after.value, run.iteration, RISE_ROUNDING_SHARE * run.model.size(at))
    run.values.append(after.value)
    return after


def _descend(run: _MajorizationRun, at: Evaluation, method: str, target: float) -> tuple[Evaluation, bool]:
    """Steps until the gradient is `target` times its parts: (where that is, whether the caller asked to stop)."""
    model = run.model
    anderson = None if method == "block" else AndersonExtrapolation(SETTINGS.memory_steps, growth=np.inf)
    budget, failures, idle = SETTINGS.accelerated_start_steps if method == "newton" else np.inf, 0, 0
    lowest = np.inf
    while True:
        size = model.size(at)
        of_losses, of_penalties = model.gradient_parts(at)
        gradient = of_losses + of_penalties
        largest = max(np.linalg.norm(of_losses), np.linalg.norm(of_penalties), model.least_gradient)
        residual = float(np.linalg.norm(gradient)) / largest
        if residual <= target or run.iteration >= run.max_iter:
            return at, False
        if run.is_due() and (run.watch(run.point(at)) or run.watch.expired):
            return at, True
        if budget > 0:
            budget -= 1
            after = _extrapolated(run, at, anderson)
        else:
            after = newton_step(model, at, gradient, min(0.1, np.sqrt(residual)))
            if anderson is not None:
                anderson.reset()
            if after is None:
                failures += 1
                budget = min(2 ** (failures + 1), SETTINGS.accelerated_max_steps)
                continue
            failures = 0
        run.iteration += 1
        assert_descent(at.value, after.value, run.iteration, RISE_ROUNDING_SHARE * size)
        run.values.append(after.value)
        gains = after.value < at.value - 1e-15 * size or residual < 0.9 * lowest
        lowest, idle = min(lowest, residual), 0 if gains else idle + 1
        at = run.at = after
        if idle == SETTINGS.idle_steps:
            run.settled = True
            return at, False


def _extrapolated(
    run: _MajorizationRun, at: Evaluation, anderson: AndersonExtrapolation | None
) -> Evaluation:
    """A reweighting step; an extrapolation from earlier ones where that leads lower than where we are."""
    image = run.model.step(at)
    run.remember(at, image)
    if anderson is not None:
        leap = anderson.step(at.W.ravel(), image.ravel(), 1.0).reshape(image.shape)
        after = run.model.evaluate(leap)
        if after.value < at.value:
            return after
        anderson.reset()
    after = run.model.evaluate(image)
    if after.value > at.value and not run.model.weighs_all(at):
        return at  # along directions that nothing weighs a step is long, and near its end all rounding
    return after


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
        self.symmetric, self.antisymmetric = model.spectrum.quotients(at.singular)

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
