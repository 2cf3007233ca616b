"""Sums over many samples go some samples at a time: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mtldsl.atoms import loss as module
from mtldsl.atoms.function import REGISTRY
from mtldsl.atoms.loss import SeparableLoss
from mtldsl.testing.laws.data import WEIGHTINGS, loss_data
from tests.loops import for_each

LOSSES = [kind for kind in REGISTRY.values() if issubclass(kind, SeparableLoss)]


@for_each("kind", LOSSES, ids=lambda kind: kind.name)
@for_each("weighting", WEIGHTINGS)
def test_parts_add_up(kind, weighting, monkeypatch):
    loss = kind.examples()[0]
    if weighting != "unweighted" and not loss.weighs_samples:
        pytest.skip("counts samples")
    _, z, y, s = loss_data(loss, weighting, 50)
    z, y, s = np.tile(z, 9), np.tile(y, 9), None if s is None else np.tile(s, 9)
    found = []
    for at_once in (1 << 16, 7):
        monkeypatch.setattr(module, "_AT_ONCE", at_once)
        u = loss.dual_project(loss.gradient(z, y, s), y, s)
        outside = u + np.where(np.arange(z.size) == 10, 1e6, 0.0)
        values = loss.value(z, y, s), loss.conjugate(u, y, s), loss.conjugate(outside, y, s)
        found.append((*values, loss.gradient(z, y, s), loss.hessian(z, y, s), u))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-300)
