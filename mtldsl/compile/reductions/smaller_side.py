"""A covariance of the features and one of the tasks leave the same penalty: alternate with the smaller one."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from mtldsl.compile.normal_form import FunctionTerm, NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise
from mtldsl.compile.terms.structure import StructureTerm

__all__ = ["SmallerSide"]


class SmallerSide:
    """Every covariance norm on the side of W that is smaller; the same function of the weights.

    (W W^T)^{1/2} has the rank of W: on the larger side it is singular, and an alternation never leaves its range.
    """

    promise: ClassVar[Promise] = Promise.EXACT

    def accepts(self, form: NormalForm) -> str | None:
        if any(_turned(f) is not f for f in form.functions):
            return None
        return "no term learns a matrix on the larger side of the weights"

    def apply(self, form: NormalForm) -> tuple[NormalForm, None]:
        return replace(form, functions=tuple(map(_turned, form.functions))), None

    def invert(self, point: Point, recipe: None) -> Point:
        """The same weights and multipliers; matrices of the other side are left out, where the point holds any."""
        return replace(point, structures=None) if hasattr(point, "structures") else point


def _turned(f: FunctionTerm) -> FunctionTerm:
    if not isinstance(f, StructureTerm):
        return f
    atom = f.structure.on_smaller_side(f.map.shape)
    return f if atom is f.atom else replace(f, atom=atom)
