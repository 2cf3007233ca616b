"""Threads over tasks: the items' order, whose error is raised, and who is told to stop."""

import time

import pytest

from mtldsl.utils.parallel import in_jobs, jobs
from tests.loops import for_each


def test_what_comes_back_is_in_the_order_of_the_items():
    def late_first(item, expired):
        time.sleep(0.02 * (3 - item))
        return item

    with jobs(3):
        assert in_jobs(late_first, range(3)) == [0, 1, 2]


@for_each("n", [None, 1, 2])
def test_the_time_is_up_for_all(n):
    with jobs(n):
        assert in_jobs(lambda item, expired: expired(), range(3), lambda: True) == [True] * 3


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
