"""The same model with a larger eps: it has fewer stationary points, and a point of one is a start for the next."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.reductions.reduction import Point, Promise

__all__ = ["Relaxed"]


class Relaxed:
    """sum_j r(sigma_j^2 + eps) of every reweighted term with `factor` times its eps, factor > 1: higher, since r is nondecreasing."""

    promise: ClassVar[Promise] = Promise.MAJORIZATION

    def __init__(self, factor: float):
        self.factor = factor

    def accepts(self, form: NormalForm) -> str | None:
        if any(f.atom.is_reweighted for f in form.functions):
            return None
        return "no term of this model has an eps to be made larger"

    def apply(self, form: NormalForm) -> tuple[NormalForm, None]:
        return replace(
            form,
            functions=tuple(
                replace(f, atom=f.atom.relaxed(self.factor)) if f.atom.is_reweighted else f
                for f in form.functions
            ),
        ), None

    def invert(self, point: Point, recipe: None) -> Point:
        """The same weights; multipliers belong to the other eps."""
        return replace(point, function_duals=None)
