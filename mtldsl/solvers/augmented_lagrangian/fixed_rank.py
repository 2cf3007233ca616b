"""Descent at a fixed rank: a point of a nonconvex model made stationary among the matrices of its rank, for any loss of samples.

Where a method is near the end, the rank does not change any more, and what is left is smooth in the weights; losses with kinks take the
method of multipliers (`tangents`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.certificates.stationarity import GRADIENT_FLOOR_SHARE, finite_steps
from mtldsl.normal_form.form import LossTerm, NormalForm, single_loss
from mtldsl.normal_form.term import MapEntry
from mtldsl.solvers.augmented_lagrangian.prox_parts import (
    KinkedScores,
    RadialScores,
    SmoothScores,
    StructuredScores,
)
from mtldsl.solvers.augmented_lagrangian.tangent_newton import TangentSpaceNewton, is_small
from mtldsl.solvers.design.task_design import Designs
from mtldsl.solvers.numerics.spectral_function import SpectrumFunction
from mtldsl.solvers.solver import Point, Watch
from mtldsl.utils.interrupts import svd


@dataclass(frozen=True)
class RankSettings:
    """Constants of descents at one rank.

    start_zero_tol : singular value of a start, relative to the largest, that is zero
    patience_steps : steps of the multipliers in which what is missing must fall by half
    settled_ratio  : what is missing over tol, at which the multipliers have settled
    max_runs       : runs, each from a point lower than the one before
    """

    start_zero_tol: float = 1e-7
    patience_steps: int = 15
    settled_ratio: float = 0.3
    max_runs: int = 20


SETTINGS = RankSettings()


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
    u = np.array(loss.dual_project(u), float)
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
