"""Every mixed model: solved, certified to 1e-6, cross-checked; and every solver that accepts it agrees with the certificate."""

import pytest

from mtldsl.certificates.dual_bound import infimum
from mtldsl.solvers.routes import candidates
from mtldsl.testing import assert_agrees
from tests.models import MODELS
from tests.optima import fingerprint, solution_of, stored


@pytest.mark.by_default("exponential_max_norm")
@pytest.mark.parametrize("name", MODELS)
def test_solved_certified_and_cross_checked(name, reference_optimum):
    problem, solution = solution_of(name)
    assert solution.status == "optimal", f"{solution!r}\n{problem.explain()}"
    assert abs(solution.gap) <= 1e-6 and solution.violation <= 1e-6
    check = assert_agrees(problem, solution=solution)
    assert infimum(problem.form()).value <= solution.objective  # what zero proves
    optimum, bound = reference_optimum(name)
    assert optimum - bound <= 1e-6 * max(1.0, abs(optimum))  # of its own multipliers
    assert optimum == pytest.approx(
        check.reference_objective, rel=2e-6
    )  # stored, and found anew: each is solved to 1e-6
    assert bound <= check.reference_objective + 1e-6 * abs(optimum)


#: without the solver that is chosen, which is cross-checked above
CASES = [
    (name, solver)
    for name in MODELS
    for solver in list(candidates(MODELS[name]().form()))[1:]
    if solver != "cvxpy"
]


@pytest.mark.by_default("poisson_group_sparse_ridge-admm")
@pytest.mark.parametrize("name, solver", CASES)
def test_every_solver_that_accepts_reaches_the_reference(name, solver, reference_optimum):
    solution = MODELS[name]().solve(solver=solver, tol=1e-7)
    assert solution.status == "optimal", solution
    optimum, bound = reference_optimum(name)
    assert solution.objective <= optimum * (1 + 1e-6) + 1e-9
    # the bound certified from the reference's own multipliers is a lower bound for everybody
    assert solution.objective >= bound - 1e-6 * abs(bound)


def test_stored_optima_are_of_these_models_and_this_reference():
    """Each is held to the reference above."""
    assert {name: one["hash"] for name, one in stored().items()} == {
        name: fingerprint(name) for name in MODELS
    }, "run python -m tests.optima"
