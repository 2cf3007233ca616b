"""Dual ascent: on planes for structured losses beside a ridge, on samples for losses beside a kernel regularizer."""

from __future__ import annotations

from mtldsl.atoms.losses import StructuredHinge
from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError
from mtldsl.solvers.coordinates.sample_ascent import SampleAscent
from mtldsl.solvers.planes.tasks_ascent import TasksAscent
from mtldsl.solvers.solver import Point, Watch

__all__ = ["SOLVER", "DualAscent"]

_PLANES, _SAMPLES = TasksAscent(), SampleAscent()


class DualAscent:
    """Two ways to raise the dual value, whose name is the same because the certificate is: see `TasksAscent` and `SampleAscent`.

    A structured loss is a maximum of planes, and its dual a quadratic program over a simplex of planes; a loss that is a sum over samples
    has one multiplier a sample. Options belong to one of the two.
    """

    name = "dual_ascent"
    summary = "dual ascent: on samples beside mkl_norm and other kernel regularizers, on planes for a structured loss beside a ridge"
    options = _PLANES.options | _SAMPLES.options
    max_iter = 100_000

    def _way(self, form: NormalForm):
        structured = any(isinstance(term.atom, StructuredHinge) for term in form.losses)
        return _PLANES if structured else _SAMPLES

    def refuses(self, form: NormalForm) -> str | None:
        return self._way(form).refuses(form)

    def yields(self, form: NormalForm) -> str | None:
        way = self._way(form)
        return way.yields(form) if way is _SAMPLES else None

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, **options
    ) -> Point:
        way = self._way(form)
        for name, value in options.items():
            if name not in way.options:
                known = ", ".join(f"{key}={default!r}" for key, default in way.options.items())
                raise SolverError(
                    f"solve(solver='dual_ascent', {name}={value!r}): this option is not for this model; here dual_ascent takes {known}"
                )
        return way.solve(form, tol=tol, max_iter=max_iter, start=start, watch=watch, **options)


SOLVER = DualAscent()
