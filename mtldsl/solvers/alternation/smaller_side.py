"""A covariance of the features and one of the tasks leave the same penalty: alternate with the smaller one."""

from __future__ import annotations

from dataclasses import replace

from mtldsl.atoms.structures import FeatureCovarianceNorm, TaskCovarianceNorm
from mtldsl.compile.normal_form import FunctionTerm, NormalForm

__all__ = ["on_smaller_side"]


def on_smaller_side(form: NormalForm) -> NormalForm:
    """The form with every covariance norm on the side of W that is smaller; the same function of the weights.

    (W W^T)^{1/2} has the rank of W: on the larger side it is singular, and an alternation never leaves its range.
    """
    return replace(form, functions=tuple(map(_exchanged, form.functions)))


def _exchanged(f: FunctionTerm) -> FunctionTerm:
    (p, q), atom = f.map.shape, f.atom
    if isinstance(atom, FeatureCovarianceNorm) and p > q:
        return replace(f, atom=TaskCovarianceNorm(atom.covariance))
    if isinstance(atom, TaskCovarianceNorm) and q > p:
        return replace(f, atom=FeatureCovarianceNorm(atom.covariance))
    return f
