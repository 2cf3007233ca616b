"""Clique generation on models of many shapes against the reference, and from other starts."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.label_graph_models import data, model

STAR = ((0, 1), (0, 2), (0, 3), (0, 4))


def same_row_twice():
    X, Y = data(n=16, K=3, seed=3)
    X, Y = np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)
    Y[1::4] *= -1.0
    X[:6], X[:, 1] = 0.0, 0.0
    return model(X, Y, a=0.02)


def one_positive_row_a_label():
    X, Y = data(n=20, K=4)
    Y[:] = -1.0
    Y[np.arange(4), np.arange(4)] = 1.0
    return model(X, Y, r=2)


MODELS = {
    "weighted_hamming": lambda: model(*data(), loss=[2.0, 0.5, 0.0, 1.3]),
    "sample_weights": lambda: model(*data(), sample_weights=np.linspace(0.1, 2.0, 30)),
    "weights_on_few_samples": lambda: model(*data(), sample_weights=np.r_[np.full(10, 1e-6), np.ones(20)]),
    "unequal_coefficients": lambda: model(*data(), a=0.2, b=0.01),
    "unequal_coefficients_the_other_way": lambda: model(*data(), a=0.01, b=0.3, r=2),
    "plain_ssvm": lambda: model(*data(), penalty=mtl.ridge),
    "r_as_large_as_the_graph": lambda: model(*data(), r=6),
    "r_beyond": lambda: model(*data(), r=9, edges=[(0, 1), (1, 2)]),
    "r_one_less_than_the_graph": lambda: model(*data(), r=5),
    "group_norm": lambda: model(*data(), penalty=mtl.half_squared_group_norm),
    "no_edges": lambda: model(*data(), edges=[], penalty=mtl.ridge),
    "no_edges_group_norm": lambda: model(*data(), edges=[], penalty=mtl.half_squared_group_norm),
    "no_edges_k_support": lambda: model(*data(), edges=[], r=2),
    "one_label": lambda: model(*data(K=1), penalty=mtl.ridge),
    "one_edge": lambda: model(*data(K=2, edges=((0, 1),))),
    "triples": lambda: model(*data(n=20), edges=[(0, 1, 2), (0, 1, 3), (1, 2, 3)]),
    "mixed_cliques": lambda: model(*data(n=20), edges=[(0, 1), (1, 2, 3), (0, 2), (0, 1, 2, 3)], r=2),
    "sparse": lambda: model(*data(), density="sparse"),
    "same_row_twice": same_row_twice,
    "one_positive_row_a_label": one_positive_row_a_label,
}


@pytest.mark.by_default("no_edges_k_support")
@pytest.mark.parametrize("name", MODELS)
def test_optimum_and_bound_are_the_references(name):
    """The optimum lies between bound and objective at every look; digits: what the reference is proven to."""
    problem = MODELS[name]()
    reference = problem.solve("cvxpy", tol=1e-7)
    assert reference.status == "optimal"
    solution = problem.solve("clique_generation", tol=1e-6)
    assert solution.status == "optimal"
    assert solution.gap <= 1e-6
    digits = 1e-9 * max(1.0, reference.objective)
    for row in solution.history:
        assert row["dual_bound"] <= reference.objective + digits
        assert row["objective"] >= reference.dual_bound - digits
    assert solution.objective <= reference.objective * (1.0 + 1e-6) + digits


# ---------------------------------------------------------------------------------------------------------- warm starts
@pytest.mark.slow
def test_warm_starts_along_lambda_take_fewer_epochs():
    X, Y = data(n=200, K=6, d=5, edges=STAR)
    lam = mtl.Parameter(1.0, name="lam")
    problem = model(X, Y, a=lam, b=lam)
    values = np.geomspace(0.1, 0.01, 6)
    warm = list(problem.path(lam, values, solver="clique_generation", tol=1e-3))
    cold = []
    for value in values:
        lam.value = value
        cold.append(problem.solve("clique_generation", tol=1e-3))
    for one, other in zip(warm, cold, strict=True):
        assert one.status == other.status == "optimal"
        assert one.objective == pytest.approx(other.objective, rel=2e-3)
    assert sum(s.iterations for s in warm) < sum(s.iterations for s in cold)


@pytest.mark.slow
def test_a_solution_of_other_labels_is_a_start_all_the_same():
    """Its random labellings are of other true ones: they must not be taken for these."""
    X, Y = data(n=40)
    other = model(X, np.roll(Y, 7, axis=0)).solve("clique_generation", tol=1e-3)
    problem = model(X, Y)
    cold = problem.solve("clique_generation", tol=1e-5)
    warm = problem.solve("clique_generation", tol=1e-5, warm_start=other)
    assert warm.status == "optimal"
    assert warm.objective == pytest.approx(cold.objective, rel=2e-5)
