"""The closed form: normal equations on every layout, pseudo-inverses, conjugate gradients, refusals."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import separate, shared, with_weights

M = 4


def solve(objective):
    solution = mtl.minimize(objective).solve(solver="closed_form", tol=1e-11)
    assert solution.status == "optimal", solution
    assert abs(solution.relative_gap) <= 1e-12
    return solution


def laplacian():
    A = np.abs(np.random.default_rng(0).normal(size=(M, M)))
    A = A + A.T
    return np.diag(A.sum(axis=1)) - A


def per_entry(W):
    return np.random.default_rng(0).uniform(0.1, 3.0, W.shape)


def wide():
    """More features than rows: kernel forms."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(8, 30)), rng.normal(size=(8, M))


TASKS = {
    "shared": lambda: shared(1),
    "separate": lambda: separate(1),
    "missing": lambda: shared(1, missing=0.2),
    "sparse": lambda: shared(1, density=0.5),
    "sparse missing": lambda: shared(1, density=0.5, missing=0.2),
    "sparse separate": lambda: separate(1, density=0.6),
    "weighted": lambda: shared(2, sample_weights=True),
    "weighted missing": lambda: shared(3, missing=0.3, sample_weights=True),
    "wide": lambda: mtl.Tasks.shared(*wide()),
    "weighted wide": lambda: mtl.Tasks.shared(*wide(), sample_weights=np.linspace(0.5, 2.0, 8)),
    "wide separate": lambda: mtl.Tasks.separate([wide()[0]] * M, list(wide()[1].T)),
}
#: the term, and its gradient
PENALTIES = {
    "ridge": (lambda W: 3 * mtl.ridge(W), lambda W: 3 * W),
    "ridge of entries": (lambda W: mtl.ridge(W, weights=per_entry(W)), lambda W: per_entry(W) * W),
    "graph": (lambda W: 2 * mtl.graph_laplacian(W, laplacian()) + 0.1 * mtl.ridge(W),
     lambda W: 2 * W @ laplacian() + 0.1 * W),
    "mean": (lambda W: 5 * mtl.mean_regularizer(W), lambda W: 5 * (W - W.mean(axis=1, keepdims=True))),
}  # fmt: skip


def slopes_of_squares(tasks, found):
    """In the weights, and in the intercepts."""
    W, b = found.W, np.zeros(tasks.n_tasks) if found.intercept is None else found.intercept
    weights = np.ones(tasks.n_samples) if tasks.sample_weights is None else tasks.sample_weights
    data = zip(tasks.inputs, tasks.per_task(tasks.targets), tasks.per_task(weights), strict=True)
    residuals = [s * (X @ W[:, i] + b[i] - y) for i, (X, y, s) in enumerate(data)]
    into = [X.T @ r for X, r in zip(tasks.inputs, residuals, strict=True)]
    return np.column_stack(into), np.array([r.sum() for r in residuals])


@pytest.mark.slow
@for_each("layout", TASKS)
@for_each("penalty", PENALTIES)
@for_each("intercept", [False, True])
def test_the_normal_equations_hold(layout, penalty, intercept):
    if penalty == "mean" and "wide" in layout:
        pytest.skip("many weights are as good as these")
    tasks, (term, gradient) = TASKS[layout](), PENALTIES[penalty]
    W = mtl.Weights(tasks, intercept=intercept)
    found = solve(2 * mtl.squared_loss(W, tasks) + term(W))
    of_weights, of_intercepts = slopes_of_squares(tasks, found)
    np.testing.assert_allclose(2 * of_weights + gradient(found.W), 0.0, atol=1e-12)
    assert not intercept or np.abs(of_intercepts).max() <= 1e-12


@for_each("intercept", [False, True])
@for_each("make", ["shared", "separate"])
def test_no_penalty_is_least_squares_of_smallest_norm(make, intercept):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 5)) @ np.diag([1, 1, 1, 0, 1.0])  # a column of zeros
    X[:, 4] = X[:, 0] + X[:, 1]  # and one that adds nothing
    Y = rng.normal(size=(20, M))
    tasks = mtl.Tasks.shared(X, Y) if make == "shared" else mtl.Tasks.separate([X] * M, list(Y.T))
    W = mtl.Weights(tasks, intercept=intercept)
    found, means = solve(mtl.squared_loss(W, tasks)), intercept * X.mean(axis=0)
    np.testing.assert_allclose(
        found.W, np.linalg.pinv(X - means) @ (Y - intercept * Y.mean(axis=0)), atol=1e-10
    )
    if intercept:
        np.testing.assert_allclose(found.intercept, Y.mean(axis=0) - means @ found.W, atol=1e-10)


@for_each("make", ["shared", "separate"])
def test_interpolation_is_certified_at_zero(make):
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(4, 9)), rng.normal(size=(4, M))
    tasks = mtl.Tasks.shared(X, Y) if make == "shared" else mtl.Tasks.separate([X] * M, list(Y.T))
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks)).solve(solver="closed_form")
    assert solution.status == "optimal" and solution.objective < 1e-20
    np.testing.assert_allclose(solution.W, np.linalg.pinv(X) @ Y, atol=1e-10)


def test_sums_of_blocks_and_maps():
    """w_i = l_i + s_i with both ridged is ridge with the harmonic coefficient: minimise over the split by hand."""
    tasks = separate(6)
    L, S = mtl.Weights(tasks, name="L"), mtl.Weights(tasks, name="S")
    together = solve(mtl.sum_of_squares(L + S, tasks) + 3 * mtl.ridge(L) + 6 * mtl.ridge(S))
    W = mtl.Weights(tasks)
    alone = solve(mtl.sum_of_squares(W, tasks) + 2 * mtl.ridge(W))  # 1 / (1/3 + 1/6) = 2
    assert together.objective == pytest.approx(alone.objective, rel=1e-12)
    np.testing.assert_allclose(together["L"] + together["S"], alone.W, atol=1e-10)

    A = np.random.default_rng(0).normal(size=(M, M))
    moved = solve(mtl.squared_loss(W, tasks) + mtl.ridge(W - 1.0) + mtl.ridge(W @ A))
    gradient = slopes_of_squares(tasks, moved)[0] + (moved.W - 1.0) + moved.W @ A @ A.T
    assert np.abs(gradient).max() < 1e-9


def test_large_coupled_problems_go_through_conjugate_gradients():
    rng = np.random.default_rng(7)
    inputs = [rng.normal(size=(60, 80)) for _ in range(20)]
    tasks, W = with_weights(mtl.Tasks.separate(inputs, [rng.normal(size=60) for _ in range(20)]))
    solution = solve(mtl.squared_loss(W, tasks) + mtl.mean_regularizer(W) + 0.1 * mtl.ridge(W))
    gradient = slopes_of_squares(tasks, solution)[0]
    gradient += solution.W - solution.W.mean(axis=1, keepdims=True) + 0.1 * solution.W
    assert np.abs(gradient).max() < 1e-9


def test_refusals_quote_the_term():
    tasks, W = with_weights(shared(8))
    for objective, constraints, quoted in (
        (mtl.huber_loss(W, tasks) + mtl.ridge(W), [], "huber_loss(W, tasks)"),
        (mtl.squared_loss(W, tasks) + 2 * mtl.l1_norm(W), [], "2 * l1_norm(W)"),
        (mtl.squared_loss(W, tasks) + mtl.ridge(W), [W >= 0], "W >= 0"),
    ):
        said = dict((name, why) for name, _, why in mtl.minimize(objective, constraints).explain().verdicts())
        assert said["closed_form"].startswith(quoted)
