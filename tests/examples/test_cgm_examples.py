"""What lessons 18 and 19 say, at sizes where every graph and every labelling can be looked at."""

from itertools import combinations

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl import datasets

LAM = 0.05


@pytest.mark.slow
def test_the_relaxation_and_its_bound_are_below_every_graph():
    """Lesson 19, as the package solves it."""
    tasks = datasets.make_label_graph(4, 3, [(0, 1), (0, 2)], n_train=14, n_test=2, random_state=4).train
    pairs = list(combinations(range(4), 2))
    graphs = {
        graph: mtl.model("Structured SVM", tasks, lam=LAM, edges=list(graph)).solve(tol=1e-6)
        for size in range(len(pairs) + 1)
        for graph in combinations(pairs, size)
    }
    strict = 0
    for r in range(1, len(pairs) + 1):
        relaxed = mtl.model("CGM", tasks, lam=LAM, r=r).solve(tol=1e-6)
        best = min(one.objective for graph, one in graphs.items() if len(graph) <= r)
        assert relaxed.is_optimal and relaxed.dual_bound <= best
        strict += relaxed.objective < 0.99 * best
    assert strict >= 1  # a relaxation that never was lower would be the integer problem
    np.testing.assert_allclose(relaxed.objective, graphs[tuple(pairs)].objective, rtol=2e-6)  # r = q: a ridge


@pytest.mark.slow
def test_the_rule_selects_the_star_and_refits_the_true_graph():
    """Lesson 18, with fewer rows."""
    star = datasets.make_label_graph(n_train=500, n_test=500, label_noise=0.05, random_state=0)
    problem = mtl.model("CGM", star.train, lam=0.01, r=2)
    selected = problem.solve("clique_generation", graph_selection=True, cliques_per_round=2, tol=1e-3)
    assert selected.status == "selected" and selected.gap > 0.1
    assert sorted(selected.graph.edges) == sorted(star.graph.edges)
    refit = problem.refit(selected).solve(tol=1e-4)
    given = mtl.model("Structured SVM", star.train, lam=0.01, edges=star.graph).solve(tol=1e-4)
    np.testing.assert_allclose(refit.objective, given.objective, rtol=2e-4)
    alone = mtl.model("No edges", star.train, lam=0.01).solve(tol=1e-2)
    assert 1 - refit.score(star.test) < 0.7 * (1 - alone.score(star.test))
