"""Who listens to a solve: every look, in order, and how to end it; what is said goes to standard error and to the log."""

import logging

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 20))
TASKS = mtl.Tasks.shared(X, np.sign(X[:, :4] @ RNG.normal(size=(4, 3)) + RNG.normal(size=(80, 3))))


@pytest.fixture
def problem():
    W = mtl.Weights(TASKS, intercept=True)
    return mtl.minimize(mtl.hinge_loss(W, TASKS) + 2.0 * mtl.trace_norm(W))


def test_a_callback_sees_every_look(problem):
    seen = []
    solution = problem.solve(solver="admm", callback=seen.append)
    assert [one["iteration"] for one in seen] == [one["iteration"] for one in solution.history]
    bounds = [one["bound"] for one in seen]
    assert bounds == sorted(bounds) and bounds[-1] == solution.dual_bound
    assert seen[0]["solver"] == "admm" and seen[-1]["gap"] == solution.relative_gap
    assert seen[-1]["seconds"] <= solution.seconds


@pytest.mark.slow
def test_a_callback_may_end_the_solve(problem, tmp_path):
    solution = problem.solve(solver="admm", tol=1e-9, callback=lambda look: look["iteration"] >= 3)
    whole = problem.solve(solver="admm", tol=1e-9)
    assert solution.status == "stopped" and not solution.is_certified
    assert len(solution.history) < len(whole.history)
    assert solution.dual_bound <= whole.objective * (1 + 1e-12) and np.isfinite(solution.objective)
    assert "stopped" in str(solution)
    assert mtl.Solution.load(solution.save(tmp_path / "w.npz")).status == "stopped"


def test_a_point_that_is_certified_counts_as_such(problem):
    assert problem.solve(callback=lambda look: look["gap"] <= 1e-6).status == "optimal"


def test_no_bit_depends_on_who_listens(problem):
    quiet, loud = problem.solve(), problem.solve(callback=lambda look: None, verbose=True)
    np.testing.assert_array_equal(quiet.W, loud.W)


def test_what_is_said_goes_to_standard_error(problem, capsys, caplog):
    with caplog.at_level(logging.DEBUG, "mtldsl"):
        solution = problem.solve(solver="admm", verbose=True)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "compiling" not in line]
    assert out == "" and len(lines) == len(solution.history) == len(caplog.messages)
    assert lines[-1] == caplog.messages[-1] and lines[-1].split()[0] == "admm"
    assert f"bound {solution.dual_bound:.10g}" in lines[-1]


def test_a_callback_is_a_function(problem):
    with pytest.raises(mtl.SolverError, match=r"solve\(callback=5\): write a function"):
        problem.solve(callback=5)


@pytest.mark.slow
@for_each("error", [
    KeyError("mine"), ZeroDivisionError("mine"), np.linalg.LinAlgError("mine"),
    mtl.SolverError("mine"), MemoryError(),
])  # fmt: skip
@for_each("solver", ["auto", "admm", "cvxpy"])
def test_errors_of_a_callback_are_no_solvers_trouble(problem, solver, error):
    """They would end one solver's turn, and the next would bring a solution as if nothing had been."""

    def broken(look):
        raise error

    with pytest.raises(type(error)) as caught:
        problem.solve(solver=solver, tol=1e-9, callback=broken)
    assert caught.value is error


def test_a_callback_computes_by_its_own_rules_for_numbers(problem):
    """Solvers turn an overflow into an error; in a callback it is what it is elsewhere."""
    seen = []

    def careless(look):
        seen.append(np.array([1.0]) / np.zeros(1))

    with np.errstate(divide="ignore"):
        assert problem.solve(solver="admm", callback=careless).is_optimal
    assert seen


def test_a_path_says_where_it_is(capsys):
    W, lam = mtl.Weights(TASKS), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.logistic_loss(W, TASKS) + lam * mtl.l21_norm(W))
    solutions = list(problem.path(lam, [5.0, 1.0], progress=True))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["lam 1 of 2", "lam 2 of 2"]
    assert "= 5, optimal" in lines[0] and len(solutions) == 2
    list(problem.path(lam, [5.0]))
    assert capsys.readouterr().err == ""
    with pytest.raises(mtl.ModelError, match="progress='yes'"):
        problem.path(lam, [1.0], progress="yes")


def test_a_callback_ends_a_path_too():
    W, lam = mtl.Weights(TASKS), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.hinge_loss(W, TASKS) + lam * mtl.l21_norm(W))
    found = list(
        problem.path(lam, [5.0, 1.0, 0.5], tol=1e-9, solver="admm", callback=lambda look: lam.value < 2.0)
    )
    assert [s.status for s in found] == ["optimal", "stopped"] and lam.value == 1.0
