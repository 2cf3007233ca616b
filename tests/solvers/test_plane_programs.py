"""Linear programs over planes: against HiGHS, with planes that come one by one, and the whole finish."""

import numpy as np
import pytest
from scipy.optimize import linprog

import mtldsl as mtl
from mtldsl.solvers.planes import two_blocks
from mtldsl.solvers.planes.bundle import Bundle
from mtldsl.solvers.planes.linear_finish import LinearFinish
from mtldsl.solvers.planes.oracle import Oracle, Planes


def form_of(rng, d, m, intercept=False, coefficient=1.0, scale=1.0, weights=None):
    X = rng.normal(size=(40, d)) * scale
    Y = np.where(
        X @ rng.normal(size=(d, m)) / np.abs(scale).max() + rng.normal(size=(40, m)) > 0.5, 1.0, -1.0
    )
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    norm = mtl.l1_norm(W) if weights is None else mtl.l1_norm(W, weights=weights)
    return mtl.minimize(coefficient * mtl.structured_hinge(W, tasks, metric=mtl.FScore()) + norm)


def by_highs(planes, deltas, reach):
    """max <beta, deltas> over the simplex with |planes^T beta| <= reach."""
    A = np.vstack([planes.T, -planes.T])
    found = linprog(
        -deltas,
        A_ub=A,
        b_ub=np.append(reach, reach),
        A_eq=np.ones((1, len(deltas))),
        b_eq=[1.0],
        method="highs-ds",
    )
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("d, coefficient", [(1, 1.0), (4, 0.1), (6, 100.0), (25, 1000.0)])
def test_programs_are_those_of_highs(d, coefficient, intercept):
    rng = np.random.default_rng(d)
    form = form_of(rng, d, 3, intercept, coefficient).form()
    oracle = Oracle(form.losses[0])
    bundle = Bundle(oracle)
    finish = LinearFinish(form, oracle, bundle)
    for round_ in range(12):
        for i in range(3):
            slope, delta = rng.normal(size=(1, oracle.size)), rng.random(1)
            if round_ % 4 == 3:  # a plane that is there already, or nearly
                slope, delta = (
                    bundle.planes[i, 1 + round_ // 4][None] * (1.0 + 1e-12 * (i == 1)),
                    bundle.deltas[i, 1 + round_ // 4][None],
                )
            bundle.add_one(i, slope[0], float(delta[0]), oracle.zero(i))
        V, beta, _ = finish._programs(np.arange(3))
        for i, n in enumerate(bundle.counts):
            planes, deltas = bundle.planes[i, :n], bundle.deltas[i, :n]
            reach = np.append(finish.a[i] / coefficient, np.zeros(int(intercept)))
            expected = by_highs(planes, deltas, reach)
            assert beta[i, :n] @ deltas == pytest.approx(expected, abs=1e-9)
            assert np.all(np.abs(beta[i, :n] @ planes) <= reach + 1e-9)
            height = reach @ np.abs(V[i]) + np.max(deltas + planes @ V[i])  # the vertex proves the same
            assert height == pytest.approx(expected, abs=1e-8)


def test_programs_of_other_tasks_stay_as_they_are():
    rng = np.random.default_rng(3)
    form = form_of(rng, 4, 3).form()
    oracle = Oracle(form.losses[0])
    bundle = Bundle(oracle)
    finish = LinearFinish(form, oracle, bundle)
    found = Planes(np.zeros(3), rng.random(3), rng.normal(size=(3, 4)), [oracle.zero(i) for i in range(3)])
    bundle.add(found, np.arange(3))
    before, _, _ = finish._programs(np.arange(3))
    bundle.add(Planes(np.zeros(3), 1.0 + rng.random(3), rng.normal(size=(3, 4)), found.stored), np.arange(3))
    after, _, _ = finish._programs(np.array([1]))
    np.testing.assert_array_equal(before[[0, 2]], after[[0, 2]])
    assert not np.array_equal(before[1], after[1])


@pytest.mark.parametrize("scale", [1.0, 10.0 ** np.arange(-3, 4)], ids=["alike", "from 1e-3 to 1e3"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("first", [True, False])
def test_the_finish_proves_what_the_reference_says(monkeypatch, first, intercept, scale):
    if not first:
        monkeypatch.setattr(two_blocks, "_FIRST_PROGRAMS", 0)
    problem = form_of(np.random.default_rng(5), 7, 3, intercept, 3.0, scale)
    solution = problem.solve(solver="admm", tol=1e-8)
    assert solution.status == "optimal" and (solution.iterations == 1) == first
    reference = problem.solve(solver="cvxpy")
    assert solution.objective == pytest.approx(reference.objective, rel=1e-5)


def test_features_without_a_price():
    weights = np.tile([[1.0], [0.0], [2.0], [0.5]], 2)
    problem = form_of(np.random.default_rng(6), 4, 2, weights=weights)
    solution = problem.solve(solver="admm", tol=1e-8)
    assert solution.status == "optimal"


def test_where_the_gap_stays_the_programs_give_way():
    problem = form_of(np.random.default_rng(7), 7, 3, coefficient=3.0)
    form = problem.form()
    oracle = Oracle(form.losses[0])
    bundle = Bundle(oracle)
    finish = LinearFinish(form, oracle, bundle)
    found = finish.run(np.zeros((3, 7)), 0.0, 0.0, lambda: False)  # no budget: one round
    assert bundle.counts.max() == 2 and np.all(np.isfinite(found.S)) and np.all(found.shrink <= 1.0)
