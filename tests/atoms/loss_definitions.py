"""The definitions of the losses in plain Python, one sample at a time: what the tests hold them against."""

import math

import pytest
from hypothesis import strategies as st

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


def _huber(r, delta):
    return r * r / 2 if abs(r) <= delta else delta * abs(r) - delta**2 / 2


def _logistic(m):
    return math.log1p(math.exp(-m)) if m > 0 else -m + math.log1p(math.exp(m))


#: (loss, its definition for one sample)
DEFINITIONS = [
    (SquaredLoss(), lambda z, y: (z - y) ** 2 / 2),
    (SumOfSquares(), lambda z, y: (z - y) ** 2),
    (AbsoluteLoss(), lambda z, y: abs(z - y)),
    (QuantileLoss(q=0.2), lambda z, y: 0.2 * (y - z) if y > z else 0.8 * (z - y)),
    (QuantileLoss(q=0.9), lambda z, y: 0.9 * (y - z) if y > z else 0.1 * (z - y)),
    (HuberLoss(), lambda z, y: _huber(z - y, 1.0)),
    (HuberLoss(delta=0.3), lambda z, y: _huber(z - y, 0.3)),
    (HingeLoss(), lambda z, y: max(0.0, 1 - y * z)),
    (SquaredHingeLoss(), lambda z, y: max(0.0, 1 - y * z) ** 2),
    (LogisticLoss(), lambda z, y: _logistic(y * z)),
    (PoissonLoss(), lambda z, y: math.exp(z) - y * z),
]
separable = pytest.mark.parametrize(("loss", "definition"), DEFINITIONS, ids=lambda v: getattr(v, "name", ""))

LOSSES = [loss for loss, _ in DEFINITIONS] + [SquareRootLoss(), SquareRootLoss(eps=0.5)]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)

TARGETS = {
    "real": st.floats(-5, 5),
    "sign": st.sampled_from([-1.0, 1.0]),
    "count": st.integers(0, 9).map(float),
}


def targets_for(loss, rng, n):
    if loss.labels == "sign":
        return rng.choice([-1.0, 1.0], size=n)
    if loss.labels == "positive":
        return rng.gamma(2.0, size=n)
    return rng.integers(0, 9, size=n).astype(float) if loss.labels == "count" else rng.normal(size=n)
