"""Learned matrices as the solution shows them: every view against numpy, the refusals, and how much memory they take."""

import builtins
import os

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
import mtldsl.data.products
import mtldsl.utils.memory
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.errors import ModelError, SolverError
from mtldsl.solution.learned import LearnedMatrix
from mtldsl.utils.memory import available_memory
from tests.learned_models import fetr
from tests.loops import for_each


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


@for_each("kind", ["precision", "covariance"])
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


def test_correlations_stay_within_one():
    """The features are all but copies of each other."""
    spectral = SpectralMatrix(np.full((3, 1), 3**-0.5), np.array([3.0]), 1e-17)
    correlation = LearnedMatrix("D", "features", "covariance", ("a", "b", "c"), spectral).correlation
    assert np.abs(correlation).max() <= 1.0
    np.testing.assert_allclose(correlation, np.full((3, 3), 1.0) + 1e-15 * np.eye(3), atol=1e-12)


def test_a_feature_without_variance_has_no_correlation():
    S = matrix("covariance", dense=np.diag([2.0, 0.0, 3.0]))
    expected = np.array([[1, np.nan, 0], [np.nan, 1, np.nan], [0, np.nan, 1.0]])
    np.testing.assert_array_equal(S.correlation, expected)


@for_each("kind, inverse", [("covariance", "precision"), ("precision", "covariance")])
def test_the_inverse_of_a_singular_matrix_is_refused(kind, inverse):
    S = LearnedMatrix("D", "tasks", kind, ("a", "b"), SpectralMatrix(np.eye(2)[:, :1], np.array([2.0]), 0.0))
    np.testing.assert_array_equal(getattr(S, kind), np.diag([2.0, 0.0]))
    said = rf"D: this {kind} is singular \(tasks without variance.*use \.{kind}"
    with pytest.raises(ModelError, match=said):
        getattr(S, inverse)


def test_frames_are_labelled():
    S = matrix("covariance")
    for view in ("correlation", "covariance", "precision"):
        frame = S.frame(view)
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.index) == list(frame.columns) == ["a", "b", "c", "d"]
        np.testing.assert_array_equal(frame.to_numpy(), getattr(S, view))
    np.testing.assert_array_equal(S.frame().to_numpy(), S.correlation)
    said = r"S\.frame\('inverse'\): there is no such view; write 'correlation'"
    with pytest.raises(ModelError, match=said):
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


def random_tasks(n=20, d=4, m=3, **names):
    rng = np.random.default_rng(3)
    return mtl.Tasks.shared(rng.normal(size=(n, d)), rng.normal(size=(n, m)), **names)


def test_of_a_solution():
    names = ["area", "age", "noise", "rooms"], ["Oslo", "Bergen", "Narvik"]
    solution = fetr(
        random_tasks(feature_names=names[0], task_names=names[1]), first="A", second="B", low=0.1, high=10.0
    ).solve()
    assert list(solution.learned) == ["A", "B"]
    assert solution.A is solution.learned["A"]
    assert list(solution.A.frame().index) == names[0] and list(solution.B.frame().index) == names[1]
    assert (solution.A.axis, solution.B.axis, solution.A.kind) == ("features", "tasks", "precision")
    for S in (solution.A, solution.B):
        values = np.linalg.eigvalsh(S.precision)
        assert values[0] >= 0.1 * (1 - 1e-12) and values[-1] <= 10 * (1 + 1e-12)


def test_a_given_matrix_is_not_shown_as_learned():
    solution = fetr(random_tasks(), first=np.eye(4)).solve()
    assert list(solution.learned) == ["Sigma2"]
    with pytest.raises(AttributeError, match="Sigma1"):
        solution.Sigma1  # noqa: B018


def test_a_view_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(mtldsl.utils.memory, "available_memory", lambda: 100e6)
    wide = low_rank("precision", side=5000, rank=2)
    for view in ("precision", "covariance", "correlation"):
        with pytest.raises(SolverError) as refusal:
            getattr(wide, view)
        said = str(refusal.value)
        assert "D as a dense matrix of 5,000 x 5,000" in said and "use .spectral" in said
        assert "needs 0.559 GiB" in said and "0.0931 GiB are there" in said
    with pytest.raises(SolverError, match=r"use \.spectral"):
        np.asarray(wide)


def test_a_kronecker_system_that_does_not_fit_is_refused(monkeypatch):
    problem = fetr(random_tasks(9, 12, 6))
    monkeypatch.setattr(mtldsl.utils.memory, "available_memory", lambda: 50e3)
    said = r'w_step="closed_form": its system of 72 unknowns needs.*w_step="auto"'
    with pytest.raises(SolverError, match=said):
        problem.solve(solver="alternating", method="block", w_step="closed_form")
    assert problem.solve(solver="alternating", method="block", max_iter=3).iterations == 3


def test_memory_where_the_system_does_not_say(monkeypatch):
    def refuse(*_, **__):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", refuse)
        physical = available_memory()
        patch.setattr(os, "sysconf", refuse)
        unknown = available_memory()
    assert physical > 1e6 and unknown == np.inf


@pytest.mark.slow
def test_names_follow_the_argument():
    """A selection permutes the names; other products have none of their own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    tasks = mtl.Tasks.shared(X, X @ rng.normal(size=(3, 4)), task_names=list("abcd"))
    plain, turned = (
        fetr(tasks, argument=of, eta=5).solve() for of in (lambda W: W, lambda W: W[:, [3, 1, 0, 2]])
    )
    assert turned.Sigma2.names == ("d", "b", "a", "c") and turned.Sigma1.names == tuple(tasks.feature_names)
    order = [plain.Sigma2.names.index(name) for name in turned.Sigma2.names]
    expected = plain.Sigma2.correlation[np.ix_(order, order)]
    np.testing.assert_allclose(turned.Sigma2.correlation, expected, atol=1e-4)
    mixed = fetr(tasks, argument=lambda W: W @ rng.normal(size=(4, 4)), eta=5).solve()
    assert all(name.startswith("column ") and "W @" in name for name in mixed.Sigma2.names)
