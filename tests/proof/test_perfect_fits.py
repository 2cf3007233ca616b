"""Labels that can be fitted exactly: what losses and conjugates are sums of cancels, and no bound lies above the objective for it."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.function import REGISTRY
from mtldsl.proof.checker.data_arrays import DataArrays
from mtldsl.proof.checker.interval import Interval
from mtldsl.proof.checker.losses import SCALAR_LOSSES, SumPart
from mtldsl.proof.rounding import UNITS
from tests.loops import for_each

SMOOTH = [name for name, cls in REGISTRY.items() if name in SCALAR_LOSSES and cls.smooth]
LABELS = {
    "positive": lambda rng, n: np.exp(rng.normal(size=n)),
    "count": lambda rng, n: rng.poisson(2.0, size=n) + 1.0,
    "sign": lambda rng, n: rng.permutation(np.where(np.arange(n) % 2, 1.0, -1.0)),
    "real": lambda rng, n: rng.normal(size=n),
}


@pytest.mark.by_default("poisson_loss-False")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "name", ["gamma_loss", "poisson_loss", "huber_loss", "squared_loss", "squared_hinge_loss"]
)
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


@for_each("name", SMOOTH)
def test_losses_near_their_least_value_are_exact(name):
    """Predictions from 1e-12 to 1 away from the best ones: within what the certificate allows for, of the checker's value in fractions."""
    for k, atom in enumerate(REGISTRY[name].examples()):
        rng = np.random.default_rng(k)
        y = LABELS[atom.labels](rng, 12)
        size = np.log(np.maximum(np.abs(y), 1e-300))
        best = {"positive": size, "count": size, "sign": 2.0 * y, "real": y}[atom.labels]
        z = best + rng.normal(size=12) * 10.0 ** rng.uniform(-12, 0, size=12)

        def number(x, atom=atom):
            return Interval.of(float(getattr(atom, x)) if isinstance(x, str) else x, True)

        one = Interval.of(np.ones(1), True)
        part = SumPart(
            SCALAR_LOSSES[name](number), one, DataArrays(np.zeros((12, 1)), y, np.array([12]), True), True
        )
        u = atom.dual_point(z, y)
        value, conjugate = atom.value(z, y), atom.conjugate(u, y)
        sizes = atom.summands(z, y)
        size = (
            abs(value)
            + abs(conjugate)
            + np.abs(u) @ (np.abs(z) + np.abs(y))
            + (0.0 if sizes is None else sizes.sum())
        )
        truth = part.value(Interval.of(z, True))
        assert max(float(truth.low) - value, value - float(truth.high)) <= UNITS * np.finfo(float).eps * size
        truth = part.conjugate(part.inside(Interval.of(u, True)), Interval.of(1.0, True))
        assert (
            max(float(truth.low) - conjugate, conjugate - float(truth.high))
            <= UNITS * np.finfo(float).eps * size
        )
