"""The highest value of a concave function of one number: at an end, of a parabola, of anything else."""

import numpy as np
import pytest

from mtldsl.proof.bound import _highest
from tests.loops import for_each

CASES = {
    "rises at its end": (lambda t: np.log1p(t), 0.8, 0.8),
    "a parabola inside": (lambda t: 1.0 + 2.0 * t - 3.0 * t * t, 0.9, 1.0 / 3.0),
    "a parabola that falls": (lambda t: -t - t * t, 0.5, 0.0),
    "an entropy": (lambda t: -t * np.log(max(t, 1e-300)) + 0.2 * t, 0.9, np.exp(-0.8)),
    "two straight lines": (lambda t: min(t, 0.4 - 0.5 * t), 1.0, 0.8 / 3.0),
}


@for_each("name", CASES)
def test_it_is_found(name):
    value, largest, top = CASES[name]
    asked = []

    def counted(t):
        assert 0.0 <= t <= largest
        asked.append(t)
        return value(t)

    at, best = _highest(counted, largest, largest, value(largest))
    assert best == value(at) >= value(largest)
    assert at == pytest.approx(top, abs=0.02 * largest)
    assert len(asked) <= (5 if "parabola" in name else 21)
