"""Same input, same bits: on every solver, in one process and in another, with any number of threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.registry import LAST, SOLVERS
from tests.loops import for_each
from tests.solvers.same_bits import digest, digests, pairs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_solver_stands_before_the_law():
    assert {name for name, _ in pairs()} == {*SOLVERS, "auto"} - {LAST}


@pytest.mark.process
def test_the_same_bits_twice_and_in_another_process():
    """Another process has other addresses, another order of sets, and its own clock."""
    here = digests()
    again = {pair: digest(*pair.split(" on ", 1)) for pair in here if pair.startswith("auto")}
    assert again.items() <= here.items()
    environment = os.environ | {"PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.solvers.same_bits"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == here


@pytest.mark.slow
@for_each("intercept", [False, True])
def test_threads_over_tasks_change_no_bit(intercept):
    """Inputs so large that passes over samples go by tasks at the same time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2300))
    tasks = mtl.Tasks.shared(X, np.where(X[:, :3] + rng.normal(size=(900, 3)) > 0, 1.0, -1.0))
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(3 * mtl.hinge_loss(W, tasks) + mtl.ridge(W))
    found = [problem.solve("dual_ascent", n_jobs=threads, max_iter=4) for threads in (1, 2, 3)]
    assert all(one.iterations == found[0].iterations for one in found)
    for one in found[1:]:
        np.testing.assert_array_equal(one.W, found[0].W)
        assert (one.objective, one.dual_bound) == (found[0].objective, found[0].dual_bound)
