"""Columns far from zero beside an intercept: solved, proven and told as the same columns near zero, whatever the loss, penalty and layout."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.loops import for_each
from tests.models import with_weights

N = 60
RNG = np.random.default_rng(0)
NEAR = RNG.normal(size=(N, 3))
SIGNAL = NEAR @ RNG.normal(size=(3, 2)) + 0.3 * RNG.normal(size=(N, 2))
#: (what differs, where it lies): sums of the two are exact
FAR = {
    "constant 2^53": (np.zeros(N), 2.0**53),
    "seconds of a day since 1970": (RNG.integers(-43_200, 43_200, N) / 1.0, 1.6e9),
    "years": (RNG.integers(0, 20, N) / 1.0, 2000.0),
    "cents of millions": (np.round(RNG.normal(size=N) * 2**10) / 2**10, -(2.0**33)),
}
LOSSES = ["squared_loss", "absolute_loss", "huber_loss", "logistic_loss", "hinge_loss", "poisson_loss"]
PENALTIES = ["ridge", "l1_norm", "l21_norm", "trace_norm"]


def labels(loss):
    if loss in ("logistic_loss", "hinge_loss"):
        return np.where(SIGNAL > 0, 1.0, -1.0)
    return np.round(np.exp(0.3 * SIGNAL)) if loss == "poisson_loss" else SIGNAL


def tasks_of(kind, column, Y):
    X = np.c_[NEAR, column]
    kept = np.random.default_rng(1).random(Y.shape) < 0.8
    if kind == "separate":
        return mtl.Tasks.separate([X[k] for k in kept.T], [y[k] for y, k in zip(Y.T, kept.T, strict=True)])
    if kind == "missing":
        return mtl.Tasks.shared(X, np.where(kept, Y, np.nan))
    s = np.random.default_rng(2).uniform(0.5, 2.0, Y.shape) if kind == "weights" else None
    return mtl.Tasks.shared(X, Y, sample_weights=s)


def model(tasks, loss="squared_loss", penalty="l21_norm", **options):
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(getattr(mtl, loss)(W, tasks) + 0.5 * getattr(mtl, penalty)(W), **options)


@pytest.mark.by_default("years")
@for_each("loss", LOSSES)
@pytest.mark.parametrize("name", FAR)
def test_the_optimum_is_that_of_the_same_columns_near_zero(name, loss):
    (differs, where), penalty = FAR[name], PENALTIES[LOSSES.index(loss) % 4]
    kind = ["table", "missing", "weights", "separate"][(LOSSES.index(loss) + list(FAR).index(name)) % 4]
    far = model(tasks_of(kind, differs + where, labels(loss)), loss, penalty).solve()
    near = model(tasks_of(kind, differs, labels(loss)), loss, penalty).solve()
    assert far.status == near.status == "optimal", (far, near)
    assert far.objective == pytest.approx(near.objective, rel=3e-6)  # each within 1e-6 of the optimum
    assert far.dual_bound <= near.objective * (1 + 1e-9) and near.dual_bound <= far.objective * (1 + 1e-9)
    if not differs.any():
        assert not far.W[3].any()


def test_losses_of_the_same_weights_move_together():
    found = []
    for where in (0.0, 2.0**40):
        tasks, W = with_weights(tasks_of("table", where + np.arange(N) / 64.0, SIGNAL), intercept=True)
        both = mtl.squared_loss(W, tasks) + 0.3 * mtl.absolute_loss(W, tasks) + mtl.l21_norm(W)
        found.append(mtl.minimize(both).solve())
    assert [one.status for one in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=3e-6)


def test_an_intercept_beyond_float64_is_not_called_optimal():
    """Numbers of 2^53 + 2k: predictions beside them are multiples of 1/64."""
    column = 2.0**53 + 2.0 * np.random.default_rng(3).integers(0, 50, N)
    found = model(tasks_of("table", column, labels("absolute_loss")), "absolute_loss").solve()
    assert found.status == "stalled" and "take their mean off" in found.note
    assert found.dual_bound < found.objective * (1 - 1e-6)


def test_the_direction_of_no_return_is_that_of_the_columns_given():
    tasks = tasks_of("table", 1e6 + np.arange(N), np.where(NEAR[:, :1] > 0, 1.0, -1.0))
    W = mtl.Weights(tasks, intercept=True)
    found = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.0 * mtl.l1_norm(W)).solve()
    D = found.unattained.direction
    margins = tasks.targets * (tasks.X @ D["W"] + D["W.intercept"]).ravel()
    assert found.status == "unattained" and margins.min() > -1e-6 * margins.max() and margins.max() > 0
