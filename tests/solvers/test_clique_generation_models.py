"""Clique generation on models of many shapes against the reference, from other starts, and where something runs out."""

import numpy as np
import pytest

import mtldsl as mtl
from tests.label_graph_models import data, model, regularized
from tests.solvers.test_clique_generation import STAR


def one_positive_row_a_label():
    X, Y = data(n=20, K=4)
    Y[:] = -1.0
    Y[np.arange(4), np.arange(4)] = 1.0
    return model(X, Y, r=2)


MODELS = {
    "weighted_hamming": lambda: model(*data(), loss=[2.0, 0.5, 0.0, 1.3]),
    "sample_weights": lambda: model(*data(), sample_weights=np.linspace(0.1, 2.0, 30)),
    "weights_on_few_samples": lambda: model(*data(), sample_weights=np.r_[np.full(10, 1e-6), np.ones(20)]),
    "unequal_coefficients": lambda: model(*data(), a=0.01, b=0.3, r=2),
    "r_as_large_as_the_graph": lambda: model(*data(), r=6),
    "r_beyond": lambda: model(*data(), r=9, edges=[(0, 1), (1, 2)]),
    "no_edges_k_support": lambda: model(*data(), edges=[], r=2),
    "one_label": lambda: model(*data(K=1), penalty=mtl.ridge),
    "one_edge": lambda: model(*data(K=2, edges=((0, 1),))),
    "triples": lambda: model(*data(n=20), edges=[(0, 1, 2), (0, 1, 3), (1, 2, 3)]),
    "mixed_cliques": lambda: model(*data(n=20), edges=[(0, 1), (1, 2, 3), (0, 2), (0, 1, 2, 3)], r=2),
    "sparse": lambda: model(*data(), density="sparse"),
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


def test_admm_starts_from_the_labellings_of_clique_generation():
    problem = model(*data())
    first = problem.solve(tol=1e-6)
    again = problem.solve("admm", tol=1e-5, warm_start=first)
    assert first.solver == "clique_generation" and again.is_optimal
    # both are within their gaps of the same optimum
    assert abs(again.objective - first.objective) <= 2e-5 * first.objective


@pytest.mark.slow
def test_a_start_with_other_cliques_keeps_those_that_both_have():
    first = model(*data(), edges=[(0, 1), (0, 2), (0, 3)]).solve(tol=1e-6)
    for edges in ([(0, 1, 2), (2, 3)], [(2, 3), (0, 2), (1, 3)]):  # V is as wide as that of the start
        problem = model(*data(), edges=edges)
        warm, cold = problem.solve(tol=1e-6, warm_start=first), problem.solve(tol=1e-6)
        assert warm.is_optimal and abs(warm.objective - cold.objective) <= 2e-6 * cold.objective


def test_refit_takes_edges_by_the_names_of_their_labels():
    (X, Y), names = data(), ["task3", "task2", "task1", "task0"]
    solution = model(X, Y).solve("clique_generation", tol=1e-3, max_edges=2)
    turned = mtl.Tasks.shared(X, Y[:, ::-1], task_names=names)
    refit = regularized(mtl.clique_hinge, turned).refit(solution)
    (edges,) = [w for w in refit.weights if isinstance(w, mtl.EdgeWeights)]
    found = {frozenset(turned.task_names[k] for k in pair) for pair in edges.cliques.members}
    assert found == {frozenset(edge) for edge in solution.graph.edges} and len(found) == 2


def test_other_tasks_with_fewer_labels_are_refused():
    X, Y = data()
    with pytest.raises(mtl.ModelError, match=r"U was made for \(3, 4\), but the new tasks need \(3, 3\)"):
        model(X, Y).with_tasks(mtl.Tasks.shared(X, Y[:, :3]))


@pytest.mark.slow
def test_a_selection_out_of_iterations_does_not_say_selected():
    problem = model(*data(), a=1e-3)
    assert problem.solve("clique_generation", tol=1e-9, max_edges=2, max_iter=12).status == "iteration_limit"
    assert problem.solve("clique_generation", tol=1e-3, max_edges=2).status == "selected"
