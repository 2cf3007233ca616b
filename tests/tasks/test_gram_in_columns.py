"""Large Gram matrices are made some columns at a time: the same numbers, symmetric, and a time limit is heard on the way."""

import numpy as np
import pytest

from mtldsl.system import stops
from mtldsl.tasks import gram as module
from mtldsl.tasks.gram import gram


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(50, 200), (300, 130), (7, 65)])
def test_the_same_numbers(monkeypatch, shape, order):
    X = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    expected = gram(X)
    monkeypatch.setattr(module, "_LONG", 1.0)
    monkeypatch.setattr(module, "_MANY", 64)
    made = gram(X)
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-12 * shape[0])
    assert np.array_equal(made, made.T)


def test_a_time_limit_is_heard_on_the_way(monkeypatch):
    monkeypatch.setattr(module, "_LONG", 1.0)
    monkeypatch.setattr(module, "_MANY", 64)
    X = np.random.default_rng(0).normal(size=(200, 2000))
    with pytest.raises(stops.TimeIsUp), stops.heard(), stops.time_limit(0.001), stops.at_once():
        while True:
            gram(X)
