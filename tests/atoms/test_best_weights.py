"""The closed form of kernel weights (MT-MKL, equation E.1), the interior point method where it is hard, and what their penalty refuses."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mtldsl.atoms.learned_structures.mkl_norm import MKLNorm
from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall, TaskKernel
from mtldsl.reference.kernels import least
from tests.loops import for_each

# Tolerances without a word beside them: 1e-12 is the rounding of sums and inverses; 1e-9 and 1e-10 are what is asked of the gap;
# larger ones are what cvxpy's backend leaves at its own setting.

POWERS = (1.0, 1.2, 1.5, 2.0, 3.0, 20.0)


def kernel(factor, name="kernel", columns=None) -> TaskKernel:
    factor = np.asarray(factor, float)
    return TaskKernel(name, sparse.csr_array(factor if factor.ndim == 2 else factor[:, None]), columns)


def tree(n_tasks: int) -> tuple[TaskKernel, ...]:
    own = [kernel(row, f"task{t}") for t, row in enumerate(np.eye(n_tasks))]
    return (kernel(np.ones(n_tasks), "union"), *own)


def assert_least(atom, W, rel=1e-11):
    assert atom.value(W) == pytest.approx(least(W, atom).value, rel=rel)


@for_each("p", POWERS)
def test_closed_form_as_printed(p):
    """theta_m = a_m^{1/(p+1)} / (sum_k a_k^{p/(p+1)})^{1/p}."""
    a = np.array([0.3, 2.0, 0.0, 11.0])
    expected = a ** (1 / (p + 1)) / np.sum(a ** (p / (p + 1))) ** (1 / p)
    for factor in (1.0, 1e-300, 1e300):
        np.testing.assert_allclose(KernelWeightBall(p).update(factor * a), expected, rtol=1e-13)


def test_nothing_to_weigh_leaves_the_largest_equal_weights():
    np.testing.assert_allclose(KernelWeightBall(2.0, 3.0).update(np.zeros(9)), np.full(9, 1.0))
    np.testing.assert_array_equal(KernelWeightBall(np.inf, 0.5).update(np.array([1.0, 2.0])), [0.5, 0.5])


@pytest.mark.slow
@for_each(
    "p, noise",
    [(1.0, 10.0**-k) for k in (0, 3, 6, 9, 12)] + [(1.0, 0.0), (1.05, 1e-9), (2.0, 1e-12), (10.0, 0.0)],
)
def test_weights_that_all_but_vanish(p, noise):
    """Equal tasks but for noise: with p = 1 the weights of single tasks are of its size, and W^T W has lost it below 1e-8."""
    rng = np.random.default_rng(3)
    W = np.repeat(rng.normal(size=(6, 1)), 5, axis=1) + noise * rng.normal(size=(6, 5))
    assert_least(MKLNorm(tree(5), p), W)


@pytest.mark.slow
@for_each("p, size", [(1.0, 1e-8), (1.5, 1.0), (3.0, 1e8), (1.0, 1e8), (3.0, 1e-8)])
def test_kernels_of_very_different_size(p, size):
    rng = np.random.default_rng(4)
    atom = MKLNorm((kernel(np.sqrt(size) * np.eye(4)), kernel(rng.normal(size=(4, 4)), "other")), p)
    assert_least(atom, rng.normal(size=(3, 4)))


def test_a_kernel_twice_is_the_kernel_once():
    """With p = 1: theta of both together is what counts."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(3, 4))
    once, twice = tree(4), (*tree(4), kernel(np.ones(4), "again"))
    assert MKLNorm(twice, 1.0).value(W) == pytest.approx(MKLNorm(once, 1.0).value(W), rel=1e-12)
    theta = MKLNorm(twice, 1.0).update(W)[0]
    assert theta[0] + theta[-1] == pytest.approx(MKLNorm(once, 1.0).update(W)[0][0], rel=1e-5)


def test_a_support_near_p_1_keeps_to_the_range_of_floats():
    """b to the power of 1,001 overflows, and b small to it vanishes: the maximum over the ball is between ||b||_inf and ||b||_1."""
    for size in (1e-6, 1.0, 1e6):
        b = size * np.array([1.0, 3.0, 2.0])
        support = KernelWeightBall(1.001).support(b)
        assert b.max() <= support <= 1.001 * b.max()
    assert KernelWeightBall(1.5).support(np.zeros(3)) == 0.0


def test_tasks_without_a_node_of_their_own_need_the_matrix():
    """Then the combination may be singular, and a part of W outside of its range costs everything."""
    T = 60
    pairs = MKLNorm(tuple(kernel(np.arange(T) // 2 == k, f"pair{k}") for k in range(T // 2)))
    W = np.random.default_rng(0).normal(size=(3, T))
    assert pairs.value(W) == np.inf
    assert np.isfinite(pairs.value(W[:, np.arange(T) // 2]))


def test_weights_that_are_kept_are_those_of_the_same_numbers():
    """A matrix that a solver writes into is another matrix, and what is returned is not what is kept."""
    W = np.random.default_rng(8).normal(size=(3, 6))
    atom, fresh = MKLNorm(tree(6)), MKLNorm(tree(6))
    first = atom.value(W)
    atom.update(W)[0][:] = 0.0
    assert atom.value(W) == first
    W[0, 0] += 1.0
    assert atom.value(W) == fresh.value(W) != first


T, D = 4, 5
UNIT, UNION = np.eye(T), kernel(np.ones(T), "union")
W = np.random.default_rng(0).normal(size=(D, T))


@pytest.mark.slow
@for_each("outside", [1e-13, 1e-6])
def test_weights_outside_the_range_cost_infinity_but_rounding(outside):
    pairs = (kernel([1.0, 1, 0, 0], "left"), kernel([0, 0, 1.0, 1], "right"))
    inside = W[:, [0, 0, 1, 1]]
    leaves = inside + outside * W
    for atom in (MKLNorm(pairs, 2.0), MKLNorm(pairs, about=np.ones(2))):
        assert np.isfinite(atom.value(leaves)) == (outside < 1e-9)
        assert atom.value(inside) == pytest.approx(least(inside, atom).value, rel=1e-12)


def test_a_weight_of_zero_that_is_given_takes_its_kernel_away():
    atom = MKLNorm((UNION, kernel(UNIT)), about=np.array([0.0, 2.0]))
    assert atom.value(W) == pytest.approx(0.25 * np.sum(W**2), rel=1e-13)
    atom = MKLNorm((UNION, kernel(UNIT)), about=np.array([2.0, 0.0]))
    assert atom.value(W) == np.inf == least(W, atom).value
    assert atom.value(np.ones((D, T))) == pytest.approx(0.25 * D, rel=1e-13)


@pytest.mark.slow
def test_views_that_overlap():
    """A feature of two views has the kernels of both."""
    own = kernel(UNIT, "own", np.arange(2, D))
    overlap = (replace(UNION, columns=np.arange(4)), own, kernel(UNIT, "all"))
    for p in (1.0, 2.0):
        assert_least(MKLNorm(overlap, p), W)


AWAY, GAP = (replace(UNION, columns=np.array(rows)) for rows in ([1, 9], [0, 1, 3, 4]))


@for_each(
    "kernel, shape, said",
    [
        (UNION, (D, 3), "'union' is of 4 tasks, but the argument has 3 columns"),
        (AWAY, (D, T), "'union' is about features outside the 5 rows"),
        (GAP, (D, T), r"feature 2 is in no similarity.*without columns="),
    ],
)
def test_what_does_not_fit_is_said(kernel, shape, said):
    assert re.search(said, MKLNorm((kernel,)).check(shape))
