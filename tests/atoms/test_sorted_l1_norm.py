"""The sorted l1 norm beside formulas of its own: permutations, the l1 norm, the largest entry; and what it refuses."""

from itertools import permutations

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.regularizers.sorted_entries import SortedL1Norm
from tests.loops import for_each

RNG = np.random.default_rng(0)


def test_it_is_the_largest_sum_over_all_orders_of_the_weights():
    a, W = np.sort(RNG.uniform(size=6))[::-1], RNG.normal(size=(3, 2))
    over_orders = max(np.dot(order, np.abs(W).ravel()) for order in permutations(a))
    assert SortedL1Norm(weights=a).value(W) == pytest.approx(over_orders, rel=1e-14)


def test_equal_weights_are_l1_and_one_weight_the_max_norm():
    """Equal weights are the l1 norm and one weight the largest entry."""
    W = RNG.normal(size=(4, 3))
    equal, first = SortedL1Norm(weights=2.0), SortedL1Norm(weights=[1.0] + 11 * [0.0])
    assert equal.value(W) == pytest.approx(2.0 * np.abs(W).sum())
    np.testing.assert_allclose(equal.prox(W, 0.3), np.sign(W) * np.maximum(np.abs(W) - 0.6, 0), atol=1e-15)
    assert first.value(W) == pytest.approx(np.abs(W).max()) and first.dual_norm(W) == pytest.approx(
        np.abs(W).sum()
    )


def test_the_prox_pools_and_keeps_signs():
    """Worked by hand: 5, 4 less 3, 1 become 2, 3 and are pooled to 2.5; 1 less 0 stays."""
    P = SortedL1Norm(weights=[3.0, 1.0, 0.0]).prox(np.array([[-4.0, 1.0, 5.0]]), 1.0)
    np.testing.assert_allclose(P, [[-2.5, 1.0, 2.5]])


@for_each(
    "options, says",
    [
        ({"weights": [1.0, 2.0]}, r"weight 2 is 2, more than the one before it, 1: not convex"),
        ({"weights": [0.0, 0.0]}, "all weights are zero"),
        ({"weights": [1.0, 1.0]}, "there are 2 weights for 3 x 2 entries"),
        ({"weights": [2.0, -1.0]}, r"the weight at 1 is -1"),
        ({"q": 1.5}, "q must be a number between 0 and 1"),
        ({"weights": 1.0, "q": 0.1}, "write one of the two"),
    ],
)
def test_what_is_refused(options, says):
    W = mtl.Weights(mtl.Tasks.shared(np.eye(3), np.ones((3, 2))))
    with pytest.raises(mtl.ModelError, match=says):
        mtl.sorted_l1_norm(W, **options)
