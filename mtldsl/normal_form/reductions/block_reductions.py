"""Reductions of blocks: learned matrices fixed, losses lifted onto weights, smaller sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, cast

from mtldsl.normal_form.form import FunctionTerm, LossTerm, NormalForm
from mtldsl.normal_form.reductions.reduction import Point, Promise
from mtldsl.normal_form.terms.structure_term import Structures, StructureTerm

# --------------------------------------------------------------------------------------------------------------
# Learned matrices kept: what is left of a structure that is not convex without them is a quadratic function of the weights.


class _TermByTerm:
    """Another term in the place of every function that it takes; in their order, one for one."""

    refusal: ClassVar[str]

    def takes(self, f: FunctionTerm) -> bool:
        raise NotImplementedError

    def replaced(self, f: FunctionTerm) -> tuple[FunctionTerm, float]:
        """(the other term, a constant beside it)."""
        raise NotImplementedError

    def accepts(self, form: NormalForm) -> str | None:
        return None if any(map(self.takes, form.functions)) else self.refusal

    def apply(self, form: NormalForm) -> tuple[NormalForm, None]:
        made = [self.replaced(f) if self.takes(f) else (f, 0.0) for f in form.functions]
        constant = sum((more for _, more in made), form.constant)
        return replace(form, functions=tuple(f for f, _ in made), constant=constant), None

    def invert(self, point: Point, recipe: None) -> Point:
        """The same weights; multipliers belong to the other terms."""
        return replace(point, function_duals=None)


class FixedStructures(_TermByTerm):
    """structure(W) = min over S of value(W, S) becomes value(W, S) at the matrices given: above it, and equal where those are the best.

    Structures that are convex with their matrices eliminated are left alone.
    """

    promise: ClassVar[Promise] = Promise.MAJORIZATION
    refusal = "no term learns a matrix that has to be kept for the model to be convex"

    def __init__(self, structures: Structures):
        self.structures = structures

    def takes(self, f: FunctionTerm) -> bool:
        return isinstance(f, StructureTerm) and not f.atom.convex

    def replaced(self, f: Any) -> tuple[FunctionTerm, float]:
        return f.kept(self.structures)


# --------------------------------------------------------------------------------------------------------------
# Losses with one maximum a task as functions of the weights: what the general ADMM takes beside anything else.


class LossesOfWeights:
    """Every loss with one maximum a task becomes a function of its weights, after all other functions, its intercepts their last row.

    of_weights : the loss -> what it is as a function of V (D, m), the weights of every task and, where it has intercepts, these over its
        `unit` in a last row, multiplied by its coefficients; the solver says it, since what is remembered from one prox to the next is its
        own. Its `multipliers(V, v)` are those of the loss, at V, whose pull on V is v
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def __init__(self, of_weights: Callable[[LossTerm], Any]):
        self.of_weights = of_weights

    def accepts(self, form: NormalForm) -> str | None:
        found = any(map(has_one_maximum_a_task, form.losses))
        return None if found else "no loss is a maximum of planes of all samples of a task'"

    def apply(self, form: NormalForm) -> tuple[NormalForm, tuple]:
        """The recipe is (the number of losses, that of functions, {a loss's place: the term that it became})."""
        terms = {t: self._term(loss) for t, loss in enumerate(form.losses) if has_one_maximum_a_task(loss)}
        losses = tuple(loss for t, loss in enumerate(form.losses) if t not in terms)
        easier = replace(form, losses=losses, functions=(*form.functions, *terms.values()))
        return easier, (len(form.losses), len(form.functions), terms)

    def invert(self, point: Point, recipe: tuple) -> Point:
        if point.loss_duals is None or point.function_duals is None:
            return replace(point, loss_duals=None, function_duals=None)
        (n_losses, n_functions, terms), kept = recipe, iter(point.loss_duals)
        own, lifted = point.function_duals[:n_functions], point.function_duals[n_functions:]
        found = {
            t: cast(Any, term.atom).multipliers(term.map.forward(point.blocks), v)
            for (t, term), v in zip(terms.items(), lifted, strict=True)
        }
        duals = [found[t] if t in found else next(kept) for t in range(n_losses)]
        return replace(point, loss_duals=duals, function_duals=own)

    def _term(self, loss: LossTerm) -> FunctionTerm:
        function = self.of_weights(loss)
        stacked = (
            loss.map.with_row_below(loss.intercepts, 1.0 / function.unit) if loss.intercepts else loss.map
        )
        return FunctionTerm(function, 1.0, stacked, loss.typed)


def has_one_maximum_a_task(loss: LossTerm) -> bool:
    """Tell whether a task's loss is a maximum of affine functions and no sum over samples: one plane is one labelling of all its samples."""
    return loss.atom.max_affine and not loss.atom.separable and loss.atom.labels != "indicators"


# --------------------------------------------------------------------------------------------------------------
# The same model with a larger eps: it has fewer stationary points, and a point of one is a start for the next.


class LargerEps(_TermByTerm):
    """sum_j r(sigma_j^2 + eps) of every reweighted term with `factor` times its eps, factor > 1: higher, since r is nondecreasing."""

    promise: ClassVar[Promise] = Promise.MAJORIZATION
    refusal = "no term of this model has an eps to be made larger"

    def __init__(self, factor: float):
        self.factor = factor

    def takes(self, f: FunctionTerm) -> bool:
        return f.atom.is_reweighted

    def replaced(self, f: FunctionTerm) -> tuple[FunctionTerm, float]:
        return replace(f, atom=f.atom.relaxed(self.factor)), 0.0


# --------------------------------------------------------------------------------------------------------------
# A covariance of the features and one of the tasks leave the same penalty: alternate with the smaller one.


class SmallerSide(_TermByTerm):
    """Every covariance norm on the side of W that is smaller; the same function of the weights.

    (W W^T)^{1/2} has the rank of W: on the larger side it is singular, and an alternation never leaves its range.
    """

    promise: ClassVar[Promise] = Promise.EXACT
    refusal = "no term learns a matrix on the larger side of the weights"

    def takes(self, f: FunctionTerm) -> bool:
        return isinstance(f, StructureTerm) and self.replaced(f)[0].atom is not f.atom

    def replaced(self, f: Any) -> tuple[FunctionTerm, float]:
        return replace(f, atom=f.structure.on_smaller_side(f.map.shape)), 0.0

    def invert(self, point: Point, recipe: None) -> Point:
        """The same weights and multipliers; matrices of the other side are left out, where the point holds any."""
        return replace(point, structures=None) if hasattr(point, "structures") else point
