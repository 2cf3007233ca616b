"""Scores of rows that are counted are scikit-learn's of rows that are repeated."""

import numpy as np
import pytest

from mtldsl.scoring.counted import _BY_NAME, counted
from mtldsl.scoring.measures import measure


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_BY_NAME))
def test_what_is_counted_is_what_is_repeated(name):
    rng = np.random.default_rng(0)
    by, undefined = measure(name), 0
    for _ in range(60):
        n = int(rng.integers(2, 9))
        y = 1e3 + rng.normal(size=n) if by.needs == "values" else rng.choice([-1.0, 1.0], size=n)
        p = y + rng.normal(size=n) if by.needs == "values" else rng.integers(-2, 3, size=n).astype(float)
        if by.needs == "labels":
            p = np.where(p >= 0, 1.0, -1.0)
        times = np.stack([np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(12)])
        found = counted(by)(y, p, times.astype(float))
        for row, score in zip(times, found, strict=True):
            rows = np.repeat(np.arange(n), row)
            np.testing.assert_allclose(score, by.of_task(y[rows], p[rows]), rtol=1e-9, atol=1e-12)
            undefined += bool(np.isnan(score))
    assert undefined > 0 or by.defined == "any"
