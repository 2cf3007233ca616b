"""A matrix-normal prior with a sparse precision beside the laws of structures, and the graphical lasso."""

import numpy as np
import pytest

from mtldsl.atoms.learned_structures.matrix_normal import SparseMatrixNormal
from mtldsl.atoms.prox.graphical_lasso import graphical_lasso
from mtldsl.reference.structures import block_bound
from tests.loops import for_each
from tests.registry_cases import WEIGHTS_SHAPE, dense, matrix, near, weights

EXAMPLES = [pytest.param(atom, id=f"{k}") for k, atom in enumerate(SparseMatrixNormal.examples())]
every_example = for_each("atom", EXAMPLES)
every_situation = for_each("situation", list(weights(EXAMPLES[0].values[0])))


def which(atom) -> int:
    return 0 if atom.l1[0] > 0 else 1


@every_example
@every_situation
def test_update_is_the_minimiser_by_the_reference_bound(atom, situation):
    """To 1e-9, or to what rounding leaves of the inverse of a matrix that is near to singular."""
    W = weights(atom)[situation]
    matrices, value, k = atom.update(W), atom.value(W), which(atom)
    rel = max(1e-9, 1e-12 * np.linalg.cond(matrices[k].dense()))
    assert rel < 1e-6
    assert block_bound(atom, k, W, dense(matrices)) == near(value, rel=rel)
    least = atom.least_over(k, W, matrices)
    assert least <= value and least == near(value, rel=rel)


@every_example
def test_conjugate_is_finite_at_zero_alone(atom):
    """The profile grows like a logarithm, so that no line of a positive slope stays below it."""
    Z, zero = matrix(atom, 3), np.zeros(WEIGHTS_SHAPE)
    assert atom.conjugate(zero) == pytest.approx(-atom.value(zero), rel=1e-12)
    assert all(atom.value(W) >= atom.value(zero) for W in weights(atom).values())
    assert atom.conjugate(Z) == np.inf and atom.dual_gauge(Z) == np.inf and atom.dual_gauge(zero) == 0.0
    assert not atom.dual_project(Z).any()
    reached = [np.vdot(Z, t * Z) - atom.value(t * Z) for t in (1.0, 10.0, 100.0)]
    assert reached[0] < reached[1] < reached[2]


def gap_by_hand(A, r, S) -> float:
    """Objective minus log|K| + n at K = A + clip(S^-1 - A, -r, r), from the definitions."""
    value = np.vdot(A, S) - np.linalg.slogdet(S)[1] + r * np.abs(S).sum()
    sign, bound = np.linalg.slogdet(A + np.clip(np.linalg.inv(S) - A, -r, r))
    assert sign > 0
    return value - bound - len(A)


@for_each("n, rank, scale, r", [
    (1, 1, 1.0, 0.3), (2, 4, 1.0, 0.1), (10, 20, 1.0, 0.01), (10, 20, 1e3, 0.1), (20, 11, 1.0, 0.1),
    (20, 11, 1.0, 0.01), (20, 1, 1.0, 0.5), (20, 1, 1.0, 0.1), (40, 80, 1.0, 0.1), (12, 3, 0.0, 0.2),
])  # fmt: skip
def test_graphical_lasso_to_rounding(n, rank, scale, r):
    """Where the seen covariance is singular too."""
    Z = np.random.default_rng(n + rank).normal(size=(rank, n))
    A = scale / rank * Z.T @ Z
    S, gap = graphical_lasso(A, r)
    size = 1 + n + abs(np.linalg.slogdet(S)[1])
    np.testing.assert_array_equal(S, S.T)
    assert 0 <= gap <= 1e-10 * size and abs(gap_by_hand(A, r, S) - gap) <= 1e-10 * size


def test_graphical_lasso_near_to_singular_by_the_central_path():
    """Descent alone needs thousands of steps where S spans five orders of magnitude; the gap says what is left."""
    Z = np.random.default_rng(5).normal(size=(6, 10))
    A = 100.0 / 6.0 * Z.T @ Z
    S, gap = graphical_lasso(A, 0.01)
    assert np.linalg.cond(S) > 1e3 and gap <= 1e-7
    assert gap_by_hand(A, 0.01, S) <= 1e-7
