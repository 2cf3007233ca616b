"""Batches in parts: all rows once, none in too long a call, the same results."""

import time

import numpy as np
import pytest

from mtldsl.inference import Cliques, Decoder, batch
from mtldsl.inference.log_partition import LogPartition
from tests.loops import for_each


@pytest.mark.slow
def test_after_an_error_no_part_is_begun():
    begun = []

    def action(rows):
        begun.append(rows)
        time.sleep(0.01)  # all of them take a minute
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batch.in_parts(10_000, 2, action, operations=batch.AT_ONCE)
    assert len(begun) < 5000


@for_each("method", ["elimination", "enumeration", "mplp"])
def test_results_do_not_depend_on_the_parts(monkeypatch, method):
    cliques = Cliques(5, ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4)))
    scores = np.random.default_rng(0).normal(size=(40, cliques.starts[-1]))
    decoder, log_partition = Decoder(cliques, method), LogPartition(cliques)
    whole, sums = decoder(scores), log_partition(scores)
    monkeypatch.setattr(batch, "AT_ONCE", 1)
    parts, sums_of_parts = decoder(scores), log_partition(scores)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_array_equal(parts.upper, whole.upper)
    for one, other in zip(sums_of_parts, sums, strict=True):
        np.testing.assert_array_equal(one, other)
