"""Losses: the conjugate against suprema over grids, its domain, and what weights mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtldsl.atoms.losses import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredHingeLoss,
    SquareRootLoss,
)
from tests.atoms.loss_definitions import TARGETS, every_loss, separable, targets_for

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of sums of some ten terms, in another order.

# ------------------------------------------------------------------------------------------------- conjugates

GRID = np.concatenate([np.linspace(-40, 40, 160_001), np.geomspace(1e-12, 1e-3, 50), [np.log(7.0)]])


@separable
def test_conjugate_is_the_supremum_over_a_fine_grid(loss, definition):
    rng = np.random.default_rng(7)
    at = np.array([-3.0, -1.2, -0.4, 0.1, 0.9, 2.5])  # dual points made from predictions lie in the domain
    for y in np.unique(targets_for(loss, rng, 4)):
        values = np.array([definition(z, y) for z in GRID])
        for u in loss.gradient(at, np.full(at.shape, y)):
            supremum = np.max(u * GRID - values)
            found = loss.conjugate(np.array([u]), np.array([y]))
            # the grid misses the supremum by h^2 f'' / 8, h = 5e-4; and never passes it, but for rounding at |z| = 40
            assert supremum - 1e-9 <= found <= supremum + 1e-6


@pytest.mark.parametrize(
    ("loss", "y", "ends"),
    [
        (AbsoluteLoss(), 0.5, [(-1.0, -0.5), (1.0, 0.5)]),
        (QuantileLoss(q=0.25), 2.0, [(-0.25, -0.5), (0.75, 1.5)]),
        (HuberLoss(delta=2.0), 1.0, [(-2.0, 0.0), (2.0, 4.0)]),
        (HingeLoss(), 1.0, [(-1.0, -1.0), (0.0, 0.0)]),
        (HingeLoss(), -1.0, [(0.0, 0.0), (1.0, -1.0)]),
        (LogisticLoss(), 1.0, [(-1.0, 0.0), (0.0, 0.0)]),
        (LogisticLoss(), -1.0, [(0.0, 0.0), (1.0, 0.0)]),
        (SquaredHingeLoss(), 1.0, [(None, None), (0.0, 0.0)]),
        (SquaredHingeLoss(), -1.0, [(0.0, 0.0), (None, None)]),
        (PoissonLoss(), 3.0, [(-3.0, 0.0), (None, None)]),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_conjugate_at_the_ends_of_its_domain_and_beyond(loss, y, ends):
    """At an end the value is finite (0 log 0 = 0), beyond it <u, z> - f(z) grows without bound."""
    y = np.array([y])
    for sign, (end, value) in zip((-1.0, 1.0), ends, strict=True):
        if end is None:
            assert np.isfinite(loss.conjugate(np.array([sign * 1e3]), y))
            continue
        assert loss.conjugate(np.array([end]), y) == pytest.approx(value, abs=1e-15)
        beyond = np.array([end + sign * 1e-6])
        assert loss.conjugate(beyond, y) == np.inf
        assert loss.dual_project(beyond, y).tolist() == [end]
        far = np.array([sign * 1e9 if loss.name != "poisson_loss" else -1e9])
        assert beyond @ far - loss.value(far, y) > 100.0


@every_loss
def test_projected_points_of_weighted_losses_are_in_the_domain(loss):
    """s * c / s is not always c: the certificate must not fall to -inf for one unit in the last place."""
    rng = np.random.default_rng(8)
    y, s = targets_for(loss, rng, 400), rng.uniform(0.01, 5.0, size=400)
    u = loss.dual_project(rng.normal(size=400) * 50, y, s)
    assert np.isfinite(loss.conjugate(u, y, s))
    assert loss.dual_project(u, y, s) == pytest.approx(u, rel=1e-15)


@every_loss
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_fenchel_young_with_equality_at_the_gradient(loss, data):
    def draw(strategy):
        return np.array(data.draw(st.lists(strategy, min_size=4, max_size=4)))

    z, other, y = draw(st.floats(-8, 8)), draw(st.floats(-8, 8)), draw(TARGETS[loss.labels])
    s = data.draw(st.none() | st.just(np.array([0.3, 1.0, 2.0, 0.7])))
    u = loss.dual_point(z, y, s)
    # of all terms; logarithms of numbers near 0 and 1 lose digits of it
    size = abs(loss.value(z, y, s)) + np.abs(u) @ (np.abs(z) + np.abs(y)) + 1
    assert loss.value(z, y, s) + loss.conjugate(u, y, s) == pytest.approx(u @ z, abs=1e-12 * size)
    size += abs(loss.value(other, y, s)) + np.abs(u) @ np.abs(other)
    assert loss.value(other, y, s) + loss.conjugate(u, y, s) >= u @ other - 1e-12 * size


@every_loss
def test_whole_weights_mean_replication(loss):
    rng = np.random.default_rng(9)
    z, y, copies = rng.normal(size=5), targets_for(loss, rng, 5), np.array([1, 3, 2, 1, 4])
    s, z_all, y_all = copies.astype(float), np.repeat(z, copies), np.repeat(y, copies)
    assert loss.value(z, y, s) == pytest.approx(loss.value(z_all, y_all), rel=1e-13)
    owner = np.repeat(np.arange(5), copies)
    u, u_all = loss.gradient(z, y, s), loss.gradient(z_all, y_all)
    assert u == pytest.approx(np.bincount(owner, weights=u_all), rel=1e-13)
    # its terms are of either sign
    assert loss.conjugate(u, y, s) == pytest.approx(loss.conjugate(u_all, y_all), rel=1e-12, abs=1e-13)


def test_square_root_conjugate_by_hand():
    y, s = np.array([2.0, -1.0]), np.array([4.0, 1.0])
    loss = SquareRootLoss()
    assert loss.conjugate(np.array([0.6, 0.8]), y) == pytest.approx(0.4)
    assert loss.conjugate(np.array([0.6, 0.9]), y) == np.inf
    assert loss.conjugate(np.array([1.2, 0.8]), y, s) == pytest.approx(1.6)
    assert loss.conjugate(np.array([1.2, 0.9]), y, s) == np.inf
    assert loss.dual_project(np.array([3.0, 4.0]), y) == pytest.approx([0.6, 0.8])
    assert loss.dual_project(np.array([0.3, 0.4]), y).tolist() == [0.3, 0.4]
    assert loss.dual_project(np.array([6.0, 4.0]), y, s) == pytest.approx([1.2, 0.8])


def test_smoothed_square_root_conjugate_by_hand():
    """<u, y> - eps sqrt(1 - ||u / sqrt(s)||^2), which is 0.8 eps where the norm is 0.6, and nothing at its boundary."""
    y, s = np.array([2.0, -1.0]), np.array([4.0, 1.0])
    loss = SquareRootLoss(eps=5.0)
    assert loss.conjugate(np.zeros(2), y) == -5.0
    assert loss.conjugate(np.array([0.6, 0.0]), y) == pytest.approx(1.2 - 4.0)
    assert loss.conjugate(np.array([1.2, 0.0]), y, s) == pytest.approx(2.4 - 4.0)
    assert loss.conjugate(np.array([0.6, 0.8]), y) == pytest.approx(0.4)
    assert loss.conjugate(np.array([0.6, 0.9]), y) == np.inf


@given(
    seed=st.integers(0, 10**6), log_eps=st.floats(-9, 6), log_size=st.floats(-6, 6), spread=st.floats(0, 4)
)
@settings(max_examples=200, deadline=None)
def test_smoothed_square_root_conjugate_at_every_scale(seed, log_eps, log_size, spread):
    """Fenchel-Young with equality at the gradient, and not below it elsewhere; weights up to eight orders apart."""
    rng = np.random.default_rng(seed)
    loss, s = SquareRootLoss(eps=10.0**log_eps), 10.0 ** rng.uniform(-spread, spread, size=6)
    y = rng.normal(size=6)
    z = y + 10.0**log_size * rng.normal(size=6)
    for weights in (None, s):
        u = loss.dual_point(z, y, weights)
        # inside the domain already: what moves is rounding of its norm
        np.testing.assert_allclose(u, loss.gradient(z, y, weights), rtol=1e-14)
        size = loss.value(z, y, weights) + np.abs(u) @ (np.abs(z) + np.abs(y))
        assert loss.value(z, y, weights) + loss.conjugate(u, y, weights) == pytest.approx(
            u @ z, abs=1e-13 * size
        )
        for _ in range(5):
            v = loss.dual_project(10.0 ** rng.uniform(-2, 2) * rng.normal(size=6), y, weights)
            size = loss.value(z, y, weights) + np.abs(v) @ (np.abs(z) + np.abs(y))
            assert loss.value(z, y, weights) + loss.conjugate(v, y, weights) >= v @ z - 1e-13 * size
