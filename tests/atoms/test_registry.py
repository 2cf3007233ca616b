"""The laws every atom obeys, run over every example of every registered atom; see registry_cases.py for the
data.

Formulas on the two sides of a law never come from the same place: the prox is judged by the reference's
values, the conjugate by a supremum that cvxpy finds, the gradient by finite differences.
"""

import numpy as np
import pytest

from mtldsl.atoms.function import REGISTRY, Loss, MatrixFunction
from mtldsl.atoms.metrics import ErrorRate, Metric
from mtldsl.atoms.structures import Structure
from mtldsl.reference.registry import FORMULAS, SPECTRA, STRUCTURES
from tests.registry_cases import (
    LOSSES,
    MATRIX_FUNCTIONS,
    SPECTRAL,
    WEIGHTED_LOSSES,
    assert_minimal,
    convex,
    fewest,
    heaviest,
    loss_data,
    loss_value,
    random,
    reference_conjugate,
    reference_prox,
    samples,
    targets,
)
from tests.registry_cases import STRUCTURES as LEARNED

STEPS = (0.3, 2.0)
all_losses = pytest.mark.parametrize("atom", LOSSES)
every_loss_and_weighting = pytest.mark.parametrize("atom, weighting", WEIGHTED_LOSSES)
weighing_losses = pytest.mark.parametrize("atom", [case for case in LOSSES if case.values[0].weighs_samples])
counting_losses = pytest.mark.parametrize(
    "atom", [case for case in LOSSES if not case.values[0].weighs_samples]
)


def test_every_atom_has_a_formula_and_every_formula_an_atom():
    """A learned structure has one with its matrices kept, and only where it is convex one on the weights alone; a function of the
    spectrum that is not convex has one in numpy.
    """
    structures = {name for name, cls in REGISTRY.items() if issubclass(cls, Structure) and cls.learns}
    spectral = {case.values[0].name for case in SPECTRAL}
    assert structures == set(STRUCTURES) and spectral == set(SPECTRA)
    without = spectral | {name for name in structures if REGISTRY[name].convex is not True}
    assert set(REGISTRY) - set(FORMULAS) == without
    assert set(FORMULAS) <= set(REGISTRY)


def test_every_function_of_a_matrix_obeys_some_laws():
    cases = convex(MATRIX_FUNCTIONS) + LEARNED + SPECTRAL
    assert {case.values[0].name for case in cases} == {
        name for name, cls in REGISTRY.items() if issubclass(cls, MatrixFunction)
    }


@pytest.mark.parametrize("name", REGISTRY)
def test_every_atom_says_what_it_is(name):
    atom = REGISTRY[name]
    assert issubclass(atom, (Loss, MatrixFunction, Metric)) and atom.name == name
    assert "{}" in atom.formula and len(atom.__doc__.splitlines()) > 3 and ">>>" in atom.__doc__
    assert "x" in atom.examples()[0].latex("x")


# ------------------------------------------------------------------------------------------------ losses


@every_loss_and_weighting
@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 30.0])
def test_loss_value_is_the_reference_value(atom, weighting, size):
    _, z, y, s = loss_data(atom, weighting)
    expected = loss_value(atom, size * z, y, s)
    assert atom.value(size * z, y, s) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@every_loss_and_weighting
@pytest.mark.parametrize("step", STEPS)
def test_loss_prox(atom, weighting, step):
    """The minimiser x of F = step f + 1/2 ||. - z||^2 obeys F(v) >= F(x) + 1/2 ||v - x||^2 for every v."""
    rng, z, y, s = loss_data(atom, weighting, 1)
    x = atom.prox(z, y, step, s)
    objective = lambda v: step * loss_value(atom, v, y, s) + 0.5 * np.sum((v - z) ** 2)  # noqa: E731
    best = objective(x)
    assert_minimal(objective, x, rng, growth=1.0)
    of_reference = reference_prox(atom, z, step, y, s)
    assert objective(of_reference) == pytest.approx(best, rel=1e-7)
    assert objective(of_reference) >= best + 0.5 * np.sum((of_reference - x) ** 2) - 1e-12 * (1 + best)


@every_loss_and_weighting
@pytest.mark.parametrize("step", [1e-6, 1e-2, 1.0, 1e2, 1e6])
def test_loss_fenchel_young_is_tight_at_the_prox(atom, weighting, step):
    """u = (z - x) / step is a subgradient at x = prox(z): f(x) + f*(u) = <x, u>."""
    _, z, y, s = loss_data(atom, weighting, 2)
    x = atom.prox(z, y, step, s)
    u = (z - x) / step
    noise = 1e-15 * max(1.0, 1.0 / step)  # cancellation in z - x
    inside = atom.dual_project(u, y, s)
    np.testing.assert_allclose(inside, u, rtol=1e-9, atol=1e-9 + 100 * noise)
    pair = atom.value(x, y, s) + atom.conjugate(inside, y, s)
    size = 1 + abs(atom.value(x, y, s)) + np.abs(x) @ np.abs(inside)
    assert pair == pytest.approx(x @ inside, abs=(1e-10 + 1e4 * noise) * size)


@every_loss_and_weighting
def test_loss_fenchel_young(atom, weighting):
    """f(z) + f*(u) >= <z, u>, with equality at a (sub)gradient u."""
    rng, z, y, s = loss_data(atom, weighting, 3)
    g = atom.gradient(z, y, s)
    conjugate = atom.conjugate(atom.dual_point(z, y, s), y, s)
    assert atom.value(z, y, s) + conjugate == pytest.approx(z @ g, rel=1e-10, abs=1e-10)
    finite = 0
    for size in (0.1, 0.5, 1.0, 3.0):
        for _ in range(5):
            u = atom.dual_project(size * rng.normal(size=z.size), y, s)
            v = 2.0 * rng.normal(size=z.size)
            conjugate = atom.conjugate(u, y, s)
            finite += np.isfinite(conjugate)
            assert loss_value(atom, v, y, s) + conjugate >= v @ u - 1e-10
    assert finite == 20  # dual_project lands in the domain


@every_loss_and_weighting
def test_loss_conjugate_is_the_supremum(atom, weighting):
    rng, z, y, s = loss_data(atom, weighting, 4)
    g, h = (atom.gradient(v, y, s) for v in (z, rng.normal(size=z.size)))
    u = 0.6 * g + 0.4 * h  # dom f* is convex
    expected = reference_conjugate(atom, u, y, s)
    assert atom.conjugate(u, y, s) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@every_loss_and_weighting
def test_loss_conjugate_is_infinite_outside_its_domain(atom, weighting):
    rng, z, y, s = loss_data(atom, weighting, 5)
    u = 50.0 * rng.normal(size=z.size)
    inside = atom.dual_project(u, y, s)
    # the nearest point of a polytope of labellings is a sum of vertices of size 1
    rounding = 1e-15 if atom.labels == "indicators" else 0.0
    np.testing.assert_allclose(atom.dual_project(inside, y, s), inside, rtol=1e-14, atol=rounding)
    bounded = not np.allclose(inside, u)
    assert np.isinf(atom.conjugate(u, y, s)) == bounded
    assert np.isinf(reference_conjugate(atom, u, y, s)) == bounded
    if bounded:  # and from just outside
        outside = inside + 1e-3 * (u - inside)
        assert atom.conjugate(outside, y, s) == np.inf


@every_loss_and_weighting
def test_loss_gradient(atom, weighting):
    """Finite differences where smooth, the subgradient inequality everywhere; `curvature` bounds the change
    of the gradient.
    """
    rng, z, y, s = loss_data(atom, weighting, 6)
    g = atom.gradient(z, y, s)
    if atom.smooth:
        for i in range(z.size):
            e = 1e-5 * np.eye(z.size)[i]
            slope = (loss_value(atom, z + e, y, s) - loss_value(atom, z - e, y, s)) / 2e-5
            assert g[i] == pytest.approx(slope, rel=1e-6, abs=1e-6)
    changes = []
    for size in (1e-3, 0.1, 1.0, 5.0):
        for _ in range(5):
            v = z + size * rng.normal(size=z.size)
            assert loss_value(atom, v, y, s) >= loss_value(atom, z, y, s) + g @ (v - z) - 1e-11
            changes.append(np.linalg.norm(atom.gradient(v, y, s) - g) / np.linalg.norm(v - z))
    if np.isfinite(atom.curvature):
        assert atom.smooth
        assert max(changes) <= atom.curvature * (1.0 if s is None else s.max()) * (1 + 1e-9)


#: those that know a quadratic above them that touches
MAJORIZED = [
    case
    for case in WEIGHTED_LOSSES
    if case.values[0].majorizer_weight(*loss_data(*case.values, 14)[1:]) is not None
]


def test_radial_losses_have_majorizers():
    radial = {case.id for case in WEIGHTED_LOSSES if case.values[0].radial}
    assert radial and radial <= {case.id for case in MAJORIZED}


@pytest.mark.parametrize("atom, weighting", MAJORIZED)
@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_loss_majorizer_touches_and_lies_above(atom, weighting, size):
    """f(x) <= f(z) + v/2 (sum s (x - y)^2 - sum s (z - y)^2) for every x."""
    rng, z, y, s = loss_data(atom, weighting, 14)
    z = y + size * (z - y)
    v = atom.majorizer_weight(z, y, s)
    weights = np.ones(z.size) if s is None else s
    squares = lambda x: np.sum(weights * (x - y) ** 2)  # noqa: E731
    value = loss_value(atom, z, y, s)
    np.testing.assert_allclose(v * weights * (z - y), atom.gradient(z, y, s), rtol=1e-12)  # equal slopes
    for spread in (1e-4, 1e-2, 1.0, 1e2, 1e4):
        for x in (
            z + spread * rng.normal(size=z.size),
            y + spread * (z - y),
            y + spread * rng.normal(size=z.size),
            y,
        ):
            above = value + 0.5 * v * (squares(x) - squares(z))
            assert loss_value(atom, x, y, s) <= above + 1e-12 * (1 + v * (squares(x) + squares(z)))


@every_loss_and_weighting
def test_loss_is_a_function_of_the_norm_of_its_residuals_where_it_says_so(atom, weighting):
    """Radial: f(z) = h(t), t = sqrt(sum s (z - y)^2), and h'(t) / t is the weight of the quadratic that touches. Others differ between
    residuals of one norm.
    """
    rng, z, y, s = loss_data(atom, weighting, 15)
    root = np.ones(z.size) if s is None else np.sqrt(s)
    sizes = np.array([1e-3, 0.1, 1.0, 30.0])
    directions = rng.normal(size=(2, z.size))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    values = np.array([[loss_value(atom, y + t * u / root, y, s) for t in sizes] for u in directions])
    if not atom.radial:
        assert np.any(np.abs(values[0] - values[1]) > 1e-6)
        return
    np.testing.assert_allclose(values, np.tile(atom.value_of_norm(sizes), (2, 1)), rtol=1e-12)
    h = 3e-4 * sizes
    slopes = (atom.value_of_norm(sizes + h) - atom.value_of_norm(sizes - h)) / (2.0 * h)
    weights = atom.weight_of_norm(sizes)
    np.testing.assert_allclose(weights * sizes, slopes, rtol=1e-6, atol=1e-9)
    at = [atom.majorizer_weight(y + t * directions[0] / root, y, s) for t in sizes]
    np.testing.assert_allclose(at, weights, rtol=1e-12)


@all_losses
def test_loss_is_bounded_below(atom):
    rng, z, y, _ = loss_data(atom, "unweighted", 7)
    lowest = min(
        loss_value(atom, size * rng.normal(size=z.size), y) for size in (0.1, 1, 3) for _ in range(20)
    )
    assert lowest >= atom.bounded_below * z.size
    assert atom.convex


@all_losses
def test_loss_quadratic_is_what_it_says(atom):
    _, z, y, s = loss_data(atom, heaviest(atom), 8)
    if atom.quadratic is None:
        curved = [loss_value(atom, t * z, y, s) for t in (-1.0, 0.0, 1.0, 2.0)]
        assert np.diff(curved, 3) != pytest.approx(0.0, abs=1e-9)  # a parabola has no third difference
    else:
        assert loss_value(atom, z, y, s) == pytest.approx(atom.quadratic / 2 * np.sum(s * (z - y) ** 2))


@weighing_losses
def test_sample_weights_equal_replication(atom):
    rng, z, y, _ = loss_data(atom, "unweighted", 9)
    copies = rng.integers(1, 4, size=z.size)
    many = lambda v: np.repeat(v, copies)  # noqa: E731
    s = copies.astype(float)
    assert atom.value(z, y, s) == pytest.approx(atom.value(many(z), many(y)), rel=1e-12)
    gathered = np.add.reduceat(atom.gradient(many(z), many(y)), np.cumsum(copies) - copies)
    np.testing.assert_allclose(atom.gradient(z, y, s), gathered, rtol=1e-12, atol=1e-14)
    u = 0.7 * atom.gradient(z, y, s) + 0.3 * atom.gradient(-z, y, s)
    shared = atom.conjugate(many(u / s), many(y))  # by symmetry copies share their multiplier equally
    assert atom.conjugate(u, y, s) == pytest.approx(shared, rel=1e-11)


@counting_losses
def test_loss_that_counts_samples_refuses_weights(atom):
    rng, z, y, _ = loss_data(atom, "unweighted", 9)
    s, u = rng.uniform(0.5, 2.0, size=z.size), atom.gradient(z, y)
    for call in (
        lambda: atom.value(z, y, s),
        lambda: atom.gradient(z, y, s),
        lambda: atom.prox(z, y, 0.5, s),
        lambda: atom.conjugate(u, y, s),
        lambda: atom.dual_project(u, y, s),
        lambda: atom.dual_point(z, y, s),
    ):
        with pytest.raises(ValueError, match=r"no (sample )?weights"):
            call()


@every_loss_and_weighting
def test_loss_does_not_care_for_the_order_of_samples(atom, weighting):
    rng, z, y, s = loss_data(atom, weighting, 10)
    order = rng.permutation(samples(atom, z.size)).T.ravel()
    t = None if s is None else s[order]
    assert atom.value(z[order], y[order], t) == pytest.approx(atom.value(z, y, s), rel=1e-13)
    np.testing.assert_allclose(
        atom.prox(z[order], y[order], 0.7, t), atom.prox(z, y, 0.7, s)[order], rtol=1e-12
    )
    np.testing.assert_allclose(
        atom.gradient(z[order], y[order], t), atom.gradient(z, y, s)[order], rtol=1e-12
    )


@all_losses
def test_separable_loss_is_a_sum_over_samples(atom):
    """Two tasks may be stacked, and every sample may have a step of its own in the prox."""
    _, z, y, s = loss_data(atom, heaviest(atom), 11)
    each = samples(atom, z.size)
    cut = 5 * len(each) // 12
    first, rest = each[:cut].T.ravel(), each[cut:].T.ravel()
    parts = sum(atom.value(z[part], y[part], None if s is None else s[part]) for part in (first, rest))
    if not atom.separable:
        # twice a hinge loss, whose class makes no use of that; of labellings, over samples of many predictions each
        is_sum = isinstance(getattr(atom, "metric", None), ErrorRate) or atom.labels == "indicators"
        assert (atom.value(z, y, s) == pytest.approx(parts, rel=1e-3)) == is_sum
        return
    assert atom.value(z, y, s) == pytest.approx(parts, rel=1e-13)
    steps = np.where(np.arange(z.size) < cut, 0.3, 4.0)
    apart = [atom.prox(z[part], y[part], step, s[part]) for part, step in ((first, 0.3), (rest, 4.0))]
    np.testing.assert_allclose(atom.prox(z, y, steps, s), np.concatenate(apart), rtol=1e-12, atol=1e-13)


@all_losses
def test_loss_takes_float32_and_a_single_sample(atom):
    _, z, y, s = loss_data(atom, heaviest(atom), 12)
    single = [None if v is None else v.astype(np.float32) for v in (z, y, s)]
    double = [None if v is None else v.astype(float) for v in single]
    assert atom.value(*single) == pytest.approx(atom.value(*double), rel=1e-5)
    np.testing.assert_allclose(atom.gradient(*single), atom.gradient(*double), rtol=1e-4, atol=1e-5)
    prox = [atom.prox(v[0], v[1], 0.7, v[2]) for v in (single, double)]
    np.testing.assert_allclose(*prox, rtol=1e-4, atol=1e-5)
    few = fewest(atom, y)
    assert atom.value(z[few], y[few]) == pytest.approx(loss_value(atom, z[few], y[few]), rel=1e-12)


@all_losses
def test_loss_leaves_its_arguments_alone(atom):
    rng = random(atom, 13)
    y = targets(atom, rng)
    z = rng.normal(size=y.size)
    s = rng.uniform(0.5, 2, y.size) if atom.weighs_samples else None
    u = atom.gradient(z, y, s)
    given = [v for v in (z, y, s, u) if v is not None]
    before = [v.copy() for v in given]
    atom.value(z, y, s), atom.prox(z, y, 0.5, s), atom.conjugate(u, y, s), atom.dual_project(u, y, s)
    for now, then in zip(given, before, strict=True):
        np.testing.assert_array_equal(now, then)
