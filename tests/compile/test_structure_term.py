"""Structures inside a model: what stays convex with its matrices kept, and that keeping them changes no value."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.calculus.spectral_matrix import SpectralMatrix
from mtldsl.atoms.regularizers import KroneckerRidge
from mtldsl.compile.reductions.kept import Kept
from mtldsl.compile.terms.structure import (
    StructureTerm,
    kept_value,
    learned_matrices,
    structure_terms,
)

ETA, RHO, LOW, HIGH = 0.7, 1.3, 0.05, 20.0
D, M = 4, 3
rng = np.random.default_rng(0)
TASKS = mtl.Tasks.shared(rng.normal(size=(10, D)), rng.normal(size=(10, M)))
W0 = rng.normal(size=(D, M))


def positive(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return A @ A.T / n + 0.3 * np.eye(n)


def formula(V, A, B):
    """eta tr(A V B V^T) - rho (m log|A| + d log|B|)"""
    d, m = V.shape
    return ETA * np.trace(A @ V @ B @ V.T) - RHO * (m * np.linalg.slogdet(A)[1] + d * np.linalg.slogdet(B)[1])


def form_of(argument=lambda W: W, factor=1.0, given=(None, None), more=None):
    W = mtl.Weights(TASKS)
    unknown = mtl.FeaturePrecision(TASKS), mtl.TaskPrecision(TASKS)
    matrices = [S if A is None else A for S, A in zip(unknown, given, strict=True)]
    bounds = [b for S, A in zip(unknown, given, strict=True) if A is None for b in (S >> LOW, S << HIGH)]
    objective = mtl.sum_of_squares(W, TASKS) + factor * mtl.matrix_normal(
        argument(W), *matrices, eta=ETA, rho=RHO
    )
    return mtl.minimize(objective if more is None else objective + more(W), subject_to=bounds).form()


def mtfl_form():
    W, C = mtl.Weights(TASKS), mtl.FeatureCovariance(TASKS)
    objective = mtl.sum_of_squares(W, TASKS) + 0.5 * mtl.feature_covariance_norm(W, C)
    return mtl.minimize(objective, subject_to=[C.trace() <= 2]).form()


ARGUMENTS = {
    "W": (lambda W: W, lambda W: W),
    "2 * W": (lambda W: 2 * W, lambda W: 2 * W),
    "W - W0": (lambda W: W - W0, lambda W: W - W0),
}
every_argument = pytest.mark.parametrize("argument", ARGUMENTS)


def feasible(side, seed):
    g = np.random.default_rng(seed)
    Q = np.linalg.qr(g.normal(size=(side, side)))[0]
    return SpectralMatrix(Q, g.uniform(LOW, HIGH, side), 0.0)


@every_argument
def test_keeping_the_matrices_changes_no_value(argument):
    """Another convex form of the weights: the same number at every W, for any matrices, and no structure is left in it."""
    typed, of_w = ARGUMENTS[argument]
    form = form_of(typed, factor=1.5, more=lambda W: 0.2 * mtl.ridge(W))
    named = {"Sigma1": feasible(D, 1), "Sigma2": feasible(M, 2)}
    kept = Kept(named).apply(form)[0]
    assert not form.is_convex and kept.is_convex and not structure_terms(kept)
    assert [type(f.atom).__name__ for f in kept.functions] == ["KroneckerRidge", "Ridge"]
    A, B = named["Sigma1"].dense(), named["Sigma2"].dense()
    for seed in range(5):
        W = np.random.default_rng(seed).normal(size=(D, M))
        residuals = TASKS.X @ W - np.column_stack(TASKS.per_task(TASKS.targets))
        expected = np.sum(residuals**2) + 1.5 * formula(of_w(W), A, B) + 0.1 * np.sum(W**2)
        assert kept.value({"W": W}) == pytest.approx(expected, rel=1e-11)
        assert kept_value(form, {"W": W}, named) == pytest.approx(expected, rel=1e-11)
        # the profile is below every choice of matrices, and is that of its own
        assert form.value({"W": W}) <= expected + 1e-9 * abs(expected)
        best = learned_matrices(form, {"W": W})
        assert kept_value(form, {"W": W}, best) == pytest.approx(form.value({"W": W}), rel=1e-11)
        assert Kept(best).apply(form)[0].value({"W": W}) == pytest.approx(form.value({"W": W}), rel=1e-11)


@every_argument
def test_the_gradients_touch_at_the_best_matrices(argument):
    """The kept form is a majoriser that touches the profile."""
    form = form_of(ARGUMENTS[argument][0], factor=1.5)
    x = {"W": np.random.default_rng(3).normal(size=(D, M))}
    kept = Kept(learned_matrices(form, x)).apply(form)[0]

    def gradient(f):
        into = form.zeros()
        f.map.add_adjoint(f.coefficient * f.atom.gradient(f.map.forward(x)), into)
        return into["W"]

    np.testing.assert_allclose(gradient(kept.functions[0]), gradient(form.functions[0]), atol=1e-9)
    for seed in range(10):
        y = {"W": x["W"] + np.random.default_rng(seed).normal(size=(D, M))}
        assert kept.value(y) >= form.value(y) - 1e-9


def test_matrices_of_a_term_are_in_its_order():
    (term,) = structure_terms(form_of(given=(positive(D), None)))
    assert isinstance(term, StructureTerm) and term.names == (None, "Sigma2")
    named = {"Sigma2": feasible(M, 2)}
    first, second = term.matrices(named)
    np.testing.assert_allclose(first.dense(), positive(D), atol=1e-12)
    assert second is named["Sigma2"]
    assert set(term.update({"W": W0})) == {"Sigma2"}
    assert term.value_at({"W": W0}, named) == pytest.approx(
        formula(W0, positive(D), named["Sigma2"].dense()), rel=1e-11
    )


def test_a_structure_with_nothing_to_learn_is_a_quadratic():
    A, B = positive(D, 1), positive(M, 2)
    form = form_of(given=(A, B), factor=1.5)
    assert form.is_convex and not structure_terms(form)
    (f,) = form.functions
    assert isinstance(f.atom, KroneckerRidge)
    residuals = TASKS.X @ W0 - np.column_stack(TASKS.per_task(TASKS.targets))
    assert form.value({"W": W0}) == pytest.approx(np.sum(residuals**2) + 1.5 * formula(W0, A, B), rel=1e-11)


def test_a_convex_structure_is_left_as_it_is():
    """Its profile has a proximal operator and a conjugate of its own."""
    form = mtfl_form()
    assert form.is_convex and len(structure_terms(form)) == 1
    named = learned_matrices(form, {"W": W0})
    assert list(named) == ["D"] and named["D"].trace() == pytest.approx(2.0)
    assert Kept(named).apply(form)[0].functions == form.functions
    assert kept_value(form, {"W": W0}, named) == pytest.approx(form.value({"W": W0}), rel=1e-11)


@pytest.mark.parametrize("smallest", [1e-3, 1e-6, 5e-8, 1e-9])
def test_nearly_singular_covariances_keep_the_value(smallest):
    """Weights with singular values of very different sizes: with D at its best the penalty is ||W||_*^2 / 2."""
    U = np.linalg.qr(np.random.default_rng(1).normal(size=(D, M)))[0]
    W = U @ np.diag([1.0, smallest, smallest])
    form = mtfl_form()
    named = learned_matrices(form, {"W": W})
    assert kept_value(form, {"W": W}, named) == pytest.approx(form.value({"W": W}), rel=1e-11)


def test_matrices_of_two_structures_are_found_by_name():
    W, A, B = mtl.Weights(TASKS), mtl.FeaturePrecision(TASKS), mtl.TaskPrecision(TASKS)
    C = mtl.TaskCovariance(TASKS)
    form = mtl.minimize(
        mtl.sum_of_squares(W, TASKS)
        + 2.0 * mtl.matrix_normal(W, A, B, eta=ETA, rho=RHO)
        + mtl.task_covariance_norm(W - W0, C),
        subject_to=[A >> LOW, A << HIGH, B >> LOW, B << HIGH, C.trace() <= 1],
    ).form()
    x = {"W": np.random.default_rng(3).normal(size=(D, M))}
    named = learned_matrices(form, x)
    assert list(named) == ["Sigma1", "Sigma2", "Omega"]
    other = named | {"Sigma2": feasible(M, 5)}
    difference = kept_value(form, x, other) - kept_value(form, x, named)
    A, old, new = named["Sigma1"].dense(), named["Sigma2"].dense(), other["Sigma2"].dense()
    assert difference == pytest.approx(2.0 * (formula(x["W"], A, new) - formula(x["W"], A, old)), rel=1e-9)
    kept = Kept(named).apply(form)[0]
    assert kept.is_convex and [f.name for f in structure_terms(kept)[0].structure.learns] == ["Omega"]
