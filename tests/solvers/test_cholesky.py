"""Factors made block by block are LAPACK's, and a time limit is heard between two blocks."""

import numpy as np
import pytest
from scipy.linalg import lapack

from mtldsl.solvers.linear_algebra.cholesky import upper_factor
from mtldsl.system import stops


def matrix(n, rank=None):
    X = np.random.default_rng(n).normal(size=(rank or 2 * n, n))
    return X.T @ X


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 61])
def test_blocks_make_the_factor(n):
    H = matrix(n)
    expected = np.triu(lapack.dpotrf(H.T.copy(order="F"), lower=0)[0])
    factor, failed = upper_factor(H.copy(), whole=0, block=8)
    assert not failed and factor.flags.f_contiguous
    np.testing.assert_allclose(np.triu(factor), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    whole, failed = upper_factor(H.copy())
    assert not failed and np.array_equal(np.triu(whole), expected)


def test_what_is_not_positive_definite_is_said_to_break_off():
    H = matrix(40)
    H[30, 30] = -1.0
    assert upper_factor(H.copy(), whole=0, block=8)[1] == upper_factor(H.copy())[1] == 31


@pytest.mark.slow
def test_a_time_limit_is_heard_in_the_middle():
    """The call is left between two of its million products, not after the last."""
    H = matrix(1200)
    with pytest.raises(stops.TimeIsUp) as left, stops.heard(), stops.time_limit(0.001), stops.at_once():
        upper_factor(H, whole=0, block=1)
        pytest.fail("it was heard too late")
    assert "upper_factor" in [entry.name for entry in left.traceback]
