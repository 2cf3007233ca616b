"""Labels far from zero are moved there and back: the model is the same, and its signal is not rounded away."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from tests.loops import for_each
from tests.models import with_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
SIGNAL = X @ RNG.normal(size=(3, 2)) + RNG.normal(size=(40, 2))
FAR = [name for name, atom in REGISTRY.items() if issubclass(atom, Loss) and atom.of_residuals]
#: sums over samples with a kink in each
KINKED = [name for name in FAR if REGISTRY[name].separable and not REGISTRY[name].smooth]


def problem(Y, loss="squared_loss", intercept=True):
    tasks, W = with_weights(mtl.Tasks.shared(X, Y), intercept=intercept)
    return mtl.minimize(getattr(mtl, loss)(W, tasks) + 0.3 * mtl.l21_norm(W))


def test_of_residuals_says_whether_a_loss_is_one():
    """Labels and predictions move together where the trait says so, and nowhere else."""
    real = [atom for atom in REGISTRY.values() if issubclass(atom, Loss) and atom.labels == "real"]
    assert len(real) >= len(FAR) >= 6 and len(KINKED) >= 2
    for cls in real:
        for atom in cls.examples():
            z, y = RNG.normal(size=12), RNG.normal(size=12)
            moves = atom.value(z + 8.0, y + 8.0) == pytest.approx(atom.value(z, y), rel=1e-12)
            assert moves == atom.of_residuals, f"write of_residuals = {moves} in {cls.__name__}"


@for_each("loss", FAR)
def test_the_optimum_of_the_signal_is_found(loss):
    """Offsets that are powers of two leave the labels' last digits as they are: the two optima are equal."""
    signal = np.round(SIGNAL * 2**8) / 2**8
    truth = problem(signal, loss).solve(tol=1e-7)
    # the rounding of an intercept counts once where the loss has a kink, and squared where it has none
    offset = np.array([2.0**24, -(2.0**20)] if loss in KINKED else [2.0**40, -(2.0**33)])
    found = problem(signal + offset, loss).solve(tol=1e-7)
    assert truth.status == found.status == "optimal"
    assert found.objective == pytest.approx(truth.objective, rel=3e-7)
    assert found.blocks["W.intercept"][0] == pytest.approx(truth.blocks["W.intercept"][0] + offset, rel=1e-8)
    # weights of objectives that agree to 1e-7 agree to its root; beside the offsets float64 keeps less than that
    np.testing.assert_allclose(found.predict(X), truth.predict(X) + offset, atol=1e-3)


def test_a_warm_start_is_in_the_units_typed():
    far = problem(SIGNAL + 1e9)
    first = far.solve(tol=1e-8)
    again = far.solve(solver="admm", tol=1e-8, warm_start=dict(first.blocks))
    assert again.status == "optimal" and again.history[0]["objective"] <= first.objective * (1 + 1e-3)


def test_missing_labels_weights_and_separate_inputs():
    Y = SIGNAL + 1e10
    Y[RNG.random(Y.shape) < 0.3] = np.nan
    weights = RNG.uniform(0.5, 2.0, size=Y.shape)
    kept = ~np.isnan(Y)
    shared = mtl.Tasks.shared(X, Y, sample_weights=weights)
    separate = mtl.Tasks.separate(
        [X[k] for k in kept.T],
        [y[k] for y, k in zip(Y.T, kept.T, strict=True)],
        sample_weights=[s[k] for s, k in zip(weights.T, kept.T, strict=True)],
    )
    found = []
    for tasks in (shared, separate):
        W = mtl.Weights(tasks, intercept=True)
        found.append(mtl.minimize(mtl.squared_loss(W, tasks) + 0.3 * mtl.l1_norm(W)).solve(tol=1e-8))
    assert [s.status for s in found] == ["optimal", "optimal"]
    assert found[0].objective == pytest.approx(found[1].objective, rel=3e-8)


@for_each("offset", [2.0**k for k in (40, 43, 46, 50, 53, 60)])
@for_each("penalty", ["l21_norm", "ridge"])
def test_the_objective_is_that_of_the_intercepts_returned(offset, penalty):
    """Beside labels of 1e15 an intercept is a multiple of 1/8."""
    tasks, W = with_weights(mtl.Tasks.shared(X, SIGNAL + offset), intercept=True)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + 0.3 * getattr(mtl, penalty)(W)).solve()
    labels = tasks.targets.reshape(2, -1).T - offset  # exactly
    residual = X @ solution.W + (solution.intercept - offset) - labels
    norms = np.linalg.norm(solution.W, axis=1)
    size = 0.3 * (norms.sum() if penalty == "l21_norm" else (norms**2).sum() / 2)
    truth = (residual**2).sum() / 2 + size
    assert solution.objective == pytest.approx(truth, rel=1e-12)
    assert solution.dual_bound <= truth * (1 + 1e-12)
    if solution.status == "optimal":
        assert truth - solution.dual_bound <= 1e-6 * truth
    else:
        assert solution.status == "stalled" and "take their mean off the labels" in solution.note


@for_each("loss", KINKED)
def test_a_too_coarse_intercept_is_not_called_optimal(loss):
    found = problem(SIGNAL + 2.0**46, loss).solve()
    assert found.status == "stalled" and "take their mean off the labels" in found.note
    assert found.dual_bound < found.objective * (1 - 1e-6)
