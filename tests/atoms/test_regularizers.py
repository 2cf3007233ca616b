"""Regularizers against hand-computed values and independent formulas. The laws common to all atoms:
tests/atoms/test_registry.py.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, lsq_linear

from mtldsl.atoms.calculus.singular_values import GRAM_RATIO
from mtldsl.atoms.function import REGISTRY
from mtldsl.atoms.regularizers import (
    FrobeniusNorm,
    GraphLaplacian,
    GroupNorm,
    L1InfNorm,
    L1Norm,
    L12Norm,
    L21Norm,
    MeanRegularizer,
    Ridge,
    SquaredTraceNorm,
    TotalVariation,
    TraceNorm,
)
from mtldsl.errors import ModelError
from tests.loops import for_each

ALL = [
    FrobeniusNorm, GraphLaplacian, GroupNorm, L1InfNorm, L1Norm, L12Norm, L21Norm, MeanRegularizer, Ridge,
    SquaredTraceNorm, TotalVariation, TraceNorm,
]  # fmt: skip
PATH = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])

seeds = st.integers(0, 2**32 - 1)
steps = st.floats(-3, 2).map(lambda e: 10.0**e)


def test_each_class_is_entered_under_its_word():
    for cls in ALL:
        assert REGISTRY[cls.name] is cls


# ------------------------------------------------------------------------------------- values by hand


W = np.array([[3.0, -4.0, 0.0], [0.0, 1.0, 2.0]])


@for_each(
    ("atom", "value"),
    [
        (Ridge(), 15.0),
        (Ridge(weights=2.0), 30.0),
        (Ridge(weights=[2.0, 0.0, 1.0]), 11.0),
        (FrobeniusNorm(), np.sqrt(30.0)),
        (L1Norm(), 10.0),
        (L1Norm(weights=[[1.0], [10.0]]), 37.0),
        (L21Norm(), 5.0 + np.sqrt(5.0)),
        (L21Norm(weights=[2.0, 0.0]), 10.0),
        (L12Norm(), 3.0 + np.sqrt(17.0) + 2.0),
        (L12Norm(weights=[1.0, 0.0, 5.0]), 13.0),
        (L1InfNorm(), 6.0),
        (L1InfNorm(weights=[0.5, 3.0]), 8.0),
        (GroupNorm([[0, 1]]), np.sqrt(30.0)),
        (GroupNorm([[1]], weights=2.0), 2 * np.sqrt(5.0)),
        (GraphLaplacian(PATH), 0.5 * (49 + 16 + 1 + 1)),
        (MeanRegularizer(), 0.5 * ((25 - 1 / 3) + (5 - 3))),
        (TotalVariation(), 7 + 4 + 1 + 1.0),
    ],
)
def test_values_by_hand(atom, value):
    assert atom.value(W) == pytest.approx(value, rel=1e-14)


def test_spectral_values_by_hand():
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    W = rotation @ np.diag([3.0, 1.0]) @ rotation
    assert TraceNorm().value(W) == pytest.approx(4.0, rel=1e-14)
    assert SquaredTraceNorm().value(W) == pytest.approx(16.0, rel=1e-14)
    assert TraceNorm().dual_norm(W) == pytest.approx(3.0, rel=1e-14)
    assert SquaredTraceNorm().conjugate(W) == pytest.approx(9.0 / 4, rel=1e-14)


@for_each(
    ("atom", "Z", "gauge"),
    [
        (L1Norm(), W, 4.0),
        (L1Norm(weights=[[1.0], [0.25]]), W, 8.0),
        (L1Norm(weights=[1.0, 2.0, 0.0]), W, np.inf),
        (L1Norm(weights=[1.0, 2.0, 0.0]), W[:1], 3.0),
        (L21Norm(), W, 5.0),
        (L12Norm(), W, np.sqrt(17.0)),
        (L1InfNorm(), W, 7.0),
        (L1InfNorm(weights=[7.0, 0.5]), W, 6.0),
        (GroupNorm([[0]]), W, np.inf),
        (GroupNorm([[0], [1]], weights=[1.0, 1 / 7]), W, 7 * np.sqrt(5.0)),
        (GroupNorm([[0], [1]], weights=[0.0, 1.0]), W, np.inf),
        (FrobeniusNorm(), W, np.sqrt(30.0)),
        (TotalVariation(), [[1.0, 2.0, -3.0]], 3.0),
        (TotalVariation(), [[1.0, 2.0, -2.0]], np.inf),
    ],
)
def test_dual_gauges_by_hand(atom, Z, gauge):
    Z = np.array(Z)
    assert atom.dual_gauge(Z) == pytest.approx(gauge, rel=1e-14)
    assert atom.conjugate(Z) == np.inf
    if np.isfinite(gauge):
        assert atom.conjugate(Z / gauge) == 0.0
        assert atom.conjugate(Z / gauge * (1 + 1e-9)) == np.inf


def test_quadratic_conjugates_by_hand():
    assert Ridge(weights=[2.0, 4.0]).conjugate(np.array([[2.0, 4.0]])) == pytest.approx(1.0 + 2.0)
    assert Ridge(weights=[2.0, 0.0]).conjugate(np.array([[2.0, 0.0]])) == pytest.approx(1.0)
    assert Ridge(weights=[2.0, 0.0]).conjugate(np.array([[2.0, 1e-9]])) == np.inf
    assert MeanRegularizer().conjugate(np.array([[1.0, -1.0]])) == pytest.approx(1.0)
    assert MeanRegularizer().conjugate(np.array([[1.0, -1.0 + 1e-9]])) == np.inf


# ------------------------------------------------------------------------------------------- proxes


def random_matrix(seed, shape=(5, 4)):
    return np.random.default_rng(seed).normal(size=shape)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, step=steps)
def test_l1_inf_prox_solves_each_row_by_bisection(seed, step):
    W = random_matrix(seed)
    V = L1InfNorm(weights=[1.0, 0.0, 2.0, 0.5, 10.0]).prox(W, step)
    for row, new, weight in zip(W, V, [1.0, 0.0, 2.0, 0.5, 10.0], strict=True):
        removed, largest = step * weight, np.abs(row).max()
        if removed == 0:
            level = largest
        elif np.abs(row).sum() <= removed:
            level = 0.0
        else:
            level = brentq(
                lambda t, r=row, c=removed: np.maximum(np.abs(r) - t, 0).sum() - c, 0, largest, xtol=1e-15
            )
        np.testing.assert_allclose(new, np.sign(row) * np.minimum(np.abs(row), level), rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, step=steps, q=st.integers(2, 12))
def test_total_variation_prox_solves_the_dual_box_problem(seed, step, q):
    """V = y - step * D^T u with u the projection's coordinates: least squares with |u| <= 1, by an active-set
    method.
    """
    rng = np.random.default_rng(seed)
    Y = np.round(rng.normal(size=(3, q)), rng.integers(0, 16))  # rounding makes ties
    V = TotalVariation().prox(Y, step)
    D = np.diff(np.eye(q), axis=0)
    for y, v in zip(Y, V, strict=True):
        u = lsq_linear(step * D.T, y, bounds=(-1, 1), method="bvls", tol=1e-15, max_iter=1000).x
        np.testing.assert_allclose(v, y - step * D.T @ u, rtol=0, atol=1e-9 * max(1, np.abs(y).max()))


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


def test_total_variation_prox_at_its_ends():
    Y = np.array([[5.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(TotalVariation().prox(Y[:, :1], 3.0), Y[:, :1])
    np.testing.assert_allclose(TotalVariation().prox(Y, 1e9), [[3.0] * 3, [2.0] * 3], rtol=1e-12)
    np.testing.assert_allclose(TotalVariation().prox(Y, 0.5), [[4.5, 2.0, 2.5], [2.0] * 3], rtol=1e-14)
    np.testing.assert_allclose(
        TotalVariation().prox(Y[:, ::-1], 0.5), [[2.5, 2.0, 4.5], [2.0] * 3], rtol=1e-14
    )


@settings(max_examples=40, deadline=None)
@given(seed=seeds, step=steps)
def test_squared_trace_norm_prox_solves_its_fixed_point(seed, step):
    W = random_matrix(seed)
    singular = scipy.linalg.svdvals(W)
    total = brentq(lambda t: np.maximum(singular - 2 * step * t, 0).sum() - t, 0, singular.sum(), xtol=1e-15)
    V = SquaredTraceNorm().prox(W, step)
    expected = np.maximum(singular - 2 * step * total, 0)
    np.testing.assert_allclose(scipy.linalg.svdvals(V), expected, rtol=0, atol=1e-12 * singular[0])
    # same singular vectors: W - V = (the subgradient 2 S ||.||_*) * step, whose inner product with V attains
    # the norm
    assert np.vdot(W - V, V) == pytest.approx(2 * step * expected.sum() ** 2, rel=1e-9, abs=1e-12)


@for_each("shape", [(60, 12), (12, 60), (30, 30), (1, 7), (7, 1), (500, 3)])
@for_each("ratio", [0.9, 0.1, 1.01 * GRAM_RATIO, 0.99 * GRAM_RATIO, 1e-9])
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


def test_trace_norm_prox_ends_at_zero_and_at_the_argument():
    W = random_matrix(0)
    assert not TraceNorm().prox(W, 1.0001 * np.linalg.norm(W, 2)).any()
    assert TraceNorm().prox(np.zeros((3, 2)), 0.1).shape == (3, 2)
    np.testing.assert_allclose(TraceNorm().prox(W, 1e-14), W, atol=1e-13)


@for_each("atom", [GraphLaplacian.examples()[k] for k in range(4)])
def test_graph_laplacian_against_linear_algebra(atom):
    rng = np.random.default_rng(1)
    W, Z = rng.normal(size=(2, 5, 4))
    np.testing.assert_allclose(atom.prox(W, 0.7) @ (np.eye(4) + 0.7 * atom.L), W, atol=1e-13)
    np.testing.assert_allclose(atom.gradient(W), W @ atom.L, atol=1e-13)
    inside = Z @ atom.L
    np.testing.assert_allclose(
        atom.conjugate(inside), 0.5 * np.trace(inside @ np.linalg.pinv(atom.L) @ inside.T)
    )
    eigenvalues = np.linalg.eigvalsh(atom.L)
    definite = eigenvalues[0] > 1e-9
    assert atom.absorbs == definite == atom.finite_dual == np.isfinite(atom.dual_gauge(Z))
    assert atom.curvature == pytest.approx(eigenvalues[-1])
    assert atom.strong_convexity == pytest.approx(eigenvalues[0], abs=1e-12)
    projected = atom.dual_project(Z)
    assert atom.dual_gauge(projected) == 0.0
    np.testing.assert_allclose(projected, Z @ atom.L @ np.linalg.pinv(atom.L), atol=1e-12)


def test_graph_laplacian_is_the_sum_over_edges():
    rng = np.random.default_rng(2)
    A = np.triu(rng.uniform(size=(4, 4)), 1)
    A += A.T
    W = rng.normal(size=(5, 4))
    edges = sum(A[i, j] * np.sum((W[:, i] - W[:, j]) ** 2) for i in range(4) for j in range(i)) / 2
    atom = GraphLaplacian(scipy.sparse.csr_array(np.diag(A.sum(axis=1)) - A))
    assert atom.value(W) == pytest.approx(edges)


def test_mean_regularizer_is_a_graph_laplacian():
    rng = np.random.default_rng(3)
    W, Z = rng.normal(size=(2, 5, 4))
    mean, graph = MeanRegularizer(), GraphLaplacian(np.eye(4) - 0.25)
    np.testing.assert_allclose(mean.task_quadratic(4), graph.L)
    for method, arguments in {
        "value": (W,),
        "gradient": (W,),
        "prox": (W, 0.3),
        "dual_project": (Z,),
    }.items():
        np.testing.assert_allclose(
            getattr(mean, method)(*arguments), getattr(graph, method)(*arguments), atol=1e-13
        )
    assert mean.conjugate(Z - Z.mean(axis=1, keepdims=True)) == pytest.approx(
        graph.conjugate(Z - Z.mean(axis=1, keepdims=True))
    )


# --------------------------------------------------------------------------------- properties of all


def test_dual_projections_remove_nearly_constant_rows():
    """Dual projections remove nearly constant rows to relative precision."""
    Z = 1e8 + np.random.default_rng(8).normal(size=(5, 4))
    for atom in (TotalVariation(), MeanRegularizer(), GraphLaplacian.examples()[0]):
        assert np.isfinite(atom.dual_gauge(atom.dual_project(Z)))
        assert atom.dual_gauge(Z) == np.inf


def test_a_model_with_unpenalised_last_rows_is_certified():
    """Groups of rows 0-2 so dear that they vanish: the optimum is least squares on rows 3-4, and this is proven."""
    import mtldsl as mtl
    from mtldsl.proof.certificate import certify

    rng = np.random.default_rng(10)
    X, Y = rng.normal(size=(30, 5)), rng.normal(size=(30, 4))
    tasks = mtl.Tasks.shared(X, Y)
    weights = mtl.Weights(tasks)
    problem = mtl.minimize(mtl.squared_loss(weights, tasks) + 1e3 * mtl.group_norm(weights, [[0, 2], [1]]))
    form = problem.form()
    optimum = np.vstack([np.zeros((3, 4)), np.linalg.lstsq(X[:, 3:], Y)[0]])
    gradient = X @ optimum - Y
    certificate = certify(form, {form.blocks[0].name: optimum}, [gradient.T.ravel()], [-X.T @ gradient])
    assert certificate.objective == pytest.approx(0.5 * np.sum((Y - X @ optimum) ** 2))
    assert abs(certificate.relative_gap) <= 1e-12


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


# ----------------------------------------------------------------------------------- users' mistakes


@for_each(
    ("make", "message"),
    [
        (
            lambda: L1Norm(weights=-1.0),
            r"l1_norm\(..., weights=-1.0\): the weight is -1.0; weights must be finite and >= 0",
        ),
        (lambda: L21Norm(weights=[1.0, np.nan]), r"l21_norm\(.*the weight at 1 is nan"),
        (lambda: Ridge(weights=[[1.0, 2.0], [3.0, -4.0]]), r"ridge\(.*the weight at \(1, 1\) is -4.0"),
        (
            lambda: L12Norm(weights=[[1.0]]),
            r"l12_norm\(.*the weights have 2 axes; write a number or a one-dimensional",
        ),
        (
            lambda: L1InfNorm(weights="heavy"),
            r"l1_inf_norm\(..., weights='heavy'\): the weights are not numbers",
        ),
        (lambda: GroupNorm([[0, 1], [1, 2]]), "row 1 is in groups 0 and 1; the groups must be disjoint"),
        (lambda: GroupNorm([[0, 0]]), "row 0 is twice in group 0"),
        (lambda: GroupNorm([[0, -1]]), "group 0 holds row -1; row indices are counted from 0"),
        (lambda: GroupNorm([[0.5]]), "group 0 holds 0.5; rows are names, or whole numbers"),
        (lambda: GroupNorm([[0], []]), "group 1 is empty"),
        (lambda: GroupNorm([]), "there are no groups"),
        (lambda: GroupNorm([0, 1]), r"group 0 is 0; write a list a group"),
        (lambda: GroupNorm("ab"), "groups is a list of lists"),
        (lambda: GroupNorm([[0]], weights=[1.0, 2.0]), "2 weights for 1 groups"),
        (
            lambda: GraphLaplacian([[1.0, 2.0], [2.0, 1.0]]),
            "L has the eigenvalue -1, so the term is not convex",
        ),
        (
            lambda: GraphLaplacian([[1.0, 2.0], [0.0, 1.0]]),
            r"not symmetric: L\[0, 1\] = 2 but L\[1, 0\] = 0; write \(L",
        ),
        (lambda: GraphLaplacian([[1.0, np.nan], [np.nan, 1.0]]), r"L\[0, 1\] is nan"),
        (lambda: GraphLaplacian([[1.0, 2.0]]), r"L has shape \(1, 2\); it must be square"),
        (lambda: GraphLaplacian("path"), "'path' is a str, not an array of numbers"),
    ],
)
def test_mistakes_in_parameters_are_named(make, message):
    with pytest.raises(ModelError, match=message):
        make()


@for_each(
    ("atom", "message"),
    [
        (L1Norm(weights=[1.0, 2.0]), "weights of shape (2,) do not broadcast to the argument's shape (5, 4)"),
        (Ridge(weights=np.ones((2, 5, 4))[0][None, 0]), None),
        (
            Ridge(weights=np.ones((6, 4))),
            "weights of shape (6, 4) do not broadcast to the argument's shape (5, 4)",
        ),
        (L21Norm(weights=np.ones(4)), "there are 4 weights for 5 rows"),
        (L12Norm(weights=np.ones(5)), "there are 5 weights for 4 columns (tasks)"),
        (L21Norm(weights=np.ones(5)), None),
        (GroupNorm([[0, 5], [1]]), "row 5 is in a group, but the argument has 5 rows (0 to 4)"),
        (GraphLaplacian(PATH), "L is 3 x 3, but the argument has 4 columns (tasks)"),
        (TraceNorm(), None),
    ],
)
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
