"""What a cross-check of a model that is not convex found: every block of unknowns against cvxpy, the others kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.check.compared import Compared
from mtldsl.check.comparison import FORMULA_TOLERANCE
from mtldsl.proof.certificate import relative_gap
from mtldsl.proof.stationarity import NO_GLOBAL

__all__ = ["BlockCheck", "BlockRow", "MajorizationRow"]


@dataclass(frozen=True)
class BlockRow:
    """One block: the objective at the fast point, and the least that the reference finds over this block alone."""

    name: str  # "weights", with what touches a penalty that is not convex; or the name of a learned matrix
    objective: float  # at the point, by the reference's formulas
    reference: float  # the block's optimum, or a lower bound of it
    method: str  # "cvxpy, clarabel", or how the bound was found
    size: float  # what differences are relative to
    seconds: float
    allowed: float

    @property
    def difference(self) -> float:
        """(objective - reference) / size: what this block alone can still gain."""
        return (self.objective - self.reference) / self.size

    @property
    def agrees(self) -> bool:
        return not self.disagreements

    @property
    def disagreements(self) -> list[str]:
        if self.difference > self.allowed:
            return [
                f"{self.name}: with everything else kept, the reference finds an objective lower by {self.difference:.1e}"
            ]
        if not abs(self.difference) <= self.allowed:
            return [f"{self.name}: the reference stopped {-self.difference:.1e} above the fast objective"]
        return []


@dataclass(frozen=True)
class MajorizationRow(BlockRow):
    """One step of majorisation-minimisation: the majoriser where the fast side went, and the least that the reference finds of it.

    `objective` and `reference` are the majoriser's, formed by the reference alone at the point before the step.
    """

    touching: float  # (majoriser - objective) before the step, relative: 0
    margin: float  # (majoriser - objective) after the step, relative: not negative

    @property
    def disagreements(self) -> list[str]:
        wrong = []
        if self.difference > self.allowed:
            wrong.append(f"{self.name}: the reference finds a majoriser lower by {self.difference:.1e}")
        elif not abs(self.difference) <= self.allowed:
            wrong.append(
                f"{self.name}: the reference stopped {-self.difference:.1e} above the fast side's majoriser"
            )
        if not abs(self.touching) <= FORMULA_TOLERANCE:
            wrong.append(
                f"{self.name}: the majoriser misses the objective before the step by {self.touching:+.1e}"
            )
        if not self.margin >= -FORMULA_TOLERANCE:
            wrong.append(
                f"{self.name}: after the step the majoriser is below the objective by {-self.margin:.1e}"
            )
        return wrong


@dataclass(frozen=True, repr=False)
class BlockCheck(Compared):
    """The facts of both sides about a point of a model that is not convex; `print` it for a table.

    Each block problem is convex: cvxpy minimises over the weights with every matrix kept, and over each learned matrix with the
    weights and the other matrices kept (a semidefinite program with log-determinants). A penalty of the spectrum that is not
    convex is replaced by a convex function that lies above it and touches it at the point; of one whose slope at zero is infinite,
    and of a bounded rank, the column space of the weights is kept, then their row space. At a stationary point none of them gains
    anything. That proves no global optimum, and no check of this kind can.
    """

    kind: ClassVar[str] = "blocks"
    head: ClassVar[tuple[str, ...]] = ("block", "fast", "reference, over this block alone", "relative")

    model: str
    scope: str
    solver: str
    status: str
    objective: float  # by mtldsl's formulas
    objective_by_reference: float
    claimed: float  # the objective that the solution states
    dual_bound: float  # the bound on the global optimum that it states
    residual: float  # of the fast side's stationarity
    violation: float
    blocks: tuple[BlockRow, ...]
    size: float
    fast_seconds: float
    tol: float

    @property
    def certified(self) -> bool:
        """Whether the fast solution carries a proof of what it claims: here, a stationary point."""
        return self.status in ("stationary", "optimal")

    @property
    def formula_difference(self) -> float:
        return abs(relative_gap(self.objective, self.objective_by_reference, self.size))

    @property
    def reference_seconds(self) -> float:
        return sum(row.seconds for row in self.blocks)

    @property
    def disagreements(self) -> list[str]:
        wrong = []
        if not self.formula_difference <= FORMULA_TOLERANCE:
            wrong.append(f"the two formulas differ by {self.formula_difference:.1e} at the same point")
        if not abs(relative_gap(self.claimed, self.objective_by_reference, self.size)) <= FORMULA_TOLERANCE:
            wrong.append(f"the solution states the objective {self.claimed:.10g}; recomputed, it is another")
        if (
            np.isfinite(self.dual_bound)
            and (self.dual_bound - self.objective_by_reference) / self.size > self.tol
        ):
            wrong.append(
                f"the bound that the solution states, {self.dual_bound:.10g}, is above the objective of its own point"
            )
        if not self.violation <= self.tol:
            wrong.append(f"the point violates a constraint by {self.violation:.1e}")
        return wrong + [text for row in self.blocks for text in row.disagreements]

    @property
    def notes(self) -> list[str]:
        notes = ["each block alone is convex and was compared; together they are not: " + NO_GLOBAL]
        if not self.certified:
            notes.append(f"the fast solution is not certified: {self.status}")
        return notes

    def rows(self) -> list[tuple[str, str, str, str]]:
        """(block, objective, least over the block by the reference, difference) as text."""
        rows = [
            (
                row.name,
                f"{row.objective:.10g}",
                f"{row.reference:.10g} ({row.method})",
                f"{row.difference:+.1e}",
            )
            for row in self.blocks
        ]
        objectives = f"{self.objective:.12g}", f"{self.objective_by_reference:.12g}"
        return [("objective, both formulas", *objectives, f"{self.formula_difference:.1e}"), *rows]

    def verdict(self) -> list[str]:
        first = f"The two {'agree' if self.agrees else 'DISAGREE'} on every block ({self.scope})."
        if not self.agrees:
            first = f"The two DISAGREE ({self.scope})."
        return [first, *(f"- {text}" for text in (*self.disagreements, *self.notes))]
