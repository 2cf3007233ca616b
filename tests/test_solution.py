"""Predictions, scores and storage."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.models import separate, shared


@pytest.fixture(scope="module")
def classified():
    tasks = shared(3, n=40, labels="sign")
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.5 * mtl.trace_norm(W))
    return tasks, problem.solve(tol=1e-8)


def test_predictions_by_hand(classified):
    tasks, solution = classified
    z = tasks.X @ solution.W + solution.intercept
    np.testing.assert_allclose(solution.decision_function(tasks.X), z, rtol=1e-12)
    np.testing.assert_array_equal(solution.predict(tasks.X), np.where(z >= 0, 1.0, -1.0))
    np.testing.assert_allclose(solution.predict_proba(tasks.X), 1 / (1 + np.exp(-z)), rtol=1e-12)
    accuracy = np.mean(np.where(z >= 0, 1.0, -1.0) == tasks.targets.reshape(tasks.n_tasks, -1).T, axis=0)
    np.testing.assert_allclose(solution.scores(tasks), accuracy)
    assert solution.score(tasks) == pytest.approx(accuracy.mean())


def test_decomposition_predicts_with_the_sum():
    tasks = separate(2)
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    solution = mtl.minimize(mtl.squared_loss(L + 2 * S, tasks) + mtl.trace_norm(L) + mtl.l12_norm(S)).solve()
    np.testing.assert_allclose(solution.W, solution.L + 2 * solution["S"])
    for i, z in enumerate(solution.decision_function(tasks.inputs)):
        np.testing.assert_allclose(z, tasks.inputs[i] @ solution.W[:, i])
    r2 = [
        1 - np.sum((y - z) ** 2) / np.sum((y - y.mean()) ** 2)
        for y, z in zip(tasks.per_task(tasks.targets), solution.predict(tasks.inputs), strict=True)
    ]
    np.testing.assert_allclose(solution.scores(tasks), r2)


def test_standardised_training_data_scale_new_inputs():
    rng = np.random.default_rng(0)
    X, Y = 50 + 7 * rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    raw = mtl.Tasks.shared(X, Y)
    scaled = raw.standardize()
    W = mtl.Weights(scaled, intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, scaled) + mtl.ridge(W)).solve(tol=1e-10)
    expected = (X - X.mean(axis=0)) / X.std(axis=0) @ solution.W + solution.intercept
    np.testing.assert_allclose(solution.predict(X), expected, rtol=1e-10)
    # scores on the scaled tasks and on raw ones are of the same predictions
    np.testing.assert_allclose(solution.scores(scaled), solution.scores(raw), rtol=1e-10)


@pytest.mark.parametrize("kind", ["squared_loss", "poisson_loss", "huber_loss"])
def test_saved_and_loaded_it_predicts_the_same(tmp_path, kind):
    tasks = shared(3, labels="count" if kind == "poisson_loss" else "real")
    W = mtl.Weights(tasks, intercept=True)
    extra = {"delta": 0.7} if kind == "huber_loss" else {}
    lam = mtl.Parameter(0.3)
    solution = mtl.minimize(getattr(mtl, kind)(W, tasks, **extra) + lam * mtl.l21_norm(W)).solve()
    path = solution.save(tmp_path / "answer")
    assert path.suffix == ".npz"
    assert (
        mtl.Solution.load(tmp_path / "answer").objective == solution.objective
    )  # the name given to save works too
    loaded = mtl.Solution.load(path)
    np.testing.assert_array_equal(loaded.predict(tasks.X), solution.predict(tasks.X))
    for name in (
        "objective",
        "dual_bound",
        "relative_gap",
        "violation",
        "status",
        "solver",
        "model",
        "parameters",
        "task_names",
    ):
        assert getattr(loaded, name) == getattr(solution, name), name
    assert loaded.history[-1]["objective"] == solution.history[-1]["objective"]
    assert b"pickle" not in path.read_bytes()


def test_loading_something_else_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, x=np.ones(3))
    with pytest.raises(mtl.DataError, match="not a saved solution"):
        mtl.Solution.load(path)


def test_the_gap_is_a_number_with_two_faces(classified):
    _, solution = classified
    assert solution.gap == solution.gap.relative == solution.relative_gap <= 1e-8
    assert solution.gap.absolute == pytest.approx(solution.objective - solution.dual_bound)


def test_mistakes_are_named(classified):
    tasks, solution = classified
    with pytest.raises(mtl.DataError, match="learned on 6 features"):
        solution.predict(np.ones((3, 2)))
    with pytest.raises(mtl.DataError, match="nan in row 0, column 0"):
        solution.predict(np.full((3, 6), np.nan))
    with pytest.raises(mtl.ModelError, match="no such block"):
        solution["Q"]
    with pytest.raises(AttributeError, match="'Q'"):
        _ = solution.Q
    real = shared(3)
    W = mtl.Weights(real)
    with pytest.raises(mtl.ModelError, match="squared_loss models no probabilities"):
        mtl.minimize(mtl.squared_loss(W, real) + mtl.ridge(W)).solve().predict_proba(real.X)
