"""Descent at a fixed rank: a point of a nonconvex model made stationary among the matrices of its rank, for any loss of samples.

Where a method is near the end, the rank does not change any more, and what is left is smooth in the weights; losses with kinks take the
method of multipliers (`tangents`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.atoms.prox.composition import unsupported_reason
from mtldsl.atoms.prox.spectral_matrix import largest_singular_value, singular_values, thin_svd
from mtldsl.atoms.regularizers.spectral_norms import TraceNorm
from mtldsl.certificates.stationarity import GRADIENT_FLOOR_SHARE, finite_steps
from mtldsl.normal_form.form import FunctionTerm, MapEntry, NormalForm, single_loss
from mtldsl.solvers.augmented_lagrangian.augmented_lagrangian_run import AugmentedLagrangianRun
from mtldsl.solvers.augmented_lagrangian.outer_loop import OuterLoop
from mtldsl.solvers.augmented_lagrangian.prox_parts import (
    KinkedScores,
    MatrixPart,
    SmoothScores,
)
from mtldsl.solvers.augmented_lagrangian.semismooth_newton import NewtonState
from mtldsl.solvers.augmented_lagrangian.tangent_newton import SETTINGS as TANGENTS
from mtldsl.solvers.augmented_lagrangian.tangent_newton import SpectrumFunction, TangentSpaceNewton, is_small
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import svd

__all__ = [
    "SETTINGS",
    "ConcavePart",
    "ConcaveSpectralTerm",
    "LinearizedConcavePart",
    "RankSettings",
    "concave_of",
    "descend",
    "relax_to_trace_norm",
    "reweighted_of",
    "settle_at_rank",
    "why_not_at_rank",
]


# --------------------------------------------------------------------------------------------------------------
# Losses with kinks beside penalties of the spectrum that are not convex: convex models, one after another, by the method of multipliers.
#
# A concave penalty of the singular values is the difference of two convex functions,
#
#     sum_j phi(s_j) = L ||W||_* - h(W),     h(W) = sum_j (L s_j - phi(s_j)),     L = phi'(0),
#
# and so is, where mu is large enough, what `rank(W) <= r` forbids: mu (||W||_* - the sum of the r largest singular values) is zero there and
# nowhere else. With h replaced by its tangent at the last weights, <T, W> with T = U diag(L - phi'(s)) V^T, the model is convex: a trace norm
# that is tilted. It lies above the objective and touches it, so that no solution of it lies higher; where T does not move any more, the
# first-order conditions of the model itself hold.
#
# Source: Pham Dinh and Le Thi, "A D.C. optimization algorithm for solving the trust-region subproblem", SIAM J. Optim. 8 (1998); for the
# rank, Gotoh, Takeda and Tono, "DC formulations and algorithms for sparse optimization problems", Math. Program. 169 (2018).


@dataclass(frozen=True)
class RankSettings:
    """Constants of concave functions of the spectrum and of descents at one rank.

    slope_singular_value   : singular value at which the slope at zero is read
    slope_tol              : relative difference to the slope at a tenth of it, up to which that slope is finite
    penalty_factor         : times the penalty from which on the augmented Lagrangian is differentiable, for a descent
    start_zero_tol         : singular value of a start, relative to the largest, that is zero
    patience_steps         : steps of the multipliers in which what is missing must fall by half
    settled_ratio          : what is missing over tol, at which the multipliers have settled
    max_runs               : runs, each from a point lower than the one before
    look_ratio             : what is missing over tol, from which on a point is worth a look
    last_look_ratio        : what is missing over tol, from which on a look that is not content is the last
    descent_patience_steps : outer steps of a descent that neither halve what is missing nor lower the objective
    decrease_share         : of the objective, by which it is lower
    """

    slope_singular_value: float = 1e-9
    slope_tol: float = 1e-6
    penalty_factor: float = 2.0
    start_zero_tol: float = 1e-7
    patience_steps: int = 15
    settled_ratio: float = 0.3
    max_runs: int = 20
    look_ratio: float = 30.0
    last_look_ratio: float = 1e-2
    descent_patience_steps: int = 12
    decrease_share: float = 1e-5


SETTINGS = RankSettings()


@dataclass
class ConcaveSpectralTerm:
    """c sum_j phi(s_j), or the constraint that at most `rank` singular values are not zero.

    weight : L, the coefficient of the trace norm; of a constraint it may be raised
    """

    term: FunctionTerm
    rank: int | None
    weight: float

    def slopes(self, s: np.ndarray) -> np.ndarray:
        """c phi'(s), which of a constraint is the slope of what it forbids."""
        if self.rank is not None:
            return np.where(np.arange(s.size) < self.rank, 0.0, self.weight)
        atom: Any = self.term.atom
        alive = s > TANGENTS.zero_tol * s.max(initial=0.0)
        safe = np.where(alive, s, 1.0)
        return np.where(alive, self.term.coefficient * 2.0 * safe * atom.slope(safe**2), self.weight)

    def rank_of(self, W: np.ndarray) -> int:
        """Return how many singular values of W are not zero."""
        s = singular_values(W)
        return int(np.count_nonzero(s > TANGENTS.zero_tol * s.max(initial=0.0)))

    def least_penalty(self, W: np.ndarray, P: np.ndarray) -> float:
        """The penalty above which the function's prox is smooth around W, whose multipliers are P; inf where there is none."""
        f = self.term
        if not f.is_constraint and np.isfinite(f.atom.weak_convexity):
            return SETTINGS.penalty_factor * f.coefficient * f.atom.weak_convexity
        s = singular_values(W)[: self.rank_of(W)]
        jumps = [*getattr(f.atom, "kinks", ()), *([] if f.atom.is_reweighted else [0.0])]
        apart = float(np.abs(s[:, None] - jumps).min(initial=np.inf))
        pull = largest_singular_value(P)
        is_apart = apart > TANGENTS.zero_tol * s.max(initial=0.0)
        return SETTINGS.penalty_factor * pull / apart if is_apart else np.inf

    def tilt(self, W: np.ndarray) -> np.ndarray:
        """T, the gradient of h at W."""
        U, s, Vt = thin_svd(W)
        bent = np.where(s > TANGENTS.zero_tol * s.max(initial=0.0), self.weight - self.slopes(s), 0.0)
        return (U * bent) @ Vt


def concave_of(form: NormalForm) -> ConcaveSpectralTerm | str:
    """The one function that is not convex, or a sentence that says what is wrong."""
    rough = [f for f in form.functions if not f.atom.convex]
    if len(rough) != 1:
        return f"{rough[1].typed} is not convex either." if rough else "every function is convex."
    (f,) = rough
    found = _concave(f)
    if found is None:
        return f"{f.typed} is neither a concave function of the spectrum with a finite slope at zero nor a bound on the rank."
    return (
        unsupported_reason([(g.coefficient, g.atom) for g in relax_to_trace_norm(form, found).functions])
        or found
    )


def reweighted_of(form: NormalForm) -> ConcaveSpectralTerm | None:
    """The one function that is not convex, where it is smooth and an exact prox is known of its sum with all others."""
    rough = [f for f in form.functions if not f.atom.convex]
    if len(rough) != 1 or not (rough[0].atom.is_reweighted and rough[0].atom.exact_prox):
        return None
    found = ConcaveSpectralTerm(rough[0], None, rough[0].coefficient)
    both = form.functions, relax_to_trace_norm(form, found).functions
    return None if any(unsupported_reason([(f.coefficient, f.atom) for f in fs]) for fs in both) else found


def _concave(f: FunctionTerm) -> ConcaveSpectralTerm | None:
    atom: Any = f.atom
    if f.is_constraint:
        rank = getattr(atom, "rank", None)
        return None if rank is None else ConcaveSpectralTerm(f, rank, 0.0)
    if not hasattr(atom, "slope") or getattr(atom, "eps", 1.0) != 0.0 or not atom.exact_prox:
        return None
    places = SETTINGS.slope_singular_value, 0.1 * SETTINGS.slope_singular_value
    at, nearer = (2.0 * s * float(atom.slope(np.float64(s) ** 2)) for s in places)
    if not (np.isfinite(at) and abs(at - nearer) <= SETTINGS.slope_tol * at):
        return None
    return ConcaveSpectralTerm(f, None, f.coefficient * at)


def relax_to_trace_norm(form: NormalForm, concave: ConcaveSpectralTerm) -> NormalForm:
    """With L ||W||_* in its place: convex."""
    weight = concave.weight or 1.0
    own = FunctionTerm(TraceNorm(), weight, concave.term.map, concave.term.typed)
    return replace(form, functions=tuple(own if f is concave.term else f for f in form.functions))


class ConcavePart(MatrixPart):
    """The joint prox of functions one of which is not convex, near a point where it is smooth among the matrices of one rank."""

    least_slope = -np.inf


class LinearizedConcavePart(MatrixPart):
    """The joint prox of functions of one matrix and of -<tilt, W>."""

    def __init__(self, functions: tuple[FunctionTerm, ...], unit: np.ndarray, place: int):
        super().__init__(functions, unit)
        self.tilt: Any = 0.0
        self.place = place  # of the trace norm that is tilted

    def multipliers(self, W: np.ndarray, P: np.ndarray, M: np.ndarray) -> np.ndarray:
        middle = W + P / M
        self.at = middle + self.tilt / M
        self.found = self.prox(self.at, M)
        return M * (middle - self.found)

    def shares(self, V: np.ndarray, M: np.ndarray) -> list[np.ndarray]:
        found = super().shares(V + self.tilt / M, M)
        found[self.place] = found[self.place] - self.tilt
        return found


def why_not_at_rank(form: NormalForm) -> str | None:
    """None for one loss of samples, with a prox, of W or W R, beside ridges and functions of the spectrum that are not convex; else one
    sentence."""
    loss = single_loss(form)
    if isinstance(loss, str):
        return loss
    if len(form.weight_blocks) != 1:
        return f"there are {len(form.weight_blocks)} weight matrices."
    (block,) = form.weight_blocks
    atom = loss.atom
    if not (atom.separable and (loss.is_piecewise_linear or (atom.smooth and atom.exact_prox))):
        return f"{loss.typed} has to be a sum over samples with an exact proximal step."
    own = loss.map.entries
    if len(own) != 1 or own[0].left is not None or loss.map.offset is not None or len(loss.intercepts) > 1:
        return f"{loss.typed} is not a loss of {block.name} itself."
    for f in form.functions:
        if not f.map.multiple_of(block.name) or f.map.offset is not None:
            return f"{f.typed} is not a function of {block.name} itself."
        square = f.atom.entry_quadratic
        if square is not None and np.ndim(square) == 0:
            continue
        if f.atom.convex or f.atom.separable != "spectrum":
            return f"{f.typed} is neither a ridge nor a function of the spectrum that is not convex."
    if form.is_convex:
        return "every function is convex."
    return None if is_small(block.shape, 1) else f"the tangent spaces of {block.name} are large."


def settle_at_rank(form: NormalForm, start: Point, *, tol: float, watch: Watch) -> Point | None:
    """The last point, from `start`, where the run ends with it; None where it goes on elsewhere.

    Where a step of a size leads lower from where a run has settled, the next one begins there, at the rank there.
    """
    at = start
    for _ in range(SETTINGS.max_runs):
        try:
            settled = _settled(form, at, tol, watch)
        except (ArithmeticError, np.linalg.LinAlgError):  # far out, where nothing holds the weights
            return None
        if settled is None:
            return None
        if watch.expired:
            watch(settled)
            return settled
        now = form.value(settled.blocks)
        value, blocks = finite_steps(form, settled.blocks, tol)
        if not value < now - 0.5 * tol * abs(now):
            return settled if watch(settled) else None
        at = Point(blocks, settled.loss_duals, iteration=start.iteration)
    return None


def _settled(form: NormalForm, start: Point, tol: float, watch: Watch) -> Point | None:
    """The point at which the multipliers settle at the rank of the start, or where the time is up."""
    (loss,), (block,) = form.losses, form.weight_blocks
    designs = Designs(loss)
    scores: Any = KinkedScores(loss) if loss.is_piecewise_linear else SmoothScores(loss)
    right = _right(loss.map.entries[0], block.shape[1])
    rank = _rank(form, start.blocks[block.name])
    if rank == 0 or not is_small(block.shape, rank):
        return None
    W = np.array(start.blocks[block.name], float)
    b = sum((start.blocks[name][0] for name in loss.intercepts), np.zeros(designs.n_tasks))
    given = None if start.loss_duals is None else start.loss_duals[0]
    u = loss.gradient(loss.predictions(start.blocks)) if given is None else given
    u = np.array(loss.dual_project(np.asarray(u)), float)
    spread = np.maximum(scores.spread_of_scores(designs), 1e-12)
    penalty = float(np.mean(scores.sizes(designs) / spread))
    first = W, designs.centred(W if right is None else W @ right, b), u
    floor = max(GRADIENT_FLOOR_SHARE * form.slope_at_zero, np.finfo(float).tiny)
    spectrum = _spectrum(form, block.name)
    steps = TangentSpaceNewton(designs, scores, rank, spectrum, penalty, first, right, floor)
    best, since = np.inf, 0
    while steps.missing > SETTINGS.settled_ratio * tol and not watch.expired:
        steps.step()
        since += 1
        if steps.missing < 0.5 * best:
            best, since = steps.missing, 0
        if since == SETTINGS.patience_steps:
            return None
    blocks = {block.name: steps.W}
    for name in loss.intercepts:
        whole = steps.W if right is None else steps.W @ right
        blocks[name] = designs.intercepts(whole, steps.b)[None, :]
    return Point(blocks, [scores.duals(steps.u)], None, start.iteration)


def _right(entry: MapEntry, q: int) -> np.ndarray | None:
    """R where the loss is one of W R."""
    if entry.right is None:
        return None if entry.coefficient == 1.0 else entry.coefficient * np.eye(q)
    dense = entry.right.toarray() if sparse.issparse(entry.right) else np.asarray(entry.right)
    return entry.coefficient * dense


def _spectrum(form: NormalForm, block: str) -> SpectrumFunction:
    """phi: what only counts the rank is a constant here."""
    ridge, terms = 0.0, []
    for f in form.functions:
        factor, square = f.map.multiple_of(block), f.atom.entry_quadratic
        if square is not None:
            ridge += f.coefficient * factor**2 * float(square)
        elif hasattr(f.atom, "slope"):
            terms.append((f.coefficient, f.atom, abs(factor)))
    return SpectrumFunction(ridge, tuple(terms))


def _rank(form: NormalForm, W: np.ndarray) -> int:
    """Return how many singular values are not zero; all may be where every function is smooth, no more than a bound on the rank allows."""
    s = svd(W, compute_uv=False)
    rough = [f for f in form.functions if f.is_constraint or not f.atom.is_smooth]
    if not rough:
        return s.size
    bounds = [getattr(f.atom, "rank", s.size) for f in rough]
    return min([int(np.count_nonzero(s > SETTINGS.start_zero_tol * s[0])), *bounds])


# --------------------------------------------------------------------------------------------------------------
# Descent by the method of multipliers, with one function of the spectrum as it is: near a solution as fast as for convex models.
#
# Under a penalty M that is larger than its weak convexity the function's Moreau envelope is differentiable, so that the augmented Lagrangian
# is too, and Newton's method finds a stationary point of it; then the multipliers step. Far from a solution nothing is sure: whoever descends
# has another method that is.
#
# Source: Rockafellar, "Convergence of augmented Lagrangian methods in extensions beyond nonlinear programming", Math. Program. 199 (2023);
# Hang and Sarabi, "Local convergence analysis of augmented Lagrangian methods for piecewise linear-quadratic composite optimization problems",
# SIAM J. Optim. 31 (2021).


def descend(
    form: NormalForm,
    concave: ConcaveSpectralTerm,
    start: Point,
    *,
    tol: float,
    taken: int,
    limit: int,
    watch: Watch,
    at: NewtonState | None = None,
) -> tuple[Point | None, int]:
    """(the last point where the run ends with it, the Newton steps taken so far), from `start` or the state that belongs to it.

    Not beyond `limit` Newton steps, of which `taken` are.
    """
    run = AugmentedLagrangianRun(relax_to_trace_norm(form, concave), tol, start)
    run.form = form
    part = run.part = ConcavePart(form.functions, run.designs.unit())
    at = run.outer.at if at is None else at
    outer = run.outer = OuterLoop(run.designs, run.scores, part, at)
    least = concave.least_penalty(at.v, at.P) / part.unit[0] ** 2
    if not np.isfinite(least):
        return None, taken
    best, lowest, since = np.inf, np.inf, 0
    while since < SETTINGS.descent_patience_steps and taken < limit:
        p = outer.penalties
        outer.penalties = replace(p, regularizer=np.maximum(p.regularizer, least))
        taken += max(outer.step(limit - taken), 1)
        missing = float(outer.residuals.worst.max())
        point = run._point(outer, taken)
        if watch.expired:
            watch(point)
            return point, taken
        if missing <= SETTINGS.look_ratio * tol:
            if watch(point):
                return point, taken
            if missing <= SETTINGS.last_look_ratio * tol:
                break
        value = form.value(point.blocks)
        since += 1
        if missing < 0.5 * best:
            best, since = missing, 0
        if value < lowest - SETTINGS.decrease_share * abs(lowest) and form.violation(point.blocks) <= tol:
            lowest, since = value, 0
    return None, taken
