"""Threads over tasks: whose error is raised, and who is told to stop. Their bits, time limits and signals: tests/solvers/test_n_jobs.py."""

import time

import pytest

from mtldsl.system.jobs import in_jobs, jobs


def test_the_first_error_in_the_items_order_ends_all():
    ended = []

    def fail_or_wait(item, expired):
        if item == 0:
            time.sleep(0.05)
            raise ValueError("the first")
        if item == 1:
            raise ValueError("the second")
        while not expired():
            time.sleep(0.005)
        ended.append(item)

    with jobs(3), pytest.raises(ValueError, match="the first"):
        in_jobs(fail_or_wait, range(3))
    assert ended == [2]
