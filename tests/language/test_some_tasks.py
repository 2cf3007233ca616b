"""A model over some of its tasks: the same as one typed for them, or refused where a term says something of each."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.language.parser import parse_constraint, parse_objective
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6))
TASKS = mtl.Tasks.shared(X, np.where(X @ RNG.normal(size=(6, 4)) + RNG.normal(size=(50, 4)) > 0, 1.0, -1.0))
SOME = TASKS.select([0, 2])
LAPLACIAN = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)


def model(tasks, objective, *constraints):
    names = {
        "tasks": tasks,
        "W": mtl.Weights(tasks, intercept=True),
        "L": LAPLACIAN,
        "entries": np.ones((6, 4)),
    }
    held = [parse_constraint(text, names) for text in constraints]
    return mtl.minimize(parse_objective(objective, names), held)


SAME = {
    "bounds": ("logistic_loss(W, tasks) + 2 * l21_norm(W)", "W >= -0.5"),
    "some rows": ("logistic_loss(W, tasks, mean=True) + 0.1 * trace_norm(W) + ridge(W[[0, 2], :])",),
    "metric": ("structured_hinge(W, tasks, metric=FScore()) + ridge(W)", "l1_norm(W) <= 3"),
    "mean": ("hinge_loss(W, tasks) + mean_regularizer(W) + ridge(W)",),
    "groups": ("squared_loss(W, tasks) + group_norm(W, [[0, 1], [2, 3, 4], [5]])", "trace_norm(W) <= 2"),
}


@pytest.mark.slow
@for_each("name", SAME)
def test_it_is_the_model_typed_for_these_tasks(name):
    made, typed = model(TASKS, *SAME[name]).with_tasks(SOME, some=True), model(SOME, *SAME[name])
    assert str(made) == str(typed)
    assert np.isclose(made.solve().objective, typed.solve().objective, rtol=1e-6)


@for_each(
    "typed, says",
    [
        (["logistic_loss(W, tasks) + graph_laplacian(W, L) + ridge(W)"], "L is 4 x 4"),
        (["logistic_loss(W, tasks) + l1_norm(W, weights=entries)"], "do not broadcast"),
        (["logistic_loss(W, tasks) + ridge(W)", "W.sum(axis=1) == 0"], "says something of each task"),
        (["logistic_loss(W, tasks) + ridge(W[:, [0, 1]])"], "says something of each task"),
        (["structured_hinge(W, tasks, metric=[AUC(), AUC(), FScore(), FScore()]) + ridge(W)"],
         "4 metrics for 2 tasks"),
    ],
)  # fmt: skip
def test_what_is_said_of_each_task_is_not_guessed(typed, says):
    with pytest.raises(mtl.ModelError) as caught:
        model(TASKS, *typed).with_tasks(SOME, some=True)
    assert says in str(caught.value)


def test_it_has_to_be_asked_for():
    W = mtl.Weights(TASKS)
    problem = mtl.minimize(mtl.logistic_loss(W, TASKS) + mtl.ridge(W))
    with pytest.raises(mtl.ModelError, match=r"W was made for \(6, 4\)"):
        problem.with_tasks(SOME)
    with pytest.raises(mtl.ModelError, match="some=True or some=False"):
        problem.with_tasks(SOME, some=1)
