"""What X^T u leaves is divided between several functions such that it proves most; and whole solutions as multipliers."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 6))
TASKS = mtl.Tasks.shared(X, X @ RNG.normal(size=(6, 2)) @ RNG.normal(size=(2, 4)) + RNG.normal(size=(30, 4)))


def models():
    W = mtl.Weights(TASKS)
    L, S = mtl.Weights(TASKS, name="L"), mtl.Weights(TASKS, name="S")
    loss = mtl.squared_loss(W, TASKS)
    return {
        "elastic net": mtl.minimize(loss + 3 * mtl.l1_norm(W) + 0.5 * mtl.ridge(W)),
        "a simplex": mtl.minimize(loss + 3 * mtl.l21_norm(W), subject_to=[W >= 0, W.sum(axis=0) == 1]),
        "two norms": mtl.minimize(loss + 3 * mtl.l1_norm(W) + 5 * mtl.trace_norm(W)),
        "a norm of differences": mtl.minimize(loss + 3 * mtl.l1_norm(W) + 3 * mtl.total_variation(W)),
        "two matrices": mtl.minimize(
            mtl.absolute_loss(L + S, TASKS) + 4 * mtl.trace_norm(L) + 2 * mtl.l12_norm(S), subject_to=[L + S >= 0]
        ),
        "a norm and a bound": mtl.minimize(loss + 5 * mtl.trace_norm(W), subject_to=[W >= 0]),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3))
def test_multipliers_of_the_optimum_prove_the_optimum(first):
    """By themselves: whoever has the right u need not know how to divide X^T u."""
    for name in list(models())[first::3]:
        problem = models()[name]
        solution = problem.solve(tol=1e-9)
        (u, *_) = solution.certificate.certificate.proof.loss_duals
        check = problem.check_bound(np.asarray(u))
        assert check.holds and not check.hint, (name, check)
        assert check.value == pytest.approx(solution.objective, rel=1e-8), name
        assert problem.check_bound(0.9 * np.asarray(u)).value < solution.objective, name
        whole = problem.check_bound(solution)
        assert whole.holds and whole.value == pytest.approx(solution.dual_bound, rel=1e-9), name
        assert problem.dual_value(solution) == whole.value, name


def test_the_division_of_an_elastic_net_is_the_textbook_s():
    problem = models()["elastic net"]
    u = RNG.normal(size=TASKS.n_samples)
    beyond = np.maximum(np.abs(X.T @ u.reshape(4, -1).T) - 3, 0)
    by_hand = -0.5 * u @ u - u @ TASKS.targets - np.sum(beyond**2) / (2 * 0.5)
    assert problem.dual_value(u) == pytest.approx(by_hand, rel=1e-9)


def test_units_of_the_inputs_do_not_matter():
    tasks = mtl.Tasks.shared(100 * X, TASKS.per_task(TASKS.targets)[0][:, None] * np.ones((1, 4)))
    W = mtl.Weights(tasks)
    norms = 300 * mtl.l1_norm(W) + 200 * mtl.trace_norm(W)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + 5e3 * mtl.ridge(W) + norms)
    solution = problem.solve(tol=1e-9)
    (u, *_) = solution.certificate.certificate.proof.loss_duals
    assert problem.check_bound(np.asarray(u)).value == pytest.approx(solution.objective, rel=1e-8)


@pytest.mark.slow
@for_each("name", ["two norms", "a norm and a bound", "two matrices"])
def test_where_no_division_passes_the_check_says_so(name):
    problem = models()[name]
    (u, *_) = problem.solve(tol=1e-8).certificate.certificate.proof.loss_duals
    check = problem.check_bound(3 * np.asarray(u), repair=True)
    assert not check.holds and check.hint.startswith("No division of X^T u between")
    assert np.isfinite(check.repaired)


def test_near_the_optimum_a_repair_costs_little():
    """u of nearly optimal weights: no division passes, or just one, and the nearest one is scaled by nearly 1."""
    away, problem = 1e-3, models()["two norms"]
    best = problem.solve(tol=1e-10)
    W = best.W + away * np.random.default_rng(0).normal(size=best.W.shape)
    u = (X @ W).T.ravel() - TASKS.targets
    check = problem.check_bound(u, repair=True)
    assert (1 - 30 * away) * best.objective < check.repaired <= best.objective
    assert check.holds == (not check.hint)
    assert max(one.by for one in check.conditions) < 30 * away  # what fails, fails by little


def test_multipliers_by_name_are_taken_and_explained():
    problem = models()["two norms"]
    solution = problem.solve("admm", tol=1e-5)
    assert len(solution.multipliers) == 3
    check = problem.check_bound(solution.multipliers, repair=True)
    assert not check.holds and "They are nearly stationary" in check.hint
    assert check.repaired == pytest.approx(solution.objective, rel=1e-3)
    with pytest.raises(mtl.ModelError, match="there is no function 'l2'"):
        problem.check_bound(solution.multipliers["squared_loss(W, tasks)"], {"l2": np.ones((6, 4))})


def test_a_solution_of_another_model_or_of_other_data_is_refused():
    problem, other = models()["two norms"], models()["elastic net"]
    solution = other.solve()
    fewer, W = with_weights(mtl.Tasks.shared(X[:20], TASKS.targets.reshape(4, -1).T[:20]))
    same = mtl.minimize(mtl.squared_loss(W, fewer) + 3 * mtl.l1_norm(W) + 0.5 * mtl.ridge(W))
    for stated in (problem, same):
        for ask in (stated.check_bound, stated.conditions):
            with pytest.raises(mtl.ModelError, match="a solution of another model or of other data"):
                ask(solution)
    assert other.conditions(solution).hold
