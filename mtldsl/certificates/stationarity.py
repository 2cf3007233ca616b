r"""Stationarity of a point of a model that is not convex: how little each block of unknowns can improve it.

With the matrices S kept, the model is convex in the weights W; with W kept, each S has a closed form. At a point (W, S):

- the decrease of a matrix is the objective minus its minimum over that matrix, in closed form, or minus a dual bound of it where
  the matrix is found by an iteration (a sparse precision's);
- the decrease of the weights is at most the duality gap of the convex model in which every S is kept;
- the gradient of the profile (the objective with every S at its best, a function of W alone) is that of this convex model at
  the best S; relative to the gradients of its parts, of which it is the sum, it is the residual.

Where regularizers or constraints are not smooth but have an exact prox, the length of a proximal gradient step, divided by the
step size, stands for the gradient. Where losses have kinks or penalties are not convex, what the solver's multipliers miss of the
first-order conditions does (`mtldsl.certificates.stationarity`). Where not even that is known, the decrease of the weights in relation to the
penalty does: of second order, so that a small one says less. The residual is the larger of that and of every matrix's decrease: 0
at a stationary point. It says nothing about other stationary points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.atoms.prox.composition import prox_of_sum, unsupported_reason
from mtldsl.atoms.regularizers.spectral_norms import RANK_ROUNDING_SHARE
from mtldsl.certificates.dual_bound import gradients_of_losses, guess, rough_functions
from mtldsl.certificates.multipliers import add_magnitudes
from mtldsl.normal_form.form import Blocks, FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.reductions.block_reductions import FixedStructures
from mtldsl.normal_form.terms.structure_term import (
    Structures,
    StructureTerm,
    kept_value,
    learned_matrices,
    structure_terms,
)
from mtldsl.utils.interrupts import svd

# --------------------------------------------------------------------------------------------------------------
# Steps of a size from a point that is stationary to first order: what infinitely small ones do not see.
#
# A concave penalty may be flat where a point stands and fall off at a kink next to it: of min(sigma, tau) a singular value just above tau
# costs as much as one far above, and nothing at zero. There the gradient is zero, and a step of 1 % may bring 10 %. So the objective itself
# is evaluated after steps of at most 1 % of the weights' length,
#
# - every singular value of a penalty's argument, and the smallest together, moved: to zero, to the kinks on either side and past them, by 1 %
#   of itself and of the largest, as far as that is within reach;
# - of penalties of sizes the same with entries, or rows, in the place of singular values;
# - a singular value that is zero grown along the first singular pair of what the losses pull with;
# - the weights as a whole, up and down;
# - a few fixed directions, either way.
#
# It is a test, not a proof: a step that lowers the objective shows that a point is not what its name says; that none of these does is no more
# than that. Further steps are none of its business: they compare stationary points with each other. Deterministic, and as many steps as their
# price allows: of large data only the first of each kind.


@dataclass(frozen=True)
class StationaritySettings:
    """Limits of steps that look for lower objectives."""

    work_flops: float = 2e9  # multiply-adds of products with the data that all steps may cost
    least_steps: int = 40  # steps at least, whatever they cost
    most_steps: int = 160  # steps at most
    reach_share: float = 1e-2  # longest step, relative to the weights
    violation_share: float = 1e-3  # of tol, that a step may miss a constraint by more than the point does
    single_values: int = 6  # smallest, and largest, singular values that are moved one by one
    fixed_directions: int = 6  # fixed directions
    direction_lengths: tuple[float, ...] = (1.0, 0.1)  # their lengths, relative to the weights
    # step past a kink, relative to it: exactly there the slope of neither side is seen
    passed_kink_share: float = 1e-6
    # tau of a function that is not convex, of what it is for others: the first step may still cross a kink right beside the point, the
    # shorter one does not; where both are too long, v is not a subgradient
    tau_shares: tuple[float, ...] = (1e-3, 1e-5)


SETTINGS = StationaritySettings()


def finite_steps(form: NormalForm, x: Blocks, tol: float) -> tuple[float, Blocks]:
    """(the lowest objective among the steps that miss no constraint by more than x does, the point there); (inf, x) where there is none.

    What they may miss besides is a share of tol: an objective that falls by missing constraints says nothing.
    """
    allowed = form.violation(x) + SETTINGS.violation_share * tol
    affordable = SETTINGS.work_flops / max(form.data_size, 1)
    steps = int(np.clip(affordable, SETTINGS.least_steps, SETTINGS.most_steps))
    length = np.sqrt(sum(np.sum(np.square(x[block.name])) for block in form.weight_blocks))
    reach = SETTINGS.reach_share * length
    lowest, at = np.inf, x
    for _, step in zip(range(steps), _in_turn(form, x, reach), strict=False):
        with np.errstate(over="ignore", invalid="ignore"):
            value = form.value(step)
        if value < lowest and form.violation(step) <= allowed:
            lowest, at = value, step
    return lowest, at


def _in_turn(form: NormalForm, x: Blocks, reach: float) -> Iterator[Blocks]:
    """One step of each kind after another, so that a limit leaves some of each."""
    kinds = [
        (_of_sizes if f.atom.separable in ("entries", "rows") else _of_spectrum)(f, name, x, form, reach)
        for f in form.functions
        if not f.atom.convex and reach > 0.0 and (name := _argument_of(f)) is not None
    ]
    kinds += [_of_scale(form, x), _fixed(form, x, reach)]
    while kinds:
        for kind in list(kinds):
            step = next(kind, None)
            if step is None:
                kinds.remove(kind)
            else:
                yield step


def _of_spectrum(f: FunctionTerm, name: str, x: Blocks, form: NormalForm, reach: float) -> Iterator[Blocks]:
    """Steps of the weights that a penalty is a function of."""
    multiple, W = abs(f.map.multiple_of(name)), x[name]
    U, s, Vt = svd(W)
    alive = int(np.count_nonzero(s > RANK_ROUNDING_SHARE * s.max(initial=0.0)))
    U, s, Vt = U[:, :alive], s[:alive], Vt[:alive]
    for moved in _spectra(s, [kink / multiple for kink in f.atom.kinks], reach):
        if 0.0 < np.linalg.norm(moved - s) <= reach:
            yield x | {name: (U * moved) @ Vt}
    pull = -gradients_of_losses(form, x)[name]  # beside the singular vectors that there are
    pull = pull - U @ (U.T @ pull)
    pull = pull - (pull @ Vt.T) @ Vt
    if np.linalg.norm(pull) > 0:
        P, _, Qt = svd(pull)
        yield from _grown(x, name, reach * np.outer(P[:, 0], Qt[0]))


def _grown(x: Blocks, name: str, step: np.ndarray) -> Iterator[Blocks]:
    for share in (1.0, 0.1, 0.01):
        yield x | {name: x[name] + share * step}


def _argument_of(f: FunctionTerm) -> str | None:
    """Return the block of which the function's argument is a multiple."""
    name = next((name for name in f.map.blocks if f.map.multiple_of(name)), None)
    return name if f.map.offset is None else None


def _of_sizes(f: FunctionTerm, name: str, x: Blocks, form: NormalForm, reach: float) -> Iterator[Blocks]:
    """Steps of single entries, or of rows: those next to zero or a kink, and of those that are zero the one that is drawn most."""
    atom, W, multiple = f.atom, x[name], abs(f.map.multiple_of(name))
    sizes = np.abs if atom.separable == "entries" else lambda A: np.linalg.norm(A, axis=1, keepdims=True)
    t, pull = sizes(W), -gradients_of_losses(form, x)[name]
    ends = [0.0, *(kink / multiple for kink in atom.kinks)]
    past = [end * (1.0 + side * SETTINGS.passed_kink_share) for end in ends[1:] for side in (-1, 1)]
    away = np.where(t > 0, np.min([np.abs(t - end) for end in ends], axis=0), np.inf)
    for j in np.argsort(away, axis=None)[: min(2 * SETTINGS.single_values, np.count_nonzero(t))].tolist():
        for to in (0.0, *past, t.flat[j] - reach, t.flat[j] + reach):
            if to >= 0.0 and 0.0 < abs(to - t.flat[j]) <= reach:
                factor = np.ones(t.shape)
                factor.flat[j] = to / t.flat[j]
                yield x | {name: factor * W}
    drawn = np.where(t > 0, 0.0, sizes(pull))
    if drawn.any():
        alone = pull * (np.arange(t.size).reshape(t.shape) == np.argmax(drawn)) / drawn.max()
        yield from _grown(x, name, reach * alone)


def _spectra(s: np.ndarray, kinks: list[float], reach: float) -> Iterator[np.ndarray]:
    """Singular values next to s > 0, which fall; some out of reach."""
    past = [kink * (1.0 + side * SETTINGS.passed_kink_share) for kink in kinks for side in (-1, 1)]
    for kink in past:
        over = (s > kink) & (s <= kink + reach)
        for to in (kink, np.maximum(s - reach / np.sqrt(max(np.count_nonzero(over), 1)), 0.0)):
            yield np.where(over, to, s)
    for rank in range(s.size - 1, -1, -1):
        yield np.where(np.arange(s.size) < rank, s, 0.0)
    order = list(range(s.size))[::-1]
    few = SETTINGS.single_values
    for j in order if s.size <= 2 * few else order[:few] + order[-few:]:
        for to in (
            max(s[j] - reach, 0.0),
            *past,
            0.99 * s[j],
            s[j] + reach,
            1.01 * s[j],
            max(s[j] - 0.1 * reach, 0.0),
        ):
            moved = s.copy()
            moved[j] = to
            yield moved


def _of_scale(form: NormalForm, x: Blocks) -> Iterator[Blocks]:
    share = SETTINGS.reach_share
    for factor in (1.0 - share, 1.0 + share, 1.0 - 0.1 * share):
        yield x | {block.name: factor * x[block.name] for block in form.weight_blocks}


def _fixed(form: NormalForm, x: Blocks, reach: float) -> Iterator[Blocks]:
    """Dense directions and such of rank one by turns, either way."""
    rng = np.random.default_rng(0)
    for k in range(SETTINGS.fixed_directions):
        direction, square = {}, 0.0
        for block in form.weight_blocks:
            p, q = block.shape
            E = rng.normal(size=(p, q)) if k % 2 else np.outer(rng.normal(size=p), rng.normal(size=q))
            E *= np.linalg.norm(x[block.name]) / max(np.linalg.norm(E), 1e-300)
            direction[block.name], square = E, square + np.sum(np.square(E))
        for length in SETTINGS.direction_lengths if square > 0 else ():
            for sign in (1.0, -1.0):
                t = sign * length * reach / np.sqrt(square)
                yield x | {name: x[name] + t * E for name, E in direction.items()}


# --------------------------------------------------------------------------------------------------------------
# First-order conditions with multipliers, for models in which losses have kinks or penalties are not convex.
#
# A point x is stationary where there are u_t in the subdifferential of loss t at its predictions, and v_k in that of function k at
# the image of its map, with sum_t A_t^T u_t + sum_k B_k^T v_k = 0 on every block. A solver's multipliers obey none of this exactly.
# They are made to obey the equation - one function of every block takes what is left - and then measured: u lies in the
# subdifferential of f at z exactly if z = prox(z + tau u), so that
#
#     || z - prox_{tau f}(z + tau u) || / (tau ||u||)
#
# is the distance, to first order, in multipliers and in predictions alike. For a function that is not convex tau is small: then only
# what is near counts. The log-rank at W = U diag(s) V^T, for one, has the subgradients U diag(1 / (1 + s)) V^T + Z with Z
# orthogonal to U and V on either side and ||Z||_2 <= 1.
#
# Source: Nie, Hu and Li, "Calibrated multi-task learning", KDD 2018, problem (7); Rockafellar and Wets, "Variational analysis"
# (1998), Theorem 10.1.

_TINY = np.finfo(float).tiny

#: Gradients below this share of the losses' gradient at zero count as that large: where all vanish, each is rounding of the others.
GRADIENT_FLOOR_SHARE = 1e-6


def first_order_residuals(
    form: NormalForm, blocks: Blocks, loss_duals=None, function_duals=None
) -> dict[str, float] | None:
    """Return what is missing of the conditions, by term as typed and "balance" for the equation; None where a term has neither a gradient
    nor an exact prox, or two terms of a block lack a multiplier.
    """
    x, g = blocks, form.zeros()
    found: dict[str, float] = {}
    of_losses, magnitudes = form.zeros(), form.zeros()
    for t, loss in enumerate(form.losses):
        z = loss.predictions(x)
        if loss.atom.smooth:
            u = loss.gradient(z)
        else:
            given = None if loss_duals is None else loss_duals[t]
            u = loss.gradient(z) if given is None else np.asarray(loss.dual_project(given))
            apart = _loss_distance(loss, z, u, loss.gradient(loss.predictions(form.zeros())))
            if apart is None:
                return None
            found[loss.typed] = apart
        loss.add_adjoint(u, of_losses)
        # where multipliers balance each other, their sum is not a measure of size
        add_magnitudes(loss, u, magnitudes, on_weights=False)
    floor = max(GRADIENT_FLOOR_SHARE * form.slope_at_zero, _TINY)
    sizes = {name: float(np.linalg.norm(part)) for name, part in of_losses.items()}
    for name, part in of_losses.items():
        g[name] += part
    rough = rough_functions(form)
    given: Any = [None] * len(form.functions) if function_duals is None else function_duals
    given = [None if dual is None else np.asarray(dual, float) for dual in given]
    v: list[Any] = [given[k] if k in rough else guess(f, x) for k, f in enumerate(form.functions)]
    for f, dual in zip(form.functions, v, strict=True):
        if dual is not None:
            into = form.zeros()
            f.map.add_adjoint(dual, into)
            for name, part in into.items():
                g[name] += part
                sizes[name] = max(sizes[name], float(np.linalg.norm(part)))
    left = 0.0
    for name, residual in g.items():
        own = [k for k in rough if form.functions[k].map.multiple_of(name)]
        missing = [k for k in own if v[k] is None]
        if len(missing) > 1:
            return None
        if own:
            taker = missing[0] if missing else own[-1]
            before = 0.0 if v[taker] is None else v[taker]
            v[taker] = before - residual / form.functions[taker].map.multiple_of(name)
        else:
            size = max(*sizes.values(), float(np.linalg.norm(magnitudes[name])), floor)
            left = max(left, float(np.linalg.norm(residual)) / size)
    if any(v[k] is None for k in rough):
        return None
    found["balance"] = left
    largest = max(*sizes.values(), floor)
    for k in rough:
        f, w = form.functions[k], form.functions[k].map.forward(x)
        if not f.atom.exact_prox:
            return None
        length = max(float(np.linalg.norm(w)), f.map.usual_length(x)) or 1.0
        found[f.typed] = _distance(f, w, v[k], length, largest, max(form.slope_at_zero, _TINY))
    return found


def _loss_distance(loss: LossTerm, z, u, usual) -> float | None:
    """The distance of u from the subdifferential of a loss at z, the largest over tasks: each has a scale of its own. None without a prox.

    usual : the loss's gradient at zero, in relation to which a multiplier may vanish
    """
    by_task = loss.atom.separable or loss.takes_steps_by_task  # else there is one step for all
    starts = loss.tasks.offsets[:-1] if by_task else np.zeros(1, int)

    def norms(flat):
        return np.sqrt(np.add.reduceat(np.square(flat), starts))

    lengths = norms(z) + norms(loss.tasks.targets)
    sizes = np.maximum(norms(u), GRADIENT_FLOOR_SHARE * norms(usual))
    steps = lengths / np.maximum(sizes, _TINY)
    step = np.repeat(steps, loss.tasks.counts) if by_task else steps[0]
    try:
        apart = norms(z - loss.prox(z + step * u, step))
    except NotImplementedError:
        return None
    return float(np.max(apart / np.maximum(lengths, _TINY)))


def _distance(f, w, v, length: float, largest: float, usual: float) -> float:
    """The distance of v from the subdifferential of a function at w, relative to the largest gradient, or of w from where v belongs,
    relative to `length`: the image itself may be nothing but what rounding leaves of zero."""
    size = max(float(np.linalg.norm(v)), largest, _TINY)
    # far steps see what is not near: for a function that is not convex they are short even where v vanishes
    taus = [length / size]
    if not f.atom.convex:
        taus = [share * length / max(size, usual) for share in SETTINGS.tau_shares]
    return min(float(np.linalg.norm(w - f.prox(w + tau * v, tau))) / (tau * size) for tau in taus)


NO_GLOBAL = "stationary point, no global certificate"


#: Rounding of a decrease that is zero, relative to the size of what is subtracted.
_DECREASE_ROUNDING_SHARE = 1e-9


@dataclass(frozen=True)
class Stationarity:
    """Distance of a point from a stationary one.

    decreases  block -> by how much it alone can lower the objective, relative to its size: the weights together as "weights"
               (an upper bound), every learned matrix by name, and all matrices together as "matrices". Empty where with its
               matrices kept the model is still not convex
    gradient   the norm of the profile's gradient, or of its proximal gradient, relative to those of its parts; None where a loss
               is not smooth or no exact prox is known
    residual   what is compared with tol: `gradient`, or `conditions`, or the decrease of the weights in relation to the penalty
               where there is neither; and no less than the decreases of the matrices
    conditions what is missing of the first-order conditions with multipliers, term by term; None where `gradient` says it, or
               where a term has no exact prox
    finite     by how much one of the steps of `mtldsl.certificates.stationarity` lowers the objective, relative to its size: more than the
               tolerance asked for, and then the residual is no less; 0 where none does, or where nobody has looked
    """

    decreases: dict[str, float]
    gradient: float | None
    residual: float
    size: float = 0.0  # of the terms that the objective is the sum of: what decreases are relative to
    conditions: dict[str, float] | None = None
    finite: float = 0.0

    def __str__(self) -> str:
        said = []
        if self.decreases:
            parts = [f"{name} {decrease:.1e}" for name, decrease in self.decreases.items()]
            said.append(f"possible relative decrease by {', '.join(parts)}")
        if self.gradient is not None:
            said.append(f"profile gradient {self.gradient:.1e}")
        if self.conditions is not None:
            parts = [f"{name} {missing:.1e}" for name, missing in self.conditions.items()]
            said.append(f"missing of the first-order conditions: {', '.join(parts)}")
        if self.finite > 0:
            said.append(f"a step of a finite size brings {self.finite:.1e}")
        return f"{'; '.join(said)}; no global certificate"


def stationarity_of(
    form: NormalForm,
    blocks: Blocks,
    structures: Structures | None,
    bound_of_kept,
    scale: float,
    duals: tuple = (None, None),
) -> Stationarity:
    """The stationarity of weights and matrices (None: the best for the weights). bound_of_kept: kept form -> a lower bound of its optimum;
    duals: a solver's multipliers of losses and functions, None where it has none.
    """
    best = learned_matrices(form, blocks)
    structures = best if structures is None else structures
    kept, _ = FixedStructures(structures).apply(form)
    objective = kept.value(blocks)
    quadratic = sum(
        0.5 * float(np.vdot(W := f.map.forward(blocks), f.coefficient * f.atom.gradient(W)))
        for f, original in zip(kept.functions, form.functions, strict=True)
        if isinstance(original, StructureTerm) and not original.atom.convex
    )
    # log-determinants are constants here, and no measure of size
    size = max(
        sum(abs(loss.value(loss.predictions(blocks))) for loss in form.losses) + quadratic, scale, _TINY
    )
    decreases = {"weights": (objective - bound_of_kept(kept)) / size} if kept.is_convex else {}
    for term in structure_terms(form):
        if term.structure.is_reweighted:  # its matrix is always at its best
            continue
        W, matrices = term.map.forward(blocks), term.matrices(structures)
        now = term.structure.value_at(W, matrices)
        for k, name in enumerate(term.names):
            if name is not None:
                least = term.structure.least_over(k, W, matrices)
                decreases[name] = term.coefficient * (now - least) / size
    if sum(name != "weights" for name in decreases) > 1:
        decreases["matrices"] = (objective - kept_value(form, blocks, best)) / size
    # a difference of equal numbers may come out a rounding error below zero; by more, or without a value, nothing is known
    decreases = {
        name: max(float(value), 0.0) if value >= -_DECREASE_ROUNDING_SHARE else np.inf
        for name, value in decreases.items()
    }
    of_matrices = max((decrease for name, decrease in decreases.items() if name != "weights"), default=0.0)
    gradient = profile_gradient(form, blocks) if kept.is_convex else None
    if gradient is not None:
        return Stationarity(decreases, gradient, max(gradient, of_matrices), size)
    conditions = first_order_residuals(form, blocks, *duals)
    if conditions is not None:
        return Stationarity(decreases, None, max(*conditions.values(), of_matrices), size, conditions)
    if "weights" not in decreases:
        return Stationarity(decreases, None, np.inf, size)
    possible = size * decreases["weights"]
    in_relation = possible / max(quadratic, 1e-8 * size)  # the weights may be zero, or all but
    return Stationarity(decreases, None, max(in_relation, of_matrices), size)


def profile_gradient(form: NormalForm, blocks: Blocks) -> float | None:
    """The norm of the profile's proximal gradient relative to the larger of the losses' and the smooth functions' gradients.

    (x - prox(x - t g, t)) / t on every block, t = ||x|| / ||g||, so that the step is of the size of x; without terms that are not
    smooth, that is the gradient g. None where a loss is not smooth, or no exact prox of the others' sum is known.
    """
    others: dict[str, list] = {}
    rough = rough_functions(form)
    for f in (form.functions[k] for k in rough):
        if f.map.identity_of is None:
            return None
        others.setdefault(f.map.identity_of, []).append((f.coefficient, f.atom))
    if not all(loss.atom.smooth for loss in form.losses) or any(
        unsupported_reason(terms) for terms in others.values()
    ):
        return None
    of_losses, of_functions = gradients_of_losses(form, blocks), form.zeros()
    for k, f in enumerate(form.functions):
        if k not in rough:
            f.map.add_adjoint(guess(f, blocks), of_functions)
    sizes = [np.sqrt(sum(np.vdot(part, part) for part in of.values())) for of in (of_losses, of_functions)]
    total = 0.0
    for name, x in blocks.items():
        g = of_losses[name] + of_functions[name]
        if name in others and np.any(g):
            t = (np.linalg.norm(x) or 1.0) / np.linalg.norm(g)
            together = prox_of_sum(others[name])
            assert together is not None  # `unsupported_reason` was asked above
            g = (x - together.prox(x - t * g, t)) / t
        total += float(np.vdot(g, g))
    return float(np.sqrt(total) / max(*sizes, GRADIENT_FLOOR_SHARE * form.slope_at_zero, _TINY))
