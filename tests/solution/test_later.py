"""Parts of a solution that wait until they are read are what they would have been at once."""

import copy
import pickle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solution.later import Later


@pytest.fixture
def solution():
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 3)), rng.normal(size=(20, 2)))
    W = mtl.Weights(tasks)
    return mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).solve()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_have_them(solution, copied):
    other = copied(solution)
    assert not any(isinstance(value, Later) for value in other.__dict__.values())
    np.testing.assert_array_equal(other.noise_levels, solution.noise_levels)
    for name, one in solution.multipliers.items():
        np.testing.assert_array_equal(other.multipliers[name], one)
