"""Losses: the prox against scalar minimisation, perturbation and arithmetic in 60 digits."""

from decimal import Decimal, localcontext

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
    SquareRootLoss,
)
from tests.atoms.loss_definitions import TARGETS, separable

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of a step that is multiplied out first, and of objectives of that size.

# ------------------------------------------------------------------------------------------------------ prox

steps = st.floats(-8, 8).map(lambda e: 10.0**e)
predictions = st.floats(-30, 30)


@pytest.mark.by_default("poisson_loss-")
@separable
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_perturbation_beats_the_prox(loss, definition, data):
    z, step, y = data.draw(predictions), data.draw(steps), data.draw(TARGETS[loss.labels])
    x = float(loss.prox(np.array([z]), np.array([y]), step)[0])

    def objective(v):
        return step * definition(v, y) + (v - z) ** 2 / 2

    # the rounding of the objective itself
    slack = 8 * np.finfo(float).eps * (step * (abs(definition(x, y)) + abs(x * y)) + (x - z) ** 2)
    for change in (1e-6, 1e-3, 0.1, 1.0, 10.0):
        assert objective(x) <= objective(x + change) + slack
        assert objective(x) <= objective(x - change) + slack


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
def test_logistic_prox_to_machine_precision_for_any_step():
    with localcontext() as context:
        context.prec = 60
        for z, step, _ in _extreme_cases(60, 5):
            m, t = Decimal(z), Decimal(step)
            exact = _bisect(lambda x, m=m, t=t: x - m - t * _survival(x), m, m + t)
            for y in (1.0, -1.0):
                found = LogisticLoss().prox(np.array([y * z]), np.array([y]), step)[0]
                assert abs(found - y * float(exact)) <= 1e-15 * max(1.0, abs(float(exact))), (z, step, y)


@pytest.mark.slow
def test_poisson_prox_to_machine_precision_for_any_step():
    with localcontext() as context:
        context.prec = 60
        for z, step, rng in _extreme_cases(60, 6):
            y = float(rng.integers(0, 40))
            t = Decimal(step)
            c = Decimal(z) + t * Decimal(y)  # x + t e^x = c
            low = min(c, Decimal(0)) - t  # e^x <= 1 there
            high = min(c, max(Decimal(0), (max(c, Decimal(1)) / t).ln())) if c > 0 else c
            exact = _bisect(lambda x, c=c, t=t: x + t * x.exp() - c, low, high)
            found = PoissonLoss().prox(np.array([z]), np.array([y]), step)[0]
            assert abs(found - float(exact)) <= 1e-14 * max(1.0, abs(float(exact))), (z, step, y)


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


# ---------------------------------------------------------------------------------------- square-root loss


def test_square_root_prox_by_hand():
    y = np.array([1.0, 1.0])
    z = y + np.array([3.0, 4.0])  # norm 5
    assert SquareRootLoss().prox(z, y, 2.0) == pytest.approx(y + 0.6 * np.array([3.0, 4.0]))
    assert SquareRootLoss().prox(z, y, 5.0).tolist() == y.tolist()
    # 2 ||r|| is the loss with all weights 4
    assert SquareRootLoss().prox(z, y, 1.0, np.full(2, 4.0)) == pytest.approx(y + 0.6 * np.array([3.0, 4.0]))


@given(
    seed=st.integers(0, 10**6),
    spread=st.floats(0, 8),
    where=st.floats(-6, -1e-3) | st.floats(1e-3, 3),
)
@settings(max_examples=100, deadline=None)
def test_weighted_square_root_prox_obeys_its_optimality(seed, spread, where):
    """Square root prox with weights obeys its optimality condition."""
    rng = np.random.default_rng(seed)
    s, r = 10.0 ** rng.uniform(-spread, spread, size=7), rng.normal(size=7) * 3
    y = np.zeros(7)
    critical = np.linalg.norm(r / np.sqrt(s))
    step = critical * 10.0**where
    x = SquareRootLoss().prox(y + r, y, step, s)
    if step >= critical:  # 0 is the solution iff r / step is a subgradient at 0
        assert not x.any()
    else:
        pull = step * s * x / np.linalg.norm(np.sqrt(s) * x)
        # in the metric of the dual norm, whose length is the step
        assert np.linalg.norm((x + pull - r) / np.sqrt(s)) <= 4e-15 * critical


def test_smoothed_square_root_prox_by_hand():
    """Residuals 6 and 8, eps = 12, step 13: halved they are 3 and 4, the norm with eps 13, so that x + 13 / 13 x = r."""
    y, offset = np.array([1.0, 1.0]), np.array([3.0, 4.0])
    z = y + 2.0 * offset
    np.testing.assert_allclose(SquareRootLoss(eps=12.0).prox(z, y, 13.0), y + offset, rtol=1e-15)
    # weights 4: sqrt(4 * 25 + 24^2) = 26, step 13, so that x + 13 / 26 * 4 x = 3 x = r
    found = SquareRootLoss(eps=24.0).prox(y + 3.0 * offset, y, 13.0, np.full(2, 4.0))
    np.testing.assert_allclose(found, y + offset, rtol=1e-15)
    assert SquareRootLoss(eps=1.0).prox(y, y, 5.0).tolist() == y.tolist()


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    spread=st.just(0.0) | st.floats(0, 8),
    log_eps=st.floats(-12, 12),
    log_step=st.floats(-12, 12),
    log_size=st.floats(-6, 6),
    beside=st.none() | st.floats(-12, 0),
)
@settings(max_examples=300, deadline=None)
def test_smoothed_square_root_prox_solves_its_equation(seed, spread, log_eps, log_step, log_size, beside):
    """x (1 + step s / sqrt(||sqrt(s) x||^2 + eps^2)) = r, every entry, for any eps and step, and weights 16 orders apart; also
    `beside` the step from which the norm itself has the solution 0.
    """
    rng = np.random.default_rng(seed)
    s = None if spread == 0 else 10.0 ** rng.uniform(-spread, spread, size=7)
    r = 10.0**log_size * rng.normal(size=7)
    eps, step = 10.0**log_eps, 10.0**log_step
    weights = np.ones(7) if s is None else s
    if beside is not None:
        step = np.linalg.norm(r / np.sqrt(weights)) * (1 + 10.0**beside)
    x = SquareRootLoss(eps=eps).prox(r, np.zeros(7), step, s)
    norm = np.sqrt(np.sum(weights * x**2) + eps**2)
    # measured: 3e-15 in 100,000 draws, whatever the scales
    np.testing.assert_allclose(x * (1.0 + step * weights / norm), r, rtol=1e-12, atol=0)
    assert np.all(np.abs(x) <= np.abs(r)) and np.all(x * r >= 0)


def test_square_root_prox_is_continuous_in_eps():
    """eps -> 0 leads to the norm's own, also where that is zero."""
    rng = np.random.default_rng(13)
    y, s = rng.normal(size=5), rng.uniform(0.1, 9.0, size=5)
    for weights in (None, s):
        for step in (0.4, 30.0):
            z = y + rng.normal(size=5)
            limit = SquareRootLoss().prox(z, y, step, weights)
            nearby = SquareRootLoss(eps=1e-10).prox(z, y, step, weights)
            np.testing.assert_allclose(nearby, limit, rtol=0, atol=1e-9)  # ten times eps
