"""Where a solver starts: from a solution, from blocks, and from nothing else."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from mtldsl.solvers.registry import get_solver
from mtldsl.testing.laws.models import model_for
from tests.loops import for_each
from tests.models import shared
from tests.solvers.same_bits import pairs


@pytest.mark.by_default("admm-labels that depend on each other")
@pytest.mark.parametrize("name, model", [pair for pair in pairs() if pair[0] != "auto"])
def test_every_solver_goes_on_from_its_solution(name, model):
    """It ends no higher, and, where the rows are in memory, after no more iterations than from nothing."""
    solver = get_solver(name)
    problem = model_for(solver, model)
    first = problem.solve(name, tol=1e-6)
    again = problem.solve(name, tol=1e-6, warm_start=first)
    assert again.status == first.status
    assert again.iterations <= first.iterations or solver.takes_distributed
    assert again.objective <= first.objective + 1e-12 * abs(first.objective)


@for_each("wrong", [3, "W", {1: np.ones(2)}], ids=["number", "text", "names"])
def test_anything_else_is_refused(wrong):
    tasks = shared(1, n=20)
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l21_norm(W))
    with pytest.raises(SolverError, match=r"warm_start=.*write a Solution, or a dict"):
        problem.solve(warm_start=wrong)


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
