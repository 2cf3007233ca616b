"""Regularizers and sets beside their laws (test_registry.py): proxes at size, unpenalised rows, printing, parameters that are refused."""

import numpy as np
import pytest

from mtldsl.atoms.balls import NormBall
from mtldsl.atoms.losses import EpsilonInsensitiveLoss, HuberLoss, QuantileLoss, SquareRootLoss
from mtldsl.atoms.prox.spectral_matrix import THRESHOLD_RATIO
from mtldsl.atoms.regularizers import (
    FrobeniusNorm,
    GraphLaplacian,
    GroupNorm,
    HalfSquaredGroupNorm,
    HalfSquaredKSupportNorm,
    KroneckerRidge,
    L1InfNorm,
    L1Norm,
    L12Norm,
    L21Norm,
    MeanRegularizer,
    Ridge,
    TotalVariation,
    TraceNorm,
)
from mtldsl.atoms.regularizers.group_norms import TreeNorm
from mtldsl.atoms.sets import AtLeast, AtMost, ColumnsOnSimplex, EqualTo
from mtldsl.errors import ModelError
from tests.loops import for_each

PATH = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])


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


@for_each(("atom", "message"), [
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
])  # fmt: skip
def test_check_says_what_does_not_fit(atom, message):
    assert atom.check((5, 4)) == message


def test_parameters_are_copies():
    weights, bound = np.ones(5), np.zeros(SHAPE)
    norm, set_ = L21Norm(weights=weights), AtLeast(bound)
    weights[0], bound[:] = 100.0, 5.0
    assert norm.value(np.ones(SHAPE)) == pytest.approx(10.0) and set_.project(np.ones(SHAPE)).max() == 1.0
    for array in (norm.weights, set_.bound):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2.0
    assert type(AtMost(np.int64(3)).bound) is float and type(EqualTo(np.array(2.0)).bound) is float


@for_each("atom", [*L1Norm.examples(), *L12Norm.examples()])
def test_gauges_of_columns_are_those_of_the_columns_alone(atom):
    Z = np.random.default_rng(3).normal(size=(5, 4))
    alone = [Z * (np.arange(4) == i) for i in range(4)]
    np.testing.assert_allclose(atom.column_gauges(Z), [atom.dual_gauge(column) for column in alone])
    assert L21Norm().column_gauges(Z) is None


SHAPE = (5, 4)


@for_each("norm", [L1Norm(), L21Norm(), TraceNorm(), FrobeniusNorm()])
def test_the_ball_of_radius_zero_is_the_zero_matrix(norm):
    W, ball = np.random.default_rng(2).normal(size=SHAPE), NormBall(norm, 0)
    assert np.abs(ball.project(W)).max() <= 1e-15
    assert not ball.project(np.zeros(SHAPE)).any()
    assert ball.support(W) == 0.0


def test_large_projections_keep_their_precision():
    rng = np.random.default_rng(3)
    W = rng.normal(size=(100_000, 1))
    P = NormBall(L1Norm(), 50.0).project(W)
    assert np.abs(P).sum() == pytest.approx(50.0, rel=1e-13)
    level = np.abs(W - P).max()
    moved = P != 0
    assert np.abs(W[moved] - P[moved]) == pytest.approx(np.full(moved.sum(), level), rel=1e-13)
    assert np.abs(W[~moved]).max() <= level


@for_each("step", [1.0, 100.0])
@for_each("word", [HalfSquaredGroupNorm(), HalfSquaredKSupportNorm(r=1)])
def test_far_smaller_norms_leave_the_prox_as_it_is(word, step):
    """Norms 1 and 0.3 become 1 / (1 + step) and zero; a third one of 1e-17 changes neither."""
    W = np.array([[1.0, 0.3, 1e-17]])
    assert word.prox(W, step).tolist() == [[pytest.approx(1.0 / (1.0 + step)), 0.0, 0.0]]


def test_groups_below_the_threshold_are_zero():
    """Sums that cancel would leave 1e-16 of them."""
    word, rng = HalfSquaredGroupNorm(), np.random.default_rng(0)
    for _ in range(200):
        W = rng.normal(size=(1, 30))
        found = word.prox(W, 1e3)
        assert np.count_nonzero(found) == np.sum(np.abs(W) > np.abs(found).sum() * 1e3)


def test_simplex_projection_does_not_cancel_under_an_offset():
    rng = np.random.default_rng(4)
    W = rng.integers(-8, 8, size=(30, 3)) / 16  # exact in binary, with the offset too
    P = ColumnsOnSimplex().project(W + 2.0**30)
    assert pytest.approx(ColumnsOnSimplex().project(W), abs=1e-15) == P
    assert P.sum(axis=0) == pytest.approx(np.ones(3), abs=1e-15)


def test_bounds_that_do_not_broadcast_are_named():
    for kind in (AtLeast, AtMost, EqualTo):
        assert kind(np.zeros((5, 1))).check(SHAPE) is None
        assert kind(np.zeros(4)).check(SHAPE) is None and kind(1.0).check(SHAPE) is None
        message = kind(np.zeros(5)).check(SHAPE)
        assert "(5,)" in message and "(5, 4)" in message
        # larger than the argument: the comparison would silently repeat the argument
        assert "(2, 5, 4)" in kind(np.zeros((2, 5, 4))).check(SHAPE)
        assert kind(np.zeros((5, 4))).check((1, 4)) is not None


def test_latex_shows_the_size():
    assert AtLeast(0.0).latex("W") == r"W \geq 0" and AtMost(np.eye(2)).latex("W") == r"W \leq B"
    assert EqualTo(1.5).latex("W") == "W = 1.5" and NormBall(L1Norm(), 2).latex("W") == r"\|W\|_1 \leq 2"
    assert ColumnsOnSimplex(3).latex("W").count("= 3") == 1


INF, NAN = np.inf, np.nan
REFUSED = [
    (lambda: HuberLoss(delta=0.0), "delta=0.0", "> 0"),
    (lambda: HuberLoss(delta=INF), "delta=inf", "finite"),
    (lambda: SquareRootLoss(eps=-1e-3), "eps=-0.001", ">= 0"),
    (lambda: EpsilonInsensitiveLoss(epsilon=-1), "epsilon=-1", ">= 0"),
    (lambda: QuantileLoss(q=0), "q=0", "0 < q < 1"),
    (lambda: QuantileLoss(q=1.0), "q=1.0", "0 < q < 1"),
    (lambda: QuantileLoss(q=NAN), "q=nan", "0 < q < 1"),
    (lambda: L1Norm(weights=-1.0), "l1_norm(..., weights=-1.0)", "is -1.0; weights must be finite and >= 0"),
    (lambda: L21Norm(weights=[1.0, NAN]), "l21_norm(", "the weight at 1 is nan"),
    (lambda: Ridge(weights=[[1.0, 2.0], [3.0, -4.0]]), "ridge(", "the weight at (1, 1) is -4.0"),
    (lambda: L12Norm(weights=[[1.0]]), "l12_norm(", "have 2 axes; write a number or a one-dimensional"),
    (lambda: L1InfNorm(weights="heavy"), "l1_inf_norm(..., weights='heavy'): the weights are not numbers"),
    (lambda: GroupNorm([[0, 1], [1, 2]]), "row 1 is in groups 0 and 1; the groups must be disjoint"),
    (lambda: GroupNorm([[0, 0]]), "row 0 is twice in group 0"),
    (lambda: GroupNorm([[0, -1]]), "group 0 holds row -1; row indices are counted from 0"),
    (lambda: GroupNorm([[0.5]]), "group 0 holds 0.5; rows are names, or whole numbers"),
    (lambda: GroupNorm([[0], []]), "group 1 is empty"),
    (lambda: GroupNorm([]), "there are no groups"),
    (lambda: GroupNorm([0, 1]), "group 0 is 0; write a list per group"),
    (lambda: GroupNorm(np.array([0, 0, 1, 1])), "group 0 is 0; write a list per group, such as [[0, 1], [2, 3]]; one label each, these would be the groups [[0, 1], [2, 3]]"),
    (lambda: TreeNorm(rows=np.array([2, 5, 2])), "group 0 is 2; write a list per group", "these would be the groups [[0, 2], [1]]"),
    (lambda: GroupNorm("ab"), "groups is a list of lists"),
    (lambda: GroupNorm([[0]], weights=[1.0, 2.0]), "2 weights for 1 groups"),
    (lambda: GraphLaplacian([[1.0, 2.0], [2.0, 1.0]]), "L has the eigenvalue -1, so the term is not convex"),
    (lambda: GraphLaplacian([[1.0, 2.0], [0.0, 1.0]]),
     "not symmetric: L[0, 1] = 2 but L[1, 0] = 0; write (L"),
    (lambda: GraphLaplacian([[1.0, NAN], [NAN, 1.0]]), "L[0, 1] is nan"),
    (lambda: GraphLaplacian([[1.0, 2.0]]), "L has shape (1, 2); it must be square"),
    (lambda: GraphLaplacian("path"), "'path' is a str, not an array of numbers"),
    (lambda: AtLeast(NAN), ">= nan", "finite"),
    (lambda: AtLeast(INF), ">= inf", "-inf means: no bound there"),
    (lambda: AtMost([[0.0, 1.0], [NAN, 1.0]]), "at (1, 0) is nan", "inf means: no bound there"),
    (lambda: AtMost([0.0, -INF]), "at 1 is -inf", "inf means: no bound there"),
    (lambda: EqualTo([0.0, INF]), "at 1 is inf", "finite numbers"),
    (lambda: NormBall(L1Norm(), -1.0), "radius=-1.0", ">= 0"),
    (lambda: NormBall(L21Norm(), NAN), "radius=nan", "finite"),
    (lambda: ColumnsOnSimplex(0.0), "total=0.0", "> 0"),
]  # fmt: skip


@for_each("case", REFUSED)
def test_wrong_parameters_are_refused_as_typed(case):
    make, *pieces = case
    with pytest.raises(ModelError) as refusal:
        make()
    assert all(piece in str(refusal.value) for piece in pieces), refusal.value
