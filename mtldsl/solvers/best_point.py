"""The best point of a run, whoever found it: a warm start, zero, the best constants, or any point that any solver has shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.constants import best_constants
from mtldsl.compile.normal_form import Blocks, NormalForm
from mtldsl.compile.terms.structure import Structures, structure_terms
from mtldsl.solvers.linear_algebra.projection import projected

__all__ = ["BestPoint", "Kept", "guesses"]

#: What rounding leaves of an objective, relative to the terms that it is the sum of.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Kept:
    """A point with what is known of it. `is_guess`: no solver has shown it, and nothing but its objective and violation is known."""

    blocks: Blocks
    objective: float
    violation: float
    structures: Structures | None = None  # None: the best ones for the weights
    stationarity: Any = None  # a Stationarity; None where no solver has shown the point
    duals: tuple = (None, None)  # multipliers of losses and functions that came with it
    is_guess: bool = False
    rounding: float = 0.0  # of the certificate's numbers, `mtldsl.proof.rounding`

    @classmethod
    def zero(cls, form: NormalForm) -> Kept:
        """Weights of zero, whose objective is known."""
        zeros = form.zeros()
        with np.errstate(over="ignore", invalid="ignore"):
            return cls(zeros, form.value_at_zero, form.violation(zeros), is_guess=True)

    @classmethod
    def guess(cls, form: NormalForm, blocks: Blocks) -> Kept:
        """A copy of the blocks, with their objective at the price of one product with the data."""
        blocks = {name: np.array(array) for name, array in blocks.items()}
        with np.errstate(over="ignore", invalid="ignore"):  # a guess may be far out
            return cls(blocks, form.value(blocks), form.violation(blocks), is_guess=True)

    def copied(self) -> Kept:
        """With blocks of its own: a solver may go on writing into those that it has shown."""
        blocks = {name: array.copy() for name, array in self.blocks.items()}
        return Kept(
            blocks, self.objective, self.violation, self.structures, self.stationarity, self.duals, self.is_guess, self.rounding
        )  # fmt: skip

    def is_stationary(self, tol: float) -> bool:
        return self.stationarity is not None and max(self.stationarity.residual, self.violation) <= tol


class BestPoint:
    """`kept` is the best point so far; `lowest` the one with the lowest objective, feasible to tol, whatever is proven of it, and of a
    convex model one that meets its constraints exactly.

    Feasible to tol goes before infeasible; among infeasible ones the smaller violation counts. Among feasible ones it is the objective
    nearer to the bound: a point that misses a constraint by less than tol may lie below the optimum, and must not keep out one that meets
    it. Where nothing lies below the bound, that is the lower objective. In a model that is not convex, what is proven stationary goes
    first, then the lower objective.
    """

    def __init__(self, form: NormalForm, tol: float):
        self.convex, self.tol = form.is_convex, tol
        self.kept = self.lowest = Kept(form.zeros(), np.inf, np.inf, is_guess=True)

    def offer(self, one: Kept, bound: float) -> None:
        """Keep it where it is better, as a copy."""
        if not np.isfinite(one.objective):
            return
        allowed = 0.0 if self.convex else self.tol
        is_lowest = one.violation <= allowed and one.objective < self.lowest.objective
        is_better = self._is_better(one, bound)
        if is_lowest or is_better:
            one = one if one.is_guess else one.copied()  # guesses have blocks of their own
        self.lowest = one if is_lowest else self.lowest
        self.kept = one if is_better else self.kept
        # the bound may have risen above what was kept, which then owes its objective to what it misses of its constraints
        if self.convex and self._is_better(self.lowest, bound):
            self.kept = self.lowest

    def _is_better(self, one: Kept, bound: float) -> bool:
        kept = self.kept
        feasible, was_feasible = one.violation <= self.tol, kept.violation <= self.tol
        if not (feasible and was_feasible):
            return feasible or (not was_feasible and one.violation < kept.violation)
        if not self.convex:
            proven = one.is_stationary(self.tol), kept.is_stationary(self.tol)
            if proven[0] != proven[1]:  # a method that does not descend may have been lower on its way
                return proven[0]
            if one.stationarity is not None:  # of equal objectives, the more stationary point
                rounding = _ROUNDING * one.stationarity.size
                if abs(one.objective - kept.objective) <= rounding:
                    return kept.stationarity is None or one.stationarity.residual < kept.stationarity.residual
            return one.objective < kept.objective
        if kept.is_guess and one.objective == kept.objective:
            return not one.is_guess  # with its multipliers
        if bound == -np.inf:
            return one.objective < kept.objective
        return abs(one.objective - bound) < abs(kept.objective - bound)

    @property
    def lower(self) -> Kept | None:
        """A point that lies below the kept one by more than tol, of which less is proven; None where there is none."""
        kept, size = self.kept, self.kept.stationarity.size if self.kept.stationarity is not None else 0.0
        lies_below = self.lowest.objective < kept.objective - self.tol * max(size, abs(kept.objective))
        return self.lowest if lies_below and kept.violation <= self.tol else None


def guesses(form: NormalForm, start: Blocks | None, simple: bool) -> Iterator[Kept]:
    """The warm start and, where asked for, zero and the best constants; those that miss constraints also moved into the sets that bind
    single blocks.

    Where a penalty that is not convex has learned matrices of its own, zero says nothing: its log-determinants lie at their bounds there, far
    below the point that is looked for.
    """
    points = [] if start is None else [Kept.guess(form, start)]
    learns = any(not (f.atom.convex or f.atom.separable) for f in structure_terms(form))
    if simple and not learns:
        points.append(Kept.zero(form))
        constants = best_constants(form, rough=True)
        points += [] if constants is None else [Kept.guess(form, constants)]
    for one in points:
        if one.violation > 0.0:
            yield Kept.guess(form, projected(form, one.blocks))
        yield one
