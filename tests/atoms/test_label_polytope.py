"""Random labellings with given means: beside scipy's linear program over all of them."""

import numpy as np
import pytest
from scipy.optimize import linprog

from mtldsl.atoms.losses.labelling_costs import every_labelling
from mtldsl.atoms.planes.label_polytope import dearest_mean
from mtldsl.inference import Cliques


@pytest.mark.by_default("near it")
@pytest.mark.parametrize("size", [1e-8, 1e-4, 1.0], ids=["next to the truth", "near it", "anywhere"])
def test_the_dearest_random_labelling_is_the_linear_program(size):
    """The dearest random labelling of a mean is the linear program's."""
    rng = np.random.default_rng(0)
    cliques = Cliques(3, ((0, 1), (1, 2)))
    every = every_labelling(3)
    truth = rng.integers(0, 2, size=(6, 3)).astype(np.uint8)
    costs = rng.uniform(size=(6, 8)) * np.any(every[None] != truth[:, None], axis=2)
    chances = rng.dirichlet(np.full(8, 0.5), size=6)
    changes = cliques.indicators(every)[None] - cliques.indicators(truth)[:, None]
    means = size * np.einsum("il,ils->is", chances, changes)
    means_found, found = dearest_mean(cliques, means, truth, np.arange(6), costs)
    np.testing.assert_allclose(means_found, means, rtol=0, atol=1e-14 * size)
    for i in range(6):  # in units of the mean: its probabilities are of its size
        A = np.vstack([changes[i].T, np.any(changes[i] != 0, axis=1) * size])
        best = linprog(
            -costs[i], A_eq=A[:-1], b_eq=means[i] / size, A_ub=A[-1:], b_ub=[1.0], method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        assert best.status == 0
        assert found[i] == pytest.approx(-size * best.fun, rel=1e-8)
