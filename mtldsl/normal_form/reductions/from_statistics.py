"""Reduction to sufficient statistics: squares of many rows become squares of few rows here, by one pass over the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.normal_form.form import Blocks, LossTerm, NormalForm
from mtldsl.normal_form.reductions.reduction import Point, Promise
from mtldsl.normal_form.term import term_type
from mtldsl.normal_form.terms.row_compression import RowFactors
from mtldsl.normal_form.terms.row_statistics import factors_of

#: Numbers that sparse rows may become: some seconds of a hundred features.
DENSE_ENTRIES = 100_000_000


@dataclass(frozen=True, eq=False)
class StatisticsRecipe:
    """The losses as given, and their rows as few."""

    losses: tuple[LossTerm, ...]
    factors: tuple[RowFactors, ...]

    def with_intercepts(self, blocks: Blocks) -> Blocks:
        """The intercepts that fit best beside weights."""
        found = {}
        for loss, factors in zip(self.losses, self.factors, strict=True):
            for name in loss.intercepts:
                found[name] = factors.intercepts(np.asarray(loss.map.forward(blocks)))[None, :]
        return {**blocks, **found}

    def misplaced(self, blocks: Blocks) -> tuple[float, float]:
        """(by how much the objective lies above that of the few rows, since intercepts are rounded; by how much float64 may have misplaced
        objective and bound, as sums over the rows given)."""
        above = rounding = 0.0
        for loss, factors in zip(self.losses, self.factors, strict=True):
            W = np.asarray(loss.map.forward(blocks))
            b = sum((blocks[name][0] for name in loss.intercepts), np.zeros(W.shape[1]))
            squares = factors.residual_squares(W, b)
            least = factors.least_squares(W) if loss.intercepts else squares
            off = factors.rounding(W, squares, bool(loss.intercepts))
            low, here, high = (loss.of_squares(s) for s in (squares - off, squares, squares + off))
            above += max(here - loss.of_squares(least), 0.0)
            rounding += max(high - here, here - low)
        return above, rounding if math.isfinite(rounding) else math.inf


class FromStatistics:
    """X (n, d) and y become R (r+1, d) and y' with ||R w - y'|| = ||X w + b - y|| at every w, b the intercept that fits best there.

    That is all that a sum of squares, weighted or not, or a function of the norm of every task's residuals knows of its rows.

    reflected : R by orthogonal reflections of the rows, else by sums of their products around the means, at a fraction of the price
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def __init__(self, reflected: bool = False):
        self.reflected = reflected

    def accepts(self, form: NormalForm) -> str | None:
        if not form.losses:
            return "there is no loss"
        for loss in form.losses:
            if loss.tasks.in_memory:
                return f"the rows of {loss.typed} are here"
            if loss.atom.quadratic is None and not loss.atom.radial:
                return f"{loss.typed} is not a function of sums of squared residuals"
        names = {name for loss in form.losses for name in loss.intercepts}
        for f in form.functions:
            if names & set(f.map.blocks):
                return f"{f.typed} is a function of an intercept"
        return form.entangled_intercepts

    def apply(self, form: NormalForm) -> tuple[NormalForm, StatisticsRecipe]:
        factors = tuple(factors_of(loss.tasks, self.reflected) for loss in form.losses)
        recipe, rows, here, remembered = form.remembered.get(FromStatistics) or (None, [], (), {})
        if recipe is None or recipe.factors != factors:  # these are of all values of a path
            rows = [
                one.rows(bool(loss.intercepts), loss.tasks)
                for loss, one in zip(form.losses, factors, strict=True)
            ]
            recipe, remembered = None, {}
        if recipe is None or recipe.losses != form.losses:  # with other coefficients
            recipe, here = StatisticsRecipe(form.losses, factors), on_few_rows(form.losses, rows)
        form.remembered[FromStatistics] = recipe, rows, here, remembered
        blocks = tuple(block for block in form.blocks if block.intercept_of is None)
        easier = replace(form, blocks=blocks, losses=here)
        easier.share(remembered)
        return easier, recipe

    def invert(self, point: Point, recipe: StatisticsRecipe) -> Point:
        """The intercepts that fit best. Multipliers of the rows are the residuals there, which the certificate makes."""
        return replace(point, blocks=recipe.with_intercepts(point.blocks), loss_duals=None)


def can_be_reflected(form: NormalForm) -> bool:
    """Tell whether a pass of reflections is affordable: they make sparse rows dense."""
    tables = [loss.tasks for loss in form.losses]
    return all(not one.is_sparse or one.n_samples * one.n_features <= DENSE_ENTRIES for one in tables)


def on_few_rows(losses: Sequence[LossTerm], here: Sequence[Tasks]) -> tuple[LossTerm, ...]:
    """The losses of these rows, without intercepts."""
    return tuple(
        term_type(loss.atom, tasks)(loss.atom, loss.coefficients, tasks, loss.map, (), loss.typed)
        for loss, tasks in zip(losses, here, strict=True)
    )
