"""The CGM paper's own ascent, corrected: where it ends, what it proves on the way, and what is visible in its history."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import SolverError
from tests.label_graph_models import data, known, model
from tests.loops import for_each


def smoothed_optimum(r, sigma, X, Y, a):
    """The optimum of the model with sigma / 2 ||V||^2 added, by the reference, proven to 1e-8."""
    penalty = lambda V: mtl.half_squared_k_support_norm(V, r) + (sigma / a) * mtl.ridge(V)  # noqa: E731
    reference = model(X, Y, a=a, penalty=penalty).solve("cvxpy", tol=1e-8)
    assert reference.status == "optimal"
    return reference.objective


@pytest.mark.slow
@for_each("r", [1, 2])
def test_it_ends_at_the_optimum_of_the_smoothed_problem(r):
    """And says so: the model's own gap, which the certificate tells, is left by sigma; bounds hold at every look."""
    X, Y = data(n=12, K=3, d=2, seed=1)
    a, sigma, tol = 0.2, 0.1, 5e-3
    problem = model(X, Y, r=r, a=a)
    solution = problem.solve("clique_generation", method="spdca", sigma=sigma, tol=tol)
    optimum, reference = smoothed_optimum(r, sigma, X, Y, a), problem.solve("cvxpy", tol=1e-8)
    last = solution.history[-1]
    assert last["smoothed_objective"] == pytest.approx(optimum, rel=tol)
    assert solution.status == "stalled"
    assert solution.gap > tol
    digits = 1e-8
    for row in solution.history:
        assert row["dual_bound"] <= reference.objective + digits
        assert row["objective"] >= reference.objective - digits
        assert row["objective"] <= row["smoothed_objective"]
        assert row["smoothed_objective"] >= optimum - digits
        assert row["sigma"] == sigma
        if row["edges"] == 3:
            assert row["smoothed_bound"] <= optimum + digits


@pytest.mark.slow
def test_without_smoothing_it_solves_the_model():
    """Where the penalty leaves no clique out, sigma is 0."""
    problem, optimum = known("cgm_n8_K3", "ssvm_edges")
    solution = problem.solve("clique_generation", method="spdca", tol=1e-2)
    assert solution.status == "optimal"
    assert {row["sigma"] for row in solution.history} == {0.0}
    assert solution.dual_bound <= optimum <= solution.objective
    for row in solution.history:
        assert row["smoothed_objective"] == pytest.approx(row["objective"], rel=1e-12)


@pytest.mark.slow
def test_rules_of_the_growth_are_its_too():
    X, Y = data(n=30, K=4)
    problem = model(X, Y, a=0.2)
    solution = problem.solve("clique_generation", method="spdca", tol=2e-2, max_edges=1, cliques_per_round=1)
    assert solution.status == "selected"
    assert solution.history[-1]["edges"] == 1
    assert (
        problem.solve("clique_generation", method="spdca", tol=1e-9, max_iter=5).status == "iteration_limit"
    )
    one, again = (problem.solve("clique_generation", method="spdca", tol=5e-2, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.V, again.V)


@for_each(
    "options, penalty, said",
    [
        ({"sigma": 0.1}, None, "sigma=0.1.*only method='spdca' smooths"),
        ({"method": "spdca", "sigma": 0.0}, None, "sigma=0.0.*number > 0"),
        ({"method": "spdca", "sigma": float("nan")}, None, "sigma=nan.*number > 0"),
        ({"method": "spdca", "sigma": "small"}, None, "sigma='small'"),
        ({"method": "spdca", "sigma": 0.1}, mtl.ridge, "sigma=0.1.*nothing is smoothed"),
    ],
)
def test_wrong_options_are_quoted(options, penalty, said):
    X, Y = data()
    with pytest.raises(SolverError, match=said):
        model(X, Y, penalty=penalty).solve("clique_generation", **options)
