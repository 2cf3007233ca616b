"""Regularizers beside their laws (test_registry.py): proxes at size, unpenalised rows, printing, parameters that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from mtldsl.atoms.prox.spectral_matrix import THRESHOLD_RATIO
from mtldsl.atoms.regularizers import (
    GraphLaplacian,
    GroupNorm,
    KroneckerRidge,
    L1Norm,
    L12Norm,
    L21Norm,
    MeanRegularizer,
    Ridge,
    SquaredTraceNorm,
    TotalVariation,
    TraceNorm,
)
from tests.loops import for_each

PATH = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])


# ------------------------------------------------------------------------------------------- proxes
@for_each("scale", [1e-6, 1.0, 1e6])
def test_total_variation_prox_is_exact_on_long_rows(scale):
    """(Y - V) / step must be a subgradient: row sums 0, running sums in [-1, 1], and <., V> = TV(V)."""
    rng = np.random.default_rng(0)
    Y = scale * (np.cumsum(rng.normal(size=(4, 3000)), axis=1) + 100)
    for step in scale * np.array([1e-3, 1.0, 30.0, 1e5]):
        V = TotalVariation().prox(Y, step)
        running = np.cumsum(Y - V, axis=1)
        size = np.abs(Y).max()
        assert np.abs(running[:, -1]).max() <= 1e-11 * size
        assert np.abs(running).max() <= step + 1e-11 * size
        jumps = np.diff(V, axis=1)
        touching = np.abs(jumps) > 1e-9 * size
        expected = -step * np.sign(jumps[touching])
        np.testing.assert_allclose(running[:, :-1][touching], expected, rtol=0, atol=1e-11 * size)


@for_each("shape", [(60, 12), (12, 60), (30, 30), (1, 7), (7, 1), (500, 3)])
@for_each("ratio", [0.9, 0.1, 1.01 * THRESHOLD_RATIO, 0.99 * THRESHOLD_RATIO, 1e-9])
def test_trace_norm_prox_is_as_accurate_as_the_svd(shape, ratio):
    """Singular values from 1 to 1e-10 and thresholds on both sides of the switch between the Gram matrix and
    the SVD.
    """
    rng = np.random.default_rng(3)
    k = min(shape)
    U, V = (np.linalg.qr(rng.normal(size=(n, k)))[0] for n in shape)
    singular = np.logspace(0, -10, k)
    for scale in (1e-5, 1.0, 1e5):
        W = scale * (U * singular) @ V.T
        exact = scale * (U * np.maximum(singular - ratio, 0)) @ V.T
        assert np.abs(TraceNorm().prox(W, ratio * scale) - exact).max() <= 1e-13 * scale


# ------------------------------------------------------------------------------------- what they prove
def test_dual_projections_remove_nearly_constant_rows():
    Z = 1e8 + np.random.default_rng(8).normal(size=(5, 4))
    for atom in (TotalVariation(), MeanRegularizer(), GraphLaplacian.examples()[0]):
        assert np.isfinite(atom.dual_gauge(atom.dual_project(Z)))
        assert atom.dual_gauge(Z) == np.inf


@for_each("condition", [1e4, 1e8])
def test_a_kronecker_ridge_of_bad_condition_keeps_its_conjugate(condition):
    """Fenchel's equality at the gradient, to rounding: eigenvalues far apart must not cancel."""
    rng = np.random.default_rng(0)
    Q, R = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (6, 4))
    A, B = (V @ np.diag(np.geomspace(1.0 / condition, 1.0, len(V))) @ V.T for V in (Q, R))
    penalty = KroneckerRidge(0.5 * (A + A.T), 0.5 * (B + B.T))
    scale = np.diag(penalty.rows.values**-0.5), np.diag(penalty.columns.values**-0.5)
    W = penalty.rows.basis @ scale[0] @ rng.normal(size=(6, 4)) @ scale[1] @ penalty.columns.basis.T
    Z = penalty.gradient(W)
    assert penalty.value(W) + penalty.conjugate(Z) == pytest.approx(float(np.vdot(W, Z)), rel=1e-7)


# -------------------------------------------------------------------------------- balls and printing
def test_what_is_not_a_norm_has_no_ball():
    assert [atom.ball(1.0) for atom in [Ridge(), SquaredTraceNorm(), MeanRegularizer()]] == [None] * 3


@for_each(
    ("atom", "argument", "latex"),
    [
        (L1Norm(), "L + S", r"\|L + S\|_1"),
        (L1Norm(weights=[1.0, 2.0]), "L + S", r"\|a \circ (L + S)\|_1"),
        (L21Norm(weights=[1.0, 2.0]), "W", r"\sum_r a_r \|W_{r\cdot}\|_2"),
        (GroupNorm([[0]], weights=[2.0]), "-W", r"\sum_g a_g \|(-W)_{g\cdot}\|_F"),
        (GraphLaplacian(PATH), "L - S", r"\tfrac12\operatorname{tr}((L - S)\,L\,(L - S)^\top)"),
        (MeanRegularizer(), "W", r"\tfrac12\sum_i\|W_{\cdot i}-\overline{W}\|_2^2"),
        (Ridge(weights=2.0), "W", r"\tfrac12\|\sqrt{a} \circ W\|_F^2"),
    ],
)
def test_latex(atom, argument, latex):
    assert atom.latex(argument) == latex


# ------------------------------------------------------------------------------------------- what does not fit
@for_each(
    ("atom", "message"),
    [
        (L1Norm(weights=[1.0, 2.0]), "weights of shape (2,) do not broadcast to the argument's shape (5, 4)"),
        (Ridge(weights=np.ones((2, 5, 4))[0][None, 0]), None),
        (Ridge(weights=np.ones((6, 4))),
         "weights of shape (6, 4) do not broadcast to the argument's shape (5, 4)"),
        (L21Norm(weights=np.ones(4)), "there are 4 weights for 5 rows"),
        (L12Norm(weights=np.ones(5)), "there are 5 weights for 4 columns (tasks)"),
        (L21Norm(weights=np.ones(5)), None),
        (GroupNorm([[0, 5], [1]]), "row 5 is in a group, but the argument has 5 rows (0 to 4)"),
        (GraphLaplacian(PATH), "L is 3 x 3, but the argument has 4 columns (tasks)"),
        (TraceNorm(), None),
    ],
)  # fmt: skip
def test_check_says_what_does_not_fit(atom, message):
    assert atom.check((5, 4)) == message


def test_parameters_are_copies():
    weights = np.ones(5)
    atom = L21Norm(weights=weights)
    weights[0] = 100.0
    assert atom.value(np.ones((5, 4))) == pytest.approx(10.0)
    with pytest.raises(ValueError, match="read-only"):
        atom.weights[0] = 2.0


@for_each("atom", [*L1Norm.examples(), *L12Norm.examples()])
def test_gauges_of_columns_are_those_of_the_columns_alone(atom):
    Z = np.random.default_rng(3).normal(size=(5, 4))
    alone = [Z * (np.arange(4) == i) for i in range(4)]
    np.testing.assert_allclose(atom.column_gauges(Z), [atom.dual_gauge(column) for column in alone])
    assert L21Norm().column_gauges(Z) is None
