"""The algebra of weight expressions: shapes, printed text, and what they evaluate to."""

import gc
import weakref

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.language.parser import parse_constraint, parse_objective
from mtldsl.normal_form.canonicalize import linear_map
from tests.loops import for_each

rng = np.random.default_rng(0)


@pytest.fixture
def tasks():
    return mtl.Tasks.shared(rng.normal(size=(8, 5)), rng.normal(size=(8, 3)), task_names=["a", "b", "c"])


@pytest.fixture
def pair(tasks):
    return mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")


def evaluate(expression, **blocks):
    return linear_map(expression).forward(blocks)


def test_values_of_every_operation(tasks, pair):
    L, S = pair
    x = {"L": rng.normal(size=(5, 3)), "S": rng.normal(size=(5, 3))}
    A, B, C = rng.normal(size=(2, 5)), rng.normal(size=(3, 4)), rng.normal(size=(5, 3))
    cases = [
        (L + S, x["L"] + x["S"]),
        (L - S, x["L"] - x["S"]),
        (L - (S - L), 2 * x["L"] - x["S"]),
        (-L, -x["L"]),
        (3 * L / 2, 1.5 * x["L"]),
        (A @ L, A @ x["L"]),
        (L @ B, x["L"] @ B),
        (A @ (L + 2 * S) @ B, A @ (x["L"] + 2 * x["S"]) @ B),
        (sparse.csr_array(A) @ L, A @ x["L"]),
        (L[1:3, :], x["L"][1:3]),
        (L[[0, 4]], x["L"][[0, 4]]),
        (L[:, "b"], x["L"][:, [1]]),
        (L[:, ["c", 0]], x["L"][:, [2, 0]]),
        (L[-1, :], x["L"][[-1]]),
        (L[np.array([True, False, False, True, False]), :], x["L"][[0, 3]]),
        (L.sum(axis=0), x["L"].sum(axis=0, keepdims=True)),
        (L.sum(axis=1), x["L"].sum(axis=1, keepdims=True)),
        (L.sum(), x["L"].sum().reshape(1, 1)),
        (C - L, C - x["L"]),
        (L + 1.0, x["L"] + 1.0),
        (3 - L, 3 - x["L"]),
        (1 - (L + S), 1 - x["L"] - x["S"]),
        ((L - S) / mtl.Parameter(2.0), (x["L"] - x["S"]) / 2),
        ((L - C)[0, :] @ B, (x["L"] - C)[[0]] @ B),
        (sum([L, S]), x["L"] + x["S"]),
    ]
    for expression, expected in cases:
        assert expression.shape == expected.shape, expression.text
        np.testing.assert_allclose(evaluate(expression, **x), expected, atol=1e-13, err_msg=expression.text)


def test_scalar_arithmetic():
    lam, mu = mtl.Parameter(3.0, name="lam"), mtl.Parameter(0.25, name="mu")
    expression = 2 * lam * (1 - mu) / (lam + 1)
    assert expression.value == pytest.approx(2 * 3 * 0.75 / 4)
    assert expression.text == "2 * lam * (1 - mu) / (lam + 1)"
    assert expression.parameters == {lam, mu}


@pytest.mark.slow
def test_data_go_with_the_last_name_of_them():
    """Weights keep no circle: 16 MB of a server's fit would else stay until a collector comes by."""
    gc.collect()
    gc.disable()
    try:
        tasks = mtl.Tasks.shared(np.eye(3), np.ones((3, 2)))
        kept = weakref.ref(tasks)
        W = mtl.Weights(tasks, intercept=True)
        objective = mtl.squared_loss(2 * W, tasks) + mtl.l21_norm(W)
        mtl.minimize(objective)
        del tasks, W, objective
        assert kept() is None
    finally:
        gc.enable()


RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6))
TASKS = mtl.Tasks.shared(X, np.where(X @ RNG.normal(size=(6, 4)) + RNG.normal(size=(50, 4)) > 0, 1.0, -1.0))
SOME = TASKS.select([0, 2])
LAPLACIAN = np.diag([1.0, 2, 2, 1]) - np.diag(np.ones(3), 1) - np.diag(np.ones(3), -1)


def model(tasks, objective, *constraints):
    names = {
        "tasks": tasks, "W": mtl.Weights(tasks, intercept=True), "L": LAPLACIAN, "entries": np.ones((6, 4)),
    }  # fmt: skip
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
    ours, theirs = made.form(), typed.form()
    for size in (0.1, 10.0):
        x = {name: size * RNG.normal(size=shape) for name, shape in theirs.shapes.items()}
        assert ours.value(x) == pytest.approx(theirs.value(x), rel=1e-13)
        assert ours.violation(x) == theirs.violation(x)


@for_each("typed, says", [
    (["logistic_loss(W, tasks) + graph_laplacian(W, L) + ridge(W)"], "L is 4 x 4"),
    (["logistic_loss(W, tasks) + l1_norm(W, weights=entries)"], "do not broadcast"),
    (["logistic_loss(W, tasks) + ridge(W)", "W.sum(axis=1) == 0"], "says something of each task"),
    (["logistic_loss(W, tasks) + ridge(W[:, [0, 1]])"], "says something of each task"),
    (["structured_hinge(W, tasks, metric=[AUC(), AUC(), FScore(), FScore()]) + ridge(W)"],
     "4 metrics for 2 tasks"),
])  # fmt: skip
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
