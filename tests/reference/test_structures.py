"""The reference's side of learned structures: what they refuse, blocks as semidefinite programs, their bounds,
and problems whose optima were established elsewhere."""

import cvxpy as cp
import numpy as np
import pytest

import mtldsl.reference.compile  # noqa: F401  (enters the formulas)
from mtldsl.atoms.learned_structures.covariance_norms import FeatureCovarianceNorm, TaskCovarianceNorm
from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal
from mtldsl.atoms.learned_structures.structure import Range
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.errors import ModelError
from mtldsl.reference.registry import (
    STRUCTURES,
    formula,
    formula_of,
    spectrum,
    spectrum_of,
    structure,
    structure_of,
)
from mtldsl.reference.structures import block_bound, block_optimum, objective, range_constraints
from tests.known_optima import fixture
from tests.loops import for_each

W = np.array([[3.0, 0.0], [-4.0, 0.0]])  # W W^T = [[9, -12], [-12, 16]], singular values 5 and 0
A, B = np.diag([2.0, 0.5]), np.array([[2.0, 1.0], [1.0, 3.0]])  # log|A| = 0, log|B| = log 5
NORMAL = MatrixNormal(eta=0.5, rho=2.0).bound([Range(0.1, 10.0), Range(0.1, 10.0)])
FEATURES = FeatureCovarianceNorm().bound([Range(trace=2.5)])
TASKS = TaskCovarianceNorm().bound([Range(trace=2.5)])


def test_two_unknowns_of_matrix_normal_are_refused():
    V, S, T = cp.Variable((2, 2)), cp.Variable((2, 2), symmetric=True), cp.Variable((2, 2), symmetric=True)
    for arguments, unknown in (
        ((V, (S, B)), "W and Sigma1"),
        ((V, (A, T)), "W and Sigma2"),
        ((W, (S, T)), "Sigma1 and Sigma2"),
    ):
        with pytest.raises(ModelError, match=f"not convex in {unknown} together"):
            STRUCTURES["matrix_normal"](*arguments, NORMAL)
    for atom in (FEATURES, TASKS):
        assert STRUCTURES[atom.name](V, (S,), atom).is_dcp()


def test_weights_outside_a_singular_covariance_cost_infinity():
    inside, outside = np.array([[2.0, 1.0], [0.0, 0.0]]), np.array([[2.0, 1.0], [0.0, 1e-3]])
    assert objective(FEATURES, inside, [np.diag([2.0, 0.0])]) == pytest.approx(2.5)
    assert objective(FEATURES, outside, [np.diag([2.0, 0.0])]) == np.inf
    V = cp.Variable((2, 2))
    stated = STRUCTURES["feature_covariance_norm"](V, (np.diag([2.0, 0.0]),), FEATURES)
    problem = cp.Problem(cp.Minimize(stated + cp.sum_squares(V - outside)))
    problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(V.value, [[4 / 3, 2 / 3], [0, 0]], atol=1e-7)  # v / 2 + (v - w) = 0


def violation(S, atom, k) -> float:
    constraints = range_constraints(cp.Variable((len(S), len(S)), symmetric=True, value=S), atom, k)
    assert all(constraint.is_dcp() for constraint in constraints)
    return max(float(np.max(constraint.violation())) for constraint in constraints)


def test_constraints_are_the_bounds_of_the_model():
    assert violation(B, NORMAL, 0) == 0.0  # eigenvalues 1.38 and 3.62
    assert violation(12.0 * np.eye(2), NORMAL, 1) == pytest.approx(2.0)
    assert violation(np.diag([1.0, 0.04]), NORMAL, 1) == pytest.approx(0.06)
    assert violation(A, FEATURES, 0) == 0.0  # trace 2.5
    assert violation(B, FEATURES, 0) == pytest.approx(2.5)
    assert violation(np.diag([1.0, -0.5]), TASKS, 0) == pytest.approx(0.5)
    point = MatrixNormal().bound([Range(3.0, 3.0), Range(0.1, 1.0)])
    assert violation(3.0 * np.eye(2), point, 0) == 0.0 and violation(2.0 * np.eye(2), point, 0) == 1.0


def test_a_given_matrix_has_no_block():
    given = MatrixNormal().bound([Range(0.1, 10.0), SpectralMatrix.of(B)])
    for ask in (block_optimum, block_bound):
        with pytest.raises(ModelError, match="matrix_normal: matrix 1 is given, not learned"):
            ask(given, 1, W, [A, B])


def positive(rng, n, low, high):
    """A random symmetric matrix with eigenvalues between low and high, evenly in their logarithm."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return (Q * np.exp(rng.uniform(np.log(low), np.log(high), n))) @ Q.T


def blocks(d, m, salt):
    """(atom, W, matrices, k) of every kind of block, eigenvalues at both bounds and in between."""
    rng = np.random.default_rng([d, m, salt])
    V = rng.normal(size=(d, m)) * 10.0 ** rng.uniform(-1, 1)
    normal = MatrixNormal(eta=0.7, rho=1.3).bound([Range(0.05, 20.0), Range(0.3, 4.0)])
    pair = [positive(rng, d, 0.05, 20.0), positive(rng, m, 0.3, 4.0)]
    yield from ((normal, V, pair, k) for k in (0, 1))
    yield FEATURES, V, [pair[0] * 2.5 / np.trace(pair[0])], 0
    yield TASKS, V, [pair[1] * 2.5 / np.trace(pair[1])], 0


def replaced(matrices, k, S):
    return [S if j == k else other for j, other in enumerate(matrices)]


@pytest.mark.slow
@for_each("d, m, salt", [(4, 3, 0), (3, 4, 1), (1, 3, 2), (3, 1, 3)])
def test_block_optimum_and_bound_enclose_the_minimum(d, m, salt):
    """The bound, from any matrix, is below what any feasible matrix costs, and so is the optimum but for 1e-8, which is what
    the backend is asked for at worst.
    """
    rng = np.random.default_rng(salt)
    for atom, V, matrices, k in blocks(d, m, salt):
        found = block_optimum(atom, k, V, matrices)
        assert (
            found.status.startswith("optimal")
            and violation(found.matrix, atom, k) <= 1e-12 * np.abs(found.matrix).max()
        )
        assert found.value == objective(atom, V, replaced(matrices, k, found.matrix))
        size = 1 + abs(found.value)
        assert block_bound(atom, k, V, replaced(matrices, k, found.matrix)) <= found.value + 1e-12 * size
        for _ in range(5):
            S = positive(rng, len(matrices[k]), 0.3, 4.0)
            if np.isfinite(getattr(atom, "covariance", Range()).trace):
                S *= 2.5 / np.trace(S)
            assert found.value <= objective(atom, V, replaced(matrices, k, S)) + 1e-8 * size
            assert block_bound(atom, k, V, replaced(matrices, k, S)) <= found.value + 1e-12 * size
            assert block_bound(atom, k, V, replaced(matrices, k, 50.0 * S)) <= found.value + 1e-12 * size


@for_each("name", ["fetr_shared_5x3", "fetr_pertask_3x5"])
def test_the_sdp_of_a_known_step(name):
    """Sigma1 given w_step.W and S2: the optimum there is eta tr(S1 W S2 W^T) - rho m log|S1|, without loss and log|S2|."""
    given = fixture(name)
    W, S1, S2 = (np.array(x) for x in (given["w_step"]["W"], given["S1"], given["S2"]))
    box = Range(given["l"], given["u"])
    atom = MatrixNormal(given["eta"], given["rho"]).bound([box, box])
    found = block_optimum(atom, 0, W, [S1, S2])
    of_the_other = -given["rho"] * given["d"] * np.linalg.slogdet(S2)[1]
    step = given["S1_step"]
    assert found.value - of_the_other == pytest.approx(step["optimum"], rel=1e-7)
    bound = block_bound(atom, 0, W, [np.array(step["S1"]), S2])
    assert bound - of_the_other == pytest.approx(step["optimum"], rel=1e-9)


@for_each(
    "again, what",
    [
        (formula("ridge"), "formulas are called 'ridge'"),
        (structure("matrix_normal", bound=block_bound), "structures are called 'matrix_normal'"),
        (spectrum("rank", slope=None), "penalties of the spectrum are called 'rank'"),
    ],
)
def test_a_word_has_one_formula(again, what):
    with pytest.raises(ValueError, match=f"two reference {what}"):
        again(lambda W, *given: W)


@for_each(
    "look_up, what",
    [
        (formula_of, "has no formula for"),
        (structure_of, "has no learned structure"),
        (spectrum_of, "has no penalty of the spectrum"),
    ],
)
def test_a_word_without_a_formula_is_refused_as_typed(look_up, what):
    with pytest.raises(ModelError, match=rf"2 \* prior\(W\): the reference {what} 'prior'"):
        look_up("prior", "2 * prior(W)")
