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
from mtldsl.solvers.samples.ascent import Ascent
from mtldsl.solvers.samples.kernel_form import kernel_form
from tests.solvers.same_bits import digest, digests, pairs

ROOT = Path(__file__).resolve().parents[2]


class Patient:
    """A watch that lets a run go on to its last iteration."""

    expired = False

    def __call__(self, point) -> bool:
        return False


def test_every_solver_stands_before_the_law():
    assert {name for name, _ in pairs()} == {*SOLVERS, "auto"} - {LAST}


@pytest.mark.slow
def test_the_same_bits_twice_and_in_another_process():
    """Another process has other addresses, another order of sets, and its own clock."""
    here = digests()
    again = {pair: digest(*pair.split(" on ", 1)) for pair in here}
    assert again == here
    environment = os.environ | {"PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.solvers.same_bits"]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == here


@pytest.mark.parametrize("intercept", [False, True])
def test_threads_over_tasks_change_no_bit(intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    Y = np.where(X @ rng.normal(size=(5, 7)) + rng.normal(size=(60, 7)) > 0, 1.0, -1.0)
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=intercept)
    form = mtl.minimize(3 * mtl.hinge_loss(W, tasks) + mtl.ridge(W)).form()
    found = []
    for threads in (1, 2, 3, 7):
        ascent = Ascent(kernel_form(form), shrinking=True, random_state=0)
        ascent.threads = threads
        point = ascent.run(1e-9, 300, Patient())
        found.append((point.iteration, point.loss_duals[0].tobytes(), point.blocks["W"].tobytes()))
    assert found.count(found[0]) == len(found)
