"""The laws of structures that learn weights of given kernels, over every example of every registered one.

As in test_registry.py, the two sides of a law never come from the same place. They also obey the laws of regularizers in
mtldsl/testing: prox, conjugate, shapes.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from mtldsl.atoms.learned_structures.task_kernels import KernelWeightBall
from mtldsl.reference.kernels import least, violation
from mtldsl.reference.structures import block_bound, objective
from tests.loops import for_each
from tests.registry_cases import KERNEL_NORMS, WEIGHTS_SHAPE, function_value, matrix, random, weights

every_norm = for_each("atom", KERNEL_NORMS)
every_situation = for_each("situation", list(weights(KERNEL_NORMS[0].values[0])))


def near(value, rel=1e-11):
    return pytest.approx(value, rel=rel, abs=1e-300)


def within_range(atom, W):
    """W, made a sum of parts by averaging within groups of tasks where the kernels want that."""
    total = sum(kernel.matrix for kernel in atom.kernels if kernel.columns is None)
    if np.ndim(total) < 2 or np.linalg.matrix_rank(total) == len(total):
        return W
    return W @ total @ np.linalg.pinv(total)


@cache
def with_least(atom, situation):
    """(W, the reference's least) of one of the weights of every law."""
    W = within_range(atom, weights(atom)[situation])
    return W, least(W, atom)


def feasible(atom, rng) -> np.ndarray:
    """Weights that the model allows, of all sizes; those that are given are given."""
    if isinstance(atom.about, np.ndarray):
        return atom.about
    p, radius = (atom.p, 1.0) if atom.about is None else (atom.about.p, atom.about.radius)
    theta = 10.0 ** rng.uniform(-3, 0, len(atom.kernels))
    return radius * theta / np.linalg.norm(theta, p)


@pytest.mark.slow
@every_norm
@every_situation
def test_value_is_that_at_the_update_and_of_the_reference(atom, situation):
    """value(W) == value_at(W, update(W)) == the reference's at these weights == the reference's least == Lagrange's bound."""
    W, known = with_least(atom, situation)
    matrices, value = atom.update(W), atom.value(W)
    assert violation(matrices[0], atom) <= 1e-12
    assert atom.value_at(W, matrices) == near(value)
    assert objective(atom, W, matrices) == near(value)
    assert known.value == near(value)
    assert block_bound(atom, 0, W, matrices) == near(value)


@every_norm
def test_value_with_weights_kept_is_the_reference_value(atom):
    for salt in range(10):
        rng = random(atom, salt)
        W = within_range(atom, 10.0 ** rng.uniform(-2, 2) * rng.normal(size=WEIGHTS_SHAPE))
        theta = feasible(atom, rng)
        assert atom.value_at(W, (theta,)) == near(objective(atom, W, [theta]), rel=1e-10)


@every_norm
def test_start_is_allowed_and_has_a_weight_of_every_kernel(atom):
    (theta,) = atom.start(WEIGHTS_SHAPE)
    assert violation(theta, atom) <= 1e-12 and theta.min() > 0
    assert len(set(atom.names)) == len(atom.names) == len(atom.kernels) == len(theta)


@pytest.mark.slow
@every_norm
def test_conjugate_is_attained_at_the_multipliers_weights(atom):
    """max over theta of 1/2 sum theta_m tr(Z R_m Z^T): at W = Z K_theta with the best theta Fenchel's inequality is an equality, and
    with no other theta of the ball is <Z, W> - g(W) larger than g*(Z).
    """
    for salt in range(2):
        Z = matrix(atom, 60 + salt)
        conjugate = atom.conjugate(Z)
        b = np.array([np.sum(Z[_rows(kernel)] @ kernel.matrix * Z[_rows(kernel)]) for kernel in atom.kernels])
        for other in range(2):
            theta = feasible(atom, random(atom, other))
            W = _times(atom, Z, theta)
            assert np.vdot(W, Z) == near(b @ theta)
            assert np.vdot(W, Z) - function_value(atom, W) <= conjugate * (1 + 1e-10)
        if atom.weights_ball is None:
            theta = atom.about
        elif np.isinf(atom.weights_ball.p):
            theta = np.full(b.shape, atom.weights_ball.radius)
        elif atom.weights_ball.p == 1.0:
            theta = atom.weights_ball.radius * (b == b.max())
        else:  # where Hoelder's inequality is an equality
            theta = b ** (1.0 / (atom.weights_ball.p - 1.0))
            theta *= atom.weights_ball.radius / np.sum(theta**atom.weights_ball.p) ** (
                1.0 / atom.weights_ball.p
            )
        assert conjugate == near(0.5 * b @ theta)
        W = _times(atom, Z, theta)
        assert function_value(atom, W) + conjugate == near(np.vdot(W, Z), rel=1e-9)


def _rows(kernel):
    return slice(None) if kernel.columns is None else kernel.columns


@every_norm
def test_no_bound_on_theta_but_one(atom):
    """p = inf is theta = radius, and weights given are a ball of one point."""
    W = within_range(atom, matrix(atom, 75))
    free = replace(atom, about=KernelWeightBall(np.inf, 0.4))
    given = replace(atom, about=np.full(len(atom.kernels), 0.4))
    assert free.value(W) == near(given.value(W)) and free.conjugate(W) == near(given.conjugate(W))
    np.testing.assert_allclose(free.prox(W, 0.7), given.prox(W, 0.7), rtol=1e-12, atol=1e-14)
    assert free.update(W)[0] == pytest.approx(given.update(W)[0])
    assert given.value(W) == near(given.value_at(W, (given.about,)))


@pytest.mark.slow
@every_norm
def test_kernels_may_be_factored_in_any_way(atom):
    """Sparse columns, a dense square root, more columns than tasks: the same function."""
    W, rng = within_range(atom, matrix(atom, 76)), random(atom, 76)
    for turned in (False, True):
        kernels = []
        for kernel in atom.kernels:
            values, V = np.linalg.eigh(kernel.matrix)
            factor = (V * np.sqrt(np.maximum(values, 0.0)))[:, values > 1e-12 * values[-1]]
            if turned:
                factor = factor @ np.linalg.qr(rng.normal(size=(7, factor.shape[1])))[0].T
            kernels.append(replace(kernel, factor=sparse.csr_array(factor)))
        other = replace(atom, kernels=tuple(kernels))
        assert other.value(W) == near(atom.value(W), rel=1e-9)
        assert other.conjugate(W) == near(atom.conjugate(W))
        np.testing.assert_allclose(other.prox(W, 0.7), atom.prox(W, 0.7), atol=1e-6)


def _times(atom, Z, theta) -> np.ndarray:
    """Z K_theta."""
    W = np.zeros(np.shape(Z))
    for kernel, weight in zip(atom.kernels, theta, strict=True):
        W[_rows(kernel)] += weight * Z[_rows(kernel)] @ kernel.matrix
    return W
