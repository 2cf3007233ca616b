"""Where a solver starts: at a solution or at blocks, and at several random points, of which the best is kept."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.extending.laws.solver_laws import model_for
from mtldsl.solvers import multistart as solve
from mtldsl.solvers.routes import get_solver
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.same_bits import pairs
from tests.solvers.test_nonconvex_admm import low_rank


def rugged(tasks=None):
    """A steep penalty has many stationary points: every pattern of lost directions may be one."""
    tasks, W = with_weights(low_rank(5, 6, rows=(3, 9), noise=1.0) if tasks is None else tasks)
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + 6.0 * mtl.schatten_norm(W, 0.5, eps=1e-3))


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
def test_the_first_start_is_the_solvers_own_or_the_warm_start():
    problem = rugged()
    alone, before = problem.solve(), problem.solve(starts=6, random_state=2)
    assert before.starts[0]["objective"] == alone.objective
    assert alone.starts == [] and np.isnan(alone.spread)
    again = problem.solve(starts=2, warm_start=before)
    assert again.starts[0]["objective"] == pytest.approx(before.objective, rel=1e-9)
    assert again.starts[0]["iterations"] <= 2


@pytest.mark.slow
def test_a_seed_makes_the_starts_the_same():
    problem = rugged()

    def values(starts, seed):
        return [row["objective"] for row in problem.solve(starts=starts, random_state=seed).starts]

    first, second, other = (values(5, seed) for seed in (3, np.int64(3), 4))
    assert first == second
    assert first[0] == other[0] and first[1:] != other[1:]
    assert values(3, np.random.default_rng(5)) == values(3, np.random.default_rng(5))
    assert values(np.int64(3), 3) == first[:3]  # they do not depend on how many there are
    assert values(4, None) != values(4, None)


def test_what_is_proven_goes_before_what_is_lower(monkeypatch):
    """A run that was cut short may be lower, and proves nothing."""
    problem = rugged()
    real = solve.run_routes
    calls = []

    def cut_short(form, **options):
        outcome = real(form, **options)
        calls.append(outcome)
        if len(calls) == 2:
            outcome.status = "iteration_limit"
            outcome.certificate = replace(outcome.certificate, objective=-1e9)
        return outcome

    monkeypatch.setattr(solve, "run_routes", cut_short)
    solution = problem.solve(starts=3)
    assert [row["status"] for row in solution.starts] == ["stationary", "iteration_limit", "stationary"]
    assert solution.status == "stationary" and solution.objective > 0 and solution.spread < 1.0


@pytest.mark.slow
def test_a_time_limit_is_for_each_start():
    solution = rugged(low_rank(30, 30, rows=(20, 40))).solve(starts=5, max_seconds=1e-6)
    assert len(solution.starts) == 5 and solution.status == "time_limit"


@pytest.mark.slow
def test_exact_penalties_ranks_and_learned_matrices_have_starts():
    tasks = low_rank(5, 6, rows=(8, 20))
    W, S1, S2 = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    bounds = [S1 >> 0.01, S1 << 100, S2 >> 0.01, S2 << 100]
    for problem in (
        mtl.minimize(mtl.squared_loss(W, tasks) + 2.0 * mtl.log_rank(W, eps=0)),
        mtl.minimize(mtl.squared_loss(W, tasks), [mtl.rank(W) <= 1]),
        mtl.minimize(mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, S1, S2), bounds),
    ):
        solution = problem.solve(starts=4, random_state=0)
        proven = [row["objective"] for row in solution.starts if row["status"] == "stationary"]
        assert solution.status == "stationary" and len(solution.starts) == 4
        assert solution.objective == min(proven)
    assert set(solution.learned) == {"Sigma1", "Sigma2"}


@for_each(
    "options, said",
    [
        *(({"starts": k}, r"whole number >= 1, such as starts=10") for k in (0, -1, 2.0, "3", True, None)),
        *(
            ({"starts": 2, "random_state": seed}, r"random_state=.*write a whole number >= 0")
            for seed in (-1, 1.5, "seed", True, [1])
        ),
        ({"warm_start": {1: np.ones(2)}}, r"warm_start=.*write a Solution, or a dict"),
    ],
)
def test_starts_and_seeds_that_are_none(options, said):
    with pytest.raises(SolverError, match=said):
        rugged().solve(**options)


def test_a_convex_model_has_one_optimum():
    tasks, W = with_weights(low_rank())
    problem = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.trace_norm(W))
    with pytest.raises(SolverError, match=r"solve\(starts=2\): the model is convex"):
        problem.solve(starts=2)
    assert problem.solve(starts=1).status == "optimal"


@pytest.mark.by_default("admm-labels that depend on each other")
@pytest.mark.parametrize("name, model", [pair for pair in pairs() if pair[0] != "auto"])
def test_every_solver_goes_on_from_its_solution(name, model):
    """It ends no higher, and, where the rows are in memory, after no more iterations than from nothing."""
    solver = get_solver(name)
    problem, tol = model_for(solver, model), 1e-6 if solver.needs_rows else 1e-3
    first = problem.solve(name, tol=tol)
    again = problem.solve(name, tol=tol, warm_start=first)
    assert again.status == first.status
    assert again.iterations <= first.iterations or not solver.needs_rows
    assert again.objective <= first.objective + 1e-12 * abs(first.objective)


@pytest.mark.slow
def test_the_references_solutions_start_others_and_paths():
    """Where every fast solver stalls, a point of a path is cvxpy's, and the next one starts there."""
    rng = np.random.default_rng(1)
    tasks = mtl.Tasks.shared(rng.normal(size=(30, 4)), np.sign(rng.normal(size=(30, 2))))
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.l1_norm(W) + mtl.trace_norm(W))
    reference = problem.solve("cvxpy")
    assert problem.solve(warm_start=reference).status == "optimal"
    path = list(problem.path(lam, [3.0, 2.0, 1.0], solver="cvxpy"))
    assert [one.status for one in path] == ["optimal"] * 3
    assert path[-1].objective == pytest.approx(reference.objective, rel=1e-6)
    assert problem.cross_validate(lam, [2.0, 1.0], folds=2, solver="cvxpy").best_value in (1.0, 2.0)
