"""The solutions of a model over values of one parameter, each warm-started from the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from mtldsl.analysis.ahead import Past, ahead
from mtldsl.analysis.own_parameter import require_own
from mtldsl.compile.normal_form import NormalForm
from mtldsl.errors import ModelError
from mtldsl.language.expressions.scalar import Parameter
from mtldsl.solution.solution import Solution
from mtldsl.system import stops
from mtldsl.system.once import Store, remembering
from mtldsl.system.told import counted
from mtldsl.values.array import as_array
from mtldsl.values.number import quoted

__all__ = ["Solvable", "checked_values", "walk"]


class Solvable(Protocol):
    """What a path asks of a model."""

    @property
    def parameters(self) -> list[Parameter]: ...

    def form(self) -> NormalForm: ...

    def solve(self, **options) -> Solution: ...


def checked_values(problem: Solvable, parameter: Parameter, values) -> list[float]:
    """The values as numbers; ModelError for a parameter of another problem, and where they are not finite and >= 0."""
    require_own(parameter, problem.parameters, f"path({quoted(parameter)}, ...)")
    try:
        listed = list(values) if isinstance(values, Iterator) else values
        numbers = as_array(listed, "", ModelError).astype(float)
        fits = numbers.ndim == 1 and bool(((numbers >= 0) & (numbers < np.inf)).all())
    except ModelError:
        fits = False
    if not fits:
        raise ModelError(
            "the values must be a list of numbers, finite and >= 0, such as [10.0, 1.0, 0.1]",
            term=f"path({parameter.name}, {quoted(values)})",
        ) from None
    return numbers.tolist()


def walk(
    problem: Solvable,
    parameter: Parameter,
    values: list[float],
    solve_options: dict,
    keep: Callable[[Solution], None],
    progress: bool = False,
) -> Iterator[Solution]:
    """See `Problem.path`. keep : told every solution before it is yielded."""
    before, last = parameter.value, None
    past = Past()
    made: Store = {}
    try:
        with counted(parameter.name, len(values), progress) as tell:
            for value in values:
                parameter.value = value
                # between two solves, too, a signal is kept: this point is the last one
                with (
                    stops.heard(),
                    remembering(made),
                ):  # not beyond: between two values the caller does other things
                    start = ahead(problem.form(), past, last, value)
                    best = problem.solve(warm_start=start, **solve_options)
                    interrupted = best.interrupted
                    if last is not None and not interrupted and _may_lock(problem.form()):
                        cold = problem.solve(**solve_options)
                        interrupted = cold.interrupted
                        best = cold if _is_better(cold, best) else best
                    interrupted = interrupted or stops.pending()
                last = best
                past = past.then(value, best)
                keep(best)
                tell(f"= {value:.4g}, {best.status}, {best.seconds:.2f} s")
                yield best
                if interrupted or best.status == "stopped":
                    return
    finally:
        parameter.value = before


def _may_lock(form: NormalForm) -> bool:
    """Whether a penalty of the spectrum is not convex: from weights near zero a solver may not come away again."""
    return any(f.atom.separable == "spectrum" and not f.atom.convex for f in form.functions)


def _is_better(one: Solution, other: Solution) -> bool:
    return (not one.is_certified, one.objective) < (not other.is_certified, other.objective)
