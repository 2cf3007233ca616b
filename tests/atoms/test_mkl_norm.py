"""The penalty of multi-task multiple kernel learning, worked out by hand and as the penalties that it has as special cases."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from mtldsl.atoms.regularizers import KroneckerRidge, Ridge
from mtldsl.atoms.structures import Ball, MKLNorm, TaskKernel
from mtldsl.reference.kernels import least
from tests.loops import for_each

# Tolerances without a word beside them: 1e-12 and 1e-13 are the rounding of sums and of small inverses; 1e-9 is ten times the
# relative gap at which the interior point method stops; larger ones are what cvxpy's backend leaves at its own setting.

T, D = 4, 5
rng = np.random.default_rng(0)
W, Z = rng.normal(size=(2, D, T))
UNIT = np.eye(T)


def kernel(factor, name="kernel", columns=None) -> TaskKernel:
    factor = np.asarray(factor, float)
    return TaskKernel(name, sparse.csr_array(factor if factor.ndim == 2 else factor[:, None]), columns)


def own(names="task") -> tuple[TaskKernel, ...]:
    return tuple(kernel(row, f"{names}{t}") for t, row in enumerate(UNIT))


UNION = kernel(np.ones(T), "union")


# ------------------------------------------------------------------------------------------------------- by hand


def test_identity_alone_is_the_ridge():
    for p in (1.0, 2.0, np.inf):
        atom = MKLNorm((kernel(UNIT),), p)
        assert atom.value(W) == pytest.approx(Ridge().value(W), rel=1e-13)
        assert atom.conjugate(Z) == pytest.approx(Ridge().conjugate(Z), rel=1e-13)
        np.testing.assert_allclose(atom.prox(W, 0.4), Ridge().prox(W, 0.4), rtol=1e-12)


@for_each("p", [1.0, 1.5, 2.0, 3.0])
def test_single_tasks_alone_are_a_norm_of_the_norms_of_columns(p):
    """W_t has one part only: 1/2 (sum_t ||w_t||^{2p/(p+1)})^{(p+1)/p}; p = 1: half the square of the l12 norm."""
    atom, norms = MKLNorm(own(), p), np.linalg.norm(W, axis=0)
    q = 2 * p / (p + 1)
    assert atom.value(W) == pytest.approx(0.5 * np.sum(norms**q) ** (2 / q), rel=1e-12)
    np.testing.assert_allclose(atom.update(W)[0], Ball(p).update(norms**2), atol=1e-6)


def test_union_alone_costs_what_the_common_weights_cost():
    atom, w = MKLNorm((UNION,), 2.0), rng.normal(size=(D, 1))
    assert atom.value(w @ np.ones((1, T))) == pytest.approx(0.5 * np.sum(w**2), rel=1e-13)
    assert atom.value(W) == np.inf
    np.testing.assert_allclose(
        atom.prox(W, 0.3), np.repeat(W.mean(axis=1), T).reshape(D, T) * T / (T + 0.3), rtol=1e-12
    )
    assert atom.conjugate(Z) == pytest.approx(0.5 * np.sum(Z.sum(axis=1) ** 2), rel=1e-13)


@pytest.mark.parametrize("outside", [1e-13, 1e-6])
def test_weights_outside_the_range_cost_infinity_but_rounding(outside):
    """Weights outside the range cost infinitely much but rounding does not."""
    pairs = (kernel([1.0, 1, 0, 0], "left"), kernel([0, 0, 1.0, 1], "right"))
    inside = W[:, [0, 0, 1, 1]]
    leaves = inside + outside * W
    for atom in (MKLNorm(pairs, 2.0), MKLNorm(pairs, about=np.ones(2))):
        assert np.isfinite(atom.value(leaves)) == (outside < 1e-9)
        assert atom.value(inside) == pytest.approx(least(inside, atom).value, rel=1e-12)


def test_a_weight_of_zero_that_is_given_takes_its_kernel_away():
    atom = MKLNorm((UNION, kernel(UNIT)), about=np.array([0.0, 2.0]))
    assert atom.value(W) == pytest.approx(0.25 * np.sum(W**2), rel=1e-13)
    atom = MKLNorm((UNION, kernel(UNIT)), about=np.array([2.0, 0.0]))
    assert atom.value(W) == np.inf == least(W, atom).value
    assert atom.value(np.ones((D, T))) == pytest.approx(0.25 * D, rel=1e-13)


# -------------------------------------------------------------------------------------------------- special cases


def positive(seed, scale=1.0) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(T, T))
    return scale * (A @ A.T + 0.1 * UNIT)


@for_each("seed", range(3))
def test_one_similarity_with_weight_one_is_a_kronecker_ridge(seed):
    """R = Q^{-1}: 1/2 tr(W Q W^T)."""
    Q = positive(seed)
    atom, ridge = (
        MKLNorm((kernel(np.linalg.cholesky(np.linalg.inv(Q))),), np.inf),
        KroneckerRidge(np.eye(D), Q),
    )
    assert atom.value(W) == pytest.approx(ridge.value(W), rel=1e-11)
    assert atom.conjugate(Z) == pytest.approx(ridge.conjugate(Z), rel=1e-11)
    np.testing.assert_allclose(atom.prox(W, 0.6), ridge.prox(W, 0.6), rtol=1e-10)


def test_given_weights_are_one_kernel():
    """K = sum theta_m R_m."""
    theta = np.array([0.3, 1.7])
    R = [positive(seed) for seed in (7, 8)]
    atom = MKLNorm(tuple(kernel(np.linalg.cholesky(one), str(k)) for k, one in enumerate(R)), about=theta)
    ridge = KroneckerRidge(np.eye(D), np.linalg.inv(theta[0] * R[0] + theta[1] * R[1]))
    assert atom.value(W) == pytest.approx(ridge.value(W), rel=1e-10)
    assert atom.conjugate(Z) == pytest.approx(ridge.conjugate(Z), rel=1e-10)


def test_evgeniou_and_pontil_is_least_over_common_and_own():
    """min over w_0 of lam0 / 2 ||w_0||^2 + lam1 / 2 sum_t ||w_t - w_0||^2: w_0 = lam1 sum_t w_t / (lam0 + T lam1)."""
    lam0, lam1 = 0.7, 2.5
    R = np.ones((T, T)) / lam0 + UNIT / lam1
    common = lam1 * W.sum(axis=1, keepdims=True) / (lam0 + T * lam1)
    expected = 0.5 * lam0 * np.sum(common**2) + 0.5 * lam1 * np.sum((W - common) ** 2)
    assert MKLNorm((kernel(np.linalg.cholesky(R)),), np.inf).value(W) == pytest.approx(expected, rel=1e-12)
    both = MKLNorm((UNION, kernel(UNIT, "own")), about=np.array([1 / lam0, 1 / lam1]))
    assert both.value(W) == pytest.approx(expected, rel=1e-12)


# ----------------------------------------------------------------------------------------------------- several views


def test_views_with_given_weights_are_problems_of_their_own():
    first, last = np.arange(3), np.arange(3, D)
    parts = [
        (MKLNorm((UNION, kernel(UNIT, "own")), about=np.array([0.5, 1.0])), first),
        (MKLNorm((kernel(np.linalg.cholesky(positive(1)), "other"),), about=np.array([2.0])), last),
    ]
    together = MKLNorm(
        tuple(replace(k, columns=rows) for atom, rows in parts for k in atom.kernels),
        about=np.array([0.5, 1.0, 2.0]),
    )
    assert together.value(W) == pytest.approx(sum(atom.value(W[rows]) for atom, rows in parts), rel=1e-12)
    assert together.conjugate(Z) == pytest.approx(
        sum(atom.conjugate(Z[rows]) for atom, rows in parts), rel=1e-12
    )
    expected = np.vstack([atom.prox(W[rows], 0.5) for atom, rows in parts])
    np.testing.assert_allclose(together.prox(W, 0.5), expected, rtol=1e-12)


@for_each("p", [1.0, 2.0])
def test_views_that_share_a_ball(p):
    """One kernel each: the closed form E.1 of a_m = tr(W_v Q_v W_v^T)."""
    rows, Q = [np.arange(3), np.arange(3, D)], [positive(2), positive(3, 10.0)]
    kernels = tuple(
        kernel(np.linalg.cholesky(np.linalg.inv(one)), f"view{v}", rows[v]) for v, one in enumerate(Q)
    )
    a = np.array([np.trace(W[r] @ one @ W[r].T) for r, one in zip(rows, Q, strict=True)])
    expected = 0.5 * np.sum(a ** (p / (p + 1))) ** ((p + 1) / p)
    atom = MKLNorm(kernels, p)
    assert atom.value(W) == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(atom.update(W)[0], Ball(p).update(a), atol=1e-6)


@pytest.mark.slow
def test_views_that_overlap():
    """A feature of two views has the kernels of both."""
    overlap = (
        replace(UNION, columns=np.arange(4)),
        kernel(UNIT, "own", np.arange(2, D)),
        kernel(UNIT, "all"),
    )
    for p in (1.0, 2.0):
        atom = MKLNorm(overlap, p)
        assert atom.value(W) == pytest.approx(least(W, atom).value, rel=1e-11)


# ------------------------------------------------------------------------------------------------------- refusals


@for_each(
    "kernels, shape, said",
    [
        ((UNION,), (D, 3), "'union' is of 4 tasks, but the argument has 3 columns"),
        ((replace(UNION, columns=np.array([1, 9])),), (D, T), "'union' is about features outside the 5 rows"),
        (
            (replace(UNION, columns=np.array([0, 1, 3, 4])),),
            (D, T),
            r"feature 2 is in no similarity.*without columns=",
        ),
    ],
)
def test_what_does_not_fit_is_said(kernels, shape, said):
    import re

    assert re.search(said, MKLNorm(kernels).check(shape))


def test_sizes_by_the_factors():
    atom = MKLNorm(
        (UNION, kernel(positive(5)), kernel(UNIT, "part", np.arange(2))), about=np.array([0.2, 3.0, 1.0])
    )
    dense = [k.matrix for k in atom.kernels]
    b = [np.trace(Z @ dense[0] @ Z.T), np.trace(Z @ dense[1] @ Z.T), np.sum(Z[:2] ** 2)]
    np.testing.assert_allclose(atom.sizes(Z), b, rtol=1e-12)
