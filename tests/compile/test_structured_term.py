"""Multipliers of structured hinges, and losses of whole tasks: what they prove is never more than the truth, which here is an enumeration of all labellings."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics import AUC, ErrorRate, FScore, PrecisionAt, RecallAt, ROCArea
from mtldsl.normal_form.terms.joint_losses import RadialTerm
from mtldsl.normal_form.terms.structured_term import Mixture, ProvenDual
from tests.atoms.metric_data import Arbitrary, labels, minus_conjugate
from tests.loops import for_each
from tests.models import separate, shared, with_weights

LABELLINGS = [FScore(), FScore(beta=0.4), AUC(), ErrorRate(), PrecisionAt(2), RecallAt(0.5), Arbitrary(0.33)]
ALL = [*LABELLINGS, ROCArea()]
every_metric = for_each("metric", ALL, ids=repr)
every_labelling_metric = for_each("metric", LABELLINGS, ids=repr)

COEFFICIENTS = (3.0, 0.25)


def term_of(metric, rng, sizes=(6, 7)):
    """The structured term of two small tasks, with different coefficients."""
    targets = [labels(rng, n, rng.integers(2, n - 1)) for n in sizes]
    tasks, W = with_weights(mtl.Tasks.separate([rng.normal(size=(n, 3)) for n in sizes], targets))
    (loss,) = mtl.minimize(mtl.structured_hinge(W, tasks, metric=metric) + mtl.l1_norm(W)).form().losses
    apart = type(loss)(loss.atom, np.array(COEFFICIENTS), tasks, loss.map, loss.intercepts, loss.typed)
    return apart, targets


def parts(term, flat):
    return [flat[a:b] for a, b in itertools.pairwise(term.tasks.offsets)]


def assert_proven(term, dual, targets, metric):
    """What is promised of every task is no more than -c f*(u / c)."""
    assert isinstance(dual, ProvenDual) and np.all(np.isfinite(dual.u))
    for u, promised, y, c in zip(parts(term, dual.u), dual.proven, targets, COEFFICIENTS, strict=True):
        assert promised <= c * minus_conjugate(metric, u / c, y) + 1e-8
        assert promised >= -1e-12  # nothing is worse than the true labelling alone


def random_mixture(rng, y, metric, kind):
    n, K = len(y), int(rng.integers(1, 7))
    flips, weights = rng.random((K, n)) < rng.random(), rng.random(K)
    if kind == "probabilities":
        weights *= rng.random() / weights.sum()
    elif kind == "sum above one":
        weights *= (1.0 + 3.0 * rng.random()) / weights.sum()
    elif kind == "negative":
        weights = rng.normal(size=K)
    elif kind == "the true labelling":
        flips[:] = False
    elif kind == "repeated":
        flips[:] = flips[0]
    return Mixture(flips, weights)


KINDS = ["probabilities", "sum above one", "negative", "the true labelling", "repeated"]


@pytest.mark.slow
@every_labelling_metric
@for_each("kind", KINDS)
def test_a_mixture_proves_no_more_than_the_conjugate(metric, kind):
    """Random labellings, most of them far from violated, many forbidden; weights of all sorts."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(6):
        term, targets = term_of(metric, rng)
        mixtures = [random_mixture(rng, y, metric, kind) for y in targets]
        forbidden = any(np.isinf(height(metric, flip, y)) for mix, y in zip(mixtures, targets, strict=True)
                        for flip in mix.flips[np.maximum(mix.weights, 0) > 0])  # fmt: skip
        dual = term.dual_project(mixtures)
        if not forbidden:
            assert_proven(term, dual, targets, metric)
            continue
        for u, promised, y, c in zip(parts(term, dual.u), dual.proven, targets, COEFFICIENTS, strict=True):
            # -inf, or another mixture with that slope
            assert promised <= c * minus_conjugate(metric, u / c, y) + 1e-8


def height(metric, flip, y) -> float:
    b, c = int(np.sum(flip & (y < 0))), int(np.sum(flip & (y > 0)))
    return float(metric.delta(b, c, int(np.sum(y > 0)), int(np.sum(y < 0))))


@pytest.mark.slow
@every_metric
@for_each("size", [0.1, 1.0, 100.0])
def test_arrays_of_any_size_are_moved_inside_and_prove_no_more(metric, size):
    rng = np.random.default_rng(3)
    for _ in range(2):
        term, targets = term_of(metric, rng)
        u = size * rng.normal(size=term.tasks.n_samples)
        assert_proven(term, term.dual_project(u), targets, metric)
        assert_proven(term, term.dual_project(parts(term, u)), targets, metric)  # a list of arrays
        # inside already: nothing moves
        inside = term.dual_project(u).u
        np.testing.assert_allclose(term.dual_project(inside).u, inside, atol=1e-8)


@pytest.mark.slow
@every_metric
def test_scaled_multipliers_prove_no_more(metric):
    rng = np.random.default_rng(4)
    term, targets = term_of(metric, rng)
    dual = term.dual_project(rng.normal(size=term.tasks.n_samples))
    for t in (0.0, 1e-9, 0.3, np.float64(0.77), 1.0):
        scaled = t * dual
        np.testing.assert_allclose(np.asarray(scaled), t * np.asarray(dual), rtol=1e-15)
        np.testing.assert_allclose(scaled.proven, t * dual.proven, rtol=1e-15)
        assert_proven(term, scaled, targets, metric)
        assert term.conjugate(scaled) == pytest.approx(-t * dual.proven.sum(), abs=1e-15)
        assert term.dual_project(scaled) is scaled
    for t in (-0.1, 1.0 + 1e-9, np.nan):
        with pytest.raises(ValueError, match="scaled by a number in"):
            t * dual


@pytest.mark.slow
@every_metric
@for_each("size", [0.03, 1.0, 30.0])
def test_balanced_multipliers_sum_to_zero_and_prove_no_more(metric, size):
    rng = np.random.default_rng(5)
    for _ in range(2):
        term, targets = term_of(metric, rng)
        u = size * rng.normal(size=term.tasks.n_samples)
        mixtures = (
            [random_mixture(rng, y, metric, "probabilities") for y in targets] if metric.labellings else u
        )
        for given in (u, mixtures, -u):
            dual = term.dual_project(given)
            if not np.all(np.isfinite(dual.proven)):
                continue  # a forbidden labelling proves nothing, balanced or not
            balanced = term.balanced(given)
            for part in parts(term, balanced.u):
                assert abs(part.sum()) <= 1e-12 * max(np.abs(part).sum(), 1.0)
            assert_proven(term, balanced, targets, metric)
            again = term.balanced(balanced)
            np.testing.assert_allclose(again.u, balanced.u, atol=1e-12)


@for_each("make", [separate, lambda seed: shared(seed, sample_weights=True)])
def test_all_tasks_at_once_are_the_tasks_one_by_one(make):
    tasks, W = with_weights(make(3))
    form = mtl.minimize(2.5 * mtl.square_root_loss(W, tasks, mean=True) + mtl.trace_norm(W)).form()
    (loss,) = form.losses
    assert isinstance(loss, RadialTerm)
    rng = np.random.default_rng(0)
    z = loss.tasks.targets + rng.normal(size=tasks.n_samples)
    u = loss.dual_project(rng.normal(size=tasks.n_samples))
    inner = 0.7 * u
    apart = list(loss._tasks_apart())
    assert loss.value(z) == pytest.approx(sum(c * loss.atom.value(z[r], y, s) for r, c, y, s in apart))
    assert loss.conjugate(inner) == pytest.approx(
        sum(c * loss.atom.conjugate(inner[r] / c, y, s) for r, c, y, s in apart)
    )
    assert np.isfinite(loss.conjugate(inner)) and loss.conjugate(3.0 * u + 1.0) == np.inf
    for r, c, y, s in apart:
        np.testing.assert_allclose(loss.gradient(z)[r], c * loss.atom.gradient(z[r], y, s), rtol=1e-12)
        np.testing.assert_allclose(u[r], c * loss.atom.dual_project(u[r] / c, y, s), rtol=1e-12)
    assert loss.value(z) + loss.conjugate(loss.gradient(z)) == pytest.approx(z @ loss.gradient(z))


def test_a_radial_loss_that_is_not_the_norm_has_its_own_prox():
    class Halfway(Loss):
        radial = True

        def prox(self, z, y, step, s=None):
            return 0.5 * (z + y)

    tasks, W = with_weights(separate(3))
    (loss,) = mtl.minimize(mtl.square_root_loss(W, tasks) + mtl.trace_norm(W)).form().losses
    z = np.random.default_rng(1).normal(size=tasks.n_samples)
    found = replace(loss, atom=Halfway()).prox(z, 0.3)
    np.testing.assert_array_equal(found, 0.5 * (z + tasks.targets))
