"""Easier models on the way to one that is not convex: the same with a larger eps, which has fewer stationary points."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError

__all__ = ["relaxed_forms"]

#: What eps falls to between two of them.
_FACTOR = 0.1


def relaxed_forms(form: NormalForm, stages: int) -> list[NormalForm]:
    """As many forms with the eps of every reweighted term made larger, the easiest first. SolverError where stages is no count."""
    typed = f"solve(solver='alternating', continuation={stages!r})"
    if isinstance(stages, bool) or not isinstance(stages, Integral) or stages < 0:
        raise SolverError(
            f"{typed}: write how many easier models to solve before, a whole number such as 3, or 0 for none"
        )
    if stages and not any(f.atom.is_reweighted for f in form.functions):
        raise SolverError(
            f"{typed}: no term of this model has an eps to be made larger; leave continuation out"
        )
    return [_with_larger_eps(form, _FACTOR**-k) for k in range(stages, 0, -1)]


def _with_larger_eps(form: NormalForm, factor: float) -> NormalForm:
    return replace(
        form,
        functions=tuple(
            replace(f, atom=replace(f.atom, eps=factor * f.atom.eps)) if f.atom.is_reweighted else f
            for f in form.functions
        ),
    )
