"""What all tests share: one BLAS thread, two processes, the cases that run by default, and fixtures."""

import os
import signal
from functools import cache

import pytest
from threadpoolctl import threadpool_limits

from mtldsl.system.stops import TimeIsUp
from tests.models import MODELS
from tests.selection import mark_combinations

#: all tests that were collected, those too that this run leaves out
COLLECTED = pytest.StashKey()


@cache
def _reference(name):
    solution = MODELS[name]().solve(solver="cvxpy", tol=1e-6)
    return solution.objective, solution.dual_bound


@pytest.fixture
def reference_optimum():
    """name of a mixed model -> (objective, certified bound) found by the cvxpy reference."""
    return _reference


def pytest_configure(config):
    threadpool_limits(1, user_api="blas")  # where a plugin has imported numpy already
    if (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    ):  # a shell's background jobs: tests that send it would wait for ever
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    """An alarm that leaves a test fails this test; as the KeyboardInterrupt that it is, it would end the whole run."""
    try:
        return (yield)
    except TimeIsUp as error:
        raise AssertionError("the alarm of a time limit left the test") from error


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Processes of `-n auto`: two, which is what the time in the README is measured with; none where somebody names the tests to run, who
    wants to see them at once, and may want a debugger.
    """
    named = config.args_source is config.ArgsSource.ARGS
    return 0 if named or config.option.usepdb else min(2, os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)  # before the cases that are marked are left out
def pytest_collection_modifyitems(config, items):
    mark_combinations(items)
    config.stash[COLLECTED] = list(items)


def pytest_addoption(parser):
    parser.addoption(
        "--fuzz",
        type=int,
        default=30,
        help="random models to solve in tests/fuzz (.ci/run: 150, nightly: 2000)",
    )
    parser.addoption(
        "--fuzz-files",
        type=int,
        default=60,
        help="problem files of strangers to read in tests/fuzz (.ci/run: 300, nightly: 5000)",
    )
    parser.addoption(
        "--fuzz-bytes",
        type=int,
        default=40,
        help="damaged files to read in tests/fuzz (.ci/run: 200, nightly: 2000)",
    )
    parser.addoption(
        "--kills", type=int, default=2, help="kills of each kind in tests/faults (.ci/run: 10, nightly: 500)"
    )
