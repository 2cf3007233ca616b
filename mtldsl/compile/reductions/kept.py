"""Learned matrices kept: what is left of a structure that is not convex without them is a quadratic function of the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.terms.structure import Structures, StructureTerm

__all__ = ["Kept"]


class Kept:
    """structure(W) = min over S of value(W, S) becomes value(W, S) at the matrices given: above it, and equal where those are the best.

    Terms stay in their order, one for one. Structures that are convex with their matrices eliminated are left alone.
    """

    promise: ClassVar[Promise] = Promise.MAJORIZATION

    def __init__(self, structures: Structures):
        self.structures = structures

    def accepts(self, form: NormalForm) -> str | None:
        if any(isinstance(f, StructureTerm) and not f.atom.convex for f in form.functions):
            return None
        return "no term learns a matrix that has to be kept for the model to be convex"

    def apply(self, form: NormalForm) -> tuple[NormalForm, None]:
        functions, constant = [], form.constant
        for f in form.functions:
            if isinstance(f, StructureTerm) and not f.atom.convex:
                f, extra = f.kept(self.structures)
                constant += extra
            functions.append(f)
        return replace(form, functions=tuple(functions), constant=constant), None

    def invert(self, point: Point, recipe: None) -> Point:
        """The same weights; a quadratic's multipliers are not multipliers of what it touches."""
        return replace(point, function_duals=None)
