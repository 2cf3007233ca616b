"""Terms with convex functions above them in their place, which touch them somewhere.

It holds no formula: which functions lie above a term, and where they touch it, is what its caller says. The reference says it by its own
formulas (`mtldsl.reference.spectral_above`), and is the only one who does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from mtldsl.compile.normal_form import FunctionTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise

__all__ = ["Majorized", "Way"]


@dataclass(frozen=True, eq=False)
class Way:
    """What is put in place of an atom g: functions that are added up, a constant, and constraints on g's argument."""

    text: str  # "{} majorised": the term as typed goes where the braces are
    functions: tuple
    constant: float
    constraints: tuple = ()


class Majorized:
    """The terms that `ways` names, by what it names; a function above g, or one that is only on a subspace."""

    promise: ClassVar[Promise] = Promise.MAJORIZATION

    def __init__(self, ways: Mapping[FunctionTerm, Way]):
        self.ways = ways

    def accepts(self, form: NormalForm) -> str | None:
        missing = next((f for f in self.ways if f not in form.functions), None)
        return None if missing is None else f"{missing.typed} is not a term of this model"

    def apply(self, form: NormalForm) -> tuple[NormalForm, str]:
        """The recipe is what was done, in words."""
        functions, constraints, texts, constant = [], [], [], form.constant
        for f in form.functions:
            way = self.ways.get(f)
            if way is None:
                (constraints if f.is_constraint else functions).append(f)
                continue
            texts.append(way.text.replace("{}", f.typed))
            functions += [FunctionTerm(atom, f.coefficient, f.map, f.typed) for atom in way.functions]
            constraints += [FunctionTerm(atom, 1.0, f.map, f.typed) for atom in way.constraints]
            constant += 0.0 if f.is_constraint else f.coefficient * way.constant
        return replace(form, functions=(*functions, *constraints), constant=constant), ", ".join(texts)

    def invert(self, point: Point, recipe: str) -> Point:
        """The same weights; multipliers belong to what lies above."""
        return replace(point, function_duals=None)
