"""What solvers by passes over rows that are elsewhere have in common: which models they are for."""

from __future__ import annotations

from mtldsl.compile.normal_form import LossTerm, NormalForm
from mtldsl.solvers.solver import Solver

__all__ = ["SolverByPasses", "sum_over_samples"]


class SolverByPasses(Solver):
    """A solver for losses whose rows are elsewhere, and only for these."""

    needs_rows = False

    def refuses(self, form: NormalForm) -> str | None:
        if not form.losses:
            return "no loss has a coefficient > 0."
        here = (f"the rows of {loss.typed} are here." for loss in form.losses if loss.tasks.in_memory)
        return next(here, None) or self.refuses_elsewhere(form)

    def refuses_elsewhere(self, form: NormalForm) -> str | None:
        """`refuses` of a form whose rows are all elsewhere."""
        raise NotImplementedError

    def solves_only(self, form: NormalForm) -> str | None:
        return "rows that are elsewhere" if form.in_memory else None


def sum_over_samples(form: NormalForm) -> LossTerm | str:
    """The one loss, a sum over samples; or a sentence that says why there is none."""
    if len(form.losses) != 1:
        return "there is not exactly one loss."
    (loss,) = form.losses
    if not loss.atom.separable:
        return f"{loss.typed} is not a sum over samples: it would need all rows of a task at once."
    return f"{form.entangled_intercepts}." if form.entangled_intercepts else loss
