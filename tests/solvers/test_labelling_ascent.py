"""The ascent under clique generation: what every epoch must keep, and the traps of working with differences of what is kept."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq

import mtldsl as mtl
from mtldsl.atoms.calculus.k_support import shares_of_norms
from mtldsl.solvers.kernels.labelling_ascent import shares
from mtldsl.solvers.labellings import ascent as ascent_module
from mtldsl.solvers.labellings.ascent import Ascent
from mtldsl.solvers.labellings.clique_form import clique_form
from tests.label_graph_models import data, model


def ascent_of(problem, active=None, epochs=0, seed=0):
    found = clique_form(problem.form())
    ascent = Ascent(found, seed)
    ascent.activate(np.arange(found.n_cliques) if active is None else active)
    for _ in range(epochs):
        ascent.epoch()
        ascent.recentre()
    return ascent


def ties():
    """Rows of zeros, rows twice with other labels, a label whose mistakes cost nothing: many labellings have equal values."""
    X, Y = data(n=30, K=4, seed=4)
    X[:5], X[10:20] = 0.0, X[20:30]
    X = np.round(X)
    return model(X, Y, loss=[1.0, 0.0, 1.0, 1.0], a=0.02)


MODELS = pytest.mark.parametrize(
    "make",
    [
        lambda: model(*data()),
        lambda: model(*data(), r=3, a=0.3, b=0.02),
        lambda: model(*data(), penalty=mtl.ridge),
        lambda: model(*data(n=20), edges=[(0, 1), (1, 2, 3), (0, 2)], sample_weights=np.linspace(0.2, 3, 20)),
        ties,
    ],
)


@MODELS
def test_random_labellings_keep_their_mass(make):
    """Where y+ equals y- but for rounding, a step must not lose weight: probabilities after 300 epochs, to 1e-12."""
    ascent = ascent_of(make(), epochs=300)
    assert np.all(ascent.alpha >= 0.0)
    np.testing.assert_allclose(ascent.alpha.sum(axis=1), 1.0, atol=1e-12)
    slots = np.arange(ascent.alpha.shape[1])
    assert np.all(ascent.alpha[slots >= ascent.counts[:, None]] == 0.0)
    np.testing.assert_array_equal(ascent.labels[:, 0], ascent.truth)
    for labels, count in zip(ascent.labels, ascent.counts, strict=True):  # no labelling has two places
        assert len(np.unique(labels[:count], axis=0)) == count


@MODELS
def test_kept_sums_are_those_of_the_random_labellings(make):
    """Multipliers, Z and squared norms, which the loop only adds to, after epochs, a new centre and another set of cliques."""
    problem = make()
    ascent = ascent_of(problem, epochs=40)
    q = ascent.model.n_cliques

    def check():
        u = problem.form().losses[0].dual_project(ascent.mixture())
        image = u.image.T
        kept = [image[: 2 * ascent.truth.shape[1]]]
        kept += [
            image[2 * ascent.truth.shape[1] :][ascent.model.loss.cliques.columns(c)] for c in ascent.active
        ]
        size = np.abs(image).max()
        np.testing.assert_allclose(ascent.multipliers, -np.vstack(kept), atol=1e-11 * size)
        a, b = ascent.model.a, ascent.model.b
        nodes = 2 * ascent.truth.shape[1]
        np.testing.assert_allclose(
            ascent.Z[:nodes], ascent.multipliers[:nodes] / a, atol=1e-11 * size / min(a, b)
        )
        Z = ascent.multipliers[nodes:] / b + ascent.tau * ascent.centre
        np.testing.assert_allclose(ascent.Z[nodes:], Z, atol=1e-11 * (size / b + np.abs(Z).max(initial=0.0)))
        begins = ascent.cliques.starts - nodes
        squares = [np.sum(ascent.Z[nodes:][i:j] ** 2) for i, j in pairwise(begins)]
        np.testing.assert_allclose(ascent.squares, squares, rtol=1e-11, atol=1e-14 * size**2)

    check()
    ascent.recentre()
    check()
    ascent.activate(np.arange(q)[::-1][: max(1, q - 1)])
    check()
    ascent.epoch()
    check()
    ascent.activate(np.arange(q))
    ascent.epoch()
    check()


@MODELS
def test_epochs_raise_the_dual_value(make):
    """With its proximal term, the centre staying: every step is exact to a tenth of its slope, and goes up."""
    ascent = ascent_of(make(), epochs=3)
    before = ascent.raised()
    for _ in range(30):
        ascent.epoch()
        value = ascent.raised()
        assert value >= before - 1e-12 * abs(before)
        before = value


def test_more_labellings_than_slots(monkeypatch):
    """A sample that mixes more labellings than there is room for gets room, and loses nothing."""
    X, Y = data(n=15, K=6, d=2, noise=0.5)
    roomy = model(X, Y, a=0.003).solve("clique_generation", tol=1e-5)
    monkeypatch.setattr(ascent_module, "_SLOTS", 2)
    ascent = ascent_of(model(X, Y, a=0.003), epochs=60)
    assert ascent.labels.shape[1] == ascent.alpha.shape[1] > 2
    np.testing.assert_allclose(ascent.alpha.sum(axis=1), 1.0, atol=1e-12)
    narrow = model(X, Y, a=0.003).solve("clique_generation", tol=1e-5)
    assert roomy.status == narrow.status == "optimal"
    assert narrow.objective == pytest.approx(roomy.objective, rel=2e-5)


def test_objective_and_bound_are_the_certificates():
    problem = model(*data(), r=2)
    ascent = ascent_of(problem, active=np.array([4, 1, 3]), epochs=7)
    from mtldsl.proof.certificate import certify

    value, (bound, share) = ascent.primal(), ascent.dual(ascent.clique_norms())
    seen = certify(problem.form(), ascent.blocks(), [ascent.mixture(share)])
    assert value == pytest.approx(seen.objective, rel=1e-12)
    assert bound == pytest.approx(seen.dual_bound, rel=1e-9)


# ---------------------------------------------------------------------------------------------------- shares of cliques


def shares_by_loop(norms, r, tau, order=None):
    eta = np.empty(norms.size)
    order = np.arange(norms.size) if order is None else order
    shares(norms, order, r, tau, eta)
    assert np.all(np.diff(norms[order]) <= 0.0)
    return eta


@pytest.mark.parametrize("tau", [5.0, 1e-3, 1e3])
def test_shares_solve_their_equation(tau):
    """Against the atom's own shares and against a root of sum clip((kappa a - 1) / tau, 0, 1) = r."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        q = int(rng.integers(2, 12))
        norms = rng.exponential(size=q) ** (1 + 3 * (trial % 2))
        if trial % 3 == 0:
            norms[rng.random(q) < 0.4] = norms[0]
        if trial % 5 == 0:
            norms[rng.random(q) < 0.3] = 0.0
        r = int(rng.integers(1, q))
        found = shares_by_loop(norms, r, tau, order=rng.permutation(q))
        if np.sum(norms > 0) <= r:
            assert np.all(found[norms > 0] == 1.0)
            continue

        def total(kappa, norms=norms):
            return np.clip((kappa * norms - 1.0) / tau, 0.0, 1.0)

        top = 2.0 * (1.0 + tau) / norms[norms > 0].min()
        kappa = brentq(lambda k, r=r, total=total: total(k).sum() - r, 0.0, top, xtol=1e-300, rtol=1e-15)
        assert found.sum() == pytest.approx(r, rel=1e-9)
        np.testing.assert_allclose(found, total(kappa), atol=1e-7 * max(1.0, 1.0 / tau))
        # the atom's: clip(kappa a - step, 0, 1), the same with step = 1 / tau; it subtracts cumulated sums, and loses digits of small norms
        lost = 1e-14 * norms.max() / norms[norms > 0].min()
        np.testing.assert_allclose(
            found, shares_of_norms(norms, r, 1.0 / tau), atol=(1e-12 + lost) * (1.0 + 1.0 / tau)
        )


def test_shares_of_extreme_norms():
    """Sums that span 1e300, subnormal norms, all equal, all zero: shares in [0, 1] that sum to at most r."""
    for norms in ([1e200, 1e-200, 1.0], [5e-324, 1.0, 1.0], [1.0] * 5, [1e-300] * 4, [1e150, 1e150, 1e-150]):
        norms = np.array(norms)
        for r in (1, 2):
            eta = shares_by_loop(norms, r, 5.0)
            assert np.all((eta >= 0.0) & (eta <= 1.0))
            assert eta.sum() == pytest.approx(r, rel=1e-9)
    assert np.all(shares_by_loop(np.zeros(4), 2, 5.0) == 1.0)
