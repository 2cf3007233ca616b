"""The laws of solvers, checked on small models: refusals, certified answers, repeatable bits, stops."""

from __future__ import annotations

import inspect
from functools import cache, partial

import numpy as np

from mtldsl.data.tasks import Tasks
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.errors import SolverError
from mtldsl.extending.law import Law, holds, law, same
from mtldsl.language import vocabulary as words
from mtldsl.language.weights import Weights
from mtldsl.problems.problem import Problem, minimize
from mtldsl.solvers.multistart import seen_by_solvers
from mtldsl.solvers.routes import LAST, refusal

# --------------------------------------------------------------------------------------------------------------
# Small models of every kind, on which solvers are checked.


def _tasks(labels: str = "real", separate: bool = False) -> Tasks:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5))
    Z = X @ (rng.normal(size=(5, 2)) @ rng.normal(size=(2, 3))) + 0.3 * rng.normal(size=(20, 3))
    Y = np.where(np.median(Z, axis=0) <= Z, 1.0, -1.0) if labels == "sign" else Z
    if not separate:
        return Tasks.shared(X, Y)
    return Tasks.separate([X[:12], X[5:], X[3:17]], [Y[:12, 0], Y[5:, 1], Y[3:17, 2]])


def _stated(loss, *others, labels="real", constraint=None, separate=False, intercept=False):
    """others : (coefficient, word) of each penalty"""

    def model() -> Problem:
        tasks = _tasks(labels, separate)
        W = Weights(tasks, intercept=intercept)
        objective = loss(W, tasks)
        for coefficient, word in others:
            objective = objective + coefficient * word(W)
        return minimize(objective, [] if constraint is None else [constraint(W)])

    return model


_squares, _classes = partial(_stated, words.squared_loss), partial(_stated, labels="sign")


def _one_of_classes(loss, word):
    def model() -> Problem:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20, 5))
        tasks = Tasks.from_classes(X, (X @ rng.normal(size=(5, 3))).argmax(axis=1))
        W = Weights(tasks, intercept=True)
        return minimize(loss(W, tasks) + word(W))

    return model


def _sum_of_two() -> Problem:
    tasks = _tasks()
    L, S = Weights(tasks, name="L"), Weights(tasks, name="S")
    loss = words.squared_loss(L + S, tasks)
    return minimize(loss + 3.0 * words.trace_norm(L) + 2.0 * words.l12_norm(S))


def _label_graph() -> Problem:
    tasks = _tasks("sign")
    U, V = words.NodeWeights(tasks), words.EdgeWeights(tasks, edges="all")
    return minimize(words.clique_hinge(U, V, tasks) + 0.1 * words.ridge(U) + 0.1 * words.ridge(V))


#: name -> function that makes the model anew
MODELS = {
    "squares and a ridge": _squares((2.0, words.ridge)),
    "squares of separate inputs, a ridge and an intercept": _squares(
        (2.0, words.ridge), separate=True, intercept=True
    ),
    "squares and the l1 norm": _squares((3.0, words.l1_norm)),
    "squares and the l21 norm, W >= 0": _squares((3.0, words.l21_norm), constraint=lambda W: W >= 0),
    "squares and the trace norm": _squares((4.0, words.trace_norm)),
    "squares and two norms": _squares((2.0, words.l21_norm), (2.0, words.trace_norm)),
    "squares in a simplex": _squares(constraint=words.columns_on_simplex),
    "a sum of two matrices": _sum_of_two,
    "absolute residuals beside a ridge": _stated(words.absolute_loss, (1.0, words.ridge)),
    "logistic loss and the l21 norm": _classes(words.logistic_loss, (1.0, words.l21_norm)),
    "hinge loss and a ridge": _classes(words.hinge_loss, (1.0, words.ridge)),
    "structured hinge and a ridge": _classes(words.structured_hinge, (0.05, words.ridge)),
    "softmax loss and the trace norm": _one_of_classes(words.softmax_loss, words.trace_norm),
    "softmax loss and a ridge": _one_of_classes(words.softmax_loss, words.ridge),
    "Crammer-Singer loss and a ridge": _one_of_classes(words.crammer_singer_loss, words.ridge),
    "labels that depend on each other": _label_graph,
    "log-rank, not convex": _stated(words.square_root_loss, (0.5, words.log_rank)),
}


def model_for(solver, name: str) -> Problem:
    """The model of that name; for a solver of rows that are elsewhere, with its rows in parts."""
    problem = MODELS[name]()
    tasks = problem.first_loss.data
    whole = any(
        loss.atom.labels in ("indicators", "classes") for loss in problem.form().losses
    )  # labellings, of all tasks at once
    if solver.needs_rows or tasks is None or whole:
        return problem
    return problem.with_tasks(DistributedTasks.cut(tasks, 3))


# --------------------------------------------------------------------------------------------------------------
# The laws of solvers, on small models of every kind.

LAWS: list[Law] = []

#: Relative duality gap that is asked for.
GAP_TOL = 1e-6


@cache
def _optimum(model: str) -> float:
    """By the reference."""
    return float(MODELS[model]().solve(LAST, tol=1e-7).objective)


@cache
def _accepted_models(solver) -> dict[str, str]:
    """The models that a solver does not refuse."""
    return {model: model for model in MODELS if refusal(solver, _seen(solver, model)) is None}


def _seen(solver, model: str):
    """The form that the solver is asked about."""
    return seen_by_solvers(model_for(solver, model).form())


def _labels(form) -> list[np.ndarray]:
    return [np.array(loss.tasks.targets) for loss in form.losses if loss.tasks.in_memory]


_law = partial(law, LAWS, object)
_on_what_it_takes = partial(law, LAWS, object, model=_accepted_models)


class _CountingWatch:
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
    holds(_accepted_models(solver), "it refuses every one of the models here: " + "; ".join(MODELS))


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
    solution = problem.solve(solver.name, tol=GAP_TOL, max_seconds=60)
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
    one, other = (model_for(solver, model).solve(solver.name, tol=GAP_TOL, max_iter=200) for _ in range(2))
    holds(one.iterations == other.iterations, f"{one.iterations} iterations, then {other.iterations}")
    for name, block in one.blocks.items():
        holds(np.array_equal(block, other.blocks[name]), f"the block {name} differs between two solves")


@_on_what_it_takes()
def it_stops_when_it_is_told_to(solver, model):
    """A watch that returns True at the first look gets no second one, and the point has every block in its shape."""
    form = _seen(solver, model)
    watch = _CountingWatch(1)
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
    point = solver.solve(form, tol=1e-12, max_iter=1, start=None, watch=_CountingWatch(1000))
    finite = all(np.isfinite(block).all() for block in point.blocks.values())
    holds(finite, "its point after one iteration is not finite")


@_law()
def it_has_no_option_but_those_it_names(solver):
    """An option that is not in `options` is refused."""
    for model in list(_accepted_models(solver))[:1]:
        try:
            model_for(solver, model).solve(solver.name, no_such_option=1)
        except SolverError as error:
            holds("no_such_option" in str(error), f"the refusal does not name the option: {error}")
        else:
            raise AssertionError("no_such_option=1 was taken in silence")
