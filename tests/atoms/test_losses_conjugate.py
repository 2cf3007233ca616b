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
from tests.atoms.loss_definitions import every_loss, targets_for
from tests.loops import for_each

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of sums of some ten terms, in another order.

# ------------------------------------------------------------------------------------------------- conjugates


@for_each(
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


@pytest.mark.slow
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
