"""The proof of a composed proximal step: what `ProxOfSum` returns beside it."""

from __future__ import annotations

import numpy as np
import pytest

from mtldsl.atoms.function import Set

__all__ = ["multipliers_prove"]


def multipliers_prove(terms, together, W, step):
    """Optimality of V = together(W, step): the multipliers v_k add up to (W - V) / step and are subgradients at V, by Fenchel's
    equality: g(V) + g*(v) = <v, V>.
    """
    V, multipliers = together(W, step)
    np.testing.assert_allclose(sum(multipliers, np.zeros_like(W)), (W - V) / step, rtol=1e-9, atol=1e-10)
    for (c, atom), v in zip(terms, multipliers, strict=True):
        v = v if isinstance(atom, Set) else v / c
        inside = atom.dual_project(v)
        np.testing.assert_allclose(inside, v, rtol=1e-9, atol=1e-10)
        if isinstance(atom, Set):
            assert atom.violation(V) <= 1e-9
            assert atom.support(inside) == pytest.approx(np.vdot(V, v), abs=1e-8)
        elif atom.norm:
            assert atom.dual_gauge(inside) <= 1 + 1e-9
            assert atom.value(V) == pytest.approx(np.vdot(V, v), abs=1e-8)
        else:
            assert atom.value(V) + atom.conjugate(inside) == pytest.approx(np.vdot(V, v), abs=1e-8)
