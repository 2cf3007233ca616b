"""Dual ascent: on planes for structured losses beside a ridge, on samples beside a kernel regularizer, on labellings of a label graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import SolverError
from mtldsl.solvers.labellings.labelling_ascent import LabellingAscent
from mtldsl.solvers.planes.oracle import has_one_maximum_a_task
from mtldsl.solvers.planes.tasks_ascent import TasksAscent
from mtldsl.solvers.samples.sample_ascent import SampleAscent
from mtldsl.solvers.solver import Point, Solver, Watch

__all__ = ["SOLVER", "DualAscent"]

_PLANES, _SAMPLES, _LABELLINGS = TasksAscent(), SampleAscent(), LabellingAscent()


class DualAscent(Solver):
    """Three ways to raise the dual value, whose name is the same because the certificate is: see `TasksAscent`, `SampleAscent` and
    `LabellingAscent`.

    A structured loss is a maximum of planes, and its dual a quadratic program over a simplex of planes; a loss that is a sum over samples
    has one multiplier a sample; one of labellings has a random labelling a sample. Options belong to one of the three.
    """

    name = "dual_ascent"
    summary = "dual ascent: on samples beside mkl_norm and other kernel regularizers, on planes for a structured loss beside a ridge, on labellings for clique_hinge"
    options: ClassVar[Mapping[str, object]] = {**_PLANES.options, **_SAMPLES.options, **_LABELLINGS.options}
    writes = _SAMPLES.writes
    takes_spans = True

    def _way(self, form: NormalForm) -> Solver:
        if any(map(has_one_maximum_a_task, form.losses)):
            return _PLANES
        return _LABELLINGS if any(term.atom.labels == "indicators" for term in form.losses) else _SAMPLES

    def refuses(self, form: NormalForm) -> str | None:
        return self._way(form).refuses(form)

    def solves_only(self, form: NormalForm) -> str | None:
        fits = all(f.is_constraint or f.atom.is_smooth or f.atom.weighs_kernels for f in form.functions)
        return (
            None if fits or self._way(form) is _LABELLINGS else "models with quadratic penalties or mkl_norm"
        )

    def yields(self, form: NormalForm) -> str | None:
        return self._way(form).yields(form)

    def patience(self, form: NormalForm) -> int:
        return self._way(form).patience(form)

    def shift(self, form: NormalForm) -> float:
        return self._way(form).shift(form)

    def solve(
        self, form: NormalForm, *, tol: float, max_iter: int, start: Point | None, watch: Watch, **options
    ) -> Point:
        way = self._way(form)
        for name, value in options.items():
            if name not in way.options:
                known = ", ".join(f"{key}={default!r}" for key, default in way.options.items())
                raise SolverError(
                    f"this option is not for this model; here dual_ascent takes {known}",
                    term=f"solve(solver='dual_ascent', {name}={value!r})",
                )
        return way.solve(form, tol=tol, max_iter=max_iter, start=start, watch=watch, **options)


SOLVER = DualAscent()
