"""The closed form of kernel weights (MT-MKL, equation E.1) and the interior point method, where both are hard."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from mtldsl.atoms.structures import Ball, MKLNorm, TaskKernel
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


# ------------------------------------------------------------------------------------------------- equation E.1


@for_each("p", POWERS)
@for_each("radius", [1.0, 3.0])
def test_closed_form_is_the_minimum_that_cvxpy_finds(p, radius):
    """min of sum a_m / theta_m over theta >= 0, ||theta||_p <= radius; to 1e-8, more than Clarabel leaves of it at 1e-10."""
    rng = np.random.default_rng(int(10 * p))
    a = 10.0 ** rng.uniform(-3, 1, 6)
    theta, found = cp.Variable(6, nonneg=True), Ball(p, radius).update(a)
    ball = cp.sum(theta) <= radius if p == 1.0 else cp.pnorm(theta, p, approx=False) <= radius
    problem = cp.Problem(cp.Minimize(a @ cp.inv_pos(theta)), [ball])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert np.sum(a / found) == pytest.approx(problem.value, rel=1e-8)
    assert np.sum(found**p) ** (1 / p) == pytest.approx(radius, rel=1e-13)
    np.testing.assert_allclose(found, theta.value, atol=1e-4 * radius)


@for_each("p", POWERS)
def test_closed_form_as_printed(p):
    """theta_m = a_m^{1/(p+1)} / (sum_k a_k^{p/(p+1)})^{1/p}."""
    a = np.array([0.3, 2.0, 0.0, 11.0])
    expected = a ** (1 / (p + 1)) / np.sum(a ** (p / (p + 1))) ** (1 / p)
    np.testing.assert_allclose(Ball(p).update(a), expected, rtol=1e-13)


def test_sizes_beyond_the_range_of_powers():
    for factor in (1e-300, 1e300):
        np.testing.assert_allclose(
            Ball(1.0).update(factor * np.array([1.0, 4.0])), [1 / 3, 2 / 3], rtol=1e-12
        )


def test_nothing_to_weigh_leaves_the_largest_equal_weights():
    np.testing.assert_allclose(Ball(2.0, 3.0).update(np.zeros(9)), np.full(9, 1.0))
    np.testing.assert_array_equal(Ball(np.inf, 0.5).update(np.array([1.0, 2.0])), [0.5, 0.5])


@for_each("p", (*POWERS, np.inf))
def test_support_is_the_largest_product(p):
    rng = np.random.default_rng(1)
    b, ball = rng.uniform(size=5), Ball(p, 2.0)
    theta = cp.Variable(5)
    norm = (
        cp.norm_inf(theta)
        if np.isinf(p)
        else cp.norm1(theta)
        if p == 1.0
        else cp.pnorm(theta, p, approx=False)
    )
    problem = cp.Problem(cp.Maximize(b @ theta), [norm <= 2.0])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert ball.support(b) == pytest.approx(problem.value, rel=1e-7)
    for salt in range(20):
        point = np.random.default_rng(salt).uniform(size=5)
        point *= 2.0 / np.linalg.norm(point, p)
        assert point @ b <= ball.support(b) * (1 + 1e-12)


# ---------------------------------------------------------------------------------------- the interior point method


@for_each("p", (1.0, 1.05, 2.0, 10.0))
@for_each("noise", [1.0, 1e-3, 1e-6, 1e-9, 1e-12, 0.0])
def test_weights_that_all_but_vanish(p, noise):
    """Equal tasks but for noise: with p = 1 the weights of single tasks are of its size, and W^T W has lost it below 1e-8."""
    rng = np.random.default_rng(3)
    W = np.repeat(rng.normal(size=(6, 1)), 5, axis=1) + noise * rng.normal(size=(6, 5))
    atom = MKLNorm(tree(5), p)
    assert atom.value(W) == pytest.approx(least(W, atom).value, rel=1e-11)


@for_each("p", (1.0, 1.5, 3.0))
@for_each("size", [1e-8, 1.0, 1e8])
def test_kernels_of_very_different_size(p, size):
    rng = np.random.default_rng(4)
    atom = MKLNorm((kernel(np.sqrt(size) * np.eye(4)), kernel(rng.normal(size=(4, 4)), "other")), p)
    W = rng.normal(size=(3, 4))
    assert atom.value(W) == pytest.approx(least(W, atom).value, rel=1e-11)


def test_a_kernel_twice_is_the_kernel_once():
    """With p = 1: theta of both together is what counts."""
    rng = np.random.default_rng(5)
    W = rng.normal(size=(3, 4))
    once, twice = tree(4), (*tree(4), kernel(np.ones(4), "again"))
    assert MKLNorm(twice, 1.0).value(W) == pytest.approx(MKLNorm(once, 1.0).value(W), rel=1e-12)
    theta = MKLNorm(twice, 1.0).update(W)[0]
    assert theta[0] + theta[-1] == pytest.approx(MKLNorm(once, 1.0).update(W)[0][0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("p", (1.0, 2.0, 3.0))
def test_random_trees(p):
    """Nested random groups, tasks alike but for noise of any size."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        T, d = int(rng.integers(1, 9)), int(rng.integers(1, 7))
        groups = [
            kernel(group, f"group{k}") for k, group in enumerate(rng.random((3, T)) < 0.5) if group.any()
        ]
        W = rng.normal(size=(d, 1)) + 10.0 ** rng.uniform(-12, 1) * rng.normal(size=(d, T))
        atom = MKLNorm((*tree(T), *groups), p)
        # of W with noise of 1e-12 double precision holds four digits of the noise
        assert atom.value(W) == pytest.approx(least(W, atom).value, rel=1e-10)


def test_a_support_near_p_1_keeps_to_the_range_of_floats():
    """b to the power of 1,001 overflows, and b small to it vanishes: the maximum over the ball is between ||b||_inf and ||b||_1."""
    for size in (1e-6, 1.0, 1e6):
        b = size * np.array([1.0, 3.0, 2.0])
        support = Ball(1.001).support(b)
        assert b.max() <= support <= 1.001 * b.max()
    assert Ball(1.5).support(np.zeros(3)) == 0.0


# ------------------------------------------------------------------------- a diagonal and the few columns that tasks share


def test_tasks_without_a_node_of_their_own_need_the_matrix():
    """Then the combination may be singular, and a part of W outside of its range costs everything."""
    T = 60
    alone = MKLNorm((kernel(np.ones(T)), *(kernel(np.eye(T)[t], f"task{t}") for t in range(T - 1))))
    assert not alone.cells(3)[0].nodes.are_few
    pairs = MKLNorm(tuple(kernel(np.arange(T) // 2 == k, f"pair{k}") for k in range(T // 2)))
    W = np.random.default_rng(0).normal(size=(3, T))
    assert not pairs.cells(3)[0].nodes.covers and pairs.value(W) == np.inf
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
