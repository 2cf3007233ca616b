"""Alternation: the baseline's updates by hand, wrong updates that are noticed, and what is refused."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.errors import CrossCheckError, ModelError, SolverError
from tests.learned_models import ETA, HIGH, LOW, RHO
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.test_alternating import GIVEN, covariance_problem, model, regression


@for_each("fudge", [0.0, 1e-3, 0.5])
def test_flip_flop_is_the_sample_estimate_plus_the_fudge_factor(fudge):
    """After one iteration: the first matrix for the weights beside the identity, the second for both."""
    problem = model(regression(5, 3))
    found = problem.solve(solver="alternating", method="flip_flop", fudge=fudge, max_iter=1)
    W = found.W

    def estimate(covariance):
        values, V = np.linalg.eigh(covariance + fudge * np.eye(len(covariance)))
        with np.errstate(divide="ignore"):
            return (V * np.clip(1.0 / np.maximum(values, 0.0), LOW, HIGH)) @ V.T

    first = estimate(ETA * W @ W.T / (RHO * 3))
    np.testing.assert_allclose(found.Sigma1.precision, first, atol=1e-9)
    second = estimate(ETA * W.T @ first @ W / (RHO * 5))
    np.testing.assert_allclose(found.Sigma2.precision, second, atol=1e-9)


@for_each("unit", [1e12, 1e-9])
def test_a_feature_in_another_unit_gives_no_warning(unit):
    """scipy's solve called such systems ill-conditioned, in a RuntimeWarning, which is an error in these tests."""
    rng = np.random.default_rng(4)
    Xs = [rng.normal(size=(9, 4)) * [unit, 1.0, 1.0, 1.0] for _ in range(3)]
    problem = model(mtl.Tasks.separate(Xs, list(rng.normal(size=(3, 9)))))
    found = problem.solve(solver="alternating", method="block", w_step="closed_form", max_iter=5)
    assert found.status == "iteration_limit" and np.isfinite(found.W).all()


@for_each("method, word", [("block", "update_one"), ("joint", "update")])
def test_a_wrong_update_is_noticed(method, word, monkeypatch):
    """Every iteration asserts that it goes down: updates that are right until nearly the end, and then are not. What was reached
    before is kept, and said to be no more than that. The matrices that a wrong joint update shows beside it are not those of the objective,
    which the second evaluation says.
    """
    problem, right, calls = model(regression(5, 3)), getattr(MatrixNormal, word), []

    def wrong(self, *arguments):
        calls.append(arguments)
        if len(calls) < 30:
            return right(self, *arguments)
        return tuple(SpectralMatrix.multiple_of_identity(0.05, side) for side in (5, 3))

    monkeypatch.setattr(MatrixNormal, word, wrong)
    options = {"solver": "alternating", "method": method, "tol": 1e-14, "max_iter": 200}
    if method == "joint":
        with pytest.raises(CrossCheckError, match="as typed") as caught:
            problem.solve(**options)
        solution = caught.value.solution
    else:
        solution = problem.solve(**options)
    assert solution.status == "stalled" and len(calls) >= 30
    assert "the objective rose from" in solution.reason and "a fault in mtldsl" in solution.reason


# ---------------------------------------------------------------------------------------- refused options
def lasso():
    tasks, W = with_weights(regression())
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + mtl.l1_norm(W))


def fetr(layout="shared", labels="real", **terms):
    return model(regression(layout=layout, labels=labels), **terms)


def with_l1():
    return fetr(more=mtl.l1_norm)


def with_bounds():
    return fetr(constraints=lambda W: [W >= 0])


def mtfl(more=None):
    return covariance_problem(regression(), more=more)


TYPED = "matrix_normal(W, Sigma1, Sigma2, eta=0.7, rho=1.3)"
METHODS = "'auto', 'newton', 'lbfgs', 'joint', 'block', 'flip_flop', 'algorithm_1'"
STEPS = "'auto', 'simultaneous_diagonalization', 'sylvester', 'closed_form', 'gradient_descent', "
STEPS += "'conjugate_gradient'"
NOT_NEWTON = ["method='newton'", TYPED, "neither reweighted nor a multiple of ridge", "method='joint'"]
SHARED = "it needs inputs that all tasks share"
OF_FLIP_FLOP = "fudge belongs to method='flip_flop'"
FUDGES = [(-1, "-1"), ("a", "'a'"), (np.nan, "nan"), (np.inf, "inf"), (True, "True"), (np.ones(2), "")]
WRONG = [
    (fetr, {"method": "sgd"}, ["method='sgd'", "there is no such method", METHODS]),
    (fetr, {"method": ["block"]}, ["method=['block']", METHODS]),
    (fetr, {"method": "newton"}, NOT_NEWTON),
    (fetr, {"w_step": "qr"}, ["w_step='qr'", STEPS]),
    (fetr, {"w_step": [1]}, ["w_step=[1]", STEPS]),
    (with_l1, {"w_step": "sylvester"},
     ["w_step='sylvester'", "this step solves a linear system", "l1_norm(W) is not quadratic",
      "w_step='auto'"]),
    (with_bounds, {"w_step": "closed_form"},
     ["w_step='closed_form'", "W >= 0 is a constraint", "w_step='auto'"]),
    (lambda: fetr(labels="sign", loss="logistic_loss"), {"w_step": "conjugate_gradient"},
     ["logistic_loss(W, tasks) is not quadratic", "w_step='auto'"]),
    (lambda: fetr("separate"), {"w_step": "sylvester"}, ["w_step='sylvester'", SHARED, "w_step='auto'"]),
    (lambda: fetr("missing"), {"w_step": "simultaneous_diagonalization"},
     [f"{SHARED}, with every label present"]),
    (lambda: fetr(more=mtl.ridge), {"method": "block", "w_step": "sylvester"},
     ["it needs one quadratic penalty between features and tasks, and there are 2"]),
    (with_l1, {"method": "lbfgs"}, ["method='lbfgs'", "l1_norm(W) is not smooth", "Write method='joint'"]),
    (with_bounds, {"method": "lbfgs"}, ["W >= 0 is a constraint", "Write method='joint'"]),
    (lambda: fetr(loss="absolute_loss"), {"method": "lbfgs"},
     ["absolute_loss(W, tasks) is not smooth", "Write method='joint'"]),
    (mtfl, {"method": "lbfgs"},
     ["method='lbfgs'", "feature_covariance_norm(W, D) is not smooth; write method='block'"]),
    (mtfl, {"method": "joint"}, ["write method='block'"]),
    (mtfl, {"method": "flip_flop"}, ["write method='block'"]),
    *((fetr, {"method": "flip_flop", "fudge": fudge}, [f"fudge={said}", "a number >= 0"])
      for fudge, said in FUDGES),
    (fetr, {"method": "block", "fudge": 0.1}, ["fudge=0.1", OF_FLIP_FLOP, "leave it out"]),
    (fetr, {"fudge": 1e-3}, [OF_FLIP_FLOP]),
    (fetr, {"steps": 3}, ["steps=...", "unknown option", "method='auto'"]),
    (fetr, {"solver": "auto", "method": "block"}, ["options belong to one solver"]),
]  # fmt: skip
NOTHING = "no term learns a matrix beside the weights"
CONVEX = ["admm", "cvxpy", "proximal_gradient", "closed_form", "coordinate_descent", "dual_ascent"]
REFUSED = [
    (lasso, "alternating", [NOTHING, "coordinate_descent"]),
    (lambda: fetr(given=GIVEN["both"]), "alternating", [NOTHING, "closed_form"]),
    (lambda: mtfl(mtl.l1_norm), "alternating",
     ["beside feature_covariance_norm(W, D) it solves linear systems only", "l1_norm(W) is not quadratic",
      "admm"]),
    *((fetr, solver, [f"solver={solver!r} does not take this model", f"{TYPED} is not convex", "alternating"])
      for solver in CONVEX),
]  # fmt: skip


@for_each("problem, options, fragments", WRONG)
def test_options_that_are_refused(problem, options, fragments):
    with pytest.raises(SolverError) as refusal:
        problem().solve(**({"solver": "alternating"} | options))
    assert [text for text in fragments if text not in str(refusal.value)] == []


@for_each("problem, solver, fragments", REFUSED)
def test_models_that_are_refused(problem, solver, fragments):
    with pytest.raises(ModelError) as refusal:
        problem().solve(solver=solver)
    assert [text for text in fragments if text not in str(refusal.value)] == []


def test_explain_names_the_chosen_solver():
    explanation = fetr().explain()
    assert explanation.chosen == "alternating"
    assert sum(f"{TYPED} is not convex" in reason for _, _, reason in explanation.verdicts()) >= 5
