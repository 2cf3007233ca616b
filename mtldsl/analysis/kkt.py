"""The optimality system of a solution, term by term."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.analysis.given_by_hand import proof_of
from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import ModelError
from mtldsl.proof.residual import stationarity
from mtldsl.shown.panel import GOOD, WRONG, Panel, Table
from mtldsl.shown.shown import Shown

__all__ = ["Conditions", "conditions_of"]


@dataclass(frozen=True, repr=False)
class Conditions(Shown):
    """terms: (term, value f(z), conjugate f*(u), <u, z>, the Fenchel gap f(z) + f*(u) - <u, z>); the gaps add up to the duality gap, and u is a
    subgradient at z where its gap is 0.  equations: (block, what is left of sum A^T u + sum B^T v = 0).  bounds: (constraint, violation)."""

    terms: tuple[tuple[str, float, float, float, float], ...]
    equations: tuple[tuple[str, float], ...]
    bounds: tuple[tuple[str, float], ...]
    gap: float
    tol: float

    @property
    def hold(self) -> bool:
        """Whether all of it holds to the tolerance of the solve."""
        scale = max(sum(abs(row[1]) for row in self.terms), 1e-300)
        return self.gap <= self.tol * scale and all(violation <= self.tol for _, violation in self.bounds)

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (name, f"{value:.6g}", f"{conjugate:.6g}", f"{along:.6g}", f"{gap:.1e}")
            for name, value, conjugate, along, gap in self.terms
        ]

    def _panel(self) -> Panel:
        equations = [
            (f"stationary in {name}: sum A'u + sum B'v = 0", f"{left:.1e}") for name, left in self.equations
        ]
        rows = [*equations, *((f"feasible: {name}", f"{violation:.1e}") for name, violation in self.bounds)]
        return Panel(
            "Optimality conditions", "hold" if self.hold else "do not hold", GOOD if self.hold else WRONG,
            f"duality gap {self.gap:.3g}: the sum of the terms' own",
            tables=[Table(("term", "value", "conjugate", "<u, z>", "gap"), self.rows()), Table(("condition", "off by"), rows)],
        )  # fmt: skip

    def __str__(self) -> str:
        head = ("term", "value", "conjugate", "<u, z>", "gap")
        table = [head, *self.rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(n) for cell, n in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        lines += [f"stationary in {name}: off by {left:.1e}" for name, left in self.equations]
        lines += [f"feasible: {name}: off by {violation:.1e}" for name, violation in self.bounds]
        return "\n".join([*lines, f"duality gap {self.gap:.3g}, the sum of the terms' own"])

    __repr__ = __str__


def conditions_of(solution: Any, stated: NormalForm | None = None) -> Conditions:
    """See `Problem.conditions`."""
    proof = getattr(solution, "certificate", None)
    if proof is None:
        raise ModelError(
            f"{type(solution).__name__} is not a solution with a certificate",
            term="conditions(solution)",
            write_instead="write conditions(problem.solve()); multipliers of your own go to check_bound(u)",
        )
    bound = proof_of(stated or proof.form, solution, "conditions(solution)")
    form, x, terms = proof.form, proof.blocks, []
    for loss, u in zip(form.losses, bound.loss_duals, strict=True):
        z = loss.predictions(x)
        terms.append(_row(loss.typed, loss.value(z), loss.conjugate(u), loss.along(u, z)))
    for f, v in zip(form.functions, bound.function_duals, strict=True):
        image = f.map.forward(x)
        conjugate = (
            0.0 if f.atom.norm else f.conjugate(v)
        )  # of a norm 0 in the dual ball, where a certificate has it
        terms.append(_row(f.typed, f.value(x), conjugate, float(np.vdot(v, image))))
    residual = stationarity(form, bound.loss_duals, bound.function_duals)
    equations = tuple((name, float(np.abs(r).max(initial=0.0))) for name, r in residual.items())
    bounds = tuple((f.typed, float(f.violation(x))) for f in form.constraints)
    return Conditions(tuple(terms), equations, bounds, solution.objective - solution.dual_bound, solution.tol)


def _row(name: str, value: float, conjugate: float, along: float) -> tuple[str, float, float, float, float]:
    return name, float(value), float(conjugate), float(along), float(value + conjugate - along)
