"""The laws of learned structures, over every example of every registered one.

As in test_registry.py, the two sides of a law never come from the same place: minima over a matrix are cvxpy's, values with
matrices kept are the reference's, gradients are finite differences, suprema are searched for. The convex structures also obey the
laws of regularizers in mtldsl/testing.
"""

from dataclasses import fields
from itertools import cycle

import numpy as np
import pytest

from mtldsl.atoms.learned_structures.matrix_normal import MatrixNormal, SparseMatrixNormal
from mtldsl.atoms.learned_structures.structure import Range, Structure
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.reference.structures import block_bound, block_optimum, objective
from tests.loops import for_each
from tests.registry_cases import STRUCTURES, WEIGHTS_SHAPE, dense, matrix, near, orthogonal, random, weights


def described(atom: Structure) -> list:
    """What the model says of every matrix: a Range, or the matrix that is given."""
    return [getattr(atom, field.name) for field in fields(atom) if "matrix" in field.metadata]


def learned(atom) -> list[int]:
    return [k for k, what in enumerate(described(atom)) if isinstance(what, Range)]


def is_all_learned(atom) -> bool:
    return len(learned(atom)) == len(described(atom))


def side(atom, k: int, shape) -> int:
    return shape[0] if atom.learns[k].axis == "features" else shape[1]


#: with a penalty on the entries of the one that is learned; no word of its own
SPARSE = [pytest.param(atom, id=f"sparse-{k}") for k, atom in enumerate(SparseMatrixNormal.examples())]
ALL = STRUCTURES + SPARSE
every_structure = for_each("atom", ALL)
learns_all = for_each("atom", [case for case in ALL if is_all_learned(case.values[0])])
MATRIX_NORMALS = [case.values[0] for case in STRUCTURES if isinstance(case.values[0], MatrixNormal)]


SITUATIONS = list(weights(STRUCTURES[0].values[0]))
every_situation = for_each("situation", SITUATIONS)


def feasible(rng, what, n: int) -> SpectralMatrix:
    """A random matrix that the model allows, eigenvalues over the whole range; a given one is given."""
    if not isinstance(what, Range):
        return what
    if np.isfinite(what.trace):
        values = 10.0 ** rng.uniform(-3, 0, n)
        return SpectralMatrix(orthogonal(rng, n), what.trace * values / values.sum(), 0.0)
    low, high = what.lower or 1e-2, what.upper if np.isfinite(what.upper) else 1e2
    logs = rng.uniform(np.log(low), np.log(high), n)
    return SpectralMatrix(orthogonal(rng, n), np.clip(np.exp(logs), low, high), 0.0)


def random_matrices(atom, rng, shape=WEIGHTS_SHAPE) -> tuple[SpectralMatrix, ...]:
    return tuple(feasible(rng, what, side(atom, k, shape)) for k, what in enumerate(described(atom)))


def assert_allowed(atom, matrices):
    for what, S in zip(described(atom), matrices, strict=True):
        if not isinstance(what, Range):
            assert S is what
            continue
        values = np.linalg.eigvalsh(S.dense())
        rounding = 1e-13 * np.abs(values).max()
        assert values[0] >= what.lower - rounding and values[-1] <= what.upper + rounding
        assert values.sum() <= what.trace * (1 + 1e-12)


@every_structure
@every_situation
def test_profile_is_the_value_at_the_update(atom, situation):
    """value(W) == value_at(W, update(W)) == quadratic(...).value(W) == the reference's, matrices kept."""
    W = weights(atom)[situation]
    matrices, value = atom.update(W), atom.value(W)
    assert_allowed(atom, matrices)
    assert atom.value_at(W, matrices) == near(value)
    assert objective(atom, W, dense(matrices)) == near(value, rel=1e-9)
    if all(S.is_positive for S in matrices):  # the inverse of a singular covariance is not a quadratic form
        assert atom.quadratic(W.shape, matrices).value(W) == near(value)


@every_structure
def test_value_with_matrices_kept_is_the_reference_value(atom):
    for salt in range(10):
        rng = random(atom, salt)
        W, matrices = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=WEIGHTS_SHAPE), random_matrices(atom, rng)
        expected = objective(atom, W, dense(matrices))
        assert atom.value_at(W, matrices) == near(expected)
        quadratic = atom.quadratic(WEIGHTS_SHAPE, matrices)
        assert quadratic.value(W) == near(expected)
        D = rng.normal(size=WEIGHTS_SHAPE)
        values = [objective(atom, W + t * D, dense(matrices)) for t in (-1.0, 1.0)]
        slope = (values[1] - values[0]) / 2  # exact for a quadratic
        assert np.vdot(quadratic.product(W), D) == near(slope, np.abs(values).max(), rel=1e-12)


@pytest.mark.slow
@every_structure
@every_situation
def test_alternating_over_the_matrices_ends_at_the_update(atom, situation):
    """200 rounds of update_one, W kept, from random matrices: never up, never below the joint minimum, and there at last,
    since in logarithms of eigenvalues the problem is convex.
    """
    W, value = weights(atom)[situation], atom.value(weights(atom)[situation])
    matrices = random_matrices(atom, random(atom, 10))
    before = atom.value_at(W, matrices)
    for _ in range(200):
        for k in learned(atom):
            matrices = atom.update_one(k, W, matrices)
            now = atom.value_at(W, matrices)
            assert now <= before + 1e-11 * (1 + abs(before))
            before = now
    assert_allowed(atom, matrices)
    assert before == near(value, rel=1e-10)


@pytest.mark.slow
@for_each("atom", STRUCTURES)
@every_situation
def test_update_one_is_the_minimiser_of_its_block(atom, situation):
    """It costs as much as Lagrange proves that every matrix does, to 1e-9, and as much as cvxpy's optimum, to what Clarabel
    reaches in the units of the minimiser: 1e-7. (In the units of W it misses a covariance whose eigenvalues span five orders of
    magnitude by 1e-6 to 4, relatively, as the machine's BLAS rounds.)
    """
    W = weights(atom, 2)[situation]
    matrices = random_matrices(atom, random(atom, 3))
    for k in learned(atom):
        updated = atom.update_one(k, W, matrices)
        assert_allowed(atom, updated)
        assert all(updated[j] is matrices[j] for j in range(len(matrices)) if j != k)
        value = atom.value_at(W, updated)
        assert block_bound(atom, k, W, dense(updated)) == near(value, rel=1e-9)
        optimum = block_optimum(atom, k, W, dense(matrices))
        assert optimum.value == near(value, rel=1e-7)
        assert value <= optimum.value + 1e-11 * (1 + abs(value))


@every_structure
def test_start_is_allowed(atom):
    assert_allowed(atom, atom.start(WEIGHTS_SHAPE))
    assert [S.side for S in atom.start(WEIGHTS_SHAPE)] == [
        side(atom, k, WEIGHTS_SHAPE) for k in range(len(atom.learns))
    ]
    assert np.isfinite(objective(atom, matrix(atom, 5), dense(atom.start(WEIGHTS_SHAPE))))


@pytest.mark.slow
@every_structure
def test_gradient_is_that_of_the_profile(atom):
    """Finite differences; also quadratic(update).product(W), by which the matrices need no derivative."""
    checked = 0
    for salt in range(12):
        W = 10.0 ** random(atom, salt).uniform(-2, 1.5) * matrix(atom, 20 + salt)
        matrices = atom.update(W)
        if not all(S.is_positive for S in matrices):
            assert not atom.is_smooth
            continue
        checked += 1
        gradient = atom.gradient(W)
        np.testing.assert_allclose(
            gradient, atom.quadratic(WEIGHTS_SHAPE, matrices).product(W), rtol=1e-9, atol=1e-12
        )
        step, rng = 1e-5 * np.abs(W).max(), random(atom, 40 + salt)
        for _ in range(5):
            D = rng.normal(size=WEIGHTS_SHAPE)
            ends = atom.value(W + step * D), atom.value(W - step * D)
            noise = 1e-14 * (1 + abs(ends[0])) / step
            size = np.linalg.norm(gradient) * np.linalg.norm(D)
            assert np.vdot(gradient, D) == pytest.approx(
                (ends[0] - ends[1]) / (2 * step), abs=1e-5 * size + noise
            )
    assert checked == 12 or not atom.is_smooth


@pytest.mark.slow
@learns_all
@for_each("shape", [(1, 1), (1, 4), (5, 1), (4, 5), (3, 3)])
def test_other_shapes(atom, shape):
    """One task, one feature, wide, square."""
    assert atom.check(shape) is None
    for situation, W in weights(atom, 11, shape).items():
        matrices, value = atom.update(W), atom.value(W)
        assert_allowed(atom, matrices)
        assert [S.side for S in matrices] == [side(atom, k, shape) for k in range(len(matrices))], situation
        assert objective(atom, W, dense(matrices)) == near(value, rel=1e-9)
        if all(S.is_positive for S in matrices):
            assert atom.quadratic(shape, matrices).value(W) == near(value)
        for k in learned(atom):
            updated = atom.update_one(k, W, random_matrices(atom, random(atom, 12), shape))
            assert block_bound(atom, k, W, dense(updated)) == near(atom.value_at(W, updated), rel=1e-9)
        rng = random(atom, 13)
        for _ in range(10):
            other = objective(atom, W, dense(random_matrices(atom, rng, shape)))
            assert other >= value - 1e-11 * (1 + abs(value))


@every_structure
def test_takes_float32_and_leaves_its_arguments_alone(atom):
    W = matrix(atom, 15).astype(np.float32)
    before = W.copy()
    assert atom.value(W) == pytest.approx(atom.value(W.astype(float)), rel=1e-4, abs=1e-4)
    matrices = atom.update(W)
    kept = dense(matrices)
    for k in learned(atom):
        atom.update_one(k, W, matrices)
    atom.value_at(W, matrices), atom.quadratic(WEIGHTS_SHAPE, matrices), atom.conjugate(W.astype(float))
    np.testing.assert_array_equal(W, before)
    for S, then in zip(matrices, kept, strict=True):
        np.testing.assert_array_equal(S.dense(), then)


def searched(function, low, high, rounds=26):
    """The minimum over [low, high] of a convex function of an array, entry by entry, by sections in the golden ratio: the place to
    4e-6 of the interval, the value to 1e-10 of its curvature.
    """
    ratio = (np.sqrt(5) - 1) / 2
    low, high = np.asarray(low, float), np.asarray(high, float)
    best = np.minimum(function(low), function(high))
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    of_left, of_right = function(left), function(right)
    for _ in range(rounds):  # one of the two sections of the shorter interval is known
        less = of_left < of_right
        low, high = np.where(less, low, left), np.where(less, right, high)
        asked = np.where(less, high - ratio * (high - low), low + ratio * (high - low))
        value = function(asked)
        left, right = np.where(less, asked, right), np.where(less, left, asked)
        of_left, of_right = np.where(less, value, of_right), np.where(less, of_left, value)
    return np.minimum(best, np.minimum(of_left, of_right))


def pair_penalty(atom, boxes, d, m, s):
    """psi(s): the minimum over l1 <= a <= u1, l2 <= b <= u2 of eta a b s^2 - rho (m log a + d log b), by a search in log a that
    searches in log b: convex in both together.
    """
    (l1, u1), (l2, u2) = boxes
    ones = np.ones_like(s)

    def over_b(x):
        return searched(
            lambda y: atom.eta * np.exp(x + y) * s**2 - atom.rho * (m * x + d * y),
            np.log(l2) * ones,
            np.log(u2) * ones,
        )

    return searched(over_b, np.log(l1) * ones, np.log(u1) * ones)


def supremum(function, low, high):
    """(value, argument) of a supremum over [low, high] of a function with a few local maxima: a fine grid, then finer ones around
    the best points.
    """
    grid = np.unique(np.concatenate([np.linspace(low, high, 150), np.geomspace(1e-6 * high, high, 150)]))
    for _ in range(5):
        values = function(grid)
        peaks = np.argsort(values)[-4:]
        spans = [np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 40) for i in peaks]
        best = values.max(), grid[values.argmax()]
        grid = np.unique(np.concatenate(spans))
    return best


def searched_conjugate(atom, Z) -> tuple[float, np.ndarray]:
    """(g*(Z), the W that attains it), given matrices taken into the coordinates of their Cholesky factors: W' = L1^T W L2."""
    d, m = Z.shape
    boxes, factors, constant = [], [], 0.0
    for what, n, count in zip(described(atom), (d, m), (m, d), strict=True):
        if isinstance(what, Range):
            boxes.append((what.lower, what.upper))
            factors.append(np.eye(n))
            without_partner = n - min(d, m)
            constant -= atom.rho * count * without_partner * np.log(what.upper)
        else:
            boxes.append((1.0, 1.0))
            factors.append(np.linalg.cholesky(what.dense()))
            constant -= atom.rho * count * np.linalg.slogdet(what.dense())[1]
    L1, L2 = factors
    U, zs, Vt = np.linalg.svd(np.linalg.solve(L1, Z) @ np.linalg.inv(L2).T, full_matrices=False)
    least = 2.0 * atom.eta * boxes[0][0] * boxes[1][0]  # the curvature of psi at the far end
    pairs = [
        supremum(lambda s, z=z: z * s - pair_penalty(atom, boxes, d, m, s), 0.0, 1.01 * z / least) for z in zs
    ]
    W = np.linalg.solve(L1.T, (U * [s for _, s in pairs]) @ Vt) @ np.linalg.inv(L2)
    return float(sum(value for value, _ in pairs) - constant), W


def check_conjugate(atom, Z):
    expected, W = searched_conjugate(atom, Z)
    assert atom.conjugate(Z) == near(expected, rel=1e-8)
    attained = np.vdot(W, Z) - atom.value(W)
    assert attained == near(expected, abs(atom.value(W)), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("atom, size", list(zip(MATRIX_NORMALS, cycle([0.3, 3.0, 30.0]), strict=False)))
def test_conjugate_is_the_supremum(atom, size):
    """The maximum of <Z, W> - g(W), which is a supremum for every singular value, with psi found by searching the box."""
    check_conjugate(atom, matrix(atom, 19, size))


@pytest.mark.slow
@for_each("shape", [(30, 2), (2, 30)])
@for_each("singular", [(5.0, 15.0), (21.5, 23.0), (33.0, 300.0)])
def test_conjugate_where_one_side_is_much_longer(shape, singular):
    """Then the middle quadratic piece of psi is long enough to be on its convex envelope: its slopes are 8.5 to 33, those of the
    first end at 20.9, those of the last begin at 23.4.
    """
    boxes = [Range(0.5, 3.0), Range(10.0, 20.0)]
    atom = MatrixNormal(eta=0.7, rho=1.3).bound(boxes if shape[0] > shape[1] else boxes[::-1])
    rng = random(atom, 20)
    Z = orthogonal(rng, shape[0])[:, :2] @ np.diag(singular) @ orthogonal(rng, shape[1])[:2]
    check_conjugate(atom, Z)
