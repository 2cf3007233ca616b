"""Result of a cross-check: the facts of both sides, their differences, and whether they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.certificates.certificate import relative_gap
from mtldsl.certificates.stationarity import NO_GLOBAL
from mtldsl.display.displayable import Comparison

# --------------------------------------------------------------------------------------------------------------
# What a cross-check found: the facts of both sides, and the verdict that follows from them.

#: Relative difference of objectives that counts as agreement, by cvxpy's backend: ten times what each was measured to
#: leave on the losses and regularizers of the language at the accuracy it is asked for.
TOLERANCE = {"clarabel": 1e-7, "osqp": 1e-7, "scs": 1e-6}


#: Relative difference of a point under two formulas that is rounding.
FORMULA_TOL = 1e-9

#: Duality gap that is rounding.
GAP_ROUNDING_TOL = 1e-12

#: said of a model whose infimum is not attained
_NO_BEST = "no weights are best, so that each side stops somewhere above the infimum: formulas and bounds are compared, not objectives and weights"


@dataclass(frozen=True, repr=False)
class CrossCheck(Comparison):
    """The facts of both sides about one problem, and whether they agree; `print` it for a table.

    `disagreements` is empty where they agree; `notes` says what a reader should know besides.
    Objectives named `..._by_...` are the point of the first side evaluated by the formulas of the second.
    Differences are relative to the larger objective (or to 1e-8 of the objective at zero where both are
    less).
    """

    head: ClassVar[tuple[str, ...]] = ("", "fast", "reference")

    model: str
    scope: str  # what was compared: the whole problem or a subsample
    solver: str
    status: str  # of the fast solution
    backend: str  # of cvxpy
    reference_status: str  # cvxpy's word
    fast_objective: float
    fast_by_reference: float
    reference_objective: float
    reference_by_fast: float
    dual_bound: float
    reference_bound: float  # what the certificate proves from the reference's own multipliers
    scale: float
    fast_violation: float  # both measured by the reference
    reference_violation: float
    prediction_difference: float  # the largest, relative to the largest prediction
    weights_difference: (
        float | None
    )  # Frobenius, over the blocks that are strongly convex; None: there are none
    strong_convexity: float  # the least modulus of those blocks
    fast_seconds: float
    reference_seconds: float
    tol: float
    learned_excess: float = (
        0.0  # of the penalties with what is shown as learned, over these with the best ones; relative
    )
    formula_tolerance: float = FORMULA_TOL  # more where an atom states a value that is less exact

    @property
    def certified(self) -> bool:
        """Tell whether the fast solution carries a proof."""
        return self.status == "optimal"

    @property
    def is_unattained(self) -> bool:
        """Tell whether it is proven that no weights are best."""
        return self.status == "unattained"

    @property
    def difference(self) -> float:
        """(fast objective - reference objective), relative, both by the reference's formulas."""
        return relative_gap(self.fast_by_reference, self.reference_objective, self.scale)

    @property
    def formula_difference(self) -> float:
        """The larger relative difference between the two formulas at the same point."""
        fast = relative_gap(self.fast_objective, self.fast_by_reference, self.scale)
        return max(abs(fast), abs(relative_gap(self.reference_objective, self.reference_by_fast, self.scale)))

    @property
    def gaps(self) -> tuple[float, float]:
        """The relative duality gaps of the fast point and of the reference's."""
        return (
            relative_gap(self.fast_objective, self.dual_bound, self.scale),
            relative_gap(self.reference_by_fast, self.reference_bound, self.scale),
        )

    @property
    def weights_reach(self) -> float:
        """Return how far apart two points with these gaps can be, where objective - optimum >= modulus/2 ||W -
        W*||^2.

        A point that violates a constraint may lie below the optimum: then its gap is taken to be at least
        `tol`.
        """
        floor = self.tol if max(self.fast_violation, self.reference_violation) > 0 else GAP_ROUNDING_TOL
        size = max(abs(self.fast_objective), abs(self.reference_objective), self.scale)
        return float(sum(np.sqrt(2 * size * max(gap, floor) / self.strong_convexity) for gap in self.gaps))

    # ------------------------------------------------------------------------------------------ verdict

    @property
    def disagreements(self) -> list[str]:
        wrong = []
        if not self.formula_difference <= self.formula_tolerance:
            wrong.append(f"the two formulas differ by {self.formula_difference:.1e} at the same point")
        for side, violation in (("fast", self.fast_violation), ("reference", self.reference_violation)):
            if not violation <= self.tol:
                wrong.append(f"the {side} point violates a constraint by {violation:.1e}")
        if not abs(self.learned_excess) <= self.tol:
            wrong.append(
                f"with what is shown as learned, the penalty differs from its minimum by {self.learned_excess:.1e}, or one of "
                "them violates its bound"
            )
        if not self.difference <= self.tol and not self.is_unattained:
            wrong.append(f"the fast objective is above the reference's by {self.difference:.1e}")
        if self._reference_is_worse and not self._reference_explains:
            wrong.append(self._stopped)
        if self._above(self.dual_bound, self.reference_objective):
            wrong.append("the reference's objective is below the fast side's proven lower bound")
        if self._above(self.reference_bound, self.fast_by_reference):
            wrong.append("the fast objective is below the bound proven by the reference's multipliers")
        if self.weights_difference is not None and not self.weights_difference <= self.weights_reach:
            wrong.append(
                f"the solution is unique, but the weights differ by {self.weights_difference:.1e}, more "
                f"than the {self.weights_reach:.1e} that both gaps allow"
            )
        return wrong

    @property
    def notes(self) -> list[str]:
        notes = []
        if self.is_unattained:
            notes.append(_NO_BEST)
        elif self._reference_is_worse and self._reference_explains:
            notes.append(self._stopped)
        if self.solver == "cvxpy":
            notes.append("the solution came from cvxpy too: only formulas and certificates are compared")
        if not self.certified and not self.is_unattained:
            notes.append(f"the fast solution is not certified: {self.status}")
        # cvxpy's "inaccurate" is silenced where the certificate knows better
        if self.reference_status != "optimal" and not self.gaps[1] <= self.tol:
            notes.append(f"cvxpy's status is {self.reference_status!r}")
        return notes

    @property
    def _reference_is_worse(self) -> bool:
        return not -self.difference <= self.tol

    @property
    def _reference_explains(self) -> bool:
        """A certified solution may be better than the reference's by no more than the reference's own gap."""
        if self.is_unattained and -self.difference <= self.gaps[1]:
            return True
        return self.certified and -self.difference <= self.gaps[1] < np.inf

    @property
    def _stopped(self) -> str:
        above = f"the reference stopped {-self.difference:.1e} above the fast objective"
        return f"{above}; its own gap is {self.gaps[1]:.1e}"

    def _above(self, bound: float, objective: float) -> bool:
        return bool(np.isfinite(bound) and relative_gap(bound, objective, self.scale) > self.tol)

    # -------------------------------------------------------------------------------------------- table

    def rows(self) -> list[tuple[str, str, str]]:
        """(what, fast, reference) as text, one row a quantity."""
        weights: tuple[str, str] = ("-", "need not be unique")
        if self.weights_difference is not None:
            weights = (f"{self.weights_difference:.1e}", f"allowed {self.weights_reach:.1e}")
        by_mtldsl = (self.fast_objective, self.reference_by_fast)
        by_reference = (self.fast_by_reference, self.reference_objective)
        return [
            ("solver", self.solver, f"cvxpy ({self.backend})"),
            ("objective, mtldsl's formulas", *_format_pair(by_mtldsl, ".12g")),
            ("objective, reference formulas", *_format_pair(by_reference, ".12g")),
            ("proven lower bound", f"{self.dual_bound:.12g}", f"{self.reference_bound:.12g}"),
            ("gap: from bound to objective, relative", *_format_pair(self.gaps, ".1e")),
            ("constraint violation", f"{self.fast_violation:.1e}", f"{self.reference_violation:.1e}"),
            ("seconds", f"{self.fast_seconds:.3f}", f"{self.reference_seconds:.3f}"),
            ("objective, fast - reference", f"{self.difference:+.1e}", f"allowed {self.tol:.1e}"),
            (
                "the two formulas, at the same weights",
                f"{self.formula_difference:.1e}",
                f"allowed {self.formula_tolerance:.1e}",
            ),
            ("largest prediction difference", f"{self.prediction_difference:.1e}", ""),
            ("weights, ||fast - reference||", weights[0], weights[1]),
        ]


def _format_pair(values: tuple[float, float], how: str) -> tuple[str, str]:
    """Two numbers as text, each in this format."""
    return f"{values[0]:{how}}", f"{values[1]:{how}}"


# --------------------------------------------------------------------------------------------------------------
# What a cross-check of a model that is not convex found: every block of unknowns against cvxpy, the others kept.


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
        if not abs(self.touching) <= FORMULA_TOL:
            wrong.append(
                f"{self.name}: the majoriser misses the objective before the step by {self.touching:+.1e}"
            )
        if not self.margin >= -FORMULA_TOL:
            wrong.append(
                f"{self.name}: after the step the majoriser is below the objective by {-self.margin:.1e}"
            )
        return wrong


@dataclass(frozen=True, repr=False)
class BlockCheck(Comparison):
    """The facts of both sides about a point of a model that is not convex; `print` it for a table.

    Each block problem is convex: cvxpy minimises over the weights with every matrix kept, and over each learned matrix with the
    weights and the other matrices kept (a semidefinite program with log-determinants). A penalty of the spectrum that is not
    convex is replaced by a convex function that lies above it and touches it at the point; of one whose slope at zero is infinite,
    and of a bounded rank, the column space of the weights is kept, then their row space. At a stationary point none of them gains
    anything. That proves no global optimum, and no check of this kind can.
    """

    kind: ClassVar[str] = "blocks"
    head: ClassVar[tuple[str, ...]] = ("block", "fast", "reference, over this block alone", "relative")
    agreed_on: ClassVar[str] = " on every block"

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
        """Tell whether the fast solution carries a proof of what it claims: here, a stationary point."""
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
        if not self.formula_difference <= FORMULA_TOL:
            wrong.append(f"the two formulas differ by {self.formula_difference:.1e} at the same point")
        gap = relative_gap(self.claimed, self.objective_by_reference, self.size)
        if not abs(gap) <= FORMULA_TOL:
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
