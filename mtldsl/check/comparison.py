"""What a cross-check found: the facts of both sides, and the verdict that follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mtldsl.check.compared import Compared
from mtldsl.proof.certificate import relative_gap

__all__ = ["FORMULA_TOLERANCE", "TOLERANCE", "CrossCheck"]

#: Relative difference of objectives that counts as agreement, by cvxpy's backend: ten times what each was measured to
#: leave on the losses and regularizers of the language at the accuracy it is asked for.
TOLERANCE = {"clarabel": 1e-7, "osqp": 1e-7, "scs": 1e-6}

#: The same point evaluated by two formulas differs by rounding only.
FORMULA_TOLERANCE = 1e-9

#: A duality gap below this is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, repr=False)
class CrossCheck(Compared):
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
    formula_tolerance: float = FORMULA_TOLERANCE  # more where an atom states a value that is less exact

    @property
    def certified(self) -> bool:
        """Whether the fast solution carries a proof."""
        return self.status == "optimal"

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
        """How far apart two points with these gaps can be, where objective - optimum >= modulus/2 ||W -
        W*||^2.

        A point that violates a constraint may lie below the optimum: then its gap is taken to be at least
        `tol`.
        """
        floor = self.tol if max(self.fast_violation, self.reference_violation) > 0 else ROUNDING
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
        if not self.difference <= self.tol:
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
        if self._reference_is_worse and self._reference_explains:
            notes.append(self._stopped)
        if self.solver == "cvxpy":
            notes.append("the solution came from cvxpy too: only formulas and certificates are compared")
        if not self.certified:
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
            ("objective, mtldsl's formulas", *_both(by_mtldsl, ".12g")),
            ("objective, reference formulas", *_both(by_reference, ".12g")),
            ("proven lower bound", f"{self.dual_bound:.12g}", f"{self.reference_bound:.12g}"),
            ("relative duality gap", *_both(self.gaps, ".1e")),
            ("constraint violation", f"{self.fast_violation:.1e}", f"{self.reference_violation:.1e}"),
            ("seconds", f"{self.fast_seconds:.3f}", f"{self.reference_seconds:.3f}"),
            ("objective, fast - reference", f"{self.difference:+.1e}", f"allowed {self.tol:.1e}"),
            (
                "formulas at the same point",
                f"{self.formula_difference:.1e}",
                f"allowed {self.formula_tolerance:.1e}",
            ),
            ("largest prediction difference", f"{self.prediction_difference:.1e}", ""),
            ("weights, ||fast - reference||", weights[0], weights[1]),
        ]

    def verdict(self) -> list[str]:
        """Sentences: agreement and its scope, then every disagreement and note."""
        first = f"The two {'agree' if self.agrees else 'DISAGREE'} ({self.scope})."
        return [first, *(f"- {text}" for text in (*self.disagreements, *self.notes))]


def _both(values: tuple[float, float], how: str) -> tuple[str, str]:
    """Two numbers as text, each in this format."""
    return f"{values[0]:{how}}", f"{values[1]:{how}}"
