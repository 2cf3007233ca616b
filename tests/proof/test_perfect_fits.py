"""Labels that can be fitted exactly: what losses and conjugates are sums of cancels, and no bound lies above the objective for it."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.function import REGISTRY
from tests.loops import for_each

LABELS = {
    "positive": lambda rng, n: np.exp(rng.normal(size=n)),
    "count": lambda rng, n: rng.poisson(2.0, size=n) + 1.0,
    "sign": lambda rng, n: rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0)),
    "real": lambda rng, n: rng.normal(size=n),
}


@pytest.mark.by_default("False")
@pytest.mark.parametrize("weighted", [False, True])
@for_each("name", ["gamma_loss", "poisson_loss", "huber_loss", "squared_loss", "squared_hinge_loss"])
def test_no_bound_lies_above_a_perfect_fit(name, weighted):
    """gamma_loss: a ProofError in 4 of 10, before."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        n = int(rng.integers(2, 5))
        X, y = (
            np.round(rng.normal(size=(n, int(rng.integers(n, 6)))), 2),
            LABELS[REGISTRY[name].labels](rng, n),
        )
        tasks = mtl.Tasks.shared(X, y, sample_weights=rng.uniform(0.1, 9.0, n) if weighted else None)
        solution = mtl.minimize(getattr(mtl, name)(mtl.Weights(tasks), tasks)).solve()
        assert solution.status == "optimal"
        assert solution.certificate.dual_bound <= solution.objective + 1e-9
