"""The laws of solvers, on small models of every kind."""

from __future__ import annotations

import inspect
from functools import cache, partial

import numpy as np

from mtldsl.errors import SolverError
from mtldsl.solvers.registry import LAST, refusal
from mtldsl.solvers.solve import seen_by_solvers
from mtldsl.testing.law import Law, holds, law, same
from mtldsl.testing.laws.models import MODELS, model_for

__all__ = ["LAWS"]

LAWS: list[Law] = []

#: relative duality gap that is asked for
TOL = 1e-6


@cache
def _optimum(model: str) -> float:
    """By the reference."""
    return float(MODELS[model]().solve(LAST, tol=1e-7).objective)


@cache
def _taken(solver) -> dict[str, str]:
    """The models that a solver does not refuse."""
    return {model: model for model in MODELS if refusal(solver, _seen(solver, model)) is None}


def _seen(solver, model: str):
    """The form that the solver is asked about."""
    return seen_by_solvers(model_for(solver, model).form())


def _labels(form) -> list[np.ndarray]:
    return [np.array(loss.tasks.targets) for loss in form.losses if loss.tasks.in_memory]


_law = partial(law, LAWS, object)
_on_what_it_takes = partial(law, LAWS, object, model=_taken)


class _Watch:
    """A caller that lets a solver go on for so many looks."""

    def __init__(self, looks: int):
        self.looks, self.points, self.expired = looks, [], False

    def __call__(self, point) -> bool:
        self.points.append(point)
        self.expired = len(self.points) >= self.looks
        return self.expired


@_law()
def says_what_it_is(solver):
    """A name, a summary of one line, options with defaults that `solve` takes by name, and a solver takes at least one model."""
    holds(isinstance(solver.name, str) and solver.name.isidentifier(), f"its name is {solver.name!r}")
    holds(
        len(solver.summary) > 10 and "\n" not in solver.summary, "its summary is one line about what it takes"
    )
    taken = inspect.signature(solver.solve).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    for name in ("tol", "max_iter", "start", "watch", *solver.options):
        holds(anything or name in taken, f"solve takes no keyword argument {name}")
    holds(_taken(solver), "it refuses every one of the models here: " + "; ".join(MODELS))


@_law(model={model: model for model in MODELS})
def refuses_with_a_sentence(solver, model):
    """refuses(form) is None or a sentence that ends in a full stop, and does not change the form's data."""
    form = _seen(solver, model)
    before = _labels(form)
    reason = refusal(solver, form)
    sentence = reason is None or (isinstance(reason, str) and len(reason) > 10 and reason.endswith("."))
    holds(sentence, f"refuses says {reason!r}")
    unchanged = all(np.array_equal(a, b) for a, b in zip(before, _labels(form), strict=True))
    holds(unchanged, "it wrote into the labels")


@_on_what_it_takes()
def its_answer_is_certified_and_the_reference_agrees(solver, model):
    """The certificate, computed outside the solver, proves its point to 1e-6, and the reference finds nothing better."""
    problem = model_for(solver, model)
    before = _labels(problem.form())
    solution = problem.solve(solver.name, tol=TOL, max_seconds=60)
    if not problem.is_convex:
        holds(solution.status == "stationary", f"its point of a model that is not convex is {solution!r}")
        return
    holds(solution.status == "optimal", f"its point is not certified: {solution!r}")
    same(solution.objective, _optimum(model), "its objective, beside the reference's", rel=3e-6, abs=1e-7)
    for then, now in zip(before, _labels(problem.form()), strict=True):
        holds(np.array_equal(then, now), "it wrote into the labels")


@_on_what_it_takes()
def the_same_model_gives_the_same_bits(solver, model):
    """Two solves of one model end after the same iterations at the same blocks, bit for bit: no decision reads a clock, no order is one of
    addresses or threads."""
    one, other = (model_for(solver, model).solve(solver.name, tol=TOL, max_iter=200) for _ in range(2))
    holds(one.iterations == other.iterations, f"{one.iterations} iterations, then {other.iterations}")
    for name, block in one.blocks.items():
        holds(np.array_equal(block, other.blocks[name]), f"the block {name} differs between two solves")


@_on_what_it_takes()
def it_stops_when_it_is_told_to(solver, model):
    """A watch that returns True at the first look gets no second one, and the point has every block in its shape."""
    form = _seen(solver, model)
    watch = _Watch(1)
    point = solver.solve(form, tol=1e-12, max_iter=10_000, start=None, watch=watch)
    holds(len(watch.points) >= 1, "it never showed a point to its watch")
    holds(len(watch.points) <= 2, f"it went on for {len(watch.points) - 1} looks after it was told to stop")
    for block in form.blocks:
        shape = np.shape(point.blocks.get(block.name))
        holds(shape == block.shape, f"block {block.name} of its point has shape {shape}, not {block.shape}")


@_on_what_it_takes()
def it_keeps_to_max_iter(solver, model):
    """With max_iter=1 it comes back, with a finite point."""
    form = _seen(solver, model)
    point = solver.solve(form, tol=1e-12, max_iter=1, start=None, watch=_Watch(1000))
    finite = all(np.isfinite(block).all() for block in point.blocks.values())
    holds(finite, "its point after one iteration is not finite")


@_law()
def it_has_no_option_but_those_it_names(solver):
    """An option that is not in `options` is refused."""
    for model in list(_taken(solver))[:1]:
        try:
            model_for(solver, model).solve(solver.name, no_such_option=1)
        except SolverError as error:
            holds("no_such_option" in str(error), f"the refusal does not name the option: {error}")
        else:
            raise AssertionError("no_such_option=1 was taken in silence")
