"""Learned matrices as the solution shows them: every view against numpy, the refusals, and how much memory they take."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
import mtldsl.system.memory
import mtldsl.tasks.gram
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.errors import ModelError, SolverError
from mtldsl.solution.learned_matrix import LearnedMatrix
from mtldsl.system.memory import available_memory, require_memory


def positive(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + 0.1 * np.eye(n)


def matrix(kind="precision", n=4, dense=None):
    spectral = SpectralMatrix.of(positive(n) if dense is None else dense)
    return LearnedMatrix("S", "features", kind, tuple("abcdefghijklmnopqrst"[: spectral.side]), spectral)


def low_rank(kind, side=5000, rank=20, rest=0.5):
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(side, rank)))[0]
    spectral = SpectralMatrix(basis, np.linspace(1.0, 9.0, rank), rest)
    return LearnedMatrix("D", "features", kind, tuple(f"x{i}" for i in range(side)), spectral)


# ------------------------------------------------------------------------------------------------------- views


@pytest.mark.parametrize("kind", ["precision", "covariance"])
def test_views_are_each_others_inverses(kind):
    A, S = positive(4), matrix(kind)
    inverse = np.linalg.inv(A)
    precision, covariance = (A, inverse) if kind == "precision" else (inverse, A)
    np.testing.assert_allclose(S.precision, precision, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(S.covariance, covariance, rtol=1e-11, atol=1e-11)
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(S.correlation, covariance / np.outer(deviations, deviations), atol=1e-12)
    np.testing.assert_array_equal(S.correlation.diagonal(), 1.0)
    np.testing.assert_allclose(np.asarray(S), A, atol=1e-13)
    assert np.asarray(S, dtype=np.float32).dtype == np.float32
    np.testing.assert_allclose(S.eigenvalues(), np.linalg.eigvalsh(A), rtol=1e-12)
    for view in (S.precision, S.covariance, S.correlation):
        np.testing.assert_array_equal(view, view.T)


def test_views_with_a_rest():
    """Eigenvalues that the basis does not span."""
    S = low_rank("precision", side=30, rank=4)
    dense = S.spectral.basis @ np.diag(S.spectral.values - 0.5) @ S.spectral.basis.T + 0.5 * np.eye(30)
    np.testing.assert_allclose(S.precision, dense, atol=1e-13)
    np.testing.assert_allclose(S.covariance, np.linalg.inv(dense), atol=1e-12)
    assert S.eigenvalues().shape == (30,)


def test_correlations_do_not_depend_on_the_scale():
    """(c Sigma1, Sigma2 / c) is as good: only correlations can be compared."""
    np.testing.assert_allclose(
        matrix(dense=positive(4)).correlation, matrix(dense=7 * positive(4)).correlation, atol=1e-13
    )


def test_correlations_stay_within_one():
    """The features are all but copies of each other."""
    covariance = np.full((3, 3), 1.0) + 1e-15 * np.eye(3)
    correlation = LearnedMatrix(
        "D", "features", "covariance", ("a", "b", "c"), SpectralMatrix(np.full((3, 1), 3**-0.5), np.array([3.0]), 1e-17)
    ).correlation  # fmt: skip
    assert np.abs(correlation).max() <= 1.0
    np.testing.assert_allclose(correlation, covariance, atol=1e-12)


def test_a_feature_without_variance_has_no_correlation():
    S = matrix("covariance", dense=np.diag([2.0, 0.0, 3.0]))
    expected = np.array([[1, np.nan, 0], [np.nan, 1, np.nan], [0, np.nan, 1.0]])
    np.testing.assert_array_equal(S.correlation, expected)


@pytest.mark.parametrize("kind, inverse", [("covariance", "precision"), ("precision", "covariance")])
def test_the_inverse_of_a_singular_matrix_is_refused(kind, inverse):
    S = LearnedMatrix("D", "tasks", kind, ("a", "b"), SpectralMatrix(np.eye(2)[:, :1], np.array([2.0]), 0.0))
    np.testing.assert_array_equal(getattr(S, kind), np.diag([2.0, 0.0]))
    with pytest.raises(
        ModelError, match=rf"D: this {kind} is singular \(tasks without variance.*use \.{kind}"
    ):
        getattr(S, inverse)


# ---------------------------------------------------------------------------------------------- names, printing


def test_frames_are_labelled():
    S = matrix("covariance")
    for view in ("correlation", "covariance", "precision"):
        frame = S.frame(view)
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.index) == list(frame.columns) == ["a", "b", "c", "d"]
        np.testing.assert_array_equal(frame.to_numpy(), getattr(S, view))
    np.testing.assert_array_equal(S.frame().to_numpy(), S.correlation)
    with pytest.raises(
        ModelError, match=r"S\.frame\('inverse'\): there is no such view; write 'correlation'"
    ):
        S.frame("inverse")


def test_printing():
    S = matrix(dense=np.array([[2.0, -1.0], [-1.0, 2.0]]))
    assert repr(S) == "<LearnedMatrix S: precision of 2 features>"
    assert str(S).splitlines() == [
        "correlation of features (from the learned precision S)",
        "       a      b",
        "a  +1.00  +0.50",
        "b  +0.50  +1.00",
    ]
    assert str(matrix(n=11)) == "<LearnedMatrix S: precision of 11 features>"


def test_of_a_solution():
    rng = np.random.default_rng(3)
    names = ["area", "age", "noise", "rooms"], ["Oslo", "Bergen", "Narvik"]
    tasks = mtl.Tasks.shared(
        rng.normal(size=(20, 4)), rng.normal(size=(20, 3)), feature_names=names[0], task_names=names[1]
    )
    W, first, second = mtl.Weights(tasks), mtl.FeaturePrecision(tasks, "A"), mtl.TaskPrecision(tasks, "B")
    solution = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, first, second),
        subject_to=[first >> 0.1, first << 10, second >> 0.1, second << 10],
    ).solve()
    assert list(solution.learned) == ["A", "B"]
    assert solution.A is solution.learned["A"]
    assert list(solution.A.frame().index) == names[0] and list(solution.B.frame().index) == names[1]
    assert (solution.A.axis, solution.B.axis, solution.A.kind) == ("features", "tasks", "precision")
    for S in (solution.A, solution.B):
        values = np.linalg.eigvalsh(S.precision)
        assert values[0] >= 0.1 * (1 - 1e-12) and values[-1] <= 10 * (1 + 1e-12)


def test_a_given_matrix_is_not_shown_as_learned():
    rng = np.random.default_rng(3)
    tasks = mtl.Tasks.shared(rng.normal(size=(20, 4)), rng.normal(size=(20, 3)))
    W, second = mtl.Weights(tasks), mtl.TaskPrecision(tasks)
    solution = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, np.eye(4), second),
        subject_to=[second >> 0.1, second << 10],
    ).solve()
    assert list(solution.learned) == ["Sigma2"]
    with pytest.raises(AttributeError, match="Sigma1"):
        solution.Sigma1  # noqa: B018


# --------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("kind", ["precision", "covariance"])
def test_it_stays_small_until_a_view_is_asked_for(kind):
    """Side 5,000, rank 20: 0.8 MB where the dense matrix has 200."""
    tracemalloc.start()
    S = low_rank(kind)
    assert repr(S) == str(S) == f"<LearnedMatrix D: {kind} of 5000 features>"
    assert S.shape == (5000, 5000) and S.eigenvalues()[-1] == 9.0
    assert S.spectral.trace() == pytest.approx(np.linspace(1, 9, 20).sum() + 4980 * 0.5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_many_features_never_make_the_dense_matrix():
    """More features than a Gram matrix would be made for by hand: 600, where (d, d) is 2.9 MB and the data 0.1."""
    rng = np.random.default_rng(0)
    d, m = 600, 3
    tasks = mtl.Tasks.shared(rng.normal(size=(20, d)), rng.normal(size=(20, m)))
    W, D = mtl.Weights(tasks), mtl.FeatureCovariance(tasks)
    solution = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + 5.0 * mtl.feature_covariance_norm(W, D), subject_to=[D.trace() <= 1]
    ).solve()
    assert solution.status == "optimal"
    assert solution.D.spectral.basis.shape == (d, m)
    assert solution.D.spectral.trace() == pytest.approx(1.0)


@pytest.mark.parametrize("view", ["precision", "covariance", "correlation"])
def test_a_view_that_does_not_fit_is_refused(view, monkeypatch):
    monkeypatch.setattr(mtldsl.system.memory, "available_memory", lambda: 100e6)
    with pytest.raises(SolverError) as refusal:
        getattr(low_rank("precision"), view)
    for fragment in (
        "D as a dense matrix of 5,000 x 5,000",
        "needs 0.559 GiB",
        "0.0931 GiB are there",
        "use .spectral",
    ):
        assert fragment in str(refusal.value)
    with pytest.raises(SolverError, match=r"use \.spectral"):
        np.asarray(low_rank("precision"))


def test_gram_matrices_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(mtldsl.system.memory, "available_memory", lambda: 2000.0)
    monkeypatch.setattr(mtldsl.system.memory, "_SMALL", 0)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 12)), rng.normal(size=(9, 3))
    for tasks, words in (
        (mtl.Tasks.shared(X, Y), "the Gram matrix of 12 features needs"),
        (mtl.Tasks.separate([X, X, X], list(Y.T)), "the Gram matrices of 3 tasks with 12 features need"),
    ):
        W, first, second = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
        problem = mtl.minimize(
            mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, first, second),
            subject_to=[first >> 0.1, first << 10, second >> 0.1, second << 10],
        )
        with pytest.raises(SolverError, match=words):
            problem.solve()


def test_a_kronecker_system_that_does_not_fit_is_refused(monkeypatch):
    rng = np.random.default_rng(0)
    tasks = mtl.Tasks.shared(rng.normal(size=(9, 12)), rng.normal(size=(9, 6)))
    W, first, second = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    problem = mtl.minimize(
        mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(W, first, second),
        subject_to=[first >> 0.1, first << 10, second >> 0.1, second << 10],
    )
    monkeypatch.setattr(mtldsl.system.memory, "available_memory", lambda: 50e3)
    with pytest.raises(
        SolverError, match=r'w_step="closed_form": its system of 72 unknowns needs.*w_step="auto"'
    ):
        problem.solve(solver="alternating", method="block", w_step="closed_form")
    assert problem.solve(solver="alternating", method="block", max_iter=3).iterations == 3


def test_memory_is_asked_for():
    assert available_memory() > 1e6
    require_memory(1.0, "nothing", "do nothing")
    with pytest.raises(
        SolverError, match=r"a dream needs 9.31e\+20 GiB of memory, and .* GiB are there; wake up"
    ):
        require_memory(1e30, "a dream", "wake up")


def test_memory_where_the_system_does_not_say(monkeypatch):
    import builtins
    import os

    def refuse(*_, **__):
        raise OSError

    monkeypatch.setattr(builtins, "open", refuse)
    physical = available_memory()
    monkeypatch.setattr(os, "sysconf", refuse)
    unknown = available_memory()
    monkeypatch.undo()
    assert physical > 1e6 and unknown == np.inf


@pytest.mark.slow
def test_names_follow_the_argument():
    """A selection permutes the names; other products have none of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, 4)), task_names=list("abcd"))
    W, A, B = mtl.Weights(tasks), mtl.FeaturePrecision(tasks), mtl.TaskPrecision(tasks)
    box = [A >> 0.05, A << 20, B >> 0.05, B << 20]

    def solved(argument):
        return mtl.minimize(
            mtl.sum_of_squares(W, tasks) + mtl.matrix_normal(argument, A, B, eta=5), box
        ).solve()

    plain, turned = solved(W), solved(W[:, [3, 1, 0, 2]])
    assert turned.Sigma2.names == ("d", "b", "a", "c") and turned.Sigma1.names == tuple(tasks.feature_names)
    order = [plain.Sigma2.names.index(name) for name in turned.Sigma2.names]
    np.testing.assert_allclose(
        turned.Sigma2.correlation, plain.Sigma2.correlation[np.ix_(order, order)], atol=1e-4
    )
    mixed = solved(W @ rng.normal(size=(4, 4)))
    assert all(name.startswith("column ") and "W @" in name for name in mixed.Sigma2.names)
