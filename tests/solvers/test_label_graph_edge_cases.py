"""Models over graphs of labels where something runs out: directions, rows, edges, iterations, labels."""

import numpy as np
import pytest

import mtldsl as mtl

rng = np.random.default_rng(3)
X = rng.normal(size=(30, 4))
Y = np.where(X @ rng.normal(size=(4, 4)) + 0.5 * rng.normal(size=(30, 4)) > 0, 1.0, -1.0)
NAMES = ["a", "b", "c", "d"]
TASKS = mtl.Tasks.shared(X, Y, task_names=NAMES)


def model(tasks=TASKS, edges="all", r=1, lam=0.05):
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    on_edges = mtl.half_squared_k_support_norm(V, r)
    return mtl.minimize(mtl.clique_hinge(U, V, tasks) + lam * mtl.ridge(U) + lam * on_edges)


def test_admm_starts_from_the_labellings_of_clique_generation():
    problem = model()
    first = problem.solve(tol=1e-6)
    again = problem.solve("admm", tol=1e-5, warm_start=first)
    assert first.solver == "clique_generation" and again.is_optimal
    # both are within their gaps of the same optimum
    assert abs(again.objective - first.objective) <= 2e-5 * first.objective


@pytest.mark.slow
def test_a_start_with_other_cliques_keeps_those_that_both_have():
    first = model(edges=[(0, 1), (0, 2), (0, 3)]).solve(tol=1e-6)
    for edges in ([(0, 1, 2), (2, 3)], [(2, 3), (0, 2), (1, 3)]):  # V is as wide as that of the start
        problem = model(edges=edges)
        warm, cold = problem.solve(tol=1e-6, warm_start=first), problem.solve(tol=1e-6)
        assert warm.is_optimal and abs(warm.objective - cold.objective) <= 2e-6 * cold.objective


def test_refit_takes_edges_by_the_names_of_their_labels():
    solution = model().solve("clique_generation", tol=1e-3, max_edges=2)
    turned = mtl.Tasks.shared(X, Y[:, ::-1], task_names=NAMES[::-1])
    refit = model(turned).refit(solution)
    (edges,) = [w for w in refit.weights if isinstance(w, mtl.EdgeWeights)]
    found = {frozenset(turned.task_names[k] for k in pair) for pair in edges.cliques.members}
    assert found == {frozenset(edge) for edge in solution.graph.edges} and len(found) == 2


def test_other_tasks_with_fewer_labels_are_refused():
    with pytest.raises(mtl.ModelError, match=r"U was made for \(4, 4\), but the new tasks need \(4, 3\)"):
        model().with_tasks(mtl.Tasks.shared(X, Y[:, :3], task_names=NAMES[:3]))


@pytest.mark.slow
def test_a_selection_out_of_iterations_does_not_say_selected():
    problem = model(lam=1e-3)
    assert problem.solve("clique_generation", tol=1e-9, max_edges=2, max_iter=12).status == "iteration_limit"
    assert problem.solve("clique_generation", tol=1e-3, max_edges=2).status == "selected"
