"""The laws of functions of the spectrum that are not convex, over every example of every registered one: penalties sum_j r(sigma_j^2
+ eps), the rank, and the matrices of low rank.

As in test_registry.py, the two sides of a law never come from the same place: values, slopes and violations are the reference's,
which finds eigenvalues where the atoms find singular values; gradients are finite differences; minima are searched for. Laws that
hold for convex functions as well are in mtldsl/testing, and run over these too.
"""

import numpy as np
import pytest

from mtldsl.atoms.matrix_function import Set
from mtldsl.reference.registry import SPECTRA
from mtldsl.reference.spectral import axes
from tests.loops import for_each
from tests.registry_cases import (
    REWEIGHTED,
    SPECTRAL,
    WEIGHTS_SHAPE,
    function_value,
    matrix,
    near,
    orthogonal,
    random,
    set_violation,
    weights,
    with_singular_values,
)

SHAPES = [(5, 4), (4, 5), (3, 3), (30, 3), (3, 30), (1, 4), (5, 1), (1, 1)]

every_function = for_each("atom", SPECTRAL)
every_penalty = for_each("atom", [case for case in SPECTRAL if not isinstance(case.values[0], Set)])
every_set = for_each("atom", [case for case in SPECTRAL if isinstance(case.values[0], Set)])
sums = for_each("atom", REWEIGHTED)
smooth_sums = for_each("atom", [case for case in REWEIGHTED if case.values[0].is_reweighted])
every_shape = for_each("shape", SHAPES)


def reference(atom):
    """r and its derivative."""
    stated = SPECTRA[atom.name]
    return lambda x: stated(x, atom), lambda x: stated.slope(x, atom)


def penalised(atom, s) -> np.ndarray:
    """phi(s) = r(s^2 + eps), one number for every s."""
    return reference(atom)[0](np.asarray(s, float) ** 2 + getattr(atom, "eps", 0.0))


@every_penalty
def test_value_of_singular_values_far_apart(atom):
    """From 1e-12 to 1e12 on the diagonal, where they are known."""
    for low, high in ((-12, -12), (12, 12), (-6, 6), (-12, -1)):
        s = 10.0 ** np.linspace(low, high, 4)[::-1]
        W = np.vstack([np.diag(s), np.zeros((1, 4))])
        s = np.where(s > 1e-10 * s[0], s, 0.0)  # at most what is left out by any of them
        expected = float(penalised(atom, np.append(s, 0.0)).sum())
        left_out = float(penalised(atom, 1e-10 * s[0]) - penalised(atom, 0.0)) * np.count_nonzero(s == 0.0)
        rounding = 1e-12 * expected + 1e-15  # the reference's logarithm of 1 + 1e-12 is exact to that
        assert expected - rounding <= atom.value(W) <= expected + left_out + rounding


@sums
def test_r_is_concave_and_its_slope_the_derivative(atom):
    r, slope = reference(atom)
    x = atom.eps + np.geomspace(1e-8, 1e8, 400)
    np.testing.assert_allclose(atom.penalty(x), r(x), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(atom.slope(x), slope(x), rtol=1e-12, atol=1e-300)
    assert np.all(atom.slope(x) >= 0) and np.all(np.diff(atom.slope(x)) <= 0)
    chords = np.diff(r(x)) / np.diff(x)
    rounding = 1e-14 * np.abs(r(x[1:])) / np.diff(x)
    assert np.all(chords <= atom.slope(x[:-1]) + rounding) and np.all(chords >= atom.slope(x[1:]) - rounding)
    h = 1e-5 * x
    differences = (r(x + h) - r(x - h)) / (2 * h)
    smooth = np.abs(atom.slope(x + h) - atom.slope(x - h)) <= 1e-3 * atom.slope(x)  # no kink between
    assert np.count_nonzero(smooth) >= 390 or not np.any(atom.slope(x[-1:]))
    np.testing.assert_allclose(
        atom.slope(x)[smooth], differences[smooth], rtol=1e-6, atol=1e-9 * atom.slope(x[:1])[0]
    )


@pytest.mark.slow
@every_penalty
def test_weakly_convex_where_it_says_so(atom):
    """phi(s) + m/2 s^2, phi even, has no second difference below zero, and with 0.9 m, where eps = 0, it has."""
    m = atom.weak_convexity
    if not np.isfinite(m):
        return
    s = np.concatenate([-np.geomspace(1e-4, 1e3, 300)[::-1], [0.0], np.geomspace(1e-4, 1e3, 300)])

    def least_bend(m):
        slopes = np.diff(penalised(atom, np.abs(s)) + 0.5 * m * s**2) / np.diff(s)
        return np.min(np.diff(slopes) / (1.0 + np.abs(slopes[1:])))

    assert least_bend(m) >= -1e-10
    if not getattr(atom, "eps", 0.0):
        assert least_bend(0.9 * m) < -1e-8
    rng = random(atom, 4)
    for _ in range(200):  # and so is the function of matrices
        V, W = (10.0 ** rng.uniform(-2, 1) * rng.normal(size=WEIGHTS_SHAPE) for _ in range(2))
        bend = (function_value(atom, V) + function_value(atom, W)) / 2 - function_value(atom, (V + W) / 2)
        assert bend >= -m / 8 * np.sum((V - W) ** 2) - 1e-12


def steepness_noise(atom, W) -> float:
    """Rounding of tr(D W W^T) in directions where W is rounding and D is as large as it gets."""
    return 1e-15 * atom.curvature * float(np.sum(W**2))


def touches(atom, W, matrices):
    """value(W) == value_at(W, update(W)) == quadratic(...).value(W), the slopes as well, and H = W W^T + eps I."""
    (H,), (again,) = matrices, atom.update_one(0, W, atom.start(W.shape))
    np.testing.assert_allclose(
        H.dense(), W @ W.T + atom.eps * np.eye(len(W)), rtol=0, atol=1e-13 * (1 + np.sum(W**2))
    )
    np.testing.assert_allclose(again.dense(), H.dense(), rtol=1e-14)
    expected = function_value(atom, W)
    touching = pytest.approx(expected, abs=1e-11 * (1 + abs(expected)) + steepness_noise(atom, W))
    quadratic = atom.quadratic(W.shape, matrices)
    assert atom.value_at(W, matrices) == touching and quadratic.value(W) == touching
    rounding = 1e-12 + 1e-15 * atom.curvature * np.linalg.norm(W)
    np.testing.assert_allclose(quadratic.product(W), atom.gradient(W), rtol=1e-9, atol=rounding)


@pytest.mark.slow
@smooth_sums
@every_shape
def test_majoriser_is_the_reference_quadratic_and_lies_above(atom, shape):
    """tr(D V V^T) - tr(D W W^T) + g(W), D = r'(W W^T + eps I) by the reference's eigenvectors; never below g, whose gradient is 2 D W."""
    r, slope = reference(atom)
    rng = random(atom, 7)
    for W in weights(atom, 7, shape).values():
        vectors, lengths = axes(W)
        D = slope(lengths**2 + atom.eps)
        constant = float(np.sum(r(lengths**2 + atom.eps) - D * lengths**2))
        H = atom.update(W)
        touches(atom, W, H)
        others = [10.0 ** rng.uniform(-3, 2) * rng.normal(size=shape) for _ in range(6)]
        others += [W + 10.0**e * rng.normal(size=shape) for e in (-1, -2, -3, -4)]
        for V in [*others, np.zeros(shape), 2.0 * W, 0.5 * W, W]:
            above = float(np.sum(D[:, None] * (vectors.T @ V) ** 2)) + constant
            rounding = 1e-11 * (1 + abs(constant) + abs(above)) + steepness_noise(atom, V)
            assert atom.value_at(V, H) == pytest.approx(above, abs=rounding)
            assert atom.value_at(V, H) >= function_value(atom, V) - rounding
        value, gradient = atom.value_and_gradient(W)
        assert value == near(function_value(atom, W))
        rounding = 1e-12 + 1e-15 * atom.curvature * np.linalg.norm(W)
        expected = 2.0 * vectors @ (D[:, None] * (vectors.T @ W))
        np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=rounding)
        np.testing.assert_array_equal(atom.gradient(W), gradient)


@smooth_sums
def test_start_is_a_majoriser_too(atom):
    """Touching where W W^T = I."""
    shape = (4, 6)
    matrices = atom.start(shape)
    assert [S.shape for S in matrices] == [(4, 4)]
    rng = random(atom, 8)
    W = orthogonal(rng, 6)[:4]
    assert atom.value_at(W, matrices) == near(function_value(atom, W))
    for size in (1e-3, 1e-1, 1.0, 10.0):
        V = size * rng.normal(size=shape)
        assert atom.value_at(V, matrices) >= function_value(atom, V) - 1e-12


@pytest.mark.slow
@smooth_sums
def test_curvature_bounds_the_growth(atom):
    """g(V) <= g(W) + <gradient(W), V - W> + curvature / 2 ||V - W||^2, and the bound is approached at zero."""
    assert atom.is_smooth
    rng = random(atom, 9)
    for _ in range(100):
        W = 10.0 ** rng.uniform(-3, 2) * rng.normal(size=WEIGHTS_SHAPE)
        V = W + 10.0 ** rng.uniform(-4, 2) * rng.normal(size=WEIGHTS_SHAPE)
        above = function_value(atom, W) + np.vdot(atom.gradient(W), V - W)
        above += 0.5 * atom.curvature * np.sum((V - W) ** 2)
        assert function_value(atom, V) <= above + 1e-11 * (1 + abs(above))
    E = np.zeros(WEIGHTS_SHAPE)
    E[0, 0] = 1e-3 * np.sqrt(atom.eps)
    rise = function_value(atom, E) - function_value(atom, np.zeros(WEIGHTS_SHAPE))
    assert rise == pytest.approx(0.5 * atom.curvature * E[0, 0] ** 2, rel=1e-3)


@for_each("atom", [case for case in REWEIGHTED if not case.values[0].is_reweighted])
def test_without_eps_no_quadratic_is_claimed(atom):
    assert not atom.is_smooth and atom.curvature == np.inf


@sums
def test_turning_weights(atom):
    """U diag(w s) V^T is the gradient at a matrix of full rank, also for eps = 0; w of a pair that is zero is 2 r'(eps)."""
    rng = random(atom, 10)
    W = with_singular_values([3.3, 1.4, 0.7, 0.26], WEIGHTS_SHAPE, rng)
    U, V, w, rest = atom.turning_weights(W)
    np.testing.assert_allclose((U * (U.T @ W @ V).diagonal()) @ V.T, W, rtol=0, atol=1e-13)
    gradient = (U * (w * (U.T @ W @ V).diagonal())) @ V.T
    for _ in range(5):
        D = rng.normal(size=WEIGHTS_SHAPE)
        slope = (function_value(atom, W + 1e-6 * D) - function_value(atom, W - 1e-6 * D)) / 2e-6
        assert np.vdot(gradient, D) == pytest.approx(slope, rel=1e-5, abs=1e-7)
    with np.errstate(divide="ignore"):
        assert rest == pytest.approx(2.0 * float(reference(atom)[1](np.float64(atom.eps))), rel=1e-14)


def fine_minimum(atom, s, step) -> float:
    """min over x >= 0 of step phi(x) + (x - s)^2 / 2: the least on a grid, and on a second one around the best of the first."""
    value = lambda x: step * penalised(atom, x) + 0.5 * (x - s) ** 2  # noqa: E731
    grid = s * np.unique(np.concatenate([[0.0], np.geomspace(1e-12, 1, 800), np.linspace(0, 1.1, 1101)]))
    i = np.argmin(value(grid))
    around = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)], 1001)
    return float(min(value(grid).min(), value(around).min()))


def jump(atom, s) -> float:
    """A step near which the minimiser for s leaves s for zero, if it does at all."""
    low, high = 1e-8 * min(s, s**2), 1e8 * max(s, s**2)
    grid = s * np.linspace(0.0, 1.0, 2001)
    for _ in range(50):
        step = np.sqrt(low * high)
        far = grid[np.argmin(step * penalised(atom, grid) + 0.5 * (grid - s) ** 2)] > 0.3 * s
        low, high = (step, high) if far else (low, step)
    return low


@pytest.mark.slow
@every_penalty
def test_prox_is_the_global_minimiser_for_every_singular_value(atom):
    """Steps of all sizes, and those where two local minima are almost as good, also of equal singular values."""
    rng = random(atom, 11)
    off = 10.0 ** np.array([-2.0, -4.0, -6.0])
    rows = WEIGHTS_SHAPE[0] - 4  # a row more than there are singular values
    for s in [*np.sort(10.0 ** rng.uniform(-2, 2, (6, 4)))[:, ::-1], np.full(4, 2.0)]:
        W = with_singular_values(s, WEIGHTS_SHAPE, rng)
        critical = jump(atom, s[1])
        for step in [0.1, 10.0 ** rng.uniform(-4, 4), critical, *critical * (1 + off), *critical * (1 - off)]:
            P = atom.prox(W, step)
            cost = step * function_value(atom, P) + 0.5 * np.sum((P - W) ** 2)
            least = sum(fine_minimum(atom, one, step) for one in s)
            least += rows * step * float(penalised(atom, 0.0))
            assert cost <= least + 1e-11 * abs(least)


@pytest.mark.slow
@every_function
@every_shape
def test_prox_keeps_the_singular_vectors(atom, shape):
    """P = U diag(x) V^T with 0 <= x_1 .. x_k <= s, in the order of s."""
    W = matrix(atom, 12, 2.0)[: shape[0], : shape[1]] if shape[0] * shape[1] <= 20 else None
    W = random(atom, 12).normal(size=shape) if W is None or W.shape != shape else W
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    for step in (1e-3, 0.3, 2.0, 50.0):
        inner = U.T @ atom.prox(W, step) @ Vt.T
        x = np.diag(inner)
        np.testing.assert_allclose(inner, np.diag(x), rtol=0, atol=1e-13 * s[0])
        assert np.all(x >= -1e-13 * s[0]) and np.all(x <= s + 1e-13 * s[0])
        assert np.all(np.diff(x) <= 1e-13 * s[0])


@pytest.mark.slow
@every_penalty
@for_each("step", [1e-12, 1.0, 1e12])
@for_each("size", [1e-12, 1.0, 1e12])
def test_prox_of_extreme_steps_and_sizes(atom, step, size):
    """Finite, without a warning, and no worse than W, zero, and what lies between."""
    W = size * np.vstack([np.diag([1.0, 0.5, 1e-3, 1e-6]), np.zeros((1, 4))])
    P = atom.prox(W, step)
    assert np.all(np.isfinite(P))
    cost = lambda V: step * function_value(atom, V) + 0.5 * np.sum((V - W) ** 2)  # noqa: E731
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert cost(P) <= cost(share * W) * (1 + 1e-12)


@pytest.mark.slow
@every_function
@for_each("size", [1e-12, 1e12])
def test_nothing_warns_at_extreme_sizes(atom, size):
    for W in weights(atom, 14).values():
        numbers = [atom.value(size * W)]
        numbers += [atom.prox(size * W, step) for step in (1e-12, 1e12)]
        if isinstance(atom, Set):
            numbers.append(atom.violation(size * W))
        if atom.is_reweighted:
            numbers += [atom.gradient(size * W), atom.value_at(size * W, atom.update(size * W))]
        assert all(np.all(np.isfinite(v)) for v in numbers)


@every_set
@every_shape
def test_projection_is_nearest_of_all_matrices_of_that_rank(atom, shape):
    """Projection has that rank, and the distance of the reference: the length of the singular values that are too many."""
    for W in weights(atom, 15, shape).values():
        P = atom.project(W)
        assert set_violation(atom, P) <= 1e-12 * (1 + np.abs(W).max())
        distance = np.linalg.norm(P - W)
        assert atom.violation(W) == pytest.approx(set_violation(atom, W), rel=1e-9, abs=1e-12)
        assert distance == pytest.approx(set_violation(atom, W), rel=1e-9, abs=1e-12 * (1 + np.abs(W).max()))


@every_function
def test_conjugate_is_finite_at_zero_alone(atom):
    """sup of <Z, W> - g(W): -g(0) at Z = 0, since W = 0 is best; else without bound along its leading singular pair."""
    zero = np.zeros(WEIGHTS_SHAPE)
    least = 0.0 if isinstance(atom, Set) else function_value(atom, zero)
    assert atom.conjugate(zero) == near(-least) and atom.dual_gauge(zero) == 0.0
    for size in (1e-3, 1.0, 1e3):
        Z = matrix(atom, 16, size)
        assert atom.conjugate(Z) == np.inf and atom.dual_gauge(Z) == np.inf
        np.testing.assert_array_equal(atom.dual_project(Z), zero)
        U, s, Vt = np.linalg.svd(Z)
        ray = np.outer(U[:, 0], Vt[0])  # of rank one, which every constraint on the rank allows
        cost = (lambda W: 0.0) if isinstance(atom, Set) else (lambda W: function_value(atom, W))
        gains = [t * s[0] - cost(t * ray) for t in (1e40, 1e50)]
        assert gains[1] > 1e9 * gains[0] > 1e30
    assert not atom.absorbs and not atom.finite_dual
