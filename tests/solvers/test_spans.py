"""Models of few samples are solved in their span, and what comes back is of the model as stated, with its proof."""

import json
import os
import subprocess
import sys
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.routes import LAST, SOLVERS
from tests.loops import for_each
from tests.models import with_weights
from tests.solvers.same_bits import digests, pairs

LOSSES = {
    "hinge": mtl.hinge_loss, "absolute": mtl.absolute_loss, "logistic": mtl.logistic_loss,
    "squared_hinge": mtl.squared_hinge_loss,
}  # fmt: skip
PENALTIES = {"ridge": mtl.ridge, "trace": mtl.trace_norm, "squared_trace": mtl.squared_trace_norm}


def few(seed=0, n=9, d=25, m=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10.0, d)
    return mtl.Tasks.shared(X, np.where(X @ rng.normal(size=(d, m)) + rng.normal(size=(n, m)) > 0, 1, -1))


@pytest.mark.slow
@for_each("loss, how", zip(LOSSES, cycle(product(PENALTIES, [False, True])), strict=False))
def test_every_solver_ends_at_the_optimum_and_goes_on_from_there(loss, how):
    (penalty, intercept), tasks = how, few()
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(LOSSES[loss](W, tasks) + 0.5 * PENALTIES[penalty](W))
    best = problem.solve("cvxpy", tol=1e-7).objective
    for name, verdict, _ in problem.explain().verdicts():
        if verdict == "refused" or name == "cvxpy":
            continue
        found = problem.solve(solver=name, tol=1e-6)
        assert found.status == "optimal", (name, found)
        assert found.W.shape == (25, 3)
        assert found.objective == pytest.approx(best, rel=3e-6)
        assert problem.solve(solver=name, tol=1e-6, warm_start=found).status == "optimal", name


def test_weights_lie_in_the_span_of_the_samples():
    tasks, W = with_weights(few(1))
    found = mtl.minimize(mtl.absolute_loss(W, tasks) + mtl.trace_norm(W)).solve(tol=1e-8).W
    inside = tasks.X.T @ np.linalg.lstsq(tasks.X.T, found, rcond=None)[0]
    np.testing.assert_allclose(inside, found, atol=1e-9 * np.abs(found).max())


@pytest.mark.slow
def test_a_path_has_one_span_and_the_same_bits_again():
    tasks = few(2)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(mtl.hinge_loss(W, tasks) + lam * mtl.squared_trace_norm(W))
    once = [s.W for s in problem.path(lam, values=[1.0, 0.3, 0.1])]
    again = [s.W for s in problem.path(lam, values=[1.0, 0.3, 0.1])]
    for a, b in zip(once, again, strict=True):
        np.testing.assert_array_equal(a, b)


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_solver_stands_before_the_law():
    assert {name for name, _ in pairs()} == {*SOLVERS, "auto"} - {LAST}


@pytest.mark.process
def test_the_same_bits_in_another_process():
    """Another process has other addresses, another order of sets, and its own clock. Twice in one: a law of tests/testing/test_word.py."""
    here = digests()
    environment = os.environ | {"PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.solvers.same_bits"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == here
