"""The problem here between two passes: squares of a few rows beside the functions of the model, with whatever solver is fastest for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mtldsl.compile.normal_form import Blocks, LossTerm, NormalForm
from mtldsl.solvers.drive import drive
from mtldsl.solvers.registry import in_turn
from mtldsl.solvers.solver import Point

__all__ = ["Inner"]

#: The accuracies that it is solved to.
_FINEST, _COARSEST = 1e-13, 1e-3

#: So near to rounding a solver may find what it cannot prove: below the first, it takes at most so many iterations.
_NEAR, _FEW = 1e-12, 100


class Inner:
    """Solves of one shape, each from the weights of the one before. `duals`: the multipliers of the functions at the last of them."""

    def __init__(self, form: NormalForm, duals: list | None = None):
        blocks = tuple(block for block in form.blocks if block.intercept_of is None)
        self.form = NormalForm(blocks, (), form.functions, form.typed)
        self.remembered: dict = {}
        self.duals = duals

    def solve(
        self, terms: Sequence[LossTerm], start: Blocks, missing: float, functions: float | None = None
    ) -> Blocks:
        """The weights; the objective may be off by `missing`, as far as float64 goes. functions: their value at the start, where it is known."""
        form = replace(self.form, losses=tuple(terms))
        form.share(self.remembered)
        weights = {block.name: start[block.name] for block in form.blocks}
        known = sum(f.value(weights) for f in form.functions) if functions is None else functions
        here = max(abs(sum(term.value_at(weights) for term in terms) + known), float(np.finfo(float).tiny))
        tol = min(max(missing / here, _FINEST), _COARSEST)
        outcome = drive(
            form, solver=next(in_turn(form)), tol=tol, max_iter=_FEW if tol < _NEAR else None, max_seconds=None,
            start=Point(weights), options={}, simple_guesses=False,
        )  # fmt: skip
        self.duals = outcome.duals[1]
        return dict(outcome.blocks)
