"""From ADMM's iterates to a point worth certifying: the copy with the structure, and multipliers with the right signs."""

from __future__ import annotations

import numpy as np

from mtldsl.compile.normal_form import Blocks
from mtldsl.solvers.linear_algebra.projection import dykstra
from mtldsl.solvers.linear_algebra.split import Split
from mtldsl.solvers.solver import Point

__all__ = ["PointMaker"]


class PointMaker:
    """Makes points of one split. On every block the candidates are x itself and the copies that equal the block.

    A copy has its term's structure exactly (zeros, low rank, W >= 0); where several sets bind one block, a few of Dykstra's
    rounds move a candidate into their intersection. The candidate with the smaller violation, then objective, is reported.
    """

    def __init__(self, split: Split, tol: float):
        self.split, self.form, self.tol = split, split.form, tol
        self.copies_of = {block.name: [] for block in self.form.blocks}
        self.sets_of = {block.name: [] for block in self.form.blocks}
        for copy in split.copies:
            block = None if copy.is_loss else copy.term.map.identity_of
            if block is not None and not copy.term.is_constraint:
                self.copies_of[block].append(copy)
            elif block is not None:
                self.sets_of[block].append(copy)

    def point(self, x: Blocks, w: np.ndarray, multipliers: np.ndarray, iteration: int, state: dict) -> Point:
        """The point of iterates x, w and the copies' multipliers (subgradients of h_j at w_j)."""
        loss_duals: list = [None] * len(self.form.losses)
        function_duals: list = [None] * len(self.form.functions)
        for copy in self.split.copies:
            duals = loss_duals if copy.is_loss else function_duals
            duals[copy.index] = multipliers[copy.rows].reshape(copy.shape)
        for t in self.split.exact_losses:
            loss = self.form.losses[t]
            loss_duals[t] = loss.gradient(loss.predictions(x))
        for k, curvature in self.split.exact_functions.items():
            function_duals[k] = curvature.product(self.form.functions[k].map.forward(x))
        return Point(self._primal(x, w), loss_duals, function_duals, iteration, state)

    def _primal(self, x: Blocks, w: np.ndarray) -> Blocks:
        best = {name: self._feasible(name, array) for name, array in x.items()}
        rank = None
        for name, copies in self.copies_of.items():
            structured = [self._feasible(name, w[copy.rows].reshape(copy.shape)) for copy in copies]
            if len(structured) == 1 and not self.form.constraints:
                best = best | {name: structured[0]}
                rank = None
                continue
            for candidate in structured:
                rank = self._rank(best) if rank is None else rank
                other = best | {name: candidate}
                other_rank = self._rank(other)
                if other_rank <= rank:
                    best, rank = other, other_rank
        return best

    def _rank(self, x: Blocks) -> tuple[float, float]:
        violation = self.form.violation(x)
        return (violation if violation > 0.1 * self.tol else 0.0), self.form.value(x)

    def _feasible(self, name: str, array: np.ndarray) -> np.ndarray:
        """A point near `array` in every set that binds the block itself."""
        sets = [copy.term.atom for copy in self.sets_of[name]]
        if len(sets) == 1:
            return sets[0].project(array)
        return dykstra(sets, array) if sets else array
