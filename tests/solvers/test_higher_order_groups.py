"""HLLM-L1 of groups of three labels: overlapping groups, by which a clique has weights only where all cliques inside it may."""

from itertools import product

import numpy as np
import pytest

import mtldsl as mtl
from tests.solvers.test_missing_labels_of_graphs import loss_of_row

MEMBERS = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
STARTS = np.cumsum([0, 4, 4, 4])


def data(n=12):
    """Every label is a coin, but the third is whether the first two differ: no pair of labels depends on each other, all three do."""
    rng = np.random.default_rng(3)
    pairs = np.array(list(product((0, 1), repeat=2)) * (n // 4))
    labels = np.column_stack([pairs, pairs[:, 0] ^ pairs[:, 1]])
    return 1.0 + 0.1 * rng.normal(size=(n, 1)), labels


def columns_above(cliques, A):
    """The columns of the cliques that hold A."""
    above = [c for c, B in enumerate(cliques.members) if set(A) <= set(B)]
    return [column for c in above for column in cliques.columns(c).tolist()]


def model(mu):
    X, labels = data()
    tasks = mtl.Tasks.shared(X, 2.0 * labels - 1.0)
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, MEMBERS)
    objective = mtl.pairwise_log_loss(U, V, tasks) + 0.05 * mtl.ridge(U)
    for A in V.cliques.members:
        part = V[:, columns_above(V.cliques, A)]
        objective = objective + mu * mtl.column_group_norm(part, columns=[list(range(part.shape[1]))])
    return mtl.minimize(objective)


def test_the_objective_is_that_of_every_labelling_looked_at():
    X, labels = data()
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(1, 6)), rng.normal(size=(1, 20))

    scores = X @ np.hstack([U, V])
    losses = [
        loss_of_row("likelihood", *row, MEMBERS) for row in zip(scores, 2.0 * labels - 1.0, strict=True)
    ]
    norms = [np.sqrt(np.sum(V[:, s : s + 4] ** 2) + np.sum(V[:, 12:] ** 2)) for s in STARTS[:3]]
    norms.append(np.linalg.norm(V[:, 12:]))
    expected = np.mean(losses) + 0.025 * np.sum(U**2) + 0.03 * sum(norms)
    assert model(0.03).value({"U": U, "V": V}) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_the_solution_is_proven_and_the_references():
    problem = model(0.03)
    solution = problem.solve(tol=1e-6)
    assert solution.is_optimal
    assert problem.cross_check().agrees
