"""The max norm beside bounds that hold of every matrix, and models with it: solved by the reference, proven by our own formulas."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers.max_norm import MaxNorm
from mtldsl.definitions.formula import DEFINITIONS

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (7, 3), (12, 9)])
def test_bounds_that_are_known(shape):
    """max |W| <= value <= sqrt(rank) max |W| and <= the longest row; trace norm / sqrt(p q) <= value."""
    for W in (RNG.normal(size=shape), np.sign(RNG.normal(size=shape))):
        value, entry = MaxNorm().value(W), np.abs(W).max()
        assert entry * (1 - 1e-9) <= value <= np.sqrt(np.linalg.matrix_rank(W)) * entry * (1 + 1e-7)
        assert value <= min(np.linalg.norm(W, axis=k).max() for k in (0, 1)) * (1 + 1e-7)
        assert np.linalg.norm(W, "nuc") / np.sqrt(W.size) <= value * (1 + 1e-9)


@pytest.mark.by_default("shape1")
@pytest.mark.parametrize("shape", [(60, 5), (4, 40)])
def test_the_value_of_a_long_matrix_lies_between_its_bounds(shape):
    """Factors of W bound it from above, the trace norm of W with scaled rows and columns from below; of 60 x 5 it was .4 % too large."""
    W = np.random.default_rng(1).normal(size=shape)
    low, high = DEFINITIONS["max_norm"].function(W, None)
    assert low * (1 - 1e-12) <= MaxNorm().value(W) <= high * (1 + 1e-7) and high - low <= 1e-4 * high


def test_value_and_dual_norm_bound_each_other_and_meet():
    """<Z, W> <= value(W) dual_norm(Z); equality for a Hadamard matrix against itself."""
    for _ in range(20):
        W, Z = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4))
        assert np.vdot(W, Z) <= MaxNorm().value(W) * MaxNorm().dual_norm(Z)
    H = np.kron([[1.0, 1.0], [1.0, -1.0]], [[1.0, 1.0], [1.0, -1.0]])
    assert MaxNorm().value(H) * MaxNorm().dual_norm(H) == pytest.approx(np.vdot(H, H), rel=1e-8)
    assert MaxNorm().value(np.zeros((3, 2))) == MaxNorm().dual_norm(np.zeros((3, 2))) == 0.0


@pytest.mark.slow
def test_a_model_with_it_is_solved_by_the_reference_and_proven():
    X = RNG.normal(size=(30, 6))
    tasks = mtl.Tasks.shared(X, X @ RNG.normal(size=(6, 4)))
    W, lam = mtl.Weights(tasks), mtl.Parameter(20.0)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + lam * mtl.max_norm(W))
    solution = problem.solve(tol=1e-8)
    assert solution.solver == "cvxpy" and solution.status == "optimal"
    lam.value = 1.001 * problem.lambda_max(lam)
    assert np.abs(problem.solve().W).max() <= 1e-6
    lam.value = 0.99 * lam.value
    assert np.abs(problem.solve().W).max() > 1e-3
