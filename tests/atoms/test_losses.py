"""Losses: values, gradients, parameters and extremes."""

import math

import numpy as np
import pytest

from mtldsl.atoms.losses import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredHingeLoss,
    SquaredLoss,
    SquareRootLoss,
    SumOfSquares,
)
from mtldsl.errors import ModelError
from tests.atoms.loss_definitions import every_loss
from tests.loops import for_each

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of sums of some ten terms, in another order.

# --------------------------------------------------------------------------------------- values and gradients

Z = np.array([2.0, -1.0, 0.5])
REAL, SIGN, COUNT = np.array([1.0, 1.0, 0.5]), np.array([1.0, 1.0, -1.0]), np.array([3.0, 0.0, 1.0])
WEIGHTS = np.array([1.0, 2.0, 4.0])


@for_each(
    ("loss", "y", "value", "weighted"),
    [
        (SquaredLoss(), REAL, 2.5, 4.5),
        (SumOfSquares(), REAL, 5.0, 9.0),
        (SquareRootLoss(), REAL, math.sqrt(5.0), 3.0),
        (SquareRootLoss(eps=2.0), REAL, 3.0, math.sqrt(13.0)),
        (AbsoluteLoss(), REAL, 3.0, 5.0),
        (QuantileLoss(), REAL, 1.5, 2.5),
        (QuantileLoss(q=0.75), REAL, 0.25 + 1.5, 0.25 + 3.0),
        (HuberLoss(), REAL, 0.5 + 1.5, 0.5 + 3.0),
        (HingeLoss(), SIGN, 2.0 + 1.5, 4.0 + 6.0),
        (SquaredHingeLoss(), SIGN, 4.0 + 2.25, 8.0 + 9.0),
        (LogisticLoss(), SIGN, 0.12692801 + 1.31326169 + 0.97407698, 0.12692801 + 2.62652338 + 3.89630794),
        (PoissonLoss(), COUNT, 1.38905610 + 0.36787944 + 1.14872127, 1.38905610 + 0.73575888 + 4.59488508),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_values_by_hand(loss, y, value, weighted):
    # three numbers written to eight decimals, and with weights that add up to seven
    assert loss.value(Z, y) == pytest.approx(value, abs=3e-8)
    assert loss.value(Z, y, WEIGHTS) == pytest.approx(weighted, abs=1e-7)


@for_each(
    ("loss", "at", "low", "high"),
    [
        (AbsoluteLoss(), 2.0, -1.0, 1.0),
        (QuantileLoss(q=0.2), 2.0, -0.2, 0.8),
        (HingeLoss(), 1.0, -1.0, 0.0),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_gradient_at_a_kink_is_a_subgradient(loss, at, low, high):
    y = np.array([1.0]) if loss.labels == "sign" else np.array([at])
    assert low <= loss.gradient(np.array([at]), y)[0] <= high


def test_square_root_loss_of_no_residuals_has_subgradient_zero():
    """Square root loss has the zero subgradient where all residuals vanish."""
    y = np.array([1.0, 2.0])
    assert SquareRootLoss().gradient(y, y).tolist() == [0.0, 0.0]
    assert SquareRootLoss().gradient(y, y, np.array([1.0, 3.0])).tolist() == [0.0, 0.0]


@for_each("eps", [1e-9, 1e-3, 0.5, 1e6])
def test_smoothed_square_root_loss(eps):
    """The norm of the residuals with eps as one residual more; zero residuals have the gradient zero and the value eps."""
    rng = np.random.default_rng(11)
    loss = SquareRootLoss(eps=eps)
    assert loss.smooth and loss.curvature == 1.0 / eps
    for size in (1e-6, 1e-2, 1.0, 1e4):
        z, y, s = size * rng.normal(size=6), size * rng.normal(size=6), 10.0 ** rng.uniform(-4, 4, size=6)
        for weights in (None, s):
            with_one_more = [np.append(v, c) for v, c in ((z, eps), (y, 0.0))]
            more = None if weights is None else np.append(weights, 1.0)
            assert loss.value(z, y, weights) == pytest.approx(
                SquareRootLoss().value(*with_one_more, more), rel=1e-14
            )
            expected = SquareRootLoss().gradient(*with_one_more, more)[:-1]
            np.testing.assert_allclose(loss.gradient(z, y, weights), expected, rtol=1e-13)
    assert loss.value(y, y) == eps and not loss.gradient(y, y).any()


def test_square_root_loss_of_no_residual_has_no_majorizer():
    """Square root loss of no residual has no quadratic above it."""
    y, off = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert SquareRootLoss().majorizer_weight(y, y) == np.inf
    assert SquareRootLoss(eps=0.25).majorizer_weight(y, y) == 4.0
    assert SquareRootLoss().majorizer_weight(y + off, y) == pytest.approx(0.2)
    assert SquareRootLoss(eps=12.0).majorizer_weight(y + off, y) == pytest.approx(1.0 / 13.0)
    assert SquareRootLoss().majorizer_weight(y + off, y, np.full(2, 4.0)) == pytest.approx(0.1)
    assert SquaredLoss().majorizer_weight(y, y) == 1.0 and SumOfSquares().majorizer_weight(y, y) == 2.0
    assert HuberLoss().majorizer_weight(y, y) is None


@every_loss
def test_curvature_bounds_the_gradient_slope_and_is_reached(loss):
    """Curvature bounds the slope of the gradient and is reached."""
    if not np.isfinite(loss.curvature):
        assert not loss.smooth or loss.name in ("poisson_loss", "exponential_loss", "gamma_loss")
        return
    z = np.linspace(-6, 6, 4001)
    y = np.ones_like(z)
    one_by_one = [loss.gradient(z[j : j + 1], y[j : j + 1])[0] for j in range(z.size)]
    slopes = np.diff(loss.gradient(z, y) if loss.separable else one_by_one) / np.diff(z)
    # the steepest place lies between points that are 0.003 apart: the square of that; above it, rounding over 0.003
    assert slopes.max() == pytest.approx(loss.curvature, rel=1e-5)
    assert slopes.max() <= loss.curvature * (1 + 1e-9)


# ------------------------------------------------------------------------------------ extremes and interfaces


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


@for_each("y", [0.0, 1.0, 7.0])
def test_poisson_loss_is_least_at_the_logarithm_of_the_count(y):
    least = -PoissonLoss().conjugate(np.zeros(1), np.array([y]))
    assert least == pytest.approx(y - y * math.log(y) if y else 0.0)
    at = math.log(y) if y else -700.0
    # e^log(y) is rounded
    assert PoissonLoss().value(np.array([at]), np.array([y])) == pytest.approx(least, abs=1e-12)


@for_each(
    ("make", "typed", "instead"),
    [
        (lambda: HuberLoss(delta=0.0), "delta=0.0", "> 0"),
        (lambda: HuberLoss(delta=-1), "delta=-1", "> 0"),
        (lambda: HuberLoss(delta=np.inf), "delta=inf", "finite"),
        (lambda: HuberLoss(delta="1"), "delta='1'", "number"),
        (lambda: HuberLoss(delta=np.array([1.0, 2.0])), "delta=array([1., 2.])", "number"),
        (lambda: SquareRootLoss(eps=-1e-3), "eps=-0.001", ">= 0"),
        (lambda: SquareRootLoss(eps=np.inf), "eps=inf", "finite"),
        (lambda: SquareRootLoss(eps=np.array([1.0, 2.0])), "eps=array([1., 2.])", "number"),
        (lambda: QuantileLoss(q=0), "q=0", "0 < q < 1"),
        (lambda: QuantileLoss(q=1.0), "q=1.0", "0 < q < 1"),
        (lambda: QuantileLoss(q=float("nan")), "q=nan", "0 < q < 1"),
        (lambda: QuantileLoss(q=True), "q=True", "0 < q < 1"),
        (lambda: QuantileLoss(q=None), "q=None", "0 < q < 1"),
    ],
)
def test_wrong_parameters_are_refused_as_typed(make, typed, instead):
    with pytest.raises(ModelError) as refusal:
        make()
    assert typed in str(refusal.value) and instead in str(refusal.value)


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


@every_loss
def test_latex_shows_the_prediction_and_leaves_no_gap(loss):
    shown = loss.latex("X_i W_i")
    assert "X_i W_i" in shown and "{}" not in shown
    assert shown.count("{") == shown.count("}")
    for value in loss.arguments().values():
        assert f"{value:g}" in shown
