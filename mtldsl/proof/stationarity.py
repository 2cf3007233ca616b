r"""What can be proven of a point of a model that is not convex: how little each block of unknowns can improve it.

With the matrices S kept, the model is convex in the weights W; with W kept, each S has a closed form. At a point (W, S):

- the decrease of a matrix is the objective minus its minimum over that matrix, in closed form, or minus a dual bound of it where
  the matrix is found by an iteration (a sparse precision's);
- the decrease of the weights is at most the duality gap of the convex model in which every S is kept;
- the gradient of the profile (the objective with every S at its best, a function of W alone) is that of this convex model at
  the best S; relative to the gradients of its parts, of which it is the sum, it is the residual.

Where regularizers or constraints are not smooth but have an exact prox, the length of a proximal gradient step, divided by the
step size, stands for the gradient. Where losses have kinks or penalties are not convex, what the solver's multipliers miss of the
first-order conditions does (`mtldsl.proof.first_order`). Where not even that is known, the decrease of the weights in relation to the
penalty does: of second order, so that a small one says less. The residual is the larger of that and of every matrix's decrease: 0
at a stationary point. It says nothing about other stationary points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum, why_not
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.reductions.kept import Kept
from mtldsl.compile.terms.structure import (
    Structures,
    StructureTerm,
    kept_value,
    learned_matrices,
    structure_terms,
)
from mtldsl.proof.first_order import FLOOR, first_order_residuals

__all__ = ["NO_GLOBAL", "Stationarity", "profile_gradient", "stationarity_of"]

NO_GLOBAL = "stationary point, no global certificate"

_TINY = np.finfo(float).tiny

#: What rounding leaves of a decrease that is zero, relative to the size of what is subtracted.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Stationarity:
    """How far a point is from stationary.

    decreases  block -> by how much it alone can lower the objective, relative to its size: the weights together as "weights"
               (an upper bound), every learned matrix by name, and all matrices together as "matrices". Empty where with its
               matrices kept the model is still not convex
    gradient   the norm of the profile's gradient, or of its proximal gradient, relative to those of its parts; None where a loss
               is not smooth or no exact prox is known
    residual   what is compared with tol: `gradient`, or `conditions`, or the decrease of the weights in relation to the penalty
               where there is neither; and no less than the decreases of the matrices
    conditions what is missing of the first-order conditions with multipliers, term by term; None where `gradient` says it, or
               where a term has no exact prox
    finite     by how much one of the steps of `mtldsl.proof.finite_steps` lowers the objective, relative to its size: more than the
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
    kept, _ = Kept(structures).apply(form)
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
    decreases = {name: _decrease(value) for name, value in decreases.items()}
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


def _decrease(value: float) -> float:
    """A difference of equal numbers may come out a rounding error below zero; by more, or without a value, nothing is known."""
    return max(float(value), 0.0) if value >= -_ROUNDING else np.inf


def profile_gradient(form: NormalForm, blocks: Blocks) -> float | None:
    """The norm of the profile's proximal gradient relative to the larger of the losses' and the smooth functions' gradients.

    (x - prox(x - t g, t)) / t on every block, t = ||x|| / ||g||, so that the step is of the size of x; without terms that are not
    smooth, that is the gradient g. None where a loss is not smooth, or no exact prox of the others' sum is known.
    """
    others: dict[str, list] = {}
    for f in form.functions:
        if f.is_constraint or not f.atom.is_smooth:
            if f.map.identity_of is None:
                return None
            others.setdefault(f.map.identity_of, []).append((f.coefficient, f.atom))
    if not all(loss.atom.smooth for loss in form.losses) or any(why_not(terms) for terms in others.values()):
        return None
    of_losses, of_functions = form.zeros(), form.zeros()
    for loss in form.losses:
        loss.add_adjoint(loss.gradient(loss.predictions(blocks)), of_losses)
    for f in form.functions:
        if not f.is_constraint and f.atom.is_smooth:
            f.map.add_adjoint(f.coefficient * f.atom.gradient(f.map.forward(blocks)), of_functions)
    sizes = [np.sqrt(sum(np.vdot(part, part) for part in of.values())) for of in (of_losses, of_functions)]
    total = 0.0
    for name, x in blocks.items():
        g = of_losses[name] + of_functions[name]
        if name in others and np.any(g):
            t = (np.linalg.norm(x) or 1.0) / np.linalg.norm(g)
            together = prox_of_sum(others[name])
            assert together is not None  # `why_not` was asked above
            g = (x - together.prox(x - t * g, t)) / t
        total += float(np.vdot(g, g))
    return float(np.sqrt(total) / max(*sizes, FLOOR * form.slope_at_zero, _TINY))
