"""Newton's method for smooth losses: against the reference, on every layout of the data, and where the loss is flat or steep."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.function import REGISTRY, SeparableLoss
from mtldsl.solvers.rows import working_set
from mtldsl.solvers.rows.penalty import RowPenalty
from mtldsl.solvers.smooth import bordered, designs, ridge, row_sparse, working_newton
from mtldsl.solvers.smooth.column_model import ColumnModel
from mtldsl.solvers.smooth.model import violation

N, D, M = 60, 40, 3


def _data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    true = np.zeros((D, M))
    true[:5] = rng.normal(size=(5, M))
    return X, X @ true + 0.3 * rng.normal(size=(N, M)), rng


def _layouts(Y):
    X, _, rng = _data()
    S = sparse.csr_array(np.where(np.abs(X) > 0.8, X, 0.0))
    holes = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    parts = [slice(i, None, M) for i in range(M)]
    return {
        "shared": mtl.Tasks.shared(X, Y),
        "sparse": mtl.Tasks.shared(S, Y),
        "missing": mtl.Tasks.shared(X, holes),
        "separate": mtl.Tasks.separate([X[p] for p in parts], [Y[p, i] for i, p in enumerate(parts)]),
        "separate sparse": mtl.Tasks.separate([S[p] for p in parts], [Y[p, i] for i, p in enumerate(parts)]),
    }


def _signs():
    return np.where(_data()[1] > 0.5, 1.0, -1.0)


PENALTIES = {
    "l1": lambda W: 2 * mtl.l1_norm(W),
    "l21": lambda W: 2 * mtl.l21_norm(W),
    "both": lambda W: mtl.l1_norm(W) + mtl.l21_norm(W),
    "l1 and ridge": lambda W: mtl.l1_norm(W) + 0.5 * mtl.ridge(W),
    "l21 and ridge": lambda W: 2 * mtl.l21_norm(W) + 0.5 * mtl.ridge(W),
}


def _agrees(problem, tol=1e-7):
    assert row_sparse.why_not(problem.form()) is None
    solution = problem.solve(solver="proximal_gradient", tol=tol, max_iter=500)
    reference = problem.solve(solver="cvxpy", tol=1e-7)
    assert solution.status == "optimal", solution
    assert solution.objective == pytest.approx(reference.objective, rel=3e-6, abs=1e-7)
    return solution


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("layout", ["shared", "sparse", "missing", "separate", "separate sparse"])
def test_logistic_agrees_with_the_reference(layout, penalty):
    tasks = _layouts(_signs())[layout]
    W = mtl.Weights(tasks, intercept=penalty != "both")
    _agrees(mtl.minimize(mtl.logistic_loss(W, tasks) + PENALTIES[penalty](W)))


@pytest.mark.parametrize(
    "word", ["squared_hinge_loss", "huber_loss", "exponential_loss", "poisson_loss", "gamma_loss"]
)
@pytest.mark.parametrize("penalty", ["l1", "l21"])
def test_other_losses_agree_with_the_reference(word, penalty):
    _, Z, rng = _data()
    labels = {
        "huber_loss": 3 * Z,
        "poisson_loss": rng.poisson(np.exp(0.3 * Z)),
        "gamma_loss": np.exp(0.3 * Z),
    }
    tasks = mtl.Tasks.shared(_data()[0], labels.get(word, _signs()))
    W = mtl.Weights(tasks, intercept=True)
    _agrees(mtl.minimize(getattr(mtl, word)(W, tasks) + PENALTIES[penalty](W)))


def test_weights_that_may_not_be_negative():
    tasks = _layouts(_signs())["shared"]
    W = mtl.Weights(tasks)
    solution = _agrees(mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l1_norm(W), [W >= 0]))
    assert np.min(solution.W) >= 0


def test_sample_weights_and_task_coefficients():
    X, _, rng = _data()
    tasks = mtl.Tasks.shared(X, _signs(), sample_weights=rng.uniform(0.2, 3.0, size=(N, M)))
    W = mtl.Weights(tasks, intercept=True)
    _agrees(mtl.minimize(mtl.logistic_loss(W, tasks, mean=True) + 0.05 * mtl.l21_norm(W)))


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_columns_of_any_size_duplicates_and_constants(scale):
    X, _, _ = _data()
    X = np.column_stack([X, X[:, :3], np.ones(N), np.zeros(N)]) * scale
    tasks = mtl.Tasks.shared(X, _signs())
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 2 * scale * mtl.l21_norm(W))
    solution = problem.solve(solver="proximal_gradient", tol=1e-8, max_iter=500)
    assert solution.status == "optimal", solution


def test_the_same_input_gives_the_same_bits():
    tasks = _layouts(_signs())["sparse"]
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W))
    first, second = (problem.solve(solver="proximal_gradient", tol=1e-8) for _ in range(2))
    assert np.array_equal(first.W, second.W)


@pytest.mark.parametrize(
    "word", sorted(w for w, a in REGISTRY.items() if issubclass(a, SeparableLoss) and a.smooth)
)
def test_second_slopes_are_the_derivatives_of_slopes(word):
    rng = np.random.default_rng(1)
    z = rng.normal(size=50)
    for loss in REGISTRY[word].examples():
        y = {"sign": np.sign(rng.normal(size=50)), "count": rng.poisson(2.0, 50).astype(float)}.get(
            loss.labels, np.abs(rng.normal(size=50)) + 0.1
        )
        h = 1e-6
        both = [(loss.slope(z + e, y) - loss.slope(z + e - h, y)) / h for e in (0.0, h)]
        second = loss.second_slope(z, y)
        near = np.minimum(*both) - 1e-4, np.maximum(*both) + 1e-4
        assert np.all((near[0] <= second) & (second <= near[1]))


def test_violation_is_zero_at_an_optimum_only():
    rng = np.random.default_rng(0)
    d, m = 6, 2
    curvature, penalty = (
        np.ones((m, d)),
        RowPenalty(np.full((m, d), 0.3), np.full(d, 0.4), np.full(d, 0.2), False),
    )
    pull = 2 * rng.normal(size=(m, d))
    left = np.sign(pull) * np.maximum(np.abs(pull) - 0.3, 0.0)
    norms = np.linalg.norm(left, axis=0)
    W = left * np.maximum(1 - 0.4 / norms, 0.0) / 1.2
    assert violation(penalty, W, W - pull, curvature) == pytest.approx(0.0, abs=1e-24)
    assert violation(penalty, W + 0.1, W + 0.1 - pull, curvature) > 1e-3


# ------------------------------------------------------------------------------------------------------ ridge


@pytest.mark.parametrize("layout", ["shared", "sparse", "missing", "separate", "separate sparse"])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic_under_a_ridge_agrees_with_the_reference(layout, intercept):
    tasks = _layouts(_signs())[layout]
    W = mtl.Weights(tasks, intercept=intercept)
    _ridge_agrees(mtl.minimize(mtl.logistic_loss(W, tasks) + 0.3 * mtl.ridge(W)))


def _ridge_agrees(problem, tol=1e-9):
    assert ridge.why_not(problem.form()) is None
    solution = problem.solve(solver="proximal_gradient", tol=tol, max_iter=200)
    reference = problem.solve(solver="cvxpy", tol=1e-7)
    assert solution.status == "optimal", solution
    assert solution.objective == pytest.approx(reference.objective, rel=3e-6, abs=1e-7)
    return solution


@pytest.mark.parametrize(
    "word", ["squared_hinge_loss", "huber_loss", "exponential_loss", "poisson_loss", "gamma_loss"]
)
def test_other_losses_under_a_ridge_agree_with_the_reference(word):
    X, Z, rng = _data()
    labels = {
        "huber_loss": 3 * Z,
        "poisson_loss": rng.poisson(np.exp(0.3 * Z)),
        "gamma_loss": np.exp(0.3 * Z),
    }
    tasks = mtl.Tasks.shared(X[:, :10], labels.get(word, _signs()))
    W = mtl.Weights(tasks, intercept=True)
    _ridge_agrees(mtl.minimize(getattr(mtl, word)(W, tasks) + 0.3 * mtl.ridge(W)))


@pytest.mark.parametrize("twice", [False, True])
def test_more_features_than_samples_go_by_the_kernel(twice):
    X, _, _ = _data()
    X = X[:20] if not twice else np.vstack([X[:10], X[:10]])  # rows that repeat: a kernel without an inverse
    tasks = mtl.Tasks.shared(X, np.vstack([_signs()[:10], -_signs()[:10]]) if twice else _signs()[:20])
    W = mtl.Weights(tasks, intercept=True)
    _ridge_agrees(mtl.minimize(mtl.logistic_loss(W, tasks) + 0.05 * mtl.ridge(W)), tol=1e-7)


@pytest.mark.parametrize("weight", [1e-4, 1e4])
def test_a_ridge_of_any_strength(weight):
    X, _, _ = _data()
    tasks = mtl.Tasks.shared(np.column_stack([X[:, :15], 1e3 * X[:, :2], np.ones(N)]), _signs())
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + weight * mtl.ridge(W))
    assert problem.solve(solver="proximal_gradient", tol=1e-8, max_iter=100).status == "optimal"


def test_gram_matrices_come_out_the_same_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    C, weights = rng.normal(size=(5, 101)), rng.random(202)
    monkeypatch.setattr(designs, "_AT_ONCE", 60)
    found = designs.DenseColumns(np.arange(5), [C], 2, np.array([0, 101, 202])).gram(weights)
    np.testing.assert_allclose(found, [(C * w) @ C.T for w in np.split(weights, 2)], atol=1e-12)


@pytest.mark.parametrize("layout", ["shared", "missing", "separate", "sparse", "separate sparse"])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_ridges_without_factors(layout, intercept, monkeypatch):
    """Where factors of all Hessians would be too large, their diagonals precondition."""
    monkeypatch.setattr(bordered, "_LARGEST_SIDE", 0)
    tasks = _layouts(_signs())[layout]
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.5 * mtl.ridge(W))
    assert ridge.why_not(problem.form()) is None
    solution = problem.solve(solver="proximal_gradient", tol=1e-8)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(problem.solve(solver="cvxpy", tol=1e-7).objective, rel=1e-6)


def test_squared_columns_of_every_layout():
    for layout, tasks in _layouts(_signs()).items():
        W = mtl.Weights(tasks)
        design = designs.design_of(mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.ridge(W)).form().losses[0])
        for rows in (np.arange(D), np.array([3, 5, 17])):
            columns, u = design.columns(rows), np.random.default_rng(3).normal(size=tasks.n_samples)
            dense = [X.toarray() if sparse.issparse(X) else X for X in tasks.inputs]
            parts = np.split(u, np.cumsum(tasks.counts)[:-1])
            wanted = np.stack([(X[:, rows] ** 2).T @ part for X, part in zip(dense, parts, strict=True)])
            np.testing.assert_allclose(columns.squared_pull(u), wanted, atol=1e-10, err_msg=layout)


@pytest.mark.parametrize("strength", [1e-2, 1e-4, 1e-5])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_weak_ridges_of_one_task_on_the_kernel_side(strength, intercept):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 300)) + 0.3 * rng.normal(size=(60, 1))
    tasks = mtl.Tasks.shared(X, np.where(X[:, :1] > 0.5, 1.0, -1.0))
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 60 * strength * mtl.ridge(W))
    solution = problem.solve(solver="proximal_gradient", tol=1e-4)
    assert solution.status == "optimal"
    assert solution.iterations <= 30


@pytest.mark.parametrize("loss", [mtl.logistic_loss, mtl.squared_hinge_loss])
def test_models_of_more_rows_than_samples_are_handed_over(loss):
    """By `auto`, with a certificate; the solver by its name goes on to the same answer."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(40, 400)), axis=1) / 10
    labels = np.sign(X[:, :12] @ rng.normal(size=(12, 6)) + rng.normal(size=(40, 6)))
    tasks = mtl.Tasks.shared(X, labels)
    W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
    problem = mtl.minimize(loss(W, tasks) + lam * mtl.l21_norm(W))
    lam.value = 5e-3 * float(problem.lambda_max(lam))
    found = problem.solve()
    assert found.status == "optimal" and found.solver == "admm", found.reason
    assert np.count_nonzero(found.W.any(axis=1)) > 40
    alone = problem.solve("proximal_gradient", tol=1e-5)
    assert alone.objective == pytest.approx(found.objective, rel=2e-5)


def test_along_a_path_factors_are_those_of_the_value_before(monkeypatch):
    Y = _signs()
    made, gram = [], designs.DenseColumns.gram
    monkeypatch.setattr(designs.DenseColumns, "gram", lambda self, D: made.append(1) or gram(self, D))

    def problem():
        tasks = mtl.Tasks.shared(_data()[0], Y)
        W, lam = mtl.Weights(tasks, intercept=True), mtl.Parameter(1.0)
        return mtl.minimize(mtl.logistic_loss(W, tasks) + lam * mtl.ridge(W)), lam

    values = np.geomspace(10.0, 0.1, 12)
    path, lam = problem()
    found, together = list(path.path(lam, values, tol=1e-8)), len(made)
    made.clear()
    for value, one in zip(values, found, strict=True):
        alone, own = problem()
        own.value = value
        expected = alone.solve(tol=1e-8)
        assert one.status == expected.status == "optimal"
        assert one.objective == pytest.approx(expected.objective, rel=2e-8)
    assert 1 <= together < 0.5 * len(made)


@pytest.mark.parametrize("layout", ["sparse", "separate sparse"])
def test_what_is_carried_at_other_weights_is_what_sweeps_carry_there(layout, monkeypatch):
    """So that extrapolations of large data remember weights alone, and end where the others do."""
    Y = _data()[1]
    tasks = _layouts(np.where(Y > 0, 1.0, -1.0))[layout]
    W = mtl.Weights(tasks, intercept=True)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + 0.5 * mtl.l21_norm(W))
    seen = []

    def checked(self, rows, goal, sweep=ColumnModel.sweep):
        before, inside = replica(self), self.W.copy()
        moved = sweep(self, rows, goal)
        np.testing.assert_allclose(before.carried_at(self.W), self.carried, atol=1e-11)
        seen.append(np.abs(self.W - inside).max())
        return moved

    def replica(model):
        other = copy.copy(model)
        other.W, other.carried = model.W.copy(), model.carried.copy()
        return other

    monkeypatch.setattr(ColumnModel, "sweep", checked)
    kept = problem.solve(solver="proximal_gradient", tol=1e-9)
    assert max(seen) > 1e-3
    monkeypatch.setattr(working_set, "_REMEMBERED", 0)
    made = problem.solve(solver="proximal_gradient", tol=1e-9)
    assert kept.status == made.status == "optimal"
    assert kept.objective == pytest.approx(made.objective, rel=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_last_steps_make_no_matrices(intercept, monkeypatch):
    """A step whose matrices bring as much again as is missing is followed by one with the same; the optimum is the same to the last digits."""
    tasks = mtl.Tasks.shared(_data()[0], _signs())
    W = mtl.Weights(tasks, intercept=intercept)
    problem = mtl.minimize(mtl.logistic_loss(W, tasks) + mtl.l21_norm(W))
    made, gram = [], designs.DenseColumns.gram
    monkeypatch.setattr(
        designs.DenseColumns, "gram", lambda self, weights: made.append(1) or gram(self, weights)
    )
    found = problem.solve("proximal_gradient", tol=1e-9)
    assert found.status == "optimal"
    assert len(made) < found.iterations
    monkeypatch.setattr(working_newton.WorkingNewton, "_holds", lambda *_: False)
    made.clear()
    other = problem.solve("proximal_gradient", tol=1e-9)
    assert len(made) == other.iterations
    assert np.abs(found.W - other.W).max() < 1e-4
    assert found.objective == pytest.approx(other.objective, rel=2e-9)
