"""Coordinate descent through the columns of sparse inputs: the solution of the same inputs written out."""

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights


def inputs(n=80, d=200, m=1, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random_array((n, d), density=0.05, rng=rng, format="csr")
    X.data += 1.0
    W = np.zeros((d, m))
    W[:40] = rng.normal(size=(40, m))
    Y = X @ W + 0.1 * rng.normal(size=(n, m)) + 2.0
    return X, Y


TERMS = {
    "l1": lambda W: (mtl.l1_norm(W), []),
    "l1 + ridge": lambda W: (mtl.l1_norm(W) + 0.5 * mtl.ridge(W), []),
    "l21": lambda W: (mtl.l21_norm(W), []),
    "l1 + l21, W >= 0": lambda W: (0.5 * mtl.l1_norm(W) + 0.5 * mtl.l21_norm(W), [W >= 0]),
}


@for_each("term, m, intercept", zip(TERMS, [1, 3, 3, 1], [True, False, True, False], strict=True))
def test_agrees_with_dense_inputs(term, m, intercept):
    X, Y = inputs(m=m)
    found = []
    for one in (X, X.toarray()):
        tasks, W = with_weights(mtl.Tasks.shared(one, Y), intercept=intercept)
        penalty, constraints = TERMS[term](W)
        problem = mtl.minimize(mtl.squared_loss(W, tasks) + 0.1 * penalty, subject_to=constraints)
        found.append(problem.solve(solver="coordinate_descent", tol=1e-9))
    assert [solution.status for solution in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=2e-9)
