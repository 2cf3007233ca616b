"""Losses with one maximum a task as functions of the weights: what the general ADMM takes beside anything else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from mtldsl.atoms.function import Regularizer
from mtldsl.compile.normal_form import Entry, FunctionTerm, LinearMap, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise

__all__ = ["Lifted", "LossOfWeights", "Recipe", "has_one_maximum_a_task"]


class LossOfWeights(Regularizer):
    """A loss as a function of V (D, m), the weights of every task and, where it has intercepts, these over `unit` in a last row."""

    @property
    def unit(self) -> float:
        raise NotImplementedError

    def multipliers(self, V, subgradient) -> list:
        """Multipliers of the loss, at V, whose pull on V is `subgradient`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class LiftedTerm(FunctionTerm):
    """One of these in a form."""

    atom: LossOfWeights


@dataclass(frozen=True, eq=False)
class Recipe:
    """How many losses and functions the form has, and the terms that some of its losses became, by the loss's place."""

    n_losses: int
    n_functions: int
    terms: dict[int, LiftedTerm]


class Lifted:
    """Every loss with one maximum a task becomes a function of its weights, after all other functions, its intercepts their last row.

    of_weights : the loss -> what it is as a function of the weights, multiplied by its coefficients (a `LossOfWeights`); the solver says
        it, since what is remembered from one prox to the next is its own
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def __init__(self, of_weights: Callable[[LossTerm], LossOfWeights]):
        self.of_weights = of_weights

    def accepts(self, form: NormalForm) -> str | None:
        found = any(map(has_one_maximum_a_task, form.losses))
        return None if found else "no loss is a maximum of planes of all samples of a task'"

    def apply(self, form: NormalForm) -> tuple[NormalForm, Recipe]:
        terms = {t: self._term(loss) for t, loss in enumerate(form.losses) if has_one_maximum_a_task(loss)}
        losses = tuple(loss for t, loss in enumerate(form.losses) if t not in terms)
        easier = replace(form, losses=losses, functions=(*form.functions, *terms.values()))
        return easier, Recipe(len(form.losses), len(form.functions), terms)

    def invert(self, point: Point, recipe: Recipe) -> Point:
        if point.loss_duals is None or point.function_duals is None:
            return replace(point, loss_duals=None, function_duals=None)
        kept = iter(point.loss_duals)
        own, lifted = point.function_duals[: recipe.n_functions], point.function_duals[recipe.n_functions :]
        found = {
            t: term.atom.multipliers(term.map.forward(point.blocks), v)
            for (t, term), v in zip(recipe.terms.items(), lifted, strict=True)
        }
        duals = [found[t] if t in found else next(kept) for t in range(recipe.n_losses)]
        return replace(point, loss_duals=duals, function_duals=own)

    def _term(self, loss: LossTerm) -> LiftedTerm:
        function = self.of_weights(loss)
        return LiftedTerm(function, 1.0, stacked_map(loss, function.unit), loss.typed)


def has_one_maximum_a_task(loss: LossTerm) -> bool:
    """Whether a task's loss is a maximum of affine functions and no sum over samples: one plane is one labelling of all its samples."""
    return loss.atom.max_affine and not loss.atom.separable and loss.atom.labels != "indicators"


def stacked_map(loss: LossTerm, unit: float) -> LinearMap:
    """Onto the weights of every task and, where the loss has intercepts, these over `unit` in a last row."""
    if not loss.intercepts:
        return loss.map
    d, m = loss.map.shape
    above = sparse.csr_array(sparse.eye_array(d + 1, d))
    last = sparse.csr_array(([1.0 / unit], ([d], [0])), shape=(d + 1, 1))
    entries = [
        Entry(
            entry.block,
            entry.coefficient,
            above if entry.left is None else above @ sparse.csr_array(entry.left),
            entry.right,
        )
        for entry in loss.map.entries
    ]
    offset = None if loss.map.offset is None else np.vstack([loss.map.offset, np.zeros((1, m))])
    return LinearMap((*entries, *(Entry(name, 1.0, last) for name in loss.intercepts)), (d + 1, m), offset)
