"""The search for the best of several local minima, against fine grids and by hand."""

import numpy as np
import pytest

from mtldsl.atoms.calculus.scalar_prox import smallest_minimum

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of an objective, and of a root of a cubic.


def prox_of(phi, slope, s, step):
    """argmin over 0 <= x <= s of step phi(x) + (x - s)^2 / 2."""
    return smallest_minimum(
        s,
        lambda x, s: step * phi(x) + 0.5 * (x - s) ** 2,
        lambda x, s: step * slope(x) + x - s,
    )


#: phi and its derivative on [0, inf): convex, concave, convex and then concave, flat from some point on, with a kink
FUNCTIONS = {
    "zero": (lambda x: 0.0 * x, lambda x: 0.0 * x),
    "linear": (lambda x: x, lambda x: np.ones_like(x)),
    "quadratic": (lambda x: x**2, lambda x: 2.0 * x),
    "logarithm": (np.log1p, lambda x: 1.0 / (1.0 + x)),
    "smoothed logarithm": (
        lambda x: np.log1p(np.hypot(x, 0.1)),
        lambda x: x / np.hypot(x, 0.1) / (1.0 + np.hypot(x, 0.1)),
    ),
    "bell": (lambda x: -np.expm1(-(x**2)), lambda x: 2.0 * x * np.exp(-(x**2))),
    "capped": (lambda x: np.minimum(x, 2.0), lambda x: np.where(x < 2.0, 1.0, 0.0)),
    "root": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def fine_minimum(phi, s, step):
    """The least value on a grid, and on a second one around the best of the first."""
    value = lambda x: step * phi(x) + 0.5 * (x - s) ** 2  # noqa: E731
    grid = s * np.unique(np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 2000), np.linspace(0.0, 1.0, 2001)]))
    i = np.argmin(value(grid))
    around = np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, grid.size - 1)], 4001)
    return float(min(value(grid).min(), value(around).min()))


@every_function
def test_no_point_of_a_fine_grid_is_better(name):
    phi, slope = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    s = 10.0 ** rng.uniform(-3, 3, 60)
    for step in (1e-4, 1e-2, 0.3, 1.0, 5.0, 1e2, 1e5):
        for x, one in zip(prox_of(phi, slope, s, step), s, strict=True):
            assert 0.0 <= x <= one
            value = step * phi(x) + 0.5 * (x - one) ** 2
            assert value <= fine_minimum(phi, one, step) * (1 + 1e-14)


@every_function
def test_of_two_minima_almost_as_good_the_better_is_found(name):
    """Steps around the one where the minimum jumps, by factors 1 +- 1e-2 to 1 +- 1e-9: finer than any grid tells."""
    phi, slope = FUNCTIONS[name]
    for s in (0.7, 3.0, 40.0):
        low, high = 1e-6 * s, 1e6 * s**2  # near s, near zero
        for _ in range(60):
            step = np.sqrt(low * high)
            grid = s * np.linspace(0.0, 1.0, 4001)
            far = grid[np.argmin(step * phi(grid) + 0.5 * (grid - s) ** 2)] > 0.3 * s
            low, high = (step, high) if far else (low, step)
        for change in (0.0, *np.geomspace(1e-9, 1e-2, 8), *-np.geomspace(1e-9, 1e-2, 8)):
            step = low * (1.0 + change)
            x = prox_of(phi, slope, np.array([s]), step)[0]
            assert step * phi(x) + 0.5 * (x - s) ** 2 <= fine_minimum(phi, s, step) * (1 + 1e-14)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_the_place_of_a_minimum_is_exact_at_every_scale(scale):
    """x = s / (1 + 2 step) for a square, s - step for the trace norm, zero where the step is as large as s, s where it is flat."""
    s = scale * np.array([5.0, 1.0, 0.2])
    square = prox_of(*FUNCTIONS["quadratic"], s, 1e3)
    np.testing.assert_allclose(square, s / 2001.0, rtol=1e-15)
    np.testing.assert_allclose(prox_of(*FUNCTIONS["quadratic"], s, 1e20), s / 2e20, rtol=1e-15)
    np.testing.assert_allclose(
        prox_of(*FUNCTIONS["linear"], s, 0.5 * scale), [4.5 * scale, 0.5 * scale, 0.0], rtol=1e-15
    )
    np.testing.assert_allclose(prox_of(*FUNCTIONS["linear"], s, scale), [4.0 * scale, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_array_equal(prox_of(*FUNCTIONS["zero"], s, 1.0), s)


def test_of_equal_minima_the_smaller():
    """Two steps down and up again, both of depth one."""
    value = lambda x, s: np.minimum((x - 1.0) ** 2, (x - 3.0) ** 2)  # noqa: E731
    slope = lambda x, s: np.where(x < 2.0, 2.0 * (x - 1.0), 2.0 * (x - 3.0))  # noqa: E731
    assert smallest_minimum(np.array([4.0]), value, slope)[0] == pytest.approx(1.0, rel=1e-15)


def test_every_entry_by_itself_and_none_at_all():
    phi, slope = FUNCTIONS["logarithm"]
    s = np.array([3.0, 0.0, 2.5, 1e-30, 3.0])
    together = prox_of(phi, slope, s, 1.0)
    alone = [prox_of(phi, slope, s[i : i + 1], 1.0)[0] for i in range(5)]
    np.testing.assert_array_equal(together, alone)
    assert together[1] == 0.0 and together[0] == together[4]
    assert prox_of(phi, slope, np.zeros(0), 1.0).shape == (0,)
    np.testing.assert_array_equal(prox_of(phi, slope, np.zeros(3), 1.0), np.zeros(3))


def test_an_infinite_slope_at_zero_makes_zero_a_minimum():
    """2 sqrt(x) + (x - s)^2 / 2: for s = 1 zero is the only minimum, for s = 5 there are two."""
    phi, slope = FUNCTIONS["root"]
    x = prox_of(phi, slope, np.array([1.0, 5.0]), 2.0)
    assert x[0] == 0.0 and x[1] == pytest.approx(np.max(np.roots([1.0, 0.0, -5.0, 1.0])) ** 2, rel=1e-14)
