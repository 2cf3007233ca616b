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
from mtldsl.atoms.prox.spectral_matrix import singular_values, thin_svd
from mtldsl.atoms.regularizers.spectral_norms import TraceNorm
from mtldsl.certificates.stationarity import GRADIENT_FLOOR_SHARE, finite_steps
from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm, single_loss
from mtldsl.normal_form.term import MapEntry
from mtldsl.solvers.augmented_lagrangian.prox_parts import (
    KinkedScores,
    MatrixPart,
    RadialScores,
    SmoothScores,
    StructuredScores,
)
from mtldsl.solvers.augmented_lagrangian.tangent_newton import SETTINGS as TANGENTS
from mtldsl.solvers.augmented_lagrangian.tangent_newton import TangentSpaceNewton, is_small
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.numerics.spectral_function import SpectrumFunction
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import svd

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
    start_zero_tol         : singular value of a start, relative to the largest, that is zero
    patience_steps         : steps of the multipliers in which what is missing must fall by half
    settled_ratio          : what is missing over tol, at which the multipliers have settled
    max_runs               : runs, each from a point lower than the one before
    look_ratio             : what is missing over tol, from which on a point is worth a look
    """

    slope_singular_value: float = 1e-9
    slope_tol: float = 1e-6
    start_zero_tol: float = 1e-7
    patience_steps: int = 15
    settled_ratio: float = 0.3
    max_runs: int = 20
    look_ratio: float = 30.0


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
    if _scores_of(loss) is None:
        return f"{loss.typed} has no exact proximal step with a derivative."
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


def _scores_of(loss: LossTerm) -> type | None:
    """The proximal steps of the loss with their derivatives; None where there are none."""
    if loss.has_score_steps:
        return StructuredScores
    if loss.is_piecewise_linear:
        return KinkedScores
    if not loss.atom.exact_prox:
        return None
    if loss.atom.separable:
        return SmoothScores if loss.atom.smooth else None
    return RadialScores if loss.atom.radial else None


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
    kind = _scores_of(loss)
    assert kind is not None  # the caller asked why not
    scores: Any = kind(loss)
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
    spectrum = SpectrumFunction.of(form, block.name)
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
    duals = _function_duals(form, block.name, steps.W, -steps.pull(steps.u))
    return Point(blocks, [steps.u], duals, start.iteration)


def _function_duals(form: NormalForm, block: str, W: np.ndarray, left: np.ndarray) -> list | None:
    """Every function's multiplier: the ridges', and what these leave of `left` for one other; None where there are several others."""
    if sum(f.atom.entry_quadratic is None for f in form.functions) != 1:
        return None
    ridges = {
        k: f.coefficient * float(f.atom.entry_quadratic) * f.map.multiple_of(block) * W
        for k, f in enumerate(form.functions)
        if f.atom.entry_quadratic is not None
    }
    left = left - sum(form.functions[k].map.multiple_of(block) * v for k, v in ridges.items())
    return [
        ridges[k] if k in ridges else left / f.map.multiple_of(block) for k, f in enumerate(form.functions)
    ]


def _right(entry: MapEntry, q: int) -> np.ndarray | None:
    """R where the loss is one of W R."""
    if entry.right is None:
        return None if entry.coefficient == 1.0 else entry.coefficient * np.eye(q)
    dense = entry.right.toarray() if sparse.issparse(entry.right) else np.asarray(entry.right)
    return entry.coefficient * dense


def _rank(form: NormalForm, W: np.ndarray) -> int:
    """Return how many singular values are not zero; all may be where every function is smooth, no more than a bound on the rank allows."""
    s = svd(W, compute_uv=False)
    rough = [f for f in form.functions if f.is_constraint or not f.atom.is_smooth]
    if not rough:
        return s.size
    bounds = [getattr(f.atom, "rank", s.size) for f in rough]
    return min([int(np.count_nonzero(s > SETTINGS.start_zero_tol * s[0])), *bounds])
