"""Losses beside the laws: kinks, extremes, proximal steps in 60 digits and at every scale, ends of domains, and their parameters."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtldsl.atoms import loss as module
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import SeparableLoss
from mtldsl.atoms.losses import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    SquareRootLoss,
    SumOfSquares,
)
from mtldsl.extending.laws.law_examples import WEIGHTINGS, loss_data, targets
from tests.loops import for_each
from tests.registry_cases import examples

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of sums of some ten terms, in another order.

#: one target a prediction
every_loss = for_each("loss", examples((SeparableLoss, SquareRootLoss)))


@for_each("loss", examples(SeparableLoss))
def test_gradient_at_a_kink_is_a_subgradient(loss):
    """At the labels themselves, where losses have their kinks: one sample by itself, to both sides."""
    y = targets(loss, np.random.default_rng(0))
    value, slope = loss.pointwise(y, y), loss.gradient(y, y)
    for move in (1e-6, 1.0, -1e-6, -1.0):
        assert np.all(loss.pointwise(y + move, y) >= value + slope * move - 1e-15)


def test_square_root_loss_where_there_are_no_residuals():
    """Its subgradient is zero, and no quadratic lies above it and touches; with eps there is one."""
    y = np.array([1.0, 2.0])
    assert SquareRootLoss().gradient(y, y).tolist() == [0.0, 0.0]
    assert SquareRootLoss().gradient(y, y, np.array([1.0, 3.0])).tolist() == [0.0, 0.0]
    assert SquareRootLoss().majorizer_weight(y, y) == np.inf and HuberLoss().majorizer_weight(y, y) is None
    assert SquareRootLoss(eps=0.25).majorizer_weight(y, y) == 4.0
    assert SquaredLoss().majorizer_weight(y, y) == 1.0 and SumOfSquares().majorizer_weight(y, y) == 2.0


def test_logistic_loss_does_not_overflow():
    z, y = np.array([-1e5, 1e5, -1e300]), np.array([1.0, 1.0, 1.0])
    assert LogisticLoss().pointwise(z, y).tolist() == [1e5, 0.0, 1e300]
    assert LogisticLoss().gradient(z, y).tolist() == [-1.0, 0.0, -1.0]
    assert LogisticLoss().probability(z).tolist() == [0.0, 1.0, 0.0]


def test_probability_is_what_the_loss_measures():
    z = np.linspace(-4, 4, 9)
    assert LogisticLoss().probability(z) + LogisticLoss().probability(-z) == pytest.approx(np.ones(9))
    assert -np.log(LogisticLoss().probability(z)) == pytest.approx(LogisticLoss().pointwise(z, np.ones(9)))


def test_poisson_loss_is_infinite_only_beyond_the_largest_float():
    loss = PoissonLoss()

    def one(z):
        return loss.value(np.array([z]), np.array([2.0]))

    assert np.isfinite(one(709.7)) and one(709.8) == np.inf and one(-1e4) == 2e4
    assert loss.value(np.array([709.7, 709.7]), np.zeros(2)) == np.inf  # the sum is beyond it
    assert loss.gradient(np.array([800.0]), np.array([2.0])).tolist() == [np.inf]
    assert np.isfinite(loss.prox(np.array([800.0, -800.0]), np.array([2.0, 0.0]), 1e8)).all()


def test_parameters_may_be_any_real_number():
    assert (
        HuberLoss(delta=2).delta
        == HuberLoss(delta=np.float32(2)).delta
        == HuberLoss(np.array(2)).delta
        == 2.0
    )
    assert type(QuantileLoss(q=np.float64(0.5)).q) is float
    assert HuberLoss(delta=2).arguments() == {"delta": 2.0} and HuberLoss().arguments() == {}
    assert SquareRootLoss(0).arguments() == {} and SquareRootLoss(eps=1).arguments() == {"eps": 1.0}


def _bisect(increasing, low, high, digits=40):
    """The root of an increasing function of Decimals."""
    while high - low > Decimal(10) ** -digits * max(abs(low), abs(high), Decimal(1)):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < 0 else (low, middle)
    return (low + high) / 2


def _survival(x):
    """1 / (1 + e^x), which overflows nowhere."""
    return 1 / (1 + x.exp()) if x < 0 else (-x).exp() / (1 + (-x).exp())


def _extreme_cases(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        step = 10.0 ** rng.uniform(-8, 8)
        kind = rng.integers(3)
        z = [rng.normal() * 3, -step * rng.uniform(0.0, 1.1), rng.choice([-1, 1]) * 10.0 ** rng.uniform(0, 9)]
        yield float(z[kind]), step, rng


@pytest.mark.slow
def test_prox_to_machine_precision_for_any_step():
    with localcontext() as context:
        context.prec = 60
        for z, step, rng in _extreme_cases(60, 5):
            m, t = Decimal(z), Decimal(step)
            exact = float(_bisect(lambda x, m=m, t=t: x - m - t * _survival(x), m, m + t))
            for y in (1.0, -1.0):
                found = LogisticLoss().prox(np.array([y * z]), np.array([y]), step)[0]
                assert abs(found - y * exact) <= 1e-15 * max(1.0, abs(exact)), (z, step, y)
            y = float(rng.integers(0, 40))
            c = m + t * Decimal(y)  # x + t e^x = c
            low = min(c, Decimal(0)) - t  # e^x <= 1 there
            high = min(c, max(Decimal(0), (max(c, Decimal(1)) / t).ln())) if c > 0 else c
            exact = float(_bisect(lambda x, c=c, t=t: x + t * x.exp() - c, low, high))
            found = PoissonLoss().prox(np.array([z]), np.array([y]), step)[0]
            assert abs(found - exact) <= 1e-14 * max(1.0, abs(exact)), (z, step, y)


def test_prox_stops_exactly_at_kinks():
    rng = np.random.default_rng(10)
    z, y = rng.normal(size=500), rng.normal(size=500)
    assert np.array_equal(AbsoluteLoss().prox(z, y, 10.0), y)
    assert np.array_equal(QuantileLoss(q=0.4).prox(z, y, 20.0), y)
    labels = rng.choice([-1.0, 1.0], size=500)
    beyond = labels * z >= 1
    assert np.array_equal(HingeLoss().prox(z, labels, 10.0), np.where(beyond, z, labels))


def test_huber_prox_keeps_its_digits_for_long_steps():
    # delta is not reached: r / (1 + step), which r - step * clip(...) would lose to cancellation
    found = HuberLoss(delta=1e-3).prox(np.array([3.0]), np.array([0.0]), 1e8)
    assert found[0] == pytest.approx(3.0 / (1 + 1e8), rel=1e-15, abs=0)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    spread=st.just(0.0) | st.floats(0, 8),
    log_eps=st.none() | st.floats(-12, 12),
    log_size=st.floats(-6, 6),
    log_step=st.floats(-12, -1e-3)
    | st.floats(1e-3, 12)
    | st.floats(-12, 0).map(lambda e: np.log10(1 + 10.0**e)),
)
@settings(max_examples=400, deadline=None)
def test_square_root_prox_solves_its_equation(seed, spread, log_eps, log_size, log_step):
    """x (1 + step s / sqrt(||sqrt(s) x||^2 + eps^2)) = r, every entry, for any eps and step, and weights 16 orders apart.

    Steps are multiples of the one from which the norm itself has the solution 0.
    """
    rng = np.random.default_rng(seed)
    s = None if spread == 0 else 10.0 ** rng.uniform(-spread, spread, size=7)
    r = 10.0**log_size * rng.normal(size=7)
    eps = 0.0 if log_eps is None else 10.0**log_eps
    weights = np.ones(7) if s is None else s
    critical = np.linalg.norm(r / np.sqrt(weights))
    step = critical * 10.0**log_step
    x = SquareRootLoss(eps=eps).prox(r, np.zeros(7), step, s)
    norm = np.sqrt(np.sum(weights * x**2) + eps**2)
    if eps == 0.0 and step >= critical:
        assert not x.any()
        return
    if eps == 0.0:  # in the metric of the dual norm, whose length is the step
        off = np.linalg.norm((x + step * weights * x / norm - r) / np.sqrt(weights))
        assert off <= 4e-15 * critical
    # measured: 3e-15 in 100,000 draws, whatever the scales
    np.testing.assert_allclose(x * (1.0 + step * weights / norm), r, rtol=1e-12, atol=0)
    assert np.all(np.abs(x) <= np.abs(r)) and np.all(x * r >= 0)


@for_each("loss", examples(SeparableLoss))
def test_conjugate_at_the_ends_of_its_domain_and_beyond(loss):
    """An end is the slope far out: there <u, z> - f(z) is the supremum (0 log 0 = 0), and beyond it grows without bound."""
    y = targets(loss, np.random.default_rng(0))
    for sign, ends in zip((-1.0, 1.0), loss.dual_interval(y), strict=True):
        for end, label in zip(np.broadcast_to(ends, y.shape), y, strict=True):
            at, one, far = np.array([end]), np.array([label]), np.array([sign * 64.0])
            if np.isinf(end):
                assert np.isfinite(loss.conjugate(far, one))
                continue
            assert loss.conjugate(at, one) == pytest.approx(at @ far - loss.value(far, one), abs=1e-13)
            assert loss.conjugate(at + sign * 1e-6, one) == np.inf
            assert loss.dual_project(at + sign * 1e-6, one).tolist() == [end]


@every_loss
def test_projected_points_of_weighted_losses_are_in_the_domain(loss):
    """s * c / s is not always c: the certificate must not fall to -inf for one unit in the last place."""
    rng = np.random.default_rng(8)
    y, s = targets(loss, rng, 400), rng.uniform(0.01, 5.0, size=400)
    u = loss.dual_project(rng.normal(size=400) * 50, y, s)
    assert np.isfinite(loss.conjugate(u, y, s))
    assert loss.dual_project(u, y, s) == pytest.approx(u, rel=1e-15)


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


SEPARABLE = [kind for kind in REGISTRY.values() if issubclass(kind, SeparableLoss)]


@for_each("kind", SEPARABLE, ids=lambda kind: kind.name)
@for_each("weighting", WEIGHTINGS)
def test_parts_add_up(kind, weighting, monkeypatch):
    """Sums over many samples go some samples at a time: the same numbers."""
    loss = kind.examples()[0]
    if weighting != "unweighted" and not loss.weighs_samples:
        pytest.skip("counts samples")
    _, z, y, s = loss_data(loss, weighting, 50)
    z, y, s = np.tile(z, 9), np.tile(y, 9), None if s is None else np.tile(s, 9)
    found = []
    for at_once in (1 << 16, 7):
        monkeypatch.setattr(module, "SLAB_ROWS", at_once)
        u = loss.dual_project(loss.gradient(z, y, s), y, s)
        outside = u + np.where(np.arange(z.size) == 10, 1e6, 0.0)
        values = loss.value(z, y, s), loss.conjugate(u, y, s), loss.conjugate(outside, y, s)
        found.append((*values, loss.gradient(z, y, s), loss.hessian(z, y, s), u))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-300)
