"""`conditions` takes solutions; weights, which students try first, are answered with what to write."""

import numpy as np
import pytest

import mtldsl as mtl


def test_weights_are_not_a_solution():
    tasks = mtl.Tasks.shared(np.eye(2), np.array([[2.0], [0.0]]))
    W = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
    with pytest.raises(mtl.errors.ModelError, match=r"not a solution with a certificate.*check_bound"):
        problem.conditions(np.ones((2, 1)))
