"""Structured losses beside others and under constraints, beyond tests/models.py: as the reference."""

import gc
import weakref

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.metrics import AUC, FScore, RecallAt, ROCArea
from tests.loops import for_each
from tests.models import MODELS as MIXED
from tests.models import kept_in, separate, shared, with_weights

MODELS = {}
model = kept_in(MODELS)


def hinge(W, tasks, metric, c=4.0):
    return c * mtl.structured_hinge(W, tasks, metric=metric)


@model
def beside_a_hinge_loss_of_other_weights():
    t = separate(6, labels="sign", density=0.6)
    W, V = mtl.Weights(t), mtl.Weights(t, name="V")
    return mtl.minimize(
        hinge(W, t, RecallAt(3)) + 0.2 * mtl.hinge_loss(W + V, t) + mtl.l21_norm(W) + 2 * mtl.l1_norm(V)
    )


@model
def columns_on_the_simplex():
    t, W = with_weights(separate(9, labels="sign"))
    return mtl.minimize(hinge(W, t, AUC()), subject_to=[W >= 0, W.sum(axis=0) == 1])


@model
def weights_moved_and_mixed():
    t, W = with_weights(shared(14, n=20, labels="sign"))
    mix = np.array([[1.0, 0, 0, 0.5], [0, 1, 0, 0], [0, 0.3, 1, 0], [0, 0, 0, 1]])
    return mtl.minimize(hinge(W @ mix - 0.05, t, FScore(beta=2.0)) + mtl.l21_norm(W))


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_composed_models_are_certified_as_the_reference(name):
    problem = MODELS[name]()
    best = problem.solve(solver="cvxpy", tol=1e-6)
    assert best.status == "optimal", best
    solution = problem.solve(tol=1e-6)
    assert solution.status == "optimal", solution
    assert solution.violation <= 1e-6
    assert solution.objective == pytest.approx(best.objective, rel=2e-6)
    assert solution.dual_bound <= best.objective * (1 + 1e-6)
    # the objective and the constraints as cvxpy states them
    stated = problem.to_cvxpy()
    assert stated.objective_value(solution.blocks) == pytest.approx(solution.objective, rel=1e-9)
    assert stated.violation(solution.blocks) <= 2e-6
    zero = problem.form().value(problem.form().zeros())
    assert solution.objective < 0.999 * zero or problem.form().constraints  # the data have a say


@pytest.mark.slow
@for_each(
    "name",
    [
        "two_structured_losses_share_an_intercept_and_a_ridge",
        "auc_and_logistic_losses_nonnegative",
        "f_score_low_rank_plus_sparse_with_intercept",
    ],
)
def test_eight_digits(name):
    problem = MIXED[name]()
    solution = problem.solve(solver="admm", tol=1e-8)
    assert solution.status == "optimal" and abs(solution.relative_gap) <= 1e-8
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-7).objective, rel=1e-6)


@pytest.mark.slow
@for_each("metric", [FScore(), ROCArea()], ids=repr)
def test_a_path_keeps_its_planes_and_takes_new_coefficients(metric):
    t = shared(17, n=40, labels="sign")
    W, lam = mtl.Weights(t), mtl.Parameter(1.0)
    problem = mtl.minimize(
        lam * mtl.structured_hinge(W, t, metric=metric) + mtl.l21_norm(W), subject_to=[W >= -0.1]
    )
    values, warm, cold = [2.0, 2.5, 3.2, 20.0], [], []
    for value, solution in zip(values, problem.path(lam, values, tol=1e-6), strict=True):
        lam.value = value
        alone = problem.solve(tol=1e-6)
        assert solution.status == alone.status == "optimal"
        assert solution.objective == pytest.approx(alone.objective, rel=2e-6)
        warm.append(oracle_calls(solution))
        cold.append(oracle_calls(alone))
    assert sum(warm[1:3]) < sum(cold[1:3])
    lam.value = values[-1]  # the path has put the first one back
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-6).objective, rel=2e-6)


def oracle_calls(solution) -> int:
    """Those of the whole solve: the reference, where it closes one, asks for none."""
    return max(entry.get("oracle_calls", 0) for entry in solution.history)


@pytest.mark.slow
def test_weights_of_rounding_size_still_give_multipliers():
    """A copy that is zero but for rounding once made the step of the last prox 1e-18, and its program without a support."""
    t, W = with_weights(separate(18, labels="sign"), intercept=True)
    hinges = mtl.structured_hinge(W, t, metric=FScore()) + 0.5 * mtl.structured_hinge(W, t, metric=AUC())
    for c in (1e-3, 0.05, 0.2, 0.5, 1.0):
        problem = mtl.minimize(c * hinges + 6.0 * mtl.l12_norm(W) + 0.5 * mtl.ridge(W))
        solution = problem.solve(tol=1e-6)
        assert solution.status == "optimal", (c, solution)


@pytest.mark.slow
def test_a_solve_keeps_nothing_of_its_data():
    """Planes and oracles belong to the solution: with it and the model they go."""

    def solve():
        tasks, W = with_weights(shared(3, n=20, labels="sign"))
        loss = mtl.structured_hinge(W, tasks)
        assert mtl.minimize(loss + mtl.l1_norm(W) + mtl.trace_norm(W)).solve(tol=1e-3).is_optimal
        return weakref.ref(tasks)

    kept = solve()
    gc.collect()
    assert kept() is None
