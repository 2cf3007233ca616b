"""Squares of many rows as squares of few along a whole path: after one pass a value costs what the features and tasks do, however many rows there are."""

from __future__ import annotations

from dataclasses import replace

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.compile.reductions.gathered import Recipe, on_few_rows
from mtldsl.compile.terms.moments import moments_here

__all__ = ["FewRows"]

#: the rows given outnumber those made so many times at least; else nothing is won
_FEWER = 2.0
#: multiplications of a decomposition, in cubes of the features, and passes over the data for a value
_DECOMPOSED, _PASSES = 10.0, 3.0


class FewRows:
    """X (n, d) and y become R (r+1, d) and y' with ||R w - y'|| = ||X w + b - y|| at every w, b the intercept that fits best there, as in
    `mtldsl.compile.reductions.gathered`, for rows that are here.

    R comes of sums of products, with rounding of their own: `misplaced` says how much an objective may owe to that, which no certificate of
    the smaller form can know.
    """

    def __init__(self, form: NormalForm):
        factors = tuple(moments_here(loss.tasks).factors() for loss in form.losses)
        self._recipe = Recipe(form.losses, factors)
        self._rows = [
            one.rows(bool(loss.intercepts), loss.tasks)
            for loss, one in zip(form.losses, factors, strict=True)
        ]
        self._here = on_few_rows(form.losses, self._rows)

    @staticmethod
    def pays(form: NormalForm, values: int) -> bool:
        """Whether every loss is a sum of squares, and so many values are cheaper with their decompositions than without."""
        if form.entangled_intercepts is not None or not form.losses:
            return False
        return all(_pays(loss, values) for loss in form.losses)

    def of(self, form: NormalForm) -> NormalForm:
        """The form at the parameters' present values, without intercepts."""
        if form.losses != self._recipe.losses:  # other coefficients
            self._recipe = Recipe(form.losses, self._recipe.factors)
            self._here = on_few_rows(form.losses, self._rows)
        blocks = tuple(block for block in form.blocks if block.intercept_of is None)
        small = replace(form, blocks=blocks, losses=self._here)
        small.share(form.remembered.setdefault(FewRows, {}))
        return small

    def whole(self, blocks: Blocks) -> Blocks:
        """These weights with the intercepts that fit best."""
        return self._recipe.with_intercepts(blocks)

    def misplaced(self, blocks: Blocks) -> float:
        """By how much objective and bound may be misplaced there as sums over the rows."""
        return sum(self._recipe.misplaced(blocks))


def _pays(loss: LossTerm, values: int) -> bool:
    tasks = loss.tasks
    if loss.atom.quadratic is None or not tasks.in_memory or tasks.is_sparse:
        return False
    n, d, m = float(tasks.n_samples), tasks.n_features, tasks.n_tasks
    common = loss.is_shared_complete and tasks.sample_weights is None
    grams = 1 if common else m
    rows = n / m if common else n
    made = rows * d * d + grams * _DECOMPOSED * d**3
    return rows >= _FEWER * grams * (d + 1) and made <= _PASSES * values * n * d
