r"""One step of reweighting: the weights where the majoriser of losses and spectrum is least, task by task in closed form.

    sum_i v_i / 2 ||X_i w_i - y_i||^2 + 1/2 tr(A W W^T),      A = U diag(a) U^T

With C = A^{-1} and s_i = 1 / v_i,  w_i = C X_i^T (X_i C X_i^T + s_i I)^{-1} y_i: neither a weight of a task nor one of the
spectrum is ever inverted where it is huge, as they are for a residual or a singular value near zero.

Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, eq. (18); the form is not in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from mtldsl.atoms.prox.spectral_matrix import thin_svd
from mtldsl.certificates.stationarity import GRADIENT_FLOOR_SHARE
from mtldsl.errors import SolverError
from mtldsl.normal_form.form import Blocks, NormalForm, single_block
from mtldsl.normal_form.reductions.block_reductions import LargerEps
from mtldsl.solvers.design.sufficient_statistics import RadialData, SharedChunk, radial_data
from mtldsl.solvers.numerics.spectral_function import SpectrumFunction, ridge_of
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import eigh


@dataclass(frozen=True)
class ReweightingSettings:
    """Limits of the majoriser's systems, and of the easier models on the way.

    unweighed_share           : of the largest weight, for a direction that no penalty weighs: large singular values under a capped trace norm
    diagonal_share            : added to the diagonal of a task's system, relative to its trace
    singular_diagonal_share   : the same where the system is singular all the same
    alive_ratio               : a singular direction with this part of the weight of one that is zero counts as zero in the metric
    unweighed_curvature_share : of the losses' curvature, the least weight where no direction is weighed
    eps_factor                : from one easier model to the next
    easy_eps_ratio            : of eps to the largest squared singular value, easy for Newton's method (on School 2e-4 is, 2e-6 is not)
    stages                    : easier models, at most
    rough_steps               : reweighting steps to tell the size of the singular values
    rough_smoothing_ratio     : of the smoothing of a loss's kink there to a typical norm of labels
    """

    unweighed_share: float = 1e-9
    diagonal_share: float = 1e-16
    singular_diagonal_share: float = 1e-13
    alive_ratio: float = 0.7
    unweighed_curvature_share: float = 1e-5
    eps_factor: float = 0.1
    easy_eps_ratio: float = 2e-4
    stages: int = 8
    rough_steps: int = 3
    rough_smoothing_ratio: float = 1e-2


SETTINGS = ReweightingSettings()


def why_not_radial(form: NormalForm) -> str | None:
    """None where there is one loss, of the norms of tasks' residuals, beside functions of its one weight matrix; else one sentence."""
    for loss in form.losses:
        if not loss.atom.radial:
            return f"{loss.typed} is not a function of the norm of a task's residuals."
    facts = single_block(form, "multiple")
    return facts if isinstance(facts, str) else None


def why_not_reweighted(form: NormalForm) -> str | None:
    """None where tasks and spectrum can be reweighted in closed form, else one sentence."""
    reason = why_not_radial(form)
    if reason is not None:
        return reason
    for f in form.functions:
        if not f.atom.is_reweighted and ridge_of(f) is None:
            return f"{f.typed} is {'a constraint' if f.is_constraint else 'neither reweighted nor a multiple of ridge'}."
    return None if any(f.atom.is_reweighted for f in form.functions) else "no term is reweighted."


@dataclass(eq=False)
class Evaluation:
    """The objective at weights, and what the step from there needs."""

    W: np.ndarray
    value: float
    basis: np.ndarray  # U (d, r) with W = U diag(singular) V^T
    singular: np.ndarray
    V: np.ndarray  # (m, r)
    residuals: list[np.ndarray]
    norms: np.ndarray  # (m,)


class Reweighting:
    """The reweighting of one form. `eps` is added (in square) to the norms of residuals, where the loss itself has a kink at zero."""

    def __init__(self, form: NormalForm, data: RadialData):
        self.form, self.data = form, data
        self.spectrum = SpectrumFunction.of(form, data.block)
        self.eps = 0.0

    @cached_property
    def least_gradient(self) -> float:
        """Return where all gradients are smaller, each is rounding of the others."""
        return max(GRADIENT_FLOOR_SHARE * self.form.slope_at_zero, np.finfo(float).tiny)

    @cached_property
    def grams(self) -> list[np.ndarray]:
        """X_i X_i^T of every task, chunk by chunk."""
        return [np.matmul(chunk.R, np.swapaxes(chunk.R, -1, -2)) for chunk in self.data.chunks]

    # ------------------------------------------------------------------------------------------- evaluation

    def evaluate(self, W) -> Evaluation:
        U, s, Vt = thin_svd(W)
        residuals = self.data.residuals(W)
        norms = self.data.norms(residuals)
        value = (
            self.data.value(np.hypot(norms, self.eps))
            + 0.5 * self.spectrum.ridge * float(s @ s)
            + self.form.constant
        )
        for c, atom, multiple in self.spectrum.terms:
            value += c * atom.value_of_spectrum(abs(multiple) * s, len(W))
        return Evaluation(W, value, U, s, Vt.T, residuals, norms)

    def size(self, at: Evaluation) -> float:
        """The size of the terms that the objective is the sum of."""
        return abs(self.data.value(at.norms)) + abs(at.value - self.data.value(at.norms))

    def task_weights(self, at: Evaluation) -> np.ndarray:
        """v_i, coefficients included: (m,)."""
        return self.data.loss.coefficients * self.data.loss.atom.weight_of_norm(np.hypot(at.norms, self.eps))

    def spectral_weights(self, at: Evaluation) -> tuple[np.ndarray, float]:
        """(a_j of the singular directions, a of every other): A = U diag(a) U^T."""
        ratios = self.spectrum.ratios(np.append(at.singular, 0.0))
        return ratios[:-1], float(ratios[-1])

    def gradient_parts(self, at: Evaluation) -> tuple[np.ndarray, np.ndarray]:
        """The gradients of the losses and of the penalties, (d, m) each."""
        a, _ = self.spectral_weights(at)
        of_penalties = (at.basis * a) @ (at.basis.T @ at.W)
        return self.data.gradient(at.residuals, self.task_weights(at)), of_penalties

    # ------------------------------------------------------------------------------------------------ step

    def inverses(self, at: Evaluation, a, rest: float, v) -> TaskInverses:
        """The inverses of the majoriser's Hessian."""
        least = self._least_weight(a, rest, v)
        return TaskInverses(self, at.basis, 1.0 / np.maximum(a, least), 1.0 / max(rest, least), v)

    def _least_weight(self, a, rest: float, v) -> float:
        largest = max(float(a.max(initial=0.0)), rest)
        return (
            SETTINGS.unweighed_share * largest
            if largest > 0
            else SETTINGS.unweighed_curvature_share * self.curvature(v)
        )

    def metric(self, at: Evaluation, a, rest: float, v) -> TaskInverses:
        """Nearly the same, for conjugate gradients: directions that weigh almost as much as a singular value of zero count as such."""
        alive = a < SETTINGS.alive_ratio * rest
        return self.inverses(replace(at, basis=at.basis[:, alive]), a[alive], rest, v)

    def curvature(self, v) -> float:
        """A typical second derivative of the losses in one weight."""
        squares = max(float(np.square(chunk.R).mean()) for chunk in self.data.chunks)
        # of tasks without noise v does not measure anything
        return max(float(np.median(v)) * squares, np.finfo(float).tiny)

    def step(self, at: Evaluation) -> np.ndarray:
        """The minimiser of the majoriser that touches at these weights."""
        (a, rest), v = self.spectral_weights(at), self.task_weights(at)
        if self.weighs_all(at):
            return self.inverses(at, a, rest, v).minimizer()
        # every direction is given a weight, more than it asks for: of a majoriser that lies higher, but touches as well
        least = SETTINGS.unweighed_curvature_share * self.curvature(v)
        inverses = self.inverses(at, np.maximum(a, least), max(rest, least), v)
        return at.W - inverses.apply(sum(self.gradient_parts(at)))

    def weighs_all(self, at: Evaluation) -> bool:
        """Tell whether every direction has a weight that is not negligible."""
        a, rest = self.spectral_weights(at)
        return min(float(a.min(initial=np.inf)), rest) >= self._least_weight(a, rest, self.task_weights(at))


class TaskInverses:
    """(v_i X_i^T X_i + A)^{-1} of every task: C - C X_i^T N_i X_i C with N_i = (X_i C X_i^T + s_i I)^{-1}."""

    def __init__(self, model: Reweighting, basis, c, c_rest: float, v):
        self.model, self.basis, self.c, self.c_rest = model, basis, c, c_rest
        self.is_thin = basis.shape[1] < basis.shape[0]  # what is orthogonal to it is a subspace of its own
        self.inner = []
        for k, chunk in enumerate(model.data.chunks):
            if self.is_thin:
                turned = chunk.R @ basis
                inner = c_rest * model.grams[k] + np.matmul(
                    turned * (c - c_rest), np.swapaxes(turned, -1, -2)
                )
            else:
                turned = chunk.R @ (basis * np.sqrt(c))
                inner = np.matmul(turned, np.swapaxes(turned, -1, -2))
            self.inner.append(_SampleSystem(chunk, inner, 1.0 / v[chunk.tasks]))

    def _spread(self, G) -> np.ndarray:
        """C G."""
        inside = self.basis.T @ G
        if not self.is_thin:
            return self.basis @ (self.c[:, None] * inside)
        return self.c_rest * G + self.basis @ ((self.c - self.c_rest)[:, None] * inside)

    def minimizer(self) -> np.ndarray:
        """C X_i^T N_i y_i."""
        pulled = np.empty(self.model.data.shape)
        for chunk, inner in zip(self.model.data.chunks, self.inner, strict=True):
            pulled[:, chunk.tasks] = chunk.adjoint(inner.solve(chunk.q)).T
        return self._spread(pulled)

    def apply(self, G) -> np.ndarray:
        spread, pulled = self._spread(G), np.empty_like(G)
        for chunk, inner in zip(self.model.data.chunks, self.inner, strict=True):
            pulled[:, chunk.tasks] = chunk.adjoint(inner.apply(chunk.products(spread))).T
        return spread - self._spread(pulled)


class _SampleSystem:
    """X_i C X_i^T + s_i I of some tasks: solved once, or inverted where it will be applied again and again."""

    def __init__(self, chunk, inner, s):
        self.is_shared, self.inverse = isinstance(chunk, SharedChunk), None
        if self.is_shared:
            values, self.vectors = eigh(inner)
            self.values = np.maximum(values, 0.0) + s[:, None]
        else:
            diagonal = np.arange(inner.shape[1])
            traces = np.einsum("cii->c", inner)
            inner[:, diagonal, diagonal] += (s + SETTINGS.diagonal_share * traces)[:, None]
            self.matrices = inner

    def solve(self, z) -> np.ndarray:
        if self.is_shared:
            return ((z @ self.vectors) / self.values) @ self.vectors.T
        return self._regular(np.linalg.solve, z[:, :, None])[:, :, 0]

    def _regular(self, function, *more):
        """`function` of the matrices; once more with a little on the diagonal where LAPACK finds one singular, as two equal rows make it."""
        try:
            return function(self.matrices, *more)
        except np.linalg.LinAlgError:
            diagonal = np.arange(self.matrices.shape[1])
            traces = np.einsum("cii->c", self.matrices)
            self.matrices[:, diagonal, diagonal] += (
                SETTINGS.singular_diagonal_share * traces + np.finfo(float).tiny
            )[:, None]
            return function(self.matrices, *more)

    def apply(self, z) -> np.ndarray:
        if self.is_shared:
            return self.solve(z)
        if self.inverse is None:
            self.inverse = self._regular(np.linalg.inv)
        return np.matmul(self.inverse, z[:, :, None])[:, :, 0]


# --------------------------------------------------------------------------------------------------------------
# Easier models on the way to one that is not convex: the same with a larger eps, which has fewer stationary points.


def relaxed_forms(form: NormalForm, stages: int) -> list[NormalForm]:
    """As many forms with the eps of every reweighted term made larger, the easiest first. SolverError where stages is not a count."""
    typed = f"solve(solver='alternating', continuation={stages!r})"
    if isinstance(stages, bool) or not isinstance(stages, Integral) or stages < 0:
        raise SolverError(
            term=typed,
            write_instead="write how many easier models to solve before, a whole number such as 3, or 0 for none",
        )
    refused = LargerEps(1.0 / SETTINGS.eps_factor).accepts(form) if stages else None
    if refused is not None:
        raise SolverError(f"{refused}", term=typed, write_instead="leave continuation out")
    return [LargerEps(SETTINGS.eps_factor**-k).apply(form)[0] for k in range(stages, 0, -1)]


def fitting_stages(form: NormalForm, data: RadialData, x: Blocks) -> int:
    """As many as bring eps up to a share of the largest singular value's square."""
    largest = rough_fit(form, data, x[data.block]).singular.max(initial=0.0)
    reweighted: Any = [f for f in form.functions if f.atom.is_reweighted]  # these have an eps
    least = min(f.atom.eps / f.map.multiple_of(data.block) ** 2 for f in reweighted)
    missing = np.log10(max(SETTINGS.easy_eps_ratio * largest**2 / least, 1.0))
    return int(min(np.ceil(missing - 0.5), SETTINGS.stages))


def rough_fit(form: NormalForm, data: RadialData, W) -> Evaluation:
    """After a few reweighting steps from W: enough to tell the size of the singular values."""
    model = Reweighting(form, data)
    if not data.loss.atom.smooth:
        model.eps = SETTINGS.rough_smoothing_ratio * data.typical_norm
    at = model.evaluate(W)
    for _ in range(SETTINGS.rough_steps):
        at = model.evaluate(model.step(at))
    return at


# --------------------------------------------------------------------------------------------------------------
# Algorithm 1 of the paper on calibrated learning (NC-CMTL) as printed, for teaching: its faults can be seen in the history.


#: The paper's eps_2 ("eps in MATLAB") where the loss has none.
MACHINE_EPS = np.finfo(float).eps
#: The paper's convergence test (20).
CHANGE_TOL = 1e-6


def algorithm_1(form: NormalForm, x: Blocks, *, max_iter: int, watch: Watch) -> Point:
    """(v_i X_i^T X_i + 2 mu D) w_i = v_i X_i^T y_i again and again, until the surrogate (19) changes by less than 1e-6.

    Its faults: D and v_i are inverted where a singular value or a residual is almost zero, so that a tiny eps loses the answer to
    rounding; a residual that has become zero, or a rank that is lost, never comes back; and (20) compares two surrogates, which
    differ in every step, in place of the objective.
    Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, Algorithm 1.
    """
    data = radial_data(form)
    model = Reweighting(form, data)
    model.eps = 0.0 if data.loss.atom.smooth else MACHINE_EPS
    at, before, values = model.evaluate(x[data.block]), np.inf, []
    for iteration in range(1, max_iter + 1):
        (a, rest), v = model.spectral_weights(at), model.task_weights(at)
        U = at.basis
        D = (U * (a - rest)) @ U.T + rest * np.eye(len(U))
        W = np.empty(data.shape)
        for chunk in data.chunks:
            for place, i in enumerate(chunk.tasks):
                R = chunk.R if chunk.R.ndim == 2 else chunk.R[place]
                try:
                    W[:, i] = np.linalg.solve(v[i] * R.T @ R + D, v[i] * R.T @ chunk.q[place])
                except np.linalg.LinAlgError:
                    raise SolverError(
                        f"method='algorithm_1': in iteration {iteration} the system of task {i} is singular, as may be expected "
                        "of the printed form",
                        write_instead="write method='newton'",
                    ) from None
        at = model.evaluate(W)
        values.append(at.value)
        surrogate = 0.5 * float(v @ at.norms**2) + 0.5 * float(np.vdot(W, D @ W))
        done = (
            iteration > 1 and abs(before - surrogate) <= CHANGE_TOL * abs(before)
        ) or iteration == max_iter
        before = surrogate
        point = Point(data.blocks(at.W), iteration=iteration, notes={"objectives": values})
        if done or iteration.bit_count() == 1 or watch.expired:
            values = []
            if watch(point) or done or watch.expired:
                break
    return point
