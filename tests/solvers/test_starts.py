"""Several starts: seeded, the best kept, and refused where they make no sense."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers import solve
from tests.loops import for_each


def data(seed=0, m=5, d=6, n=(3, 9)):
    rng = np.random.default_rng(seed)
    truth = np.outer(rng.normal(size=d), rng.normal(size=m))
    X = [rng.normal(size=(k, d)) for k in rng.integers(*n, size=m)]
    return mtl.Tasks.separate(X, [A @ w + rng.normal(size=len(A)) for A, w in zip(X, truth.T, strict=True)])


def rugged(tasks=None, intercept=False):
    """A steep penalty has many stationary points: every pattern of lost directions may be one."""
    tasks = data() if tasks is None else tasks
    W = mtl.Weights(tasks, intercept=intercept)
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + 6.0 * mtl.schatten_norm(W, 0.5, eps=1e-3))


def objectives(solution):
    return [row["objective"] for row in solution.starts]


@pytest.mark.slow
def test_the_best_is_kept_and_every_start_is_told():
    problem = rugged()
    solution = problem.solve(starts=8, random_state=1)
    rows = solution.starts
    assert [row["start"] for row in rows] == list(range(8)) and solution.status == "stationary"
    assert set(rows[0]) == {"start", "objective", "status", "residual", "iterations", "seconds", "best"}
    (best,) = (row for row in rows if row["best"])
    certified = [row["objective"] for row in rows if row["status"] == "stationary"]
    assert best["objective"] == min(certified) == solution.objective
    assert max(certified) > min(certified) * (1 + 1e-4)  # there is something to choose from
    assert solution.spread == pytest.approx((max(certified) - min(certified)) / min(certified))
    assert problem.form().value(solution.blocks) == pytest.approx(solution.objective, rel=1e-12)
    assert solution.stationarity.residual == best["residual"] <= 1e-6
    assert solution.seconds == pytest.approx(sum(row["seconds"] for row in rows))


@pytest.mark.slow
def test_the_first_start_is_the_solvers_own():
    problem = rugged()
    assert problem.solve(starts=3).starts[0]["objective"] == problem.solve().objective
    assert problem.solve().starts == [] and np.isnan(problem.solve().spread)


@pytest.mark.slow
def test_the_first_start_is_the_warm_start_where_there_is_one():
    problem = rugged()
    before = problem.solve(starts=6, random_state=2)
    again = problem.solve(starts=2, warm_start=before)
    assert again.starts[0]["objective"] == pytest.approx(before.objective, rel=1e-9)
    assert again.starts[0]["iterations"] <= 2


@pytest.mark.slow
def test_a_seed_makes_the_starts_the_same():
    problem = rugged()
    first, second, other = (problem.solve(starts=5, random_state=seed) for seed in (3, 3, 4))
    assert objectives(first) == objectives(second)
    assert objectives(first)[0] == objectives(other)[0] and objectives(first)[1:] != objectives(other)[1:]
    generators = [problem.solve(starts=3, random_state=np.random.default_rng(5)) for _ in range(2)]
    assert objectives(generators[0]) == objectives(generators[1])
    # the first random starts do not depend on how many there are
    assert objectives(problem.solve(starts=3, random_state=3)) == objectives(first)[:3]


@pytest.mark.slow
def test_no_seed_makes_them_differ():
    problem = rugged()
    assert objectives(problem.solve(starts=4, random_state=None)) != objectives(
        problem.solve(starts=4, random_state=None)
    )


@pytest.mark.slow
def test_exact_penalties_and_bounded_ranks_have_starts_too():
    tasks = data(n=(8, 20))
    W = mtl.Weights(tasks)
    for problem in (
        mtl.minimize(mtl.squared_loss(W, tasks) + 2.0 * mtl.log_rank(W, eps=0)),
        mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W) <= 1]),
    ):
        solution = problem.solve(starts=4, random_state=0)
        assert solution.status == "stationary" and len(solution.starts) == 4
        assert solution.objective == min(
            row["objective"] for row in solution.starts if row["status"] == "stationary"
        )


def test_what_is_proven_goes_before_what_is_lower(monkeypatch):
    """A run that was cut short may be lower, and proves nothing."""
    problem = rugged()
    real = solve.drive
    calls = []

    def cut_short(form, **options):
        outcome = real(form, **options)
        calls.append(outcome)
        if len(calls) == 2:
            outcome.status = "iteration_limit"
            outcome.certificate = replace(outcome.certificate, objective=-1e9)
        return outcome

    monkeypatch.setattr(solve, "drive", cut_short)
    solution = problem.solve(starts=3)
    assert [row["status"] for row in solution.starts] == ["stationary", "iteration_limit", "stationary"]
    assert solution.status == "stationary" and solution.objective > 0 and solution.spread < 1.0


@pytest.mark.slow
def test_a_time_limit_is_for_each_start():
    solution = rugged(data(m=30, d=30, n=(20, 40))).solve(starts=5, max_seconds=1e-6)
    assert len(solution.starts) == 5 and solution.status == "time_limit"


@pytest.mark.slow
def test_models_with_learned_matrices_have_starts():
    tasks = data()
    W, S1, S2 = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    problem = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, S1, S2),
        [S1 >> 0.01, S1 << 100, S2 >> 0.01, S2 << 100],
    )
    solution = problem.solve(starts=3, random_state=0)
    assert (
        solution.status == "stationary"
        and len(solution.starts) == 3
        and set(solution.learned) == {"Sigma1", "Sigma2"}
    )


@for_each("starts", [0, -1, 2.0, "3", True, None])
def test_starts_that_are_no_number_of_starts(starts):
    with pytest.raises(SolverError, match="write a whole number >= 1, such as starts=10"):
        rugged().solve(starts=starts)


@for_each("random_state", [-1, 1.5, "seed", True, [1]])
def test_seeds_that_are_none(random_state):
    with pytest.raises(SolverError, match=r"random_state=.*write a whole number >= 0"):
        rugged().solve(starts=2, random_state=random_state)


def test_a_convex_model_has_one_optimum():
    tasks = data()
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.trace_norm(W))
    with pytest.raises(SolverError, match=r"solve\(starts=2\): the model is convex"):
        problem.solve(starts=2)
    assert problem.solve(starts=1).status == "optimal"


@pytest.mark.slow
def test_numpy_numbers_are_numbers():
    problem = rugged()
    first = problem.solve(starts=np.int64(2), random_state=np.int64(1))
    assert objectives(first) == objectives(problem.solve(starts=2, random_state=1))
