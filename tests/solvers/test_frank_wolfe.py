"""The paper's own algorithm, for teaching: it reaches the same optima, only slower, and refuses what it is not for."""

from itertools import cycle

import numpy as np
import pytest

import mtldsl as mtl
import mtldsl.reference.compile  # registers the formulas
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, ROCArea
from tests.loops import for_each
from tests.models import shared
from tests.solvers.test_two_blocks import problem_of

INNER = {"solver": "admm", "inner": "frank_wolfe"}


@pytest.mark.slow
@for_each(
    "metric, norm",
    zip(
        [FScore(), AUC(), ErrorRate(), ROCArea()],
        cycle([mtl.l1_norm, mtl.l21_norm, mtl.trace_norm]),
        strict=False,
    ),
)
def test_it_comes_near_the_optimum_with_a_valid_bound(metric, norm):
    problem = problem_of(shared(1, n=20, labels="sign"), metric, norm)
    best = problem.solve(solver="cvxpy", tol=1e-7).objective
    solution = problem.solve(**INNER, tol=0.1, max_iter=100)
    assert solution.status == "optimal", solution
    assert best * (1 - 1e-7) <= solution.objective <= best * 1.12
    assert best * 0.89 <= solution.dual_bound <= best * (1 + 1e-7)
    last = solution.history[-1]
    assert last["oracle_calls"] > last["inner_steps"] >= solution.iterations / 2


@pytest.mark.slow
def test_an_intercept_and_a_bound_that_tightens():
    problem = problem_of(shared(3, n=20, labels="sign"), FScore(), mtl.l21_norm, intercept=True)
    best = problem.solve(solver="cvxpy", tol=1e-7).objective
    gaps = []
    for rounds in (1, 3, 10):
        solution = problem.solve(**INNER, tol=1e-12, max_iter=rounds)
        assert solution.dual_bound <= best * (1 + 1e-7) and solution.objective >= best * (1 - 1e-7)
        gaps.append(solution.relative_gap)
    assert gaps[2] < gaps[1] < gaps[0] and gaps[2] < 0.2


def test_the_number_of_inner_steps_is_kept():
    problem = problem_of(shared(4, n=20, labels="sign"), AUC(), mtl.l1_norm)
    for steps in (1, 5):
        solution = problem.solve(**INNER, inner_steps=steps, tol=1e-12, max_iter=10)
        assert solution.history[-1]["inner_steps"] <= 10 * steps
        assert np.isfinite(solution.relative_gap)


T = shared(5, n=20, labels="sign")
W, S = mtl.Weights(T), mtl.Weights(T, name="S")
AREA = mtl.structured_hinge(W, T, metric=AUC()) + mtl.l1_norm(W)


@for_each(
    "objective, constraints, says",
    [
        (AREA, [W.sum(axis=1) == 0], "W.sum"),
        (AREA + mtl.hinge_loss(W, T), [], "hinge_loss(W, tasks) is a second loss"),
        (mtl.structured_hinge(W + S, T) + mtl.l1_norm(W) + mtl.l1_norm(S), [], "there are 2 weight matrices"),
        (mtl.logistic_loss(W, T) + mtl.l1_norm(W), [], "logistic_loss(W, tasks) is neither"),
        (AREA + mtl.trace_norm(W), [], "trace_norm"),
    ],
)
def test_models_that_it_is_not_for_are_refused(objective, constraints, says):
    with pytest.raises(mtl.SolverError, match=r"frank_wolfe.*") as raised:
        mtl.minimize(objective, subject_to=constraints).solve(**INNER)
    assert says in str(raised.value)
