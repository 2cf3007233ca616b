"""Intercepts of labels over a graph; their optima and proofs: test_missing_labels_of_graphs.py."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.certificates.certificate import certify
from mtldsl.reference.solve import solve_reference
from tests.files.test_problem_file_label_graph import STATED
from tests.inference.brute_force import chosen_entries
from tests.label_graph_models import dependent, regularized
from tests.loops import for_each

N, D, K = 24, 3, 3


def data(seed):
    return dependent(seed, N, K, D, shift=1.0)


def model(word, tasks, edges="all", lam=0.1):
    return regularized(word, tasks, edges, lam=lam, intercept=True)


@for_each("word, alone", [(mtl.clique_hinge, mtl.hinge_loss), (mtl.pairwise_log_loss, mtl.logistic_loss)])
def test_without_edges_it_is_a_classifier_with_intercept_a_label(word, alone):
    """In b = u_1 - u_0 with a quarter of lam, the intercept being c_1 - c_0: by another word, another compiler and another proof."""
    X, Y, _ = data(1)
    tasks, lam = mtl.Tasks.shared(X, Y), 0.1
    W = mtl.Weights(tasks, intercept=True)
    apart = mtl.minimize(alone(W, tasks, mean=True) + 0.5 * lam * mtl.ridge(W)).solve(tol=1e-8)
    problem = model(word, tasks, [], lam=lam)
    labels = problem.solve(tol=1e-8)
    assert labels.status == apart.status == "optimal" and labels.solver != "cvxpy"
    assert labels.objective == pytest.approx(apart.objective, rel=1e-7)
    U = labels["U"]
    np.testing.assert_allclose(U[:, 1::2] - U[:, ::2], apart.W, atol=1e-3)
    # a hinge may leave an intercept some room: those of the other model are as good
    theirs = {
        "U": U,
        "V": np.zeros((D, 0)),
        "U.intercept": np.ravel([-apart.intercept / 2, apart.intercept / 2], order="F")[None],
    }
    assert problem.value(theirs) == pytest.approx(labels.objective, rel=1e-3)
    np.testing.assert_array_equal(labels.predict(X), apart.predict(X))


def test_hinge_and_likelihood_balance_together():
    """Only the sum of both losses' multipliers vanishes at an optimum: each by itself would leave a gap."""
    X, Y, _ = data(6)
    tasks = mtl.Tasks.shared(X, Y)
    U, V = mtl.NodeWeights(tasks, intercept=True), mtl.EdgeWeights(tasks, [(0, 1)])
    problem = mtl.minimize(
        mtl.clique_hinge(U, V, tasks)
        + 0.5 * mtl.pairwise_log_loss(U, V, tasks)
        + 0.1 * (mtl.ridge(U) + mtl.ridge(V))
    )
    best = solve_reference(problem.form())
    found = certify(problem.form(), best.blocks, best.loss_duals, best.function_duals)
    assert found.dual_bound <= best.objective + 1e-9
    assert found.dual_bound == pytest.approx(best.objective, abs=1e-6)


def test_predictions_are_best_of_labellings_with_intercepts(tmp_path):
    X, Y, rng = data(7)
    tasks = mtl.Tasks.shared(X, Y, task_names=list("abc"))
    solution = model(mtl.pairwise_log_loss, tasks, [("a", "b"), ("b", "c")]).solve(tol=1e-6)
    fresh = 2.0 * rng.normal(size=(50, D))
    every, chosen = chosen_entries(K, [(0, 1), (1, 2)])
    U, V, b = solution.blocks["U"], solution.blocks["V"], solution.blocks["U.intercept"]
    scores = np.hstack([fresh @ U + b, fresh @ V]) @ chosen.T
    np.testing.assert_array_equal(solution.predict(fresh), 2.0 * every[scores.argmax(axis=1)] - 1.0)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    marginals = (weights / weights.sum(axis=1, keepdims=True)) @ every
    np.testing.assert_allclose(solution.predict_proba(fresh), marginals, atol=1e-12)
    again = mtl.Solution.load(solution.save(tmp_path / "labels"))
    np.testing.assert_array_equal(again.predict(fresh), solution.predict(fresh))
    np.testing.assert_array_equal(again.intercept, solution.intercept)


def test_intercepts_of_two_nodes_and_papers_method_are_refused():
    X, Y, _ = data(9)
    tasks = mtl.Tasks.shared(X, Y)
    U = mtl.NodeWeights(tasks, intercept=True)
    A, V = mtl.NodeWeights(tasks, "A", intercept=True), mtl.EdgeWeights(tasks)
    with pytest.raises(mtl.ModelError, match="A and U both carry an intercept"):
        mtl.clique_hinge(U + A, V, tasks)
    with pytest.raises(mtl.SolverError, match="the paper's method has no intercepts"):
        model(mtl.clique_hinge, tasks).solve("clique_generation", method="spdca")


def test_a_problem_file_can_say_so(load):
    weights = '[weights]\nU = {kind = "NodeWeights", intercept = true}\nV = "EdgeWeights"\n'
    problem = load(STATED + weights).problem
    assert [one.intercept for one in problem.weights if one.name == "U"] == [True]
    solution = problem.solve(tol=1e-4)
    assert solution.status == "optimal" and solution["U.intercept"].shape == (1, 8)
