"""Blocks that no term bounds: their residual is judged in the unit of every column, and what is left of it is paid for."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates import free_directions
from mtldsl.certificates.certificate import certify
from mtldsl.certificates.dual_bound import prove
from mtldsl.certificates.free_directions import row_kinds
from mtldsl.certificates.multipliers import SETTINGS, is_rounding, magnitudes, region, stationarity
from tests.loops import for_each
from tests.models import with_weights

SCALES = {
    "nanoseconds": [1e12, 1.0],
    "a time stamp": [1.7e18, 1.0, 1e-3],
    "seconds, milliseconds, microseconds": [1.7e9, 1.7e12, 1.7e15, 1.0],
    "tiny beside large": [1e-9, 1e4, 1.0],
}
REAL, SIGN, COUNT = (
    ["squared_loss", "huber_loss", "absolute_loss"],
    ["hinge_loss", "logistic_loss"],
    ["poisson_loss"],
)


def problem_in_units(loss, units, intercept, seed=0, n=40):
    """(the model in given units, the same with columns of length one: their optima are equal)."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, len(units)))
    z = Z @ rng.normal(size=len(units)) + rng.normal(size=n)
    y = z if loss in REAL else np.where(z + rng.normal(size=n) > 0, 1.0, -1.0)
    y = rng.poisson(np.exp(0.3 * z)).astype(float) if loss in COUNT else y
    models = []
    for X in (Z * units, Z):
        tasks = mtl.Tasks.shared(X, y[:, None])
        models.append(mtl.minimize(getattr(mtl, loss)(mtl.Weights(tasks, intercept=intercept), tasks)))
    return models


@pytest.mark.slow
@for_each(
    "name, loss, intercept",
    [
        (list(SCALES)[(k + 2 * j) % 4], loss, (k + j) % 2 == 1)
        for k, loss in enumerate(REAL + SIGN + COUNT)
        for j in range(2)
    ],
)
def test_the_unit_of_a_column_changes_no_optimum(name, loss, intercept):
    given, even = problem_in_units(loss, SCALES[name], intercept)
    truth = even.solve(tol=1e-9)
    assert truth.status == "optimal"
    found = given.solve(max_iter=20)
    assert found.dual_bound <= truth.objective * (1 + 1e-9)
    assert found.status != "optimal" or found.objective <= truth.objective * (1 + 2e-6)


@pytest.mark.slow
@for_each("loss", ["squared_loss", "hinge_loss"])
@for_each("name", SCALES)
def test_and_it_is_solved(name, loss):
    given, _ = problem_in_units(loss, SCALES[name], False)
    assert given.solve().status == "optimal"


def test_no_multipliers_of_such_a_model_prove_too_much():
    """Where the residual of the small column is dropped, the multipliers of the larger column's best fit prove a false bound."""
    given, even = problem_in_units("squared_loss", [1e12, 1.0], False)
    truth = even.solve(tol=1e-10).objective
    form = given.form()
    X, y = form.losses[0].tasks.X, form.losses[0].tasks.targets
    for columns in ([0], [1], []):
        w = np.zeros((2, 1))
        w[columns, 0] = np.linalg.lstsq(X[:, columns], y, rcond=None)[0]
        assert certify(form, {"W": w}, [X @ w[:, 0] - y], []).dual_bound <= truth * (1 + 1e-9)


def test_what_is_left_is_paid_for_and_the_region_is_said():
    given, even = problem_in_units("squared_loss", [1e12, 1.0], False)
    solution = given.solve()
    form = given.form()
    proof = prove(form, {"W": solution.W})
    residual = stationarity(form, proof.loss_duals, ())["W"]
    assert proof.paid == pytest.approx(float(np.sum(np.abs(residual) * proof.region["W"])), rel=1e-12)
    assert (proof.region["W"] >= SETTINGS.reach_factor * np.abs(solution.W)).all()
    assert "proven for all W up to 100 times the size of the solution's" in solution.note
    # within the region no weights are better: at its corners and at random
    rng = np.random.default_rng(0)
    for _ in range(200):
        w = rng.uniform(-1, 1, size=(2, 1)) * proof.region["W"]
        assert form.value({"W": w}) >= proof.value


def test_the_payment_is_taken_off_the_bound():
    """Multipliers that miss the equation by what counts as rounding: the dual value of what is left of them, less the payment."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ rng.normal(size=3) + rng.normal(size=40)
    tasks = mtl.Tasks.shared(X, y[:, None])
    form = mtl.minimize(mtl.squared_loss(mtl.Weights(tasks), tasks)).form()
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    u = (X @ w - y) + 3e-15 * np.abs(X @ w - y).mean() * (X @ rng.normal(size=3))
    proof = prove(form, {"W": w[:, None]}, [u], [])
    value = -sum(loss.conjugate(dual) for loss, dual in zip(form.losses, proof.loss_duals, strict=True))
    assert proof.paid > 1e-12  # hundreds of units in the last place of the value
    assert value - proof.value == pytest.approx(proof.paid, rel=1e-2, abs=0.0)


def test_what_counts_as_rounding():
    """Entry by entry, beside the terms of its own sum: an entry that nothing adds up to is none."""
    size = np.array([[1.0, 1e6]])
    assert is_rounding(np.array([[1e-13, 1e-7]]), size) and is_rounding(np.zeros((1, 2)), np.zeros((1, 2)))
    assert not is_rounding(np.array([[1e-11, 0.0]]), size) and not is_rounding(np.array([[0.0, 1e-5]]), size)
    assert not is_rounding(np.array([[1e-300]]), np.array([[0.0]]))


def test_the_region_holds_the_point_and_what_the_losses_ask_for():
    size, work = np.array([[2.0, 0.0], [4.0, 1.0]]), np.array([[8.0, 8.0]])
    found = region("W", {"W": np.array([[3.0, -7.0], [-5.0, 0.0]])}, size, work)
    np.testing.assert_allclose(found, SETTINGS.reach_factor * np.array([[4.0, 7.0], [5.0, 8.0]]))


def test_magnitudes_are_the_sums_of_absolute_values():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    Y[rng.random(Y.shape) < 0.3] = np.nan
    tasks = mtl.Tasks.shared(X, Y)
    separate = mtl.Tasks.separate([X[~np.isnan(y)] for y in Y.T], [y[~np.isnan(y)] for y in Y.T])
    left = rng.normal(size=(5, 3))
    for data in (tasks, separate):
        W = mtl.Weights(data, intercept=True)
        form = mtl.minimize(mtl.squared_loss(2 * W, data) + mtl.l1_norm(left @ W)).form()
        u, v = rng.normal(size=data.n_samples), rng.normal(size=(5, 2))
        size = magnitudes(form, [u], [v])
        parts = data.per_task(np.abs(u))
        expected = np.column_stack([2 * np.abs(A).T @ p for A, p in zip(data.inputs, parts, strict=True)])
        np.testing.assert_allclose(size["W"], expected + np.abs(left).T @ np.abs(v), rtol=1e-13)
        np.testing.assert_allclose(size["W.intercept"][0], [p.sum() for p in parts], rtol=1e-13)


def test_labels_far_from_zero_do_not_make_an_objective_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    signal = X @ [1.0, 2.0, 3.0] + rng.normal(size=40)
    objectives = []
    for offset in (0.0, 1e12):
        tasks, W = with_weights(mtl.Tasks.shared(X, np.column_stack([offset + signal])), intercept=True)
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * mtl.l1_norm(W))
        solution = problem.solve()
        objectives.append((solution.status, solution.objective))
        assert certify(problem.form(), solution.blocks).scale < 1e-5
    (_, truth), (status, found) = objectives
    # labels are rounded to 1.2e-4 at 1e12, which moves the optimum itself
    assert status != "optimal" or found == pytest.approx(truth, rel=1e-3)


@for_each("rows, features", [(60, 300), (300, 60)])
@for_each("intercept", [False, True])
def test_the_least_change_of_large_inputs_is_that_of_small_ones(monkeypatch, rows, features, intercept):
    """By whichever Gram matrix is the smaller one."""
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.separate(
        [rng.normal(size=(rows, features)) for _ in "ab"], [rng.normal(size=rows) for _ in "ab"]
    )
    W = mtl.Weights(tasks, intercept=intercept)
    form = mtl.minimize(mtl.quantile_loss(W, tasks, 0.4) + mtl.mean_regularizer(W)).form()
    u = [0.3 * rng.normal(size=2 * rows).clip(-1, 1)]
    member = free_directions.member_of(form.losses[0], 0, "W", 2, u[0])
    wanted = form.zeros()
    form.losses[0].add_adjoint(1e-3 * rng.normal(size=2 * rows), wanted)
    v = [np.zeros((features, 2))]
    given = [member], row_kinds(form, "W", v), wanted, "W", {0: form.losses[0].room(u[0])}
    directly = free_directions.change_least(*given)[0]
    monkeypatch.setattr(free_directions, "ORTHOGONAL_ENTRIES", 0)
    np.testing.assert_allclose(free_directions.change_least(*given)[0], directly, atol=1e-12)
    left = form.zeros()
    form.losses[0].add_adjoint(directly, left)
    np.testing.assert_allclose((left["W"] + wanted["W"]).sum(axis=1), 0.0, atol=1e-12)
    if intercept:
        np.testing.assert_allclose(left["W.intercept"] + wanted["W.intercept"], 0.0, atol=1e-12)
