"""The proof of a composed proximal step: what `ProxOfSum` returns beside it."""

import numpy as np
import pytest

from mtldsl.atoms.matrix_function import Set


def multipliers_prove(terms, together, W, step, accuracy=1e-9):
    """Optimality of V = together(W, step): the multipliers v_k add up to (W - V) / step and are subgradients at V, by Fenchel's
    equality: g(V) + g*(v) = <v, V>.
    """
    V, multipliers = together(W, step)
    np.testing.assert_allclose(
        sum(multipliers, np.zeros_like(W)), (W - V) / step, rtol=accuracy, atol=accuracy / 10
    )
    for (c, atom), v in zip(terms, multipliers, strict=True):
        v = v if isinstance(atom, Set) else v / c
        inside = atom.dual_project(v)
        np.testing.assert_allclose(inside, v, rtol=accuracy, atol=accuracy / 10)
        if isinstance(atom, Set):
            assert atom.violation(V) <= accuracy
            assert atom.support(inside) == pytest.approx(np.vdot(V, v), abs=10 * accuracy)
        elif atom.norm:
            assert atom.dual_gauge(inside) <= 1 + accuracy
            assert atom.value(V) == pytest.approx(np.vdot(V, v), abs=10 * accuracy)
        else:
            assert atom.value(V) + atom.conjugate(inside) == pytest.approx(np.vdot(V, v), abs=10 * accuracy)
