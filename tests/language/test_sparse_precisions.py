"""`l1_norm(Sigma2)`: a sparse precision beside the weights, as typed, solved, proven, checked and kept in a file."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError
from mtldsl.language.parser import parse_objective


def made(d=12, m=5, n=40, salt=0):
    """Tasks in a chain of three and a pair: the precision of their weights is zero between the two."""
    rng = np.random.default_rng(salt)
    P = 1.5 * np.eye(m)
    for i in (0, 1, 3):
        P[i, i + 1] = P[i + 1, i] = -0.6
    weights = rng.multivariate_normal(np.zeros(m), np.linalg.inv(P), size=d)
    X = rng.normal(size=(n, d))
    return X, X @ weights + 0.2 * rng.normal(size=(n, m))


@pytest.fixture
def model():
    tasks = mtl.Tasks.shared(*made())
    return tasks, mtl.Weights(tasks), mtl.TaskPrecision(tasks)


def stated(model, lam=3.0):
    tasks, W, S = model
    prior = mtl.matrix_normal(W, np.eye(12), S)
    return mtl.minimize(mtl.squared_loss(W, tasks) + 0.5 * prior + lam * mtl.l1_norm(S))


def test_first_order_conditions_by_hand(model):
    """X^T (X W - Y) + W S = 0 at coefficient 1/2, and S^-1 - W^T W / d within lam of zero, at it where S is not zero."""
    problem = stated(model)
    solution = problem.solve(tol=1e-9)
    assert solution.status == "stationary" and not problem.is_convex
    assert solution.dual_bound <= solution.objective
    X, Y = made()
    W, S = solution.W, solution.Sigma2.precision
    assert (S == 0).sum() >= 6 and np.linalg.eigvalsh(S)[0] > 0
    np.testing.assert_allclose(X.T @ (X @ W - Y) + W @ S, 0.0, atol=1e-5)
    U = 0.5 * 12 * np.linalg.inv(S) - 0.5 * W.T @ W
    assert np.abs(U).max() <= 3.0 + 1e-6
    np.testing.assert_allclose(U[S != 0], 3.0 * np.sign(S[S != 0]), atol=1e-6)


@pytest.mark.slow
def test_precision_of_the_features(model):
    tasks, W, _ = model
    S = mtl.FeaturePrecision(tasks)
    problem = mtl.minimize(
        mtl.squared_loss(W, tasks) + mtl.matrix_normal(W, S, np.eye(5)) + 2 * mtl.l1_norm(S)
    )
    solution = problem.solve()
    assert solution.status == "stationary" and (solution.Sigma1.precision == 0).sum() > 12
    assert problem.cross_check(solution).agrees


def test_a_matrix_fixed_by_its_bounds_counts_as_given(model):
    tasks, W, S = model
    S1 = mtl.FeaturePrecision(tasks)
    terms = mtl.squared_loss(W, tasks) + 0.5 * mtl.matrix_normal(W, S1, S) + 3.0 * mtl.l1_norm(S)
    fixed = mtl.minimize(terms, subject_to=[S1 >> 1.0, S1 << 1.0]).solve()
    assert fixed.objective == pytest.approx(stated(model).solve().objective, rel=1e-9)


@pytest.mark.slow
def test_a_path_and_other_data(model):
    lam = mtl.Parameter(1.0)
    problem = stated(model, lam)
    zeros = [(s.Sigma2.precision == 0).sum() for s in problem.path(lam, [30.0, 3.0, 0.03])]
    assert zeros[0] == 20 and zeros[0] > zeros[1] > zeros[2]
    other = problem.with_tasks(mtl.Tasks.shared(*made(salt=1)))
    assert other.learned[0] is not problem.learned[0]
    assert other.solve().status == "stationary"


def test_kept_in_a_file_with_its_zeros(model, tmp_path):
    solution = stated(model).solve()
    solution.save(tmp_path / "s.npz")
    loaded = mtl.Solution.load(tmp_path / "s.npz")
    np.testing.assert_array_equal(loaded.Sigma2.precision, solution.Sigma2.precision)
    np.testing.assert_allclose(loaded.Sigma2.covariance, solution.Sigma2.covariance, rtol=1e-12)


def test_as_text(model):
    tasks, W, S = model
    text = "squared_loss(W, tasks) + 0.5 * matrix_normal(W, eye, Sigma2) + lam * l1_norm(Sigma2)"
    names = {"tasks": tasks, "W": W, "Sigma2": S, "eye": np.eye(12), "lam": mtl.Parameter(3.0)}
    typed = parse_objective(text, names)
    assert typed.text == text
    expected = stated(model).solve().objective
    assert mtl.minimize(typed).solve().objective == pytest.approx(expected, rel=1e-9)


def test_what_is_refused(model):
    tasks, W, S = model
    S1, loss, norm = mtl.FeaturePrecision(tasks), mtl.squared_loss(W, tasks), mtl.l1_norm(S)
    prior, both = mtl.matrix_normal(W, np.eye(12), S), mtl.matrix_normal(W, S1, S)
    for objective, bounds, match in (
        (loss + norm, [], r"l1_norm\(Sigma2\): Sigma2 is in no other term of the objective.*np.eye\(d\)"),
        (loss + prior + norm, [S >> 0.01], r"Sigma2 >> 0.01: Sigma2 has the norm l1_norm\(Sigma2\).*leave the bounds out"),
        (loss + both + norm, [S1 >> 0.1, S1 << 10], r"Sigma1 is learned beside Sigma2 in matrix_normal.*np.eye\(d\)"),
        (loss + prior - norm, [], r"-1 \* l1_norm\(Sigma2\) is not convex"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=match):
            mtl.minimize(objective, subject_to=bounds)
    for typed, match in (
        (lambda: mtl.l21_norm(S), r"l21_norm\(Sigma2\): Sigma2 is a precision.*l1_norm alone.*write l1_norm\(Sigma2\)"),
        (lambda: mtl.l1_norm(S, weights=2.0), r"l1_norm\(Sigma2, ...\): the norm of a precision takes no weights"),
        (lambda: mtl.l1_norm(mtl.TaskCovariance(tasks)), r"l1_norm\(Omega\): Omega is a covariance.*TaskPrecision"),
        (lambda: mtl.l1_norm(S) <= 1, r"l1_norm\(Sigma2\) <= 1: .*stands in the objective"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=match):
            typed()


def test_a_coefficient_of_zero_without_bounds_is_refused(model):
    lam = mtl.Parameter(1.0)
    problem = stated(model, lam)
    lam.value = 0.0
    with pytest.raises(ModelError, match=r"l1_norm\(Sigma2\) has the coefficient 0, and Sigma2 no bounds"):
        problem.solve()
