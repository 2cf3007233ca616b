"""Models on which a step, a residual or a start once went wrong; each is here so that it does not again."""

from functools import partial

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.stationarity import first_order_residuals
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.test_nonconvex_admm import low_rank

data = partial(low_rank, m=4, d=6, rows=(15, 16))


@pytest.mark.slow
@for_each("method", ["newton", "joint", "block"])
@for_each("seed", range(3))
def test_directions_that_no_penalty_weighs(method, seed):
    """Large singular values cost nothing more: steps are of a majoriser that lies higher, and still descend."""
    tasks, W = with_weights(data(seed=seed))
    flat = mtl.spectral_penalty(W, lambda x: 1.0 - np.exp(-x), lambda x: np.exp(-x))
    for penalty in (mtl.capped_trace_norm(W, 1.0, eps=1e-3), flat):
        problem = mtl.minimize(mtl.sum_of_squares(W, tasks) + 2 * penalty)
        solution = problem.solve(solver="alternating", method=method)
        assert solution.status == "stationary"
        objectives = np.array([value for look in solution.history for value in look["objectives"]])
        assert np.all(np.diff(objectives) <= 1e-10 * objectives[:-1])
        assert problem.cross_check(solution).agrees


@for_each("penalty", [lambda W: mtl.log_rank(W, eps=0), lambda W: mtl.log_rank(W)])
def test_a_task_that_its_intercept_fits_exactly(penalty):
    """One row: the residual is zero whatever the weights are, and the loss has a kink there."""
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(n, 4)) for n in (1, 12, 9, 15)]
    tasks = mtl.Tasks.separate(inputs, [X @ np.ones(4) + rng.normal(size=len(X)) for X in inputs])
    W = mtl.Weights(tasks, intercept=True)
    solution = mtl.minimize(mtl.square_root_loss(W, tasks) + penalty(W)).solve()
    assert solution.status == "stationary", solution


@pytest.mark.slow
@for_each("scale", [1e-3, 1.0, 1e3])
def test_exact_penalties_on_data_of_any_scale(scale):
    tasks, W = with_weights(data(scale=scale))
    solution = mtl.minimize(mtl.square_root_loss(W, tasks) + 3 * scale * mtl.log_rank(W, eps=0)).solve()
    assert solution.status == "stationary", solution


def test_the_multiplier_of_a_task_on_a_small_scale_counts():
    """Beside tasks whose labels are ten thousand times larger."""
    rng = np.random.default_rng(1)
    inputs = [rng.normal(size=(15, 5)) for _ in range(4)]
    scales = [1e-4, 1.0, 1.0, 1.0]
    tasks = mtl.Tasks.separate(
        inputs, [s * (X @ np.ones(5) + rng.normal(size=15)) for s, X in zip(scales, inputs, strict=True)]
    )
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.trace_norm(W))
    form, solution = problem.form(), problem.solve(tol=1e-9)
    (loss,) = form.losses
    right = loss.gradient(loss.predictions(solution.blocks))
    wrong = right.copy()
    wrong[:15] *= -1.0
    assert first_order_residuals(form, solution.blocks, [right])[loss.typed] <= 1e-9
    assert first_order_residuals(form, solution.blocks, [wrong])[loss.typed] >= 1e-2


def test_a_path_comes_away_from_zero():
    """With mu so large that all weights vanish first."""
    tasks = data(seed=3)
    W, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="mu")
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mu * mtl.log_rank(W))
    *_, last = problem.path(mu, [100.0, 10.0, 1.0])
    mu.value = 1.0
    assert last.objective <= problem.solve().objective * (1 + 1e-9)


def test_first_a_random_and_the_last_step_are_kept():
    tasks, W = with_weights(data(seed=5))
    problem = mtl.minimize(mtl.sum_of_squares(W, tasks) + 2 * mtl.log_rank(W))
    solution = problem.solve(solver="alternating", method="block")
    first, between, last = (step.iteration for step in solution.majorizations)
    assert first == 1 and first < between < last
    assert problem.cross_check(solution).agrees
