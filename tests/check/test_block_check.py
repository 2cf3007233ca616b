"""Models that are not convex against cvxpy, block by block: agreement where it should be, and every spoiled block by its name."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.reference.structures as reference
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.certificates.stationarity import NO_GLOBAL
from mtldsl.errors import ModelError
from mtldsl.problems.cross_check_comparison import BlockCheck
from mtldsl.testing import assert_agrees
from tests.learned_models import ETA, HIGH, LOW, RHO, fetr, least
from tests.loops import for_each


def data(labels="real", layout="shared", n=12, d=4, m=3, seed=0, rank=1, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X @ rng.normal(size=(d, rank)) @ rng.normal(size=(rank, m)) + 0.3 * rng.normal(size=(n, m)) + offset
    if labels == "sign":
        Y = np.where(np.median(Y, axis=0) <= Y, 1.0, -1.0)
    if layout == "separate":
        return mtl.Tasks.separate([X[: n - t % 3] for t in range(m)], [Y[: n - t % 3, t] for t in range(m)])
    return mtl.Tasks.shared(X, Y)


GIVEN = np.diag([1.0, 2.0, 0.5, 1.5]) + 0.1
MODELS = {
    "squared": lambda: fetr(data()),
    "separate": lambda: fetr(data(layout="separate")),
    "intercept": lambda: fetr(data(), intercept=True),
    "logistic": lambda: fetr(data("sign"), mtl.logistic_loss),
    "l1": lambda: fetr(data(), more=lambda W: 0.5 * mtl.l1_norm(W)),
    "nonnegative": lambda: fetr(data(), constraints=lambda W: [W >= 0]),
    "given": lambda: fetr(data(), first=GIVEN),
    "moved": lambda: fetr(data(), argument=lambda W: 2 * W - 1.0),
}


@pytest.mark.slow
@for_each("name", MODELS)
def test_agreement(name):
    """Every block agrees; and cvxpy itself, given the model with its matrices kept, ends at the solution's objective and weights."""
    problem = MODELS[name]()
    solution = problem.solve(tol=1e-8)
    check = assert_agrees(problem, solution)
    assert isinstance(check, BlockCheck) and check.agrees and check.certified and check.disagreements == []
    assert [row.name for row in check.blocks] == [
        "weights",
        *(["Sigma2"] if name == "given" else ["Sigma1", "Sigma2"]),
    ]
    assert check.objective == pytest.approx(solution.objective, rel=1e-12)
    assert check.formula_difference <= 1e-9 and check.status == "stationary"
    for row in check.blocks:
        assert abs(row.difference) <= 1e-6
    assert NO_GLOBAL in str(check) and "agree on every block (the whole problem)" in str(check)
    model = problem.to_cvxpy(at=solution)
    assert isinstance(model.problem, cp.Problem) and set(model.variables) == set(solution.blocks)
    value = model.problem.solve(solver=cp.CLARABEL)
    assert model.objective_value(solution.blocks) == pytest.approx(solution.objective, rel=1e-9)
    at = {block: np.asarray(variable.value) for block, variable in model.variables.items()}
    assert model.objective_value(at) == pytest.approx(solution.objective, rel=1e-6, abs=1e-6)
    assert value == pytest.approx(model.problem.objective.value)
    np.testing.assert_allclose(at["W"], solution.W, atol=1e-3)


def spoil(solution, name, factor):
    S = solution.learned[name].spectral
    other = SpectralMatrix(
        S.basis, np.clip(factor * S.values, LOW, HIGH), float(np.clip(factor * S.rest, LOW, HIGH))
    )
    return replace(
        solution, learned={**solution.learned, name: replace(solution.learned[name], spectral=other)}
    )


@pytest.fixture(scope="module")
def solved():
    problem = fetr(data(seed=3))
    return problem, problem.solve(tol=1e-8)


def turned(solution):
    """The matrix Sigma1 with other eigenvectors: eigenvalues are right, and bounds are met."""
    S = solution.learned["Sigma1"].spectral
    Q = np.linalg.qr(np.eye(S.side) + 0.1 * np.random.default_rng(0).normal(size=(S.side, S.side)))[0]
    other = replace(solution.learned["Sigma1"], spectral=SpectralMatrix(Q @ S.basis, S.values, S.rest))
    return replace(solution, learned={**solution.learned, "Sigma1": other})


def shaken(solution):
    W = solution.W + 0.05 * np.random.default_rng(0).normal(size=solution.W.shape)
    return replace(solution, blocks={"W": W}, coef=W)


@pytest.mark.slow
@for_each(
    "name, change",
    [
        ("Sigma1", lambda solution: spoil(solution, "Sigma1", 0.7)),
        ("Sigma2", lambda solution: spoil(solution, "Sigma2", 0.7)),
        ("Sigma1", turned),
        ("weights", shaken),
    ],
)
def test_a_spoiled_block_is_named(solved, name, change):
    problem, solution = solved
    check = problem.cross_check(change(solution))
    assert not check.agrees and "DISAGREE" in str(check)
    (text,) = [line for line in check.disagreements if line.startswith(f"{name}: with everything else kept")]
    assert "the reference finds an objective lower by" in text
    assert {row.name: row for row in check.blocks}[name].difference > 1e-4


def test_a_matrix_s_row_counts_its_term_as_the_model_does():
    """Half a term can win half as much by a better matrix: with a coefficient left out, the row would promise four times that."""
    share = 0.25
    problem = fetr(data(seed=3), times=share)
    solution = spoil(problem.solve(tol=1e-8), "Sigma1", 0.7)
    row = {row.name: row for row in problem.cross_check(solution).blocks}["Sigma1"]

    Sigma2, m = solution.learned["Sigma2"].precision, solution.W.shape[1]
    S = solution.W @ Sigma2 @ solution.W.T
    spoiled = solution.learned["Sigma1"].precision
    gain = ETA * np.trace(spoiled @ S) - RHO * m * np.linalg.slogdet(spoiled)[1] - least(S, m)
    assert gain > 1e-2
    assert row.objective - row.reference == pytest.approx(share * gain, rel=1e-6)


def test_small_errors_are_noticed_where_tol_asks_for_it(solved):
    """Differences are quadratic in the error: one of 1e-3 shows as 1e-6, which the default allows and a small tol does not."""
    problem, solution = solved
    check = problem.cross_check(spoil(solution, "Sigma1", 0.999), tol=1e-9)
    assert any(text.startswith("Sigma1") for text in check.disagreements)
    assert problem.cross_check(solution, tol=1e-6).agrees


def test_a_reference_that_stops_early_is_noticed(solved, monkeypatch):
    """Above the fast objective: then it has not found its block's optimum."""
    problem, solution = solved
    right = reference.block_optimum

    def early(*arguments):
        found = right(*arguments)
        return found._replace(value=found.value + 0.01)

    monkeypatch.setattr(reference, "block_optimum", early)
    check = problem.cross_check(solution)
    said = [text for text in check.disagreements if "the reference stopped" in text]
    assert len(said) == 2 and all("above the fast objective" in text for text in said)


def test_large_matrices_are_held_to_lagranges_bound(monkeypatch):
    """Above the side that a semidefinite program manages: the bound agrees at the optimum, and is below where it is spoiled."""
    monkeypatch.setattr(reference, "SETTINGS", replace(reference.SETTINGS, interior_point_rows=3))
    problem = fetr(data(seed=3))
    solution = problem.solve(tol=1e-8)
    check = problem.cross_check(solution)
    assert [row.method for row in check.blocks][1:] == ["Lagrange bound", "cvxpy, log-det SDP"]
    assert check.agrees
    spoiled = problem.cross_check(spoil(solution, "Sigma1", 0.7))
    assert any(text.startswith("Sigma1: with everything else kept") for text in spoiled.disagreements)


def test_a_solution_of_another_model_is_refused(solved):
    """One of other data, and one of a model in which Sigma1 was given, to the one that learns it."""
    problem, _ = solved
    for other, said in (
        (fetr(data(d=5)), "give a solution of this problem"),
        (fetr(data(), first=GIVEN), "Sigma1"),
    ):
        solution = other.solve()
        with pytest.raises(ModelError, match=said):
            problem.cross_check(solution)
        with pytest.raises(ModelError, match=said):
            problem.to_cvxpy(at=solution)
