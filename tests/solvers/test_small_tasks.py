"""Compiled Newton steps of small tasks beside a ridge: the steps that numpy takes for all tasks together."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.compile.single_block import single_block
from mtldsl.solvers.multipliers import newton as newton_module
from mtldsl.solvers.multipliers.designs import Designs
from mtldsl.solvers.multipliers.newton import Newton, Penalties
from mtldsl.solvers.multipliers.outer import first_state
from mtldsl.solvers.multipliers.row_part import RidgePart
from mtldsl.solvers.multipliers.scores import KinkedScores
from mtldsl.solvers.multipliers.small_tasks import SmallTasks
from mtldsl.solvers.rows.penalty import RowPenalty


def parts_of(loss, is_shared, intercept, n=40, d=6, m=3, seed=0):
    rng = np.random.default_rng(seed)
    if is_shared:
        X = 2.0 + rng.normal(size=(n, d))
        tasks = mtl.Tasks.shared(X, np.sign(rng.normal(size=(n, m)) + X[:, :m] - 2.0))
    else:
        sizes = [n, n // 2, 4]
        Xs = [1.0 + rng.normal(size=(size, d)) for size in sizes]
        tasks = mtl.Tasks.separate(Xs, [np.sign(rng.normal(size=size)) for size in sizes])
    W = mtl.Weights(tasks, intercept=intercept)
    form = mtl.minimize(loss(W, tasks) + 3.0 * mtl.ridge(W)).form()
    facts = single_block(form)
    designs = Designs(facts.loss)
    return designs, KinkedScores(facts.loss), RidgePart(RowPenalty.of(form.functions, (d, m)), designs.unit())


@pytest.mark.parametrize("loss", [mtl.hinge_loss, mtl.absolute_loss])
@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    "size", [0.02, 0.5, 30.0]
)  # many rows at kinks, whose systems are of features; few, by rows
def test_the_same_steps(loss, is_shared, intercept, size):
    designs, scores, part = parts_of(loss, is_shared, intercept)
    rng = np.random.default_rng(1)
    d, m = len(part.unit), designs.n_tasks
    u = np.clip(rng.normal(size=designs.offsets[-1]), scores.low, scores.high)
    at = first_state(designs, 0.1 * rng.normal(size=(d, m)), np.zeros(m), u, -designs.adjoint(u))
    before = [array.copy() for array in (at.W, at.b, at.z, at.u, at.P)]
    penalties = Penalties(np.linspace(size, 2.0 * size, m), np.full(m, 3.0), np.linspace(0.1, 0.3, m))
    fast, plain = Newton(designs, scores, part), Newton(designs, scores, part)
    assert fast.small is not None
    plain.small = None
    for most in (1, 40):
        (one, taken), (other, asked) = fast.minimize(at, penalties, most), plain.minimize(at, penalties, most)
        np.testing.assert_array_equal(taken, asked)
        assert taken.min() > 0
        for name in ("W", "b", "z", "u", "P", "v"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-7, atol=1e-9)
    for array, was in zip((at.W, at.b, at.z, at.u, at.P), before, strict=True):
        np.testing.assert_array_equal(array, was)


def test_where_rounding_leaves_no_factor_numpy_takes_the_step(monkeypatch):
    designs, scores, part = parts_of(mtl.hinge_loss, True, True)
    at = first_state(designs, np.zeros((6, 3)), np.zeros(3), None, None)
    penalties = Penalties(np.ones(3), np.full(3, 3.0), np.full(3, 0.1))
    fast = Newton(designs, scores, part)
    expected, _ = fast.minimize(at, penalties)
    monkeypatch.setattr(newton_module.SmallTasks, "minimize", lambda *_: None)
    found, steps = fast.minimize(at, penalties)
    assert steps.min() > 0
    np.testing.assert_allclose(found.W, expected.W, rtol=1e-7, atol=1e-9)


def test_inputs_that_are_large_sparse_or_masked_go_by_numpy():
    designs, scores, part = parts_of(mtl.hinge_loss, True, True)
    assert SmallTasks.takes(designs, scores, part)
    X = np.asfortranarray(designs.X)
    designs.X = X
    assert not SmallTasks.takes(designs, scores, part)
    wide, scores, part = parts_of(mtl.hinge_loss, True, True, n=60, d=201)
    assert not SmallTasks.takes(wide, scores, part)
    long, scores, part = parts_of(mtl.hinge_loss, True, True, n=44_000)
    assert not SmallTasks.takes(long, scores, part)
