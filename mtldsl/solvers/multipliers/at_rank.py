"""A point of a model that is not convex, made stationary among the matrices of its rank, for any loss of samples.

Where a method is near the end, the rank does not change any more, and what is left is smooth in the weights; losses with kinks take the
method of multipliers (`tangents`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.compile.normal_form import Entry, NormalForm
from mtldsl.compile.single_block import single_loss
from mtldsl.proof.finite_steps import finite_steps
from mtldsl.proof.first_order import FLOOR
from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.scores import KinkedScores, SmoothScores, is_piecewise_linear
from mtldsl.solvers.multipliers.tangents import Spectrum, Tangents, is_small
from mtldsl.solvers.solver import Point, Watch
from mtldsl.system.long_calls import svd

__all__ = ["settle_at_rank", "why_not_at_rank"]

#: A singular value this small, relative to the largest, is zero.
_ZERO = 1e-7

#: Steps of the multipliers in which what is missing must fall by half; the share of tol at which they have settled; runs, one lower than the other.
_PATIENT, _ACCURACY, _MOST_RUNS = 15, 0.3, 20


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
    if not (atom.separable and (is_piecewise_linear(loss) or (atom.smooth and atom.exact_prox))):
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
    for _ in range(_MOST_RUNS):
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
    scores: Any = KinkedScores(loss) if is_piecewise_linear(loss) else SmoothScores(loss)
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
    floor = max(FLOOR * form.slope_at_zero, np.finfo(float).tiny)
    spectrum = _spectrum(form, block.name)
    steps = Tangents(designs, scores, rank, spectrum, penalty, first, right, floor)
    best, since = np.inf, 0
    while steps.missing > _ACCURACY * tol and not watch.expired:
        steps.step()
        since += 1
        if steps.missing < 0.5 * best:
            best, since = steps.missing, 0
        if since == _PATIENT:
            return None
    blocks = {block.name: steps.W}
    for name in loss.intercepts:
        whole = steps.W if right is None else steps.W @ right
        blocks[name] = designs.intercepts(whole, steps.b)[None, :]
    return Point(blocks, [scores.duals(steps.u)], None, start.iteration)


def _right(entry: Entry, q: int) -> np.ndarray | None:
    """R where the loss is one of W R."""
    if entry.right is None:
        return None if entry.coefficient == 1.0 else entry.coefficient * np.eye(q)
    dense = entry.right.toarray() if sparse.issparse(entry.right) else np.asarray(entry.right)
    return entry.coefficient * dense


def _spectrum(form: NormalForm, block: str) -> Spectrum:
    """phi: what only counts the rank is a constant here."""
    ridge, terms = 0.0, []
    for f in form.functions:
        factor, square = f.map.multiple_of(block), f.atom.entry_quadratic
        if square is not None:
            ridge += f.coefficient * factor**2 * float(square)
        elif hasattr(f.atom, "slope"):
            terms.append((f.coefficient, f.atom, abs(factor)))
    return Spectrum(ridge, tuple(terms))


def _rank(form: NormalForm, W: np.ndarray) -> int:
    """How many singular values are not zero; all may be where every function is smooth, no more than a bound on the rank allows."""
    s = svd(W, compute_uv=False)
    rough = [f for f in form.functions if f.is_constraint or not f.atom.is_smooth]
    if not rough:
        return s.size
    bounds = [getattr(f.atom, "rank", s.size) for f in rough]
    return min([int(np.count_nonzero(s > _ZERO * s[0])), *bounds])
