"""The first phase of structured hinges, ADMM."""

from dataclasses import replace

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.solvers.augmented_lagrangian import outer_loop


def weak_model(n_tasks=6, samples=90):
    """Return F-score + l21, so weakly penalised that ADMM's iterates circle."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples, 12))
    Z = X @ rng.normal(size=(12, n_tasks)) + 4.0 * rng.normal(size=(samples, n_tasks))
    tasks = mtl.Tasks.shared(X, np.where(np.quantile(Z, 0.8, axis=0) < Z, 1.0, -1.0))
    W = mtl.Weights(tasks, intercept=True)
    return mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.metrics.FScore()) + 3e-3 * mtl.l21_norm(W))


def limit_entries(monkeypatch, entries):
    """The first phase is for systems of so many entries at most."""
    settings = replace(outer_loop.PHASE_SETTINGS, max_system_entries=entries)
    monkeypatch.setattr(outer_loop, "PHASE_SETTINGS", settings)


@pytest.mark.slow
def test_a_weak_penalty_is_proven(monkeypatch):
    """The optimum is that of the method without its first phase."""
    found = weak_model().solve(solver="multipliers", tol=1e-6)
    assert found.is_optimal
    limit_entries(monkeypatch, 0)
    other = weak_model().solve(solver="multipliers", tol=1e-6)
    # each lies at most 1e-6 above the optimum: the gap that was asked for
    assert found.objective == pytest.approx(other.objective, rel=2e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_systems_too_large_have_no_first_phase(monkeypatch, shared):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(20, 8)), np.where(rng.normal(size=(20, 3)) > 0, 1.0, -1.0)
    tasks = mtl.Tasks.shared(X, Y) if shared else mtl.Tasks.separate([X] * 3, list(Y.T))
    W = mtl.Weights(tasks)
    model = mtl.minimize(mtl.structured_hinge(W, tasks, metric=mtl.metrics.AUC()) + 0.1 * mtl.l1_norm(W))
    entries, found = 64 if shared else 3 * 64, []
    for limit in (10**9, entries, entries - 1, 0):
        limit_entries(monkeypatch, limit)
        found.append(model.solve(solver="multipliers", tol=1e-4).W.tobytes())
    assert found[0] == found[1] != found[2] == found[3]
