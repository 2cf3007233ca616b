"""Log-rank, capped trace norm, Schatten, a user's own penalty, and the rank: rounding, proxes in 60 digits, and their parameters."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from mtldsl.atoms.learned_structures.spectral_penalties import (
    CappedTraceNorm,
    LogRank,
    SchattenNorm,
    SpectralPenalty,
)
from mtldsl.atoms.regularizers import Rank
from mtldsl.atoms.sets import RankAtMost
from mtldsl.errors import ModelError
from tests.loops import for_each
from tests.registry_cases import with_singular_values

# Tolerances without a word beside them: 1e-15 is a few units in the last place, of one formula; 1e-14 and 1e-13 are the
# rounding of an SVD of matrices of these sizes.


def test_what_is_small_in_a_matrix_of_low_rank_is_rounding():
    """A singular value of 1e-16 has the root 1e-8: without a cut the value of a product of rank one would show it."""
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(40, 1)), rng.normal(size=(1, 30))
    s = np.linalg.norm(u) * np.linalg.norm(v)
    assert SchattenNorm(0.5, 0.0).value(u @ v) == pytest.approx(np.sqrt(s), rel=1e-13)
    assert SchattenNorm(0.01, 0.0).value(u @ v) == pytest.approx(s**0.01, rel=1e-13)
    assert LogRank(0.0).value(u @ v) == pytest.approx(np.log1p(s), rel=1e-13)


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


@for_each("p", [0.05, 0.5, 2 / 3, 0.95])
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


def test_an_infinite_slope_at_zero_is_no_accident():
    """sqrt(x), the trace norm: a pair that is zero turns with an infinite weight, and nothing warns."""
    atom = SpectralPenalty(root, root_slope, 0.0)
    U, V, w, rest = atom.turning_weights(np.diag([4.0, 0.5]))
    np.testing.assert_allclose(w, [0.25, 2.0], rtol=1e-15)
    assert rest == np.inf and not atom.is_reweighted
    np.testing.assert_allclose(atom.prox(np.diag([4.0, 0.5]), 1.0), np.diag([3.0, 0.0]), rtol=1e-14)


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
        (lambda: CappedTraceNorm(1.0, -1e-9), ["eps=-1e-09"]),
        (lambda: CappedTraceNorm(0.05, 1e-2), ["tau=0.05, eps=0.01", "a constant", "below 0.0025"]),
        (lambda: SchattenNorm(0.0), ["schatten_norm(..., p=0.0)", "between 0 and 1"]),
        (lambda: SchattenNorm(1.0), ["p=1.0", "write trace_norm"]),
        (lambda: SchattenNorm(0.5, None), ["eps=None"]),
        (lambda: RankAtMost(0), ["rank(", "<= 0", "whole number >= 1"]),
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


@for_each("function, derivative, eps", [
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
])  # fmt: skip
def test_concave_functions_are_taken(function, derivative, eps):
    """Steep, flat, tiny, huge, with a kink, unbounded below at zero where eps keeps it away."""
    atom = SpectralPenalty(function, derivative, eps)
    V = with_singular_values([3.0, 1.0, 0.2], (5, 4), np.random.default_rng(0))
    expected = float(np.sum(function(np.array([3.0, 1.0, 0.2, 0.0, 0.0]) ** 2 + eps)))
    # sigma = 0 is some 1e-16 of an SVD, which a steep function sees
    assert atom.value(V) == pytest.approx(expected, rel=1e-12)
    assert np.all(np.isfinite(atom.prox(V, 0.7)))
    for turned_over in (V, V.T) if eps else ():  # no majoriser asks for r(0)
        touching = atom.value_at(turned_over, atom.update(turned_over))
        # the slope at zero, where singular values are rounding, times some units of ||V||^2 = 10: 1.8e-8 where it is 1e6
        rounding = 8 * np.finfo(float).eps * 10.04 * float(derivative(np.array(eps)))
        assert touching == pytest.approx(atom.value(turned_over), rel=1e-12, abs=rounding)


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
