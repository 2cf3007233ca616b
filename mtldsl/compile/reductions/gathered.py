"""Squares of rows that are elsewhere, as squares of a few rows here: one pass over the data, and any solver goes on from there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.compile.kinds import kind_of
from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.terms.moments import Moments, moments_of

__all__ = ["Gathered", "Recipe"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """The losses as given, and the moments of their rows."""

    losses: tuple[LossTerm, ...]
    moments: tuple[Moments, ...]


class Gathered:
    """X (n, d) and y become R (r+1, d) and y' with ||R w - y'|| = ||X w + b - y|| at every w, b the intercept that fits best there.

    That is all that a sum of squares, weighted or not, or a function of the norm of every task's residuals knows of its rows.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        if not form.losses:
            return "there is no loss"
        for loss in form.losses:
            if not loss.tasks.is_distributed:
                return f"the rows of {loss.typed} are here"
            if loss.atom.quadratic is None and not loss.atom.radial:
                return f"{loss.typed} is not a function of sums of squared residuals"
        return form.entangled_intercepts

    def apply(self, form: NormalForm) -> tuple[NormalForm, Recipe]:
        known = form.remembered.get(Gathered)  # by all values of a path
        if known is None or known[0].losses != form.losses:
            recipe = Recipe(form.losses, tuple(moments_of(loss.tasks) for loss in form.losses))
            here = tuple(
                moments.rows(bool(loss.intercepts), loss.tasks)
                for loss, moments in zip(form.losses, recipe.moments, strict=True)
            )
            known = form.remembered[Gathered] = (recipe, here)
        recipe, here = known
        blocks = tuple(block for block in form.blocks if block.intercept_of is None)
        losses = tuple(
            kind_of(loss.atom, tasks)(loss.atom, loss.coefficients, tasks, loss.map, (), loss.typed)
            for loss, tasks in zip(form.losses, here, strict=True)
        )
        return replace(form, blocks=blocks, losses=losses), recipe

    def invert(self, point: Point, recipe: Recipe) -> Point:
        """The intercepts that fit best. Multipliers of the rows are the residuals there, which the certificate makes."""
        return replace(point, blocks=self.with_intercepts(point.blocks, recipe), loss_duals=None)

    def with_intercepts(self, blocks: Blocks, recipe: Recipe) -> Blocks:
        found = {}
        for loss, moments in zip(recipe.losses, recipe.moments, strict=True):
            for name in loss.intercepts:
                found[name] = moments.intercepts(np.asarray(loss.map.forward(blocks)))[None, :]
        return {**blocks, **found}
