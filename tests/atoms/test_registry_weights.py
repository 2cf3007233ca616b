"""The laws of structures that learn weights of given kernels, over every example of every registered one.

As in test_registry.py, the two sides of a law never come from the same place. They also obey the laws of regularizers in
mtldsl/testing: prox, conjugate, shapes.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import sparse

from mtldsl.atoms.structures import Ball
from mtldsl.reference.kernel_parts import violation
from mtldsl.reference.kernels import least
from mtldsl.reference.structures import block_bound, objective
from tests.loops import for_each
from tests.registry_cases import KERNEL_NORMS, SHAPE, function_value, inside_domain, matrix, random, weights

every_norm = for_each("atom", KERNEL_NORMS)
every_situation = for_each("situation", list(weights(KERNEL_NORMS[0].values[0])))
#: of which every W is a sum of parts, whatever theta > 0 is
learning = for_each("atom", [case for case in KERNEL_NORMS if case.values[0].weights_ball is not None])


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


# ---------------------------------------------------------------------------------------------- value and update


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


@pytest.mark.slow
@every_norm
@every_situation
def test_no_other_weights_are_better(atom, situation):
    """Random ones that the model allows, those near the update, and the reference's."""
    (W, known), rng = with_least(atom, situation), random(atom, 1)
    (theta,), value = atom.update(W), atom.value(W)
    others = [feasible(atom, rng) for _ in range(10)] + [known.theta]
    if atom.weights_ball is not None:
        for size in (1e-1, 1e-2, 1e-3, 1e-4):
            moved = np.maximum(theta, 1e-12) * np.exp(size * rng.normal(size=theta.shape))
            others.append(atom.weights_ball.radius * moved / np.linalg.norm(moved, atom.weights_ball.p))
    for other in others:
        assert violation(other, atom) <= 1e-12
        assert objective(atom, W, [other]) >= value * (1 - 1e-11)


@every_norm
def test_value_with_weights_kept_is_the_reference_value(atom):
    for salt in range(10):
        rng = random(atom, salt)
        W = within_range(atom, 10.0 ** rng.uniform(-2, 2) * rng.normal(size=SHAPE))
        theta = feasible(atom, rng)
        assert atom.value_at(W, (theta,)) == near(objective(atom, W, [theta]), rel=1e-10)


@every_norm
def test_start_is_allowed(atom):
    (theta,) = atom.start(SHAPE)
    assert violation(theta, atom) <= 1e-12 and theta.min() > 0


@every_norm
def test_names_tell_the_kernels_apart(atom):
    assert len(set(atom.names)) == len(atom.names) == len(atom.kernels) == len(atom.start(SHAPE)[0])


# ----------------------------------------------------------------------------------------------------- convexity


@pytest.mark.slow
@every_norm
def test_convex_in_weights_and_theta_together(atom):
    """On 20 random segments, by the reference's value."""
    for salt in range(20):
        rng = random(atom, 400 + salt)
        ends = []
        for _ in range(2):
            W = within_range(atom, 10.0 ** rng.uniform(-1, 1) * rng.normal(size=SHAPE))
            ends.append((W, feasible(atom, rng)))
        middle = [(a + b) / 2 for a, b in zip(*ends, strict=True)]
        values = [objective(atom, W, [theta]) for W, theta in ends]
        assert atom.value_at(middle[0], (middle[1],)) <= sum(values) / 2 + 1e-10 * sum(values)


@pytest.mark.slow
@every_norm
def test_half_a_squared_norm(atom):
    """It is of degree two, and its root obeys the triangle inequality."""
    root = lambda W: np.sqrt(2.0 * atom.value(W))  # noqa: E731
    for salt in range(3):
        V, W = (within_range(atom, matrix(atom, 50 + salt + k, 3.0)) for k in (0, 20))
        assert atom.value(-3.0 * V) == near(9.0 * function_value(atom, V))
        assert root(V + W) <= (root(V) + root(W)) * (1 + 1e-12)


# ------------------------------------------------------------------------------------------------------- duality


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


# ---------------------------------------------------------------------------------------- symmetries and scaling


@pytest.mark.slow
@every_norm
def test_permuting_tasks_and_rows_with_kernels_and_views(atom):
    """Permuting tasks with their kernels and rows with their views."""
    rng, W = random(atom, 70), within_range(atom, matrix(atom, 70))
    tasks, rows = rng.permutation(SHAPE[1]), rng.permutation(SHAPE[0])
    back = np.argsort(rows)
    moved = replace(
        atom,
        kernels=tuple(
            replace(
                kernel,
                factor=sparse.csr_array(kernel.factor.toarray()[tasks]),
                columns=None if kernel.columns is None else np.sort(back[kernel.columns]),
            )
            for kernel in atom.kernels
        ),
    )
    permuted = W[rows][:, tasks]
    assert moved.value(permuted) == near(atom.value(W))
    assert moved.conjugate(permuted) == near(atom.conjugate(W))
    np.testing.assert_allclose(moved.prox(permuted, 0.7), atom.prox(W, 0.7)[rows][:, tasks], atol=1e-7)


@every_norm
def test_features_with_the_same_kernels_may_be_turned(atom):
    if any(kernel.columns is not None for kernel in atom.kernels):
        return
    W = within_range(atom, matrix(atom, 71))
    Q = np.linalg.qr(random(atom, 71).normal(size=(SHAPE[0],) * 2))[0]
    assert atom.value(Q @ W) == near(atom.value(W))
    np.testing.assert_allclose(atom.prox(Q @ W, 0.7), Q @ atom.prox(W, 0.7), atol=1e-7)


@every_norm
@for_each("c", [1e-3, 7.0])
def test_larger_kernels_cost_less(atom, c):
    """R_m -> c R_m for all m divides the penalty by c and multiplies the conjugate by it."""
    W = within_range(atom, matrix(atom, 72))
    scaled = replace(
        atom, kernels=tuple(replace(kernel, factor=np.sqrt(c) * kernel.factor) for kernel in atom.kernels)
    )
    assert scaled.value(W) == near(atom.value(W) / c)
    assert scaled.conjugate(W) == near(c * atom.conjugate(W))


@learning
@for_each("radius", [0.1, 5.0])
def test_a_larger_ball_costs_less(atom, radius):
    """||theta||_p <= r divides the penalty by r."""
    W, p = within_range(atom, matrix(atom, 73)), atom.weights_ball.p
    one, other = (replace(atom, about=Ball(p, r)) for r in (1.0, radius))
    assert other.value(W) == near(one.value(W) / radius)
    assert least(W, other).value == near(one.value(W) / radius)
    assert other.conjugate(W) == near(radius * one.conjugate(W))
    np.testing.assert_allclose(other.update(W)[0], radius * one.update(W)[0], atol=1e-6 * radius)


@pytest.mark.slow
@learning
def test_larger_p_costs_less(atom):
    """The balls of larger p contain those of smaller p."""
    W = within_range(atom, matrix(atom, 74))
    values = [replace(atom, p=p, about=None).value(W) for p in (1.0, 1.3, 2.0, 4.0, 50.0, np.inf)]
    assert values == sorted(values, reverse=True) and values[-2] == pytest.approx(values[-1], rel=0.1)


@every_norm
def test_no_bound_on_theta_but_one(atom):
    """p = inf is theta = radius, and weights given are a ball of one point."""
    W = within_range(atom, matrix(atom, 75))
    free = replace(atom, about=Ball(np.inf, 0.4))
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


@every_norm
def test_prox_stays_in_the_range_of_the_kernels(atom):
    P = atom.prox(matrix(atom, 77), 0.7)
    assert np.isfinite(atom.value(P)) and np.isfinite(function_value(atom, P))
    np.testing.assert_allclose(inside_domain(atom, P), P)


def _times(atom, Z, theta) -> np.ndarray:
    """Z K_theta."""
    W = np.zeros(np.shape(Z))
    for kernel, weight in zip(atom.kernels, theta, strict=True):
        W[_rows(kernel)] += weight * Z[_rows(kernel)] @ kernel.matrix
    return W
