"""A model over some of its tasks: the same as one typed for them, or refused where a term says something of each."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6))
TASKS = mtl.Tasks.shared(X, np.where(X @ RNG.normal(size=(6, 4)) + RNG.normal(size=(50, 4)) > 0, 1.0, -1.0))
SOME = TASKS.select([0, 2])
LAPLACIAN = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)


@pytest.mark.by_default("<lambda>-<lambda>2")
@pytest.mark.parametrize(
    "objective, constraints",
    [
        (lambda W, t: mtl.logistic_loss(W, t) + 2 * mtl.l21_norm(W), lambda W: [W >= -0.5]),
        (
            lambda W, t: (
                mtl.logistic_loss(W, t, mean=True) + 0.1 * mtl.trace_norm(W) + mtl.ridge(W[[0, 2], :])
            ),
            lambda W: [],
        ),
        (
            lambda W, t: mtl.structured_hinge(W, t, metric=mtl.FScore()) + mtl.ridge(W),
            lambda W: [mtl.l1_norm(W) <= 3],
        ),
        (lambda W, t: mtl.hinge_loss(W, t) + mtl.mean_regularizer(W) + mtl.ridge(W), lambda W: []),
        (lambda W, t: mtl.squared_loss(W, t) + mtl.l12_norm(W) + mtl.l1_inf_norm(W), lambda W: [W <= 2]),
        (
            lambda W, t: mtl.squared_loss(W, t) + mtl.group_norm(W, [[0, 1], [2, 3, 4], [5]]),
            lambda W: [mtl.trace_norm(W) <= 2],
        ),
    ],
)
def test_it_is_the_model_typed_for_these_tasks(objective, constraints):
    W, V = mtl.Weights(TASKS, intercept=True), mtl.Weights(SOME, intercept=True)
    made = mtl.minimize(objective(W, TASKS), constraints(W)).with_tasks(SOME, some=True)
    typed = mtl.minimize(objective(V, SOME), constraints(V))
    assert str(made) == str(typed)
    assert np.isclose(made.solve().objective, typed.solve().objective, rtol=1e-6)


@for_each(
    "objective, constraints, says",
    [
        (
            lambda W, t: mtl.logistic_loss(W, t) + mtl.graph_laplacian(W, LAPLACIAN) + mtl.ridge(W),
            lambda W: [],
            "L is 4 x 4",
        ),
        (
            lambda W, t: mtl.logistic_loss(W, t) + mtl.l1_norm(W, weights=np.ones((6, 4))),
            lambda W: [],
            "do not broadcast",
        ),
        (
            lambda W, t: mtl.logistic_loss(W, t) + mtl.ridge(W),
            lambda W: [W.sum(axis=1) == 0],
            "says something of each task",
        ),
        (
            lambda W, t: mtl.logistic_loss(W, t) + mtl.ridge(W[:, [0, 1]]),
            lambda W: [],
            "says something of each task",
        ),
        (
            lambda W, t: mtl.structured_hinge(W, t, metric=[mtl.FScore()] * 4) + mtl.ridge(W),
            lambda W: [],
            "4 metrics for 2 tasks",
        ),
    ],
)
def test_what_is_said_of_each_task_is_not_guessed(objective, constraints, says):
    W = mtl.Weights(TASKS)
    problem = mtl.minimize(objective(W, TASKS), constraints(W))
    with pytest.raises(mtl.ModelError) as caught:
        problem.with_tasks(SOME, some=True)
    assert says in str(caught.value)


def test_it_has_to_be_asked_for():
    W = mtl.Weights(TASKS)
    problem = mtl.minimize(mtl.logistic_loss(W, TASKS) + mtl.ridge(W))
    with pytest.raises(mtl.ModelError, match=r"W was made for \(6, 4\)"):
        problem.with_tasks(SOME)
    with pytest.raises(mtl.ModelError, match="some=True or some=False"):
        problem.with_tasks(SOME, some=1)
