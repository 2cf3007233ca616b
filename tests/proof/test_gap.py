"""The size below which an optimum counts as zero: the same number, asked for late or at once."""

import pickle

import numpy as np

import mtldsl as mtl
from mtldsl.proof.gap import Scale, _median_of_rows, objective_scale, over, relative_gap
from tests.loops import for_each


@for_each("columns", [1, 2, 5, 8])
def test_medians_are_numpys(columns):
    table = np.random.default_rng(0).normal(size=(7, columns)).round(1)
    np.testing.assert_allclose(_median_of_rows(table), np.median(table, axis=1), rtol=1e-15, atol=1e-16)


@for_each("offset", [0.0, 1e6])
def test_a_late_scale_is_the_scale(offset):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)) + offset
    tasks = mtl.Tasks.shared(X, Y)
    W = mtl.Weights(tasks, intercept=True)
    form = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W)).form()
    exact, late = objective_scale(form), Scale(form)
    assert 0 < exact <= late.most
    for size in (0.0, 0.5 * exact, 2 * exact, 0.9 * late.most, 1.1 * late.most, 1.0):
        assert over(size, late) == over(size, exact) == max(size, exact)
        assert relative_gap(size, 0.9 * size, late) == relative_gap(size, 0.9 * size, exact)
    assert pickle.loads(pickle.dumps(late)) == exact
