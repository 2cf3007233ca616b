"""Ten kills of each kind here; `MTLDSL_KILLS=500 python -m pytest tests/faults/test_kills.py` for more, `MTLDSL_SEED` for others."""

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path):
    n, seed = os.environ.get("MTLDSL_KILLS", "10"), os.environ.get("MTLDSL_SEED", "0")
    command = [sys.executable, "-m", "tests.faults.kills", str(tmp_path), n, seed]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60 + 10 * int(n))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("killed at work") == 4
    print(ran.stdout)
