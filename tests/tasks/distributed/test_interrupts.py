"""Ctrl-C in a terminal while rows are elsewhere: the best certified point, nothing left behind, and a cluster that still works."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster


def told(*arguments):
    script = Path(__file__).with_name("interrupted.py")
    done = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        start_new_session=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_ctrl_c_returns_the_best_certified_point():
    found = told(14, 1)
    assert found["status"] == "interrupted" and found["interrupted"]
    assert (
        0.0 < found["gap"] < 0.5 and found["passes"] == 14
    )  # what was under way is given up, and no pass is added
    assert found["left"] == [] and found["works"] == 3 and found["again"] == "optimal"


@pytest.mark.slow
def test_a_second_one_ends_the_solve_before_there_is_a_point():
    found = told(0, 2)
    assert found["status"] == "KeyboardInterrupt"
    assert found["left"] == [] and found["works"] == 3 and found["again"] == "optimal"
