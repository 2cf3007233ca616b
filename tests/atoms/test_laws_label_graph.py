"""Models over a graph of labels: what data may do to them, by the reference that states every labelling."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.losses import pairwise_log
from mtldsl.reference.solve import solve_reference
from tests import label_graph_models
from tests.loops import for_each

N, D, K = 16, 4, 4
EDGES = [(0, 1), (1, 3), (0, 2, 3)]
LOSSES = {
    "hinge with costs": lambda U, V, t: mtl.clique_hinge(U, V, t, loss=[0.5, 2.0, 1.0, 0.0][: t.n_tasks]),
    "zero-one": lambda U, V, t: mtl.clique_hinge(U, V, t, loss="zero_one"),
    "F-score of rows": lambda U, V, t: mtl.clique_hinge(U, V, t, loss=mtl.metrics.FScore()),
    "likelihood": mtl.pairwise_log_loss,
}
every_loss = for_each("word", LOSSES.values(), ids=LOSSES)


def data(seed=0):
    return *label_graph_models.data(N, K, D, seed, noise=0.2), np.random.default_rng(seed)


def model(word, tasks, edges=EDGES, penalty=mtl.half_squared_group_norm, lam=0.1):
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    return mtl.minimize(word(U, V, tasks) + lam * (mtl.ridge(U) + penalty(V)))


@pytest.mark.slow
@every_loss
def test_permuting_the_data_permutes_the_solution(word):
    X, Y, rng = data(8)
    rows, features, order = rng.permutation(N), rng.permutation(D), [2, 0, 3, 1]
    place = {label: k for k, label in enumerate(order)}
    moved = [tuple(place[k] for k in clique) for clique in EDGES]
    costs = [0.5, 2.0, 1.0, 0.0]
    if word is LOSSES["hinge with costs"]:
        word = lambda U, V, t: mtl.clique_hinge(U, V, t, loss=dict(zip("abcd", costs, strict=True)))  # noqa: E731
    names = np.array(list("abcd"))
    here = model(word, mtl.Tasks.shared(X, Y, task_names=list(names)))
    there = model(
        word, mtl.Tasks.shared(X[rows][:, features], Y[rows][:, order], task_names=list(names[order])), moved
    )
    solutions = [problem.solve(tol=1e-7) for problem in (here, there)]
    assert all(solution.status == "optimal" for solution in solutions)
    assert solutions[0].objective == pytest.approx(solutions[1].objective, rel=3e-7)  # of two gaps
    U, moved_U = (s.blocks["U"] for s in solutions)
    # the objective grows by 0.05 ||U - U*||^2
    reach = 2 * np.sqrt(max(s.gap.absolute for s in solutions) / 0.05) + 1e-9
    columns = np.ravel([[2 * k, 2 * k + 1] for k in order])
    assert np.linalg.norm(U[features][:, columns] - moved_U) <= reach <= 1e-2
    np.testing.assert_array_equal(solutions[0].predict(X)[rows], solutions[0].predict(X[rows]))


def degenerate():
    X, Y, rng = data(9)
    zero_column, equal_labels = X.copy(), Y.copy()
    zero_column[:, 1] = 0.0
    equal_labels[:, 1] = equal_labels[:, 0]
    one = np.where(rng.random((2, K)) < 0.5, 1.0, -1.0)
    one[1] = -one[0]
    return {
        "two samples": (X[:2], one, "all"),
        "one label": (X, Y[:, :1], "all"),
        "a label without edges": (X, Y, [(0, 1)]),
        "no edges": (X, Y, []),
        "zero column": (zero_column, Y, "all"),
        "equal labels": (X, equal_labels, "all"),
        "opposite labels": (X, np.hstack([Y[:, :1], -Y[:, :1]]), "all"),
        "one feature": (np.ones((N, 1)), Y, "all"),
        "equal samples": (np.tile(X[:1], (N, 1)), Y, EDGES),
        "a clique of all labels": (X, Y, [(0, 1, 2, 3)]),
        "zero inputs": (0.0 * X, Y, EDGES),
    }


@pytest.mark.slow
@for_each("case, name, solver", list(zip(degenerate(), cycle(LOSSES), cycle(["auto", "admm"]), strict=False)))
def test_degenerate_data(case, name, solver):
    X, Y, edges = degenerate()[case]
    problem = model(LOSSES[name], mtl.Tasks.shared(X, Y), edges)
    solution = problem.solve(solver, tol=1e-6)
    assert solution.status == "optimal" and solution.solver != "cvxpy", solution
    assert solution.objective == pytest.approx(solve_reference(problem.form()).objective, rel=2e-6)


def test_proximal_steps_together_are_those_of_every_sample(monkeypatch):
    """Newton's method on all rows at once, and row by row, at scores and steps of all sizes."""
    X, Y, rng = data(11)
    atom = model(mtl.pairwise_log_loss, mtl.Tasks.shared(X, Y)).form().losses[0].atom
    truth = (Y > 0).astype(np.uint8)
    for size in (0.0, 1.0, 30.0, 1000.0):
        scores = size * rng.normal(size=(N, atom.cliques.n_entries))
        steps = 10.0 ** rng.uniform(-4, 4, size=N)
        together = atom.prox_of_samples(scores, truth, steps)
        with monkeypatch.context() as patched:
            patched.setattr(pairwise_log, "SETTINGS", replace(pairwise_log.SETTINGS, slab_entries=0))
            apart = atom.prox_of_samples(scores, truth, steps)
        slopes = [
            np.linalg.norm(steps[:, None] * atom.gradient_of_samples(x, truth) + x - scores, axis=1)
            for x in (together, apart)
        ]
        # what is minimised is 1-strongly convex: the length of its slope bounds how far a point is from the minimiser
        assert np.all(np.linalg.norm(together - apart, axis=1) <= sum(slopes) + 1e-12 * (1.0 + size + steps))
        # the value is exact to 15 digits, the slope to half of these
        assert np.all(slopes[0] <= 1e-7 * (1.0 + size + steps))
