"""Fixtures shared by all tests."""

from functools import cache

import pytest

from tests.models import MODELS


@cache
def _reference(name):
    solution = MODELS[name]().solve(solver="cvxpy", tol=1e-6)
    return solution.objective, solution.dual_bound


@pytest.fixture
def reference_optimum():
    """name of a mixed model -> (objective, certified bound) found by the cvxpy reference."""
    return _reference


def pytest_addoption(parser):
    parser.addoption(
        "--fuzz", type=int, default=150, help="random models to solve in tests/fuzz (nightly: 2000)"
    )
    parser.addoption(
        "--fuzz-files",
        type=int,
        default=300,
        help="problem files of strangers to read in tests/fuzz (nightly: 5000)",
    )
    parser.addoption(
        "--fuzz-bytes", type=int, default=200, help="damaged files to read in tests/fuzz (nightly: 2000)"
    )
    parser.addoption(
        "--kills", type=int, default=10, help="kills of each kind in tests/faults (nightly: 500)"
    )
