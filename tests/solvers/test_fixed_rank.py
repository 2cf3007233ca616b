"""Newton steps among the matrices of one rank: derivatives along the retraction, and where the steps end."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.proof.first_order import first_order_residuals
from mtldsl.solvers.alternation.fixed_rank import (
    _FixedRank,
    _OnManifold,
    newton_at_rank,
    tangent,
    why_not_fixed_rank,
)
from mtldsl.solvers.alternation.radial_data import radial_data
from tests.solvers.test_reweighted import data


def exact(W, t):
    return mtl.square_root_loss(W, t) + 0.7 * mtl.log_rank(W, eps=0)


def schatten(W, t):
    return mtl.squared_loss(W, t) + 0.5 * mtl.schatten_norm(2.0 * W, 0.6, eps=0) + 0.3 * mtl.ridge(W)


def capped(W, t):
    return mtl.sum_of_squares(W, t, mean=True) + 0.3 * mtl.capped_trace_norm(W, 50.0)


def bounded(W, t):
    return mtl.square_root_loss(W, t, eps=0.5)


# (d, m, kind of tasks, sample weights, intercept, rank, objective, whether the rank is bounded)
CASES = {
    "d < m": (4, 7, "separate", False, False, 2, exact, False),
    "d > m": (9, 5, "separate", False, False, 3, exact, False),
    "shared": (6, 5, "shared", False, True, 2, schatten, False),
    "masked": (5, 6, "masked", True, True, 1, capped, False),
    "full rank": (3, 6, "separate", True, False, 3, exact, False),
    "bounded rank": (6, 6, "separate", False, True, 2, bounded, True),
}


def made(case, tasks=None):
    d, m, kind, weighted, intercept, rank, objective, is_bounded = CASES[case]
    tasks = data(d, m, kind, seed=d * m, weighted=weighted) if tasks is None else tasks
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(objective(W, tasks), [mtl.rank(W) <= rank] if is_bounded else [])
    form = problem.form()
    assert why_not_fixed_rank(form) is None
    rng = np.random.default_rng(1)
    return problem, form, rank, rng.normal(size=(d, rank)) @ rng.normal(size=(rank, m)), rng


@pytest.mark.parametrize("case", CASES)
def test_the_value_is_that_of_the_model(case):
    _, form, rank, W, _ = made(case)
    reduced = radial_data(form)
    assert _FixedRank(form, reduced, rank).evaluate(W).value == pytest.approx(
        form.value(reduced.blocks(W)), rel=1e-12
    )


@pytest.mark.parametrize("case", CASES)
def test_derivatives_along_the_retraction(case):
    """d/dt and d^2/dt^2 of the model's value at the nearest matrix of the rank to W + t P: the SVD's is of second order."""
    _, form, rank, W, rng = made(case)
    reduced = radial_data(form)
    model = _FixedRank(form, reduced, rank)
    at = model.evaluate(W)
    gradient = sum(model.gradient_parts(at))
    second = _OnManifold(model, at)

    def value(P, t):
        U, s, Vt = np.linalg.svd(W + t * P, full_matrices=False)
        return form.value(reduced.blocks((U[:, :rank] * s[:rank]) @ Vt[:rank]))

    for _ in range(3):
        P, Q = (tangent(at, rng.normal(size=W.shape)) for _ in range(2))
        h = 2e-4 / np.linalg.norm(P)
        plus, middle, minus = value(P, h), value(P, 0.0), value(P, -h)
        assert np.vdot(gradient, P) == pytest.approx((plus - minus) / (2 * h), rel=1e-5, abs=1e-6)
        assert np.vdot(P, second.hessian(P)) == pytest.approx(
            (plus - 2 * middle + minus) / h**2, rel=2e-3, abs=2e-4
        )
        assert np.vdot(Q, second.hessian(P)) == pytest.approx(np.vdot(P, second.hessian(Q)), rel=1e-8)
        assert np.vdot(Q, second.metric(P)) == pytest.approx(np.vdot(P, second.metric(Q)), rel=1e-8)
        assert np.vdot(P, second.metric(P)) > 0
        for vector in (second.hessian(P), second.metric(P), gradient):
            assert np.linalg.norm(vector - tangent(at, vector)) <= 1e-10 * np.linalg.norm(vector)


def test_the_tangent_space():
    """Its projection is one, and what is orthogonal to it moves the rank."""
    _, form, rank, W, rng = made("d > m")
    at = _FixedRank(form, radial_data(form), rank).evaluate(W)
    G = rng.normal(size=W.shape)
    P = tangent(at, G)
    assert tangent(at, P) == pytest.approx(P) and abs(np.vdot(P, G - P)) <= 1e-10
    assert np.abs(at.basis.T @ (G - P)).max() <= 1e-12 and np.abs((G - P) @ at.V).max() <= 1e-12
    # the curve X Y^T of factors stays in the manifold, and its derivative in the tangent space
    X, Y = at.basis * at.singular, at.V
    D = rng.normal(size=X.shape) @ Y.T + X @ rng.normal(size=Y.shape).T
    assert tangent(at, D) == pytest.approx(D)


def many_rows(case):
    """So many that no task is fitted exactly."""
    d, m, *_ = CASES[case]
    rng = np.random.default_rng(d)
    truth = rng.normal(size=(d, 2)) @ rng.normal(size=(2, m))
    X = [rng.normal(size=(n, d)) for n in rng.integers(20, 30, size=m)]
    return mtl.Tasks.separate(X, [A @ w + rng.normal(size=len(A)) for A, w in zip(X, truth.T, strict=True)])


@pytest.mark.parametrize("case", CASES)
def test_from_near_a_solution_the_steps_are_few_and_the_conditions_hold(case):
    problem, form, _, _, rng = made(case, many_rows(case))
    solution = problem.solve(tol=1e-8)
    rank = int(np.linalg.matrix_rank(solution.W, tol=1e-8))
    reduced, calls = radial_data(form), []

    def count():
        calls.append(1)
        return False

    start = solution.W + 1e-3 * rng.normal(size=solution.W.shape)
    found = newton_at_rank(form, reduced, start, rank, count)
    assert (
        len(calls) <= 8
    )  # quadratic: 1e-3, 1e-6, 1e-12, and what rounding, which differs by processor, adds at the end
    model = _FixedRank(form, reduced, rank)
    parts = model.gradient_parts(model.evaluate(found))
    # of a bounded rank the losses' gradient alone is the residual, and rounding in relation to what it is a sum of
    assert np.linalg.norm(sum(parts)) <= 1e-8 * max(map(np.linalg.norm, form_parts(form, reduced, found)))
    assert form.value(reduced.blocks(found)) == pytest.approx(solution.objective, rel=1e-10)
    assert max(first_order_residuals(form, reduced.blocks(found)).values()) <= 1e-7


def form_parts(form, reduced, W):
    """The losses' gradients task by task before they are summed over samples."""
    (loss,) = form.losses
    u = loss.gradient(loss.predictions(reduced.blocks(W)))
    return [X * part[:, None] for X, part in zip(loss.tasks.inputs, loss.tasks.per_task(u), strict=True)]


def test_a_rank_too_high_falls():
    """Two directions that the data do not hold are given up on the way."""
    rng = np.random.default_rng(4)
    truth = np.outer(rng.normal(size=6), rng.normal(size=5))
    X = [rng.normal(size=(30, 6)) for _ in range(5)]
    y = [A @ w + 0.1 * rng.normal(size=30) for A, w in zip(X, truth.T, strict=True)]
    tasks = mtl.Tasks.separate(X, y)
    W = mtl.Weights(tasks)
    form = mtl.minimize(mtl.sum_of_squares(W, tasks) + 40.0 * mtl.log_rank(W, eps=0)).form()
    start = truth + 0.05 * rng.normal(size=truth.shape)
    found = newton_at_rank(form, radial_data(form), start, 3, lambda: False)
    assert np.linalg.matrix_rank(found, tol=1e-8) == 1
    assert max(first_order_residuals(form, {"W": found}).values()) <= 1e-9


def test_it_stops_when_asked():
    _, form, rank, W, _ = made("d < m")
    reduced = radial_data(form)
    found = newton_at_rank(form, reduced, W, rank, lambda: True)
    assert found == pytest.approx(W)


@pytest.mark.parametrize(
    ("objective", "constraint", "message"),
    [
        (lambda W, t: mtl.hinge_loss(W, t) + mtl.log_rank(W, eps=0), None, "not a function of the norm"),
        (lambda W, t: mtl.squared_loss(W, t) + mtl.l1_norm(W) + mtl.log_rank(W, eps=0), None, "l1_norm"),
        (lambda W, t: mtl.squared_loss(W, t) + mtl.log_rank(W, eps=0), lambda W: W >= 0, "W >= 0"),
        (lambda W, t: mtl.squared_loss(W, t) + mtl.log_rank(W @ np.eye(3), eps=0), None, "not a function of W itself"),
    ],
)  # fmt: skip
def test_models_it_is_not_for(objective, constraint, message):
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(8, 4)), np.sign(rng.normal(size=(8, 3))))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(objective(W, tasks), [] if constraint is None else [constraint(W)])
    assert message in why_not_fixed_rank(problem.form())
