"""Kronecker ridges of bad condition."""

import numpy as np
import pytest

from mtldsl.atoms.regularizers import KroneckerRidge
from tests.loops import for_each


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
