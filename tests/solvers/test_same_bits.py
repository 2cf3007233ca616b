"""Same input, same bits: on every solver, in one process and in another, with any number of threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mtldsl.solvers.routes import LAST, SOLVERS
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
