"""Log-rank, capped trace norm, Schatten, a user's own penalty, and the rank: by hand, in 50 digits, and their parameters."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mtldsl.atoms.regularizers import Rank
from mtldsl.atoms.regularizers.rank import numerical_rank
from mtldsl.atoms.sets import RankAtMost
from mtldsl.atoms.structures import CappedTraceNorm, LogRank, SchattenNorm, SpectralPenalty
from mtldsl.errors import ModelError
from tests.loops import for_each

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of an SVD of matrices of these sizes.


def turned(s, shape, seed=0):
    """A matrix of that shape with the singular values s."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(n, len(s))))[0] for n in shape)
    return (U * np.asarray(s, float)) @ V.T


# -------------------------------------------------------------------------------------------- values by hand

# a 3 x 2 matrix with singular values 3 and 4; with eps = 16 the roots of sigma^2 + eps are 5, sqrt(32) and, for the third row, 4
W = np.array([[0.0, 4.0], [3.0, 0.0], [0.0, 0.0]])


@for_each(
    ("atom", "value"),
    [
        (LogRank(0.0), np.log(4.0) + np.log(5.0)),
        (LogRank(16.0), np.log(6.0) + np.log(1.0 + np.sqrt(32.0)) + np.log(5.0)),
        (CappedTraceNorm(3.5), 3.0 + 3.5),
        (CappedTraceNorm(10.0), 7.0),
        (CappedTraceNorm(5.5, 16.0), 5.0 + 5.5 + 4.0),
        (SchattenNorm(0.5, 0.0), np.sqrt(3.0) + 2.0),
        (SchattenNorm(0.5, 16.0), np.sqrt(5.0) + 32.0**0.25 + 2.0),
        (SpectralPenalty(np.sqrt, lambda x: 0.5 / np.sqrt(x), 0.0), 7.0),
        (SpectralPenalty(np.log, lambda x: 1.0 / x, 16.0), np.log(25.0 * 32.0 * 16.0)),
        (Rank(), 2.0),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_values_by_hand(atom, value):
    assert atom.value(W) == pytest.approx(value, rel=1e-15)
    wide = atom.value(W.T)  # two rows: no third term
    third = float(atom.penalty(np.float64(atom.eps))) if getattr(atom, "eps", 0.0) else 0.0
    assert wide == pytest.approx(value - third, rel=1e-14)


def test_what_is_small_in_a_matrix_of_low_rank_is_rounding():
    """A singular value of 1e-16 has the root 1e-8: without a cut the value of a product of rank one would show it."""
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(40, 1)), rng.normal(size=(1, 30))
    s = np.linalg.norm(u) * np.linalg.norm(v)
    assert SchattenNorm(0.5, 0.0).value(u @ v) == pytest.approx(np.sqrt(s), rel=1e-13)
    assert SchattenNorm(0.01, 0.0).value(u @ v) == pytest.approx(s**0.01, rel=1e-13)
    assert LogRank(0.0).value(u @ v) == pytest.approx(np.log1p(s), rel=1e-13)


def test_scale():
    """Schatten to the power p is homogeneous of degree p, the capped trace norm with its cap, the rank of degree zero."""
    V = turned([3.0, 1.0, 0.2], (6, 4))
    for c in (1e-3, 0.5, 7.0, 1e4):
        assert SchattenNorm(0.3, 0.0).value(c * V) == pytest.approx(c**0.3 * SchattenNorm(0.3, 0.0).value(V))
        smoothed = SchattenNorm(0.3, c**2 * 1e-2).value(c * V)
        assert smoothed == pytest.approx(c**0.3 * SchattenNorm(0.3, 1e-2).value(V))
        assert CappedTraceNorm(2.0 * c).value(c * V) == pytest.approx(c * CappedTraceNorm(2.0).value(V))
        capped = CappedTraceNorm(2.0 * c, c**2 * 0.1).value(c * V)
        assert capped == pytest.approx(c * CappedTraceNorm(2.0, 0.1).value(V))
        assert Rank().value(c * V) == 3.0
    # and log_rank is not: the limits are the trace norm and, for what is large, a logarithm
    # log(1 + s) = s - s^2 / 2 for s = 3e-9; and log(s) + 1 / s for s = 3e9
    assert LogRank(0.0).value(1e-9 * V) == pytest.approx(1e-9 * 4.2, rel=1e-8)
    grows = LogRank(0.0).value(1e12 * V[:, :1]) - LogRank(0.0).value(1e9 * V[:, :1])
    assert grows == pytest.approx(np.log(1e3), rel=1e-8)


def test_limits_of_eps_and_tau():
    V = turned([3.0, 1.0, 0.2], (6, 4))
    # six rows: each of three singular values of zero adds the root of eps, 1e-8; s^(1 - 1e-9) = s (1 - 1e-9 log s)
    assert LogRank(1e-16).value(V) == pytest.approx(LogRank(0.0).value(V), abs=1e-7)
    assert SchattenNorm(1 - 1e-9, 0.0).value(V) == pytest.approx(4.2, rel=1e-8)
    assert CappedTraceNorm(1e6).value(V) == pytest.approx(4.2)
    assert CappedTraceNorm(1e-3).value(V) == pytest.approx(3e-3)


def test_smoothed_and_relaxed():
    """eps = tau^2 / 4 is as far as either goes for a capped trace norm, and nothing becomes smaller by being relaxed."""
    assert LogRank(0.0).smoothed(0.2).eps == SchattenNorm(0.3, 1.0).smoothed(0.2).eps == 0.2
    assert LogRank(0.25).relaxed(8.0).eps == 2.0 and SchattenNorm(0.3, 0.25).relaxed(8.0).p == 0.3
    assert [CappedTraceNorm(2.0).smoothed(eps).eps for eps in (0.5, 1.0, 9.0)] == [0.5, 1.0, 1.0]
    assert [CappedTraceNorm(2.0, eps).relaxed(8.0).eps for eps in (0.0625, 0.5, 3.0)] == [0.5, 1.0, 3.0]


# ---------------------------------------------------------------------------------------------- proximal steps


def exact_log_prox(s: float, step: float) -> float:
    """In 60 digits: the better of 0 and the larger root of x^2 + (1 - s) x + step - s."""
    with localcontext() as context:
        context.prec = 60
        s, t = Decimal(s), Decimal(step)
        inside = (s - 1) ** 2 + 4 * (s - t)
        if inside < 0:
            return 0.0
        x = ((s - 1) + inside.sqrt()) / 2
        if x <= 0 or t * (1 + x).ln() + (x - s) ** 2 / 2 >= s**2 / 2:
            return 0.0
        return float(x)


def test_log_prox_in_sixty_digits():
    """Also where both s and the step are far below one, and the textbook's root would cancel."""
    rng = np.random.default_rng(1)
    atom, positive = LogRank(0.0), 0
    for _ in range(400):
        s = 10.0 ** rng.uniform(-12, 12)
        step = s * 10.0 ** rng.uniform(-3, 1) * (1 + s * (rng.random() < 0.5))
        exact = exact_log_prox(s, step)
        found = atom.scalar_prox(np.array([s]), step)[0]
        conditioned = abs(s - step) / s  # the difference of the two given numbers is all the data there is
        assert found == pytest.approx(exact, rel=4e-15 / min(1.0, conditioned), abs=0)
        positive += exact > 0
    assert 100 < positive < 390


def test_log_prox_by_hand():
    """s = 3, step 1: 1 + sqrt(3) solves x + 1 / (1 + x) = 3; from step 1.16 on zero costs less, to step 4 there is a root."""
    prox = LogRank(0.0).prox(np.diag([3.0, 3.0]), 1.0)
    np.testing.assert_allclose(prox, (1.0 + np.sqrt(3.0)) * np.eye(2), rtol=1e-15)
    assert LogRank(0.0).scalar_prox(np.array([3.0]), 3.9)[0] == 0.0
    assert LogRank(0.0).scalar_prox(np.array([0.4, 0.5]), 0.5).tolist() == [0.0, 0.0]  # s <= step, s < 1


@pytest.mark.by_default("0.95")
@pytest.mark.parametrize("p", [0.05, 0.5, 2 / 3, 0.95])
def test_schatten_prox_solves_its_equation(p):
    """x + step p x^(p-1) = s to rounding, right of the turning point; and the threshold below which zero is better: where
    step x^p + (x - s)^2 / 2 = s^2 / 2, x = (2 step (1 - p))^(1/(2-p)), s = x + step p x^(p-1).
    """
    rng = np.random.default_rng(2)
    atom = SchattenNorm(p, 0.0)
    for _ in range(200):
        step = 10.0 ** rng.uniform(-9, 9)
        at_threshold = (2 * step * (1 - p)) ** (1 / (2 - p))
        threshold = at_threshold + step * p * at_threshold ** (p - 1)
        s = threshold * (1 + 10.0 ** rng.uniform(-6, 3))
        x = atom.scalar_prox(np.array([s]), step)[0]
        assert x + step * p * x ** (p - 1) == pytest.approx(s, rel=1e-14)
        assert x >= at_threshold * (1 - 1e-12)  # rounding of the turning point's powers
        assert atom.scalar_prox(np.array([threshold * (1 - 1e-9), 1e-3 * s, 0.0]), step)[0] == 0.0
    if p == 0.5:  # a cubic in the root of x
        root = np.max(np.roots([1.0, 0.0, -3.0, 0.5 * 0.7]).real)
        assert atom.scalar_prox(np.array([3.0]), 0.7)[0] == pytest.approx(root**2, rel=1e-14)


def test_capped_prox_by_hand():
    """tau = 2, step 1: up to 2.5 the trace norm's, from there the singular value itself; 4.5 costs step tau either way."""
    atom = CappedTraceNorm(2.0)
    s = np.array([9.0, 2.6, 2.4, 1.5, 0.9, 0.0])
    np.testing.assert_allclose(atom.scalar_prox(s, 1.0), [9.0, 2.6, 1.4, 0.5, 0.0, 0.0], rtol=1e-15)
    # just above the cap, and a step shorter than that: nothing moves, and below the cap it does
    np.testing.assert_array_equal(atom.scalar_prox(np.array([2.005, 2.0001]), 1e-5), [2.005, 2.0001])
    np.testing.assert_allclose(atom.scalar_prox(np.array([2.0, 1.999]), 1e-5), [1.99999, 1.99899], rtol=1e-14)
    # a long step: zero or all, sqrt(2 step tau) is where they cost the same
    s = np.array([20.1, 19.9, 3.0, 1.0])
    np.testing.assert_array_equal(atom.scalar_prox(s, 100.0), [20.1, 0.0, 0.0, 0.0])


def test_rank_prox_is_a_hard_threshold():
    V = turned([5.0, 2.1, 1.9, 0.1], (6, 5))
    assert numerical_rank(V) == 4 and Rank().value(V) == 4.0
    P = Rank().prox(V, 2.0)  # sqrt(2 * 2) = 2
    np.testing.assert_allclose(np.linalg.svd(P)[1], [5.0, 2.1, 0.0, 0.0, 0.0], atol=1e-14)
    U, s, Vt = np.linalg.svd(V, full_matrices=False)
    np.testing.assert_allclose(P, (U[:, :2] * s[:2]) @ Vt[:2], atol=1e-14)
    np.testing.assert_allclose(Rank().prox(V, 1e-12), V, atol=1e-14)
    assert not Rank().prox(V, 1e12).any()
    assert Rank().value(np.zeros((3, 2))) == 0.0 and Rank().value(np.diag([1e12, 1e3, 1e-3])) == 2.0


def test_rank_at_most_keeps_the_largest():
    V = turned([5.0, 2.0, 1.0], (6, 4))
    assert RankAtMost(1).violation(V) == pytest.approx(np.sqrt(5.0))
    assert RankAtMost(2).violation(V) == pytest.approx(1.0)
    assert RankAtMost(3).violation(V) <= 1e-14 and RankAtMost(9).violation(V) == 0.0
    np.testing.assert_allclose(np.linalg.svd(RankAtMost(2).project(V))[1], [5.0, 2.0, 0.0, 0.0], atol=1e-14)
    np.testing.assert_allclose(RankAtMost(9).project(V), V, atol=1e-14)
    np.testing.assert_array_equal(RankAtMost(1).project(np.zeros((3, 2))), np.zeros((3, 2)))
    ball = Rank().ball(2)
    assert isinstance(ball, RankAtMost) and ball.radius == 2 and type(ball.radius) is int
    assert RankAtMost(2).support(np.zeros((3, 2))) == 0.0 and RankAtMost(2).support(V) == np.inf


def test_an_infinite_slope_at_zero_is_no_accident():
    """sqrt(x), the trace norm: a pair that is zero turns with an infinite weight, and nothing warns."""
    atom = SpectralPenalty(root, root_slope, 0.0)
    U, V, w, rest = atom.turning_weights(np.diag([4.0, 0.5]))
    np.testing.assert_allclose(w, [0.25, 2.0], rtol=1e-15)
    assert rest == np.inf and not atom.is_reweighted
    np.testing.assert_allclose(atom.prox(np.diag([4.0, 0.5]), 1.0), np.diag([3.0, 0.0]), rtol=1e-14)


def test_a_penalty_of_ones_own_is_treated_as_the_one_it_copies():
    own = SpectralPenalty(
        lambda x: np.log1p(np.sqrt(x)), lambda x: 0.5 / (np.sqrt(x) * (1.0 + np.sqrt(x))), 1e-2
    )
    named = LogRank(1e-2)
    for seed in range(3):
        V = turned([7.0, 1.0, 0.03], (5, 4), seed)
        assert own.value(V) == pytest.approx(named.value(V), rel=1e-14)
        # two ways of writing r', and of entries that are small beside the largest its rounding
        np.testing.assert_allclose(own.gradient(V), named.gradient(V), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(own.prox(V, 0.8), named.prox(V, 0.8), rtol=1e-12, atol=1e-14)
    exact = SpectralPenalty(own.function, own.derivative, 0.0)
    s = np.array([12.0, 3.0, 1.1, 0.7, 0.2, 0.0])  # the general search against the closed form
    for step in (1e-3, 0.5, 1.0, 1.2, 2.0, 30.0):
        closed = LogRank(0.0).scalar_prox(s, step)
        np.testing.assert_allclose(exact.scalar_prox(s, step), closed, rtol=1e-13, atol=0)


# -------------------------------------------------------------------------------------------------- parameters


def rises(x):
    return x**2


def falls(x):
    return -np.sqrt(x)


def jumps(x):
    return np.log1p(np.sqrt(x)) + (x > 5.0)


def root(x):
    return np.sqrt(x)


def root_slope(x):
    return 0.5 / np.sqrt(x)


@for_each(
    ("make", "pieces"),
    [
        (lambda: LogRank(-1.0), ["log_rank(..., eps=-1.0)", ">= 0", "eps=1e-2"]),
        (lambda: LogRank(np.nan), ["eps=nan", "finite"]),
        (lambda: LogRank("1e-2"), ["eps='1e-2'"]),
        (lambda: CappedTraceNorm(0.0), ["capped_trace_norm(..., tau=0.0)", "> 0"]),
        (lambda: CappedTraceNorm(np.inf), ["tau=inf"]),
        (lambda: CappedTraceNorm(1.0, -1e-9), ["eps=-1e-09"]),
        (lambda: CappedTraceNorm(0.05, 1e-2), ["tau=0.05, eps=0.01", "a constant", "below 0.0025"]),
        (lambda: SchattenNorm(0.0), ["schatten_norm(..., p=0.0)", "between 0 and 1"]),
        (lambda: SchattenNorm(1.0), ["p=1.0", "write trace_norm"]),
        (lambda: SchattenNorm(0.5, None), ["eps=None"]),
        (lambda: RankAtMost(0), ["rank(", "<= 0", "whole number >= 1"]),
        (lambda: RankAtMost(2.5), ["<= 2.5", "rank(W) <= 3"]),
        (lambda: RankAtMost(True), ["<= True"]),
        (lambda: SpectralPenalty("sqrt", root_slope), ["function='sqrt'", "function of an array"]),
        (lambda: SpectralPenalty(root, 0.5), ["derivative=0.5", "function of an array"]),
        (lambda: SpectralPenalty(rises, lambda x: 2 * x), ["function=rises", "not concave", "rises from"]),
        (lambda: SpectralPenalty(falls, lambda x: -root_slope(x)), ["negative at x = 0.01", "not decrease"]),
        (lambda: SpectralPenalty(jumps, lambda x: root_slope(x) / (1 + np.sqrt(x))), ["function rises by"]),
        (lambda: SpectralPenalty(root, lambda x: 2 * root_slope(x)), ["at x = 0.01", "says 10", "say 4.99"]),
        (
            lambda: SpectralPenalty(root, lambda x: 1 / (2 * x)),  # with respect to sigma, not to its square
            ["the derivative says", "with respect to x = sigma^2 + eps"],
        ),
        (lambda: SpectralPenalty(np.log, lambda x: 1 / x, eps=0.0), ["not finite at x = 0", "eps = 0"]),
        (lambda: SpectralPenalty(np.sum, root_slope), ["function=sum", "of the shape they are given"]),
        (lambda: SpectralPenalty(root, lambda x: 0.5), ["of the shape they are given"]),
        (lambda: SpectralPenalty(lambda: 1.0, root_slope), ["fails with TypeError", "called with arrays"]),
        (lambda: SpectralPenalty(lambda x: 1.0 if x > 1 else 0.0, root_slope), ["fails with ValueError"]),
        (lambda: SpectralPenalty(root, root_slope, -1.0), ["spectral_penalty(..., eps=-1.0)"]),
    ],
)
def test_wrong_parameters_are_refused_as_typed(make, pieces):
    with pytest.raises(ModelError) as refusal:
        make()
    for piece in pieces:
        assert piece in str(refusal.value), str(refusal.value)


@for_each(
    "function, derivative, eps",
    [
        (root, root_slope, 0.0),
        (np.log, lambda x: 1.0 / x, 1e-6),
        (lambda x: x, np.ones_like, 0.0),  # the squared Frobenius norm: concave in x, if only just
        (np.zeros_like, np.zeros_like, 0.0),
        (lambda x: np.minimum(np.sqrt(x), 2.0), lambda x: np.where(x < 4.0, 0.5 / np.sqrt(x), 0.0), 0.0),
        (lambda x: 1e-9 * np.sqrt(x), lambda x: 1e-9 * root_slope(x), 1e-2),
        (lambda x: 1e9 * np.sqrt(x), lambda x: 1e9 * root_slope(x), 1e-2),
        (lambda x: -np.expm1(-1e4 * x), lambda x: 1e4 * np.exp(-1e4 * x), 0.0),
        (lambda x: np.log1p(x / 1e-12), lambda x: 1.0 / (x + 1e-12), 1e-2),
        (lambda x: np.where(x < 4, np.sqrt(x) - x / 4, 1.0), lambda x: np.where(x < 4, root_slope(x) - 0.25, 0), 0.0),
    ],
)  # fmt: skip
def test_concave_functions_are_taken(function, derivative, eps):
    """Steep, flat, tiny, huge, with a kink, unbounded below at zero where eps keeps it away."""
    atom = SpectralPenalty(function, derivative, eps)
    V = turned([3.0, 1.0, 0.2], (5, 4))
    expected = float(np.sum(function(np.array([3.0, 1.0, 0.2, 0.0, 0.0]) ** 2 + eps)))
    # sigma = 0 is some 1e-16 of an SVD, which a steep function sees
    assert atom.value(V) == pytest.approx(expected, rel=1e-12)
    assert np.all(np.isfinite(atom.prox(V, 0.7)))
    for turned_over in (V, V.T) if eps else ():  # no majoriser asks for r(0)
        touching = atom.value_at(turned_over, atom.update(turned_over))
        # a slope of up to 1e6 at zero, times the rounding of ||V||^2 = 10
        assert touching == pytest.approx(atom.value(turned_over), rel=1e-10)


def test_parameters_may_be_any_real_number_and_are_shown():
    """Parameters may be any real number and are shown where they differ."""
    assert LogRank(np.float32(0.5)).eps == LogRank(np.array(0.5)).eps == 0.5
    assert type(LogRank(1).eps) is float and LogRank().arguments() == {}
    assert CappedTraceNorm(2).arguments() == {"tau": 2.0}
    assert SchattenNorm(0.5, 0).arguments() == {"p": 0.5, "eps": 0.0}


def test_latex_is_exact_or_smoothed_and_leaves_no_gap():
    atoms = [LogRank(0.0), LogRank(1e-3), CappedTraceNorm(2.5), CappedTraceNorm(2.5, 1e-3)]
    atoms += [SchattenNorm(0.5, 0.0), SchattenNorm(0.5, 1e-3), SpectralPenalty(root, root_slope, 1e-3)]
    for atom in [*atoms, Rank(), RankAtMost(7)]:
        shown = atom.latex("W A")
        assert "W A" in shown and "{}" not in shown and shown.count("{") == shown.count("}")
        assert r"\tau" not in shown and r"\varepsilon" not in shown and r"\rho" not in shown
        assert ("0.001" in shown) == (getattr(atom, "eps", 0.0) > 0)
    assert "2.5" in CappedTraceNorm(2.5).latex("W") and "7" in RankAtMost(7).latex("W")
    assert SchattenNorm(0.5, 0.0).latex("W").endswith("^{0.5}")
    assert SchattenNorm(0.5, 1e-3).latex("W").endswith("^{0.25}")
