"""Ten kills of each kind here; `--kills 500` for more, and `python -m tests.faults.kills FOLDER COUNT SEED` for others."""

import os
import subprocess
import sys

import pytest


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path, request):
    n = request.config.getoption("--kills")
    command = [sys.executable, "-m", "tests.faults.kills", str(tmp_path), str(n), "0"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60 + 10 * n)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("killed at work") == 4
    print(ran.stdout)
