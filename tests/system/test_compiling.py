"""The time of compiling: counted once, told as it begins, and left out of the time of a solve."""

import os
import subprocess
import sys
import time

import pytest

from mtldsl.utils import compilation

SOLVE = """
import numpy as np, mtldsl as mtl
from mtldsl.utils import compilation as compiling
tasks = mtl.Tasks.shared(np.random.default_rng(0).normal(size=(30, 6)), np.arange(60.0).reshape(30, 2))
W = mtl.Weights(tasks)
problem = mtl.minimize(mtl.squared_loss(W, tasks) + 3 * mtl.l1_norm(W))
first, second = problem.solve(verbose=True), problem.solve()
assert second.compile_seconds == 0.0 and "compiling" not in str(second), second
assert first.compile_seconds == compiling.spent() > 0.0 and first.seconds > 0.0, first
assert f"{first.seconds:.3f} s + {first.compile_seconds:.3f} s compiling" in str(first), first
assert first.history[-1]["seconds"] <= first.seconds
"""


def test_blocks_in_blocks_count_once_and_where_one_fails():
    before = compilation.spent()
    started = time.perf_counter()
    with compilation.busy():
        with pytest.raises(ZeroDivisionError), compilation.busy():
            time.sleep(0.02)
            raise ZeroDivisionError
        with compilation.busy():
            time.sleep(0.01)
        assert compilation.spent() == before
    assert 0.03 <= compilation.spent() - before <= time.perf_counter() - started


def test_who_is_told():
    outer, inner = [], []
    with compilation.announce_compilation(outer.append):
        compilation.begins("a")
        with compilation.announce_compilation(inner.append):
            compilation.begins("b")
        with compilation.announce_compilation(None):
            compilation.begins("c")
    compilation.begins("d")
    assert outer == ["a"] and inner == ["b"]


@pytest.mark.process
def test_a_solve_leaves_it_out_and_says_so(tmp_path):
    """Nothing is said where compiled code is read from the disk."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for cold in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", SOLVE], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert ("compiling descend_gram ..." in map(str.strip, done.stderr.splitlines())) == cold
