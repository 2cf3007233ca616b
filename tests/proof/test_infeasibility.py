"""Infeasibility is proven by multipliers of our own that separate the constraints, whatever a backend says."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import InfeasibleError
from mtldsl.certificates.infeasibility import feasibility
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))


def weights(two=False):
    tasks = mtl.Tasks.shared(X, np.random.default_rng(1).poisson(2, size=(30, 2)).astype(float))
    W, S = mtl.Weights(tasks), mtl.Weights(tasks, name="S")
    return tasks, W, S


IMPOSSIBLE = {
    "a lower bound and a small ball": lambda W, S: [W >= 1, mtl.l21_norm(W) <= 0.1],
    "two bounds": lambda W, S: [W >= 2, W <= 1],
    "a bound and column sums": lambda W, S: [W >= 1, W.sum(axis=0) == 1],
    "hardly": lambda W, S: [1 / np.sqrt(8) + 1e-6 <= W, mtl.trace_norm(W) <= 1],
    "two blocks": lambda W, S: [W >= 1, S >= 1, mtl.trace_norm(W + S) <= 2],
    "some rows": lambda W, S: [W[:2, :] >= 1, mtl.l1_norm(W[:3, :]) <= 3.9],
    "row and column sums": lambda W, S: [W.sum(axis=1) == 1, W.sum(axis=0) == 3],
    "bounds that miss by 1e-5": lambda W, S: [W >= 1, W <= 1 - 1e-5],
    "sums that miss by 1e-5": lambda W, S: [X[:2] @ W == 1, X[:2] @ W == 1 + 1e-5],
}
POSSIBLE = {
    "a large simplex": lambda W, S: [mtl.columns_on_simplex(W, total=1e5)],
    "a large ball": lambda W, S: [mtl.l21_norm(W + S) <= 1e11],
    "just so": lambda W, S: [W >= 0.25, W.sum(axis=0) == 1],
    "row and column sums": lambda W, S: [W.sum(axis=1) == 1, W.sum(axis=0) == 2],
}


def model(constraints):
    tasks, W, S = weights()
    uses_two = any("S" in c.text for c in constraints(W, S))
    argument = W + S if uses_two else W
    return mtl.minimize(
        mtl.squared_loss(argument, tasks) + mtl.ridge(W) + (mtl.ridge(S) if uses_two else 0 * mtl.l1_norm(W)),
        constraints(W, S),
    )


@for_each("name", IMPOSSIBLE)
def test_contradictions_are_proven(name):
    problem = model(IMPOSSIBLE[name])
    known = feasibility(problem.form())
    assert known.is_disproven and known.violation > 0
    # what the residual costs is asked at the largest weights that it leaves room for, not at those of the nearest point
    assert known.largest > 1e4
    with pytest.raises(InfeasibleError, match="proven by multipliers that separate them"):
        problem.solve(solver="cvxpy")


@for_each("name", [name for name in IMPOSSIBLE if name != "hardly"])
def test_no_solver_iterates_on_after_the_proof(name):
    """ADMM made 100,000 iterations there; what is missed by 1e-6 it may meet to tol."""
    looks = []
    with pytest.raises(InfeasibleError, match="proven by multipliers that separate them"):
        model(IMPOSSIBLE[name]).solve(callback=lambda record: looks.append(record) and None)
    assert looks[-1]["iteration"] < 2000


@for_each("name", POSSIBLE)
def test_what_can_be_met_is_never_disproven(name):
    known = feasibility(model(POSSIBLE[name]).form())
    assert known.margin == 0.0 and known.violation <= 1e-9


def test_random_points_inside_are_never_disproven():
    """Constraints that hold at a point, at all scales, some of them only just."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        _, W, S = weights()
        point = 10.0 ** rng.uniform(-6, 6) * rng.normal(size=(4, 2))
        radius = np.abs(np.linalg.norm(point, axis=1)).sum() * (1 + rng.choice([0.0, 1e-9, 1e-3]))
        constraints = [
            point - rng.choice([0.0, 1.0]) <= W,
            mtl.l21_norm(W) <= radius,
            np.abs(point).max() >= W,
        ]
        tasks = weights()[0]
        form = mtl.minimize(mtl.squared_loss(W, tasks), constraints).form()
        assert form.violation({"W": point}) <= 1e-9 * radius
        assert feasibility(form).margin == 0.0, seed


def test_a_backends_word_is_not_repeated(monkeypatch):
    """Whatever a backend says, weights that satisfy the constraints are known here."""
    from mtldsl.reference import solver as reference

    def says_so(*_, **__):
        raise InfeasibleError("no weights satisfy all constraints at once (clarabel says so): W >= 0")

    monkeypatch.setattr(reference, "solve_reference", says_so)
    tasks, W, _ = weights()
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W), [W >= 0]).solve(solver="cvxpy")
    assert solution.status != "optimal" and solution.violation == 0.0
    assert "clarabel says so" in solution.note and "weights that satisfy them were found" in solution.note


def test_what_is_feasible_far_away_only_is_not_called_infeasible():
    """W[0] - W[1] == 0 and W[0] - (1 + 1e-11) W[1] == -1 meet at 1e11: what is said is no more than what is proven."""
    tasks, W, _ = weights()
    A = np.array([[1.0, -1.0, 0.0, 0.0], [1.0, -1.0 - 1e-11, 0.0, 0.0]])
    problem = mtl.minimize(mtl.squared_loss(W, tasks), [np.array([[0.0], [-1.0]]) == A @ W])
    known = feasibility(problem.form())
    assert not known.is_disproven or known.largest < 1e11
    # how much of 1e11 is proven hangs on the last digits of a decomposition, which processors round apart
    with pytest.raises(InfeasibleError, match=r"^no weights up to [1-9].*e\+(09|10) satisfy all constraints"):
        problem.solve(max_iter=1000)
