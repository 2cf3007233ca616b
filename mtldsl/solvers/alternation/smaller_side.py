"""A covariance of the features and one of the tasks leave the same penalty: alternate with the smaller one."""

from __future__ import annotations

from dataclasses import replace

from mtldsl.compile.normal_form import NormalForm
from mtldsl.compile.terms.structure import StructureTerm

__all__ = ["on_smaller_side"]


def on_smaller_side(form: NormalForm) -> NormalForm:
    """The form with every covariance norm on the side of W that is smaller; the same function of the weights.

    (W W^T)^{1/2} has the rank of W: on the larger side it is singular, and an alternation never leaves its range.
    """
    return replace(
        form,
        functions=tuple(
            replace(f, atom=f.structure.on_smaller_side(f.map.shape)) if isinstance(f, StructureTerm) else f
            for f in form.functions
        ),
    )
