"""Memory between two small arrays stays with the process inside, and is given back as before outside."""

import os
import platform
import subprocess
import sys

import pytest

from mtldsl.system.allocator import freed_memory_is_kept

SCRIPT = """
import resource
import numpy as np
from contextlib import nullcontext
from mtldsl.system.allocator import freed_memory_is_kept

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    before, x = faults(), np.ones(10_000)
    for _ in range(200):
        y = (x + 1.0) * (x - 1.0) + np.abs(x) * (x + 2.0)
    return faults() - before

work()
outside = work()
with freed_memory_is_kept():
    work()
    inside = work()
print(outside, inside, work())
"""


@pytest.mark.process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_pages_are_asked_for_once():
    env = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True)
    outside, inside, after = map(int, done.stdout.split())
    assert inside < 0.1 * outside and after > 0.5 * outside


def test_nothing_is_changed_where_nothing_is_set(monkeypatch):
    for value in (None, "not a number", str(1 << 30)):
        monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
        if value is not None:
            monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", value)
        with freed_memory_is_kept(), freed_memory_is_kept():
            pass
