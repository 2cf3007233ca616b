"""Small models of every kind, on which solvers are checked."""

from __future__ import annotations

import numpy as np

from mtldsl.language.expressions.weights import Weights
from mtldsl.language.words import vocabulary as words
from mtldsl.problem import Problem, minimize
from mtldsl.tasks import Tasks
from mtldsl.tasks.distributed import DistributedTasks

__all__ = ["MODELS", "model_for"]


def _tasks(labels: str = "real", separate: bool = False) -> Tasks:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5))
    Z = X @ (rng.normal(size=(5, 2)) @ rng.normal(size=(2, 3))) + 0.3 * rng.normal(size=(20, 3))
    Y = np.where(np.median(Z, axis=0) <= Z, 1.0, -1.0) if labels == "sign" else Z
    if not separate:
        return Tasks.shared(X, Y)
    return Tasks.separate([X[:12], X[5:], X[3:17]], [Y[:12, 0], Y[5:, 1], Y[3:17, 2]])


def _squares(*others, constraint=None, separate=False, intercept=False):
    def model() -> Problem:
        tasks = _tasks(separate=separate)
        W = Weights(tasks, intercept=intercept)
        objective = words.squared_loss(W, tasks)
        for coefficient, word in others:
            objective = objective + coefficient * word(W)
        return minimize(objective, [] if constraint is None else [constraint(W)])

    return model


def _classes(loss, coefficient, word, **options):
    def model() -> Problem:
        tasks = _tasks("sign")
        W = Weights(tasks)
        return minimize(loss(W, tasks, **options) + coefficient * word(W))

    return model


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


def _log_rank() -> Problem:
    tasks = _tasks()
    W = Weights(tasks)
    return minimize(words.square_root_loss(W, tasks) + 0.5 * words.log_rank(W))


def _absolute() -> Problem:
    tasks = _tasks()
    W = Weights(tasks)
    return minimize(words.absolute_loss(W, tasks) + words.ridge(W))


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
    "absolute residuals beside a ridge": _absolute,
    "logistic loss and the l21 norm": _classes(words.logistic_loss, 1.0, words.l21_norm),
    "hinge loss and a ridge": _classes(words.hinge_loss, 1.0, words.ridge),
    "structured hinge and a ridge": _classes(words.structured_hinge, 0.05, words.ridge),
    "softmax loss and the trace norm": _one_of_classes(words.softmax_loss, words.trace_norm),
    "softmax loss and a ridge": _one_of_classes(words.softmax_loss, words.ridge),
    "Crammer-Singer loss and a ridge": _one_of_classes(words.crammer_singer_loss, words.ridge),
    "labels that depend on each other": _label_graph,
    "log-rank, not convex": _log_rank,
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
