"""Designs that lack ranks, in some tasks or all, beside quadratics and norms between tasks that leave directions free: proven all the same."""

from fractions import Fraction

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.metrics import AUC, FScore, GMean, ROCArea
from mtldsl.certificates.certificate import certify
from mtldsl.certificates.checker import balancing
from mtldsl.certificates.checker.interval import Interval, fractions
from tests.loops import for_each
from tests.models import labels_of, with_weights

LABELS = {
    "squared_loss": "real", "huber_loss": "real", "absolute_loss": "real", "square_root_loss": "real",
    "logistic_loss": "sign", "squared_hinge_loss": "sign", "poisson_loss": "count",
    "gamma_loss": "positive",
}  # fmt: skip
PATH = np.diag([1.0, 2.0, 1.0]) - np.eye(3, k=1) - np.eye(3, k=-1)
PAIR = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
BETWEEN = {
    "mean": lambda W: mtl.mean_regularizer(W),
    "path": lambda W: mtl.graph_laplacian(W, PATH),
    "pair": lambda W: mtl.graph_laplacian(W, PAIR),
    "variation": lambda W: mtl.total_variation(W),
    "differences": lambda W: mtl.ridge(W @ np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])),
    "both": lambda W: 0.3 * mtl.graph_laplacian(W, PAIR) + mtl.total_variation(W),
    "some entries": lambda W: mtl.mean_regularizer(W) + mtl.ridge(W, weights=np.eye(5, 3)),
    "some rows": lambda W: mtl.l1_norm(W[:2]) + mtl.mean_regularizer(W[2:]),
    "kronecker": lambda W: mtl.kronecker_ridge(W, np.diag([1.0, 2, 3, 4, 5]), PATH),
}
DESIGNS = ["dummies", "duplicated", "constant", "empty"]


def inputs(kind, rng):
    shape = (6, 20) if kind == "wide" else (30, 5)
    X = [rng.normal(size=shape) for _ in range(3)]
    for i, part in enumerate(X):
        if kind == "dummies":  # all levels, of which the first task has two
            part[:, 2:] = np.eye(3)[rng.integers(0, 2 if i == 0 else 3, size=30)]
        elif kind == "duplicated":
            part[:, 3], part[:, 4] = part[:, 0], (1.0 + i) * part[:, 1]
        elif kind == "constant":
            part[:, 3], part[:, 4] = 3.0 * (i > 0), 1.0
        elif kind == "empty":
            part[:, 3 + i % 2] = 0.0
    return X


def model(loss, design, between, intercept, seed=0):
    rng = np.random.default_rng(seed)
    X, labels = inputs(design, rng), []
    for part in X:
        z = part @ rng.normal(size=part.shape[1])
        z = z - np.median(z) + 2.0 * rng.normal(size=len(z))
        labels.append(labels_of(LABELS.get(loss, "sign"), z, rng))
    tasks, W = with_weights(mtl.Tasks.separate(X, labels), intercept=intercept)
    charged = 0.5 * BETWEEN[between](W) if between in BETWEEN else 0
    return mtl.minimize(getattr(mtl, loss)(W, tasks) + charged)


@pytest.mark.slow
@for_each("loss", ["squared_loss", "absolute_loss", "logistic_loss"])
@for_each("between", BETWEEN)
def test_a_bound_of_multipliers_holds_at_other_points(between, loss):
    """Multipliers of any point, moved: their bound lies below the optimum. Those of absolute residuals are at an end of their interval."""
    problem = model(loss, "dummies", between, True)
    optimum = problem.solve().objective
    rng = np.random.default_rng(1)
    for size in (0.0, 1.0):
        form = problem.form()
        point = {name: size * rng.normal(size=shape) for name, shape in form.shapes.items()}
        found = certify(form, point)
        assert -np.inf < found.dual_bound <= optimum * (1.0 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@for_each("between", BETWEEN)
def test_rank_deficient_designs_are_proven(design, between):
    """Every quadratic and seminorm between tasks beside every design, in turn with every loss, with and without an intercept."""
    turn = list(BETWEEN).index(between) + len(BETWEEN) * DESIGNS.index(design)
    loss, intercept = list(LABELS)[turn % len(LABELS)], turn // len(LABELS) % 2 == 0
    solution = model(loss, design, between, intercept).solve()
    assert solution.status == "optimal", (loss, design, intercept, solution.note)


@for_each("n_tasks", [3, 400])
@for_each("size", [1.0, 1e4])
def test_an_optimum_of_zero_is_proven_beside_equal_tasks(n_tasks, size):
    tasks, W = with_weights(mtl.Tasks.shared(np.eye(2), np.tile([[size], [-size]], (1, n_tasks))))
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.mean_regularizer(W)).solve()
    assert solution.status == "optimal", (solution, solution.note)
    assert solution.objective <= 1e-20 * n_tasks * size**2


WIDE = ["squared_loss", "huber_loss", "absolute_loss", "hinge_loss", "squared_hinge_loss"]


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(2))
@for_each("loss", WIDE)
def test_an_optimum_of_zero_is_proven_of_wide_inputs(turn, loss):
    k = WIDE.index(loss)
    intercept, between = (k + turn) % 2 == 0, ["mean", "path", "pair", "variation"][(k + 2 * turn) % 4]
    solution = model(loss, "wide", between, intercept, seed=5).solve()
    assert solution.status == "optimal", (solution, solution.note)


@pytest.mark.slow
@for_each("metric, solver", [
    (FScore(), "admm"), (FScore(), "multipliers"), (AUC(), "multipliers"), (ROCArea(), "admm"), (GMean(), "admm"),
])  # fmt: skip
def test_labellings_are_proven_beside_what_tasks_share(metric, solver, tmp_path):
    """Features of unlike units beside a norm of differences: multipliers of labellings are moved until they are stationary."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) * 10.0 ** np.linspace(-1, 1, 6)
    z = X @ rng.normal(size=(6, 3))
    Y = np.where(z + z.std() * rng.normal(size=z.shape) > z.std(), 1.0, -1.0)
    tasks, W = with_weights(mtl.Tasks.shared(X, Y))
    problem = mtl.minimize(mtl.structured_hinge(W, tasks, metric=metric) + 0.1 * mtl.total_variation(W))
    solution = problem.solve(solver=solver)
    assert solution.status == "optimal", (solution, solution.note)
    assert mtl.verify_proof(solution.certificate.save(tmp_path / "proof.npz"), tasks).confirmed


def test_what_a_scaled_direction_does_is_not_rounded():
    """0.1 * 3 is between two numbers of float64: an interval holds it, and fractions are it."""
    numbers = np.array([3.0, -1.0, 0.1])
    products = [Fraction(number) * Fraction(0.1) for number in numbers.tolist()]
    multiples = balancing._exact_multiples(numbers, Fraction(0.1))
    assert multiples.tolist() == products
    for zero in (np.zeros(1), fractions(np.zeros(1))):
        held = balancing._enclose(multiples, Interval(zero, zero))
        assert all(
            Fraction(low) <= one <= Fraction(high)
            for low, one, high in zip(held.low.tolist(), products, held.high.tolist(), strict=True)
        )
    assert balancing._exact_multiples(numbers, -0.25).dtype == float  # a power of two rounds nothing


def test_rows_with_equal_labels_in_all_tasks_have_no_multipliers():
    """Nothing penalizes what tasks have in common, so that these rows ask for multipliers of zero."""
    rng = np.random.default_rng(0)
    X, common = rng.normal(size=(60, 20)), rng.normal(size=(20, 1))
    Y = X @ (common + 0.3 * rng.normal(size=(20, 3))) + 0.5 * rng.normal(size=(60, 3))
    tasks, W = with_weights(mtl.Tasks.shared(X, np.where(Y > 0, 1.0, -1.0)), intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.1 * mtl.mean_regularizer(W))
    # the optimum is not attained: weights grow until steps no longer help
    assert problem.solve().relative_gap <= 1e-5


def test_multipliers_go_to_an_end_beside_their_own_scale():
    """Labels of both signs, one row of a small weight: the middle stays, what is near an end goes there, and what has no ends stays."""
    labels, weights = np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.array([1.0, 1.0, 1e-6, 1e-6])
    W = mtl.Weights(tasks := mtl.Tasks.shared(np.eye(4), labels, sample_weights=weights))
    (loss,) = mtl.minimize(mtl.logistic_loss(W, tasks)).form().losses
    middle = np.asarray(loss.middle)
    np.testing.assert_array_equal(loss.at_ends(middle, 1e-3), middle)
    near = middle * np.array([1.0, 1e-4, 1.0, 1e-4])
    np.testing.assert_array_equal(loss.at_ends(near, 1e-3), middle * np.array([1.0, 0.0, 1.0, 0.0]))
    (free,) = mtl.minimize(mtl.squared_loss(W, tasks)).form().losses
    np.testing.assert_array_equal(free.at_ends(middle, 1e-3), middle)
