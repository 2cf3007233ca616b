"""Clique generation: known optima, the bound over all cliques at every look, and the rules that end the growth."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import ModelError, SolverError
from tests.label_graph_models import CASES, all_pairs, data, known, model
from tests.loops import for_each

STAR = ((0, 1), (0, 2), (0, 3), (0, 4))


def edges_of(solution):
    """Positions of the cliques with weights."""
    norms = np.sqrt(np.einsum("dc,dc->c", solution.V, solution.V).reshape(-1, 4).sum(axis=1))
    return np.flatnonzero(norms > 0)


# ------------------------------------------------------------------------------------------------------- known optima
@pytest.mark.slow
@pytest.mark.parametrize("name, key", CASES)
def test_known_optima(name, key):
    """To 1e-7; the bound is below the optimum at every look, and the optimum, known to 2e-10, below the objective."""
    problem, optimum = known(name, key)
    solution = problem.solve("clique_generation", tol=5e-8)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(optimum, rel=1e-7)
    assert solution.dual_bound == pytest.approx(optimum, rel=1e-7)
    for row in solution.history:
        assert row["dual_bound"] <= optimum + 1e-9 and row["objective"] >= optimum - 1e-9


# ---------------------------------------------------------------------------------- graphs too dense for exact inference
@pytest.mark.slow
def test_a_graph_too_dense_for_exact_inference_is_proven():
    """K = 17, all pairs: MPLP's bounds stand for maxima. A true one by enumeration, and the optimum over a tree, lie where they must."""
    from mtldsl.atoms.inference.cliques import Cliques
    from mtldsl.atoms.inference.decoder import Decoder

    X, Y = data(n=25, K=8, d=3, seed=2, edges=STAR)
    Y = np.hstack([Y, Y[:, ::-1], -Y[:, :1]])
    X = np.vstack([X, X + 0.1])
    Y = np.vstack([Y, np.where(np.random.default_rng(0).random(Y.shape) < 0.1, -Y, Y)])
    dense = model(X, Y, penalty=mtl.ridge, a=0.1)
    solution = dense.solve("clique_generation", tol=2e-2, max_iter=3)
    assert {row["inference"] for row in solution.history} == {"mplp"}
    assert all(row["dual_bound"] <= row["objective"] for row in solution.history)
    star = [(0, k) for k in range(1, 17)]
    tree = model(X, Y, edges=star, penalty=mtl.ridge, a=0.1).solve("clique_generation", tol=1e-4)
    assert tree.status == "optimal"
    assert solution.dual_bound <= tree.objective
    # the objective is no less than the definition's, whose maxima are over all 2^17 labellings
    cliques = Cliques(17, tuple(all_pairs(17)))
    scores = X @ np.hstack([solution.U, solution.V])
    truth = (Y > 0).astype(np.uint8)
    own = np.einsum("ns,ns->n", scores, cliques.indicators(truth))
    scores[:, np.arange(0, 34, 2)] += truth
    scores[:, np.arange(1, 34, 2)] += 1 - truth
    losses = Decoder(cliques, "enumeration")(scores).values - own
    value = losses.mean() + 0.05 * np.sum(solution.U**2) + 0.05 * np.sum(solution.V**2)
    assert solution.dual_bound <= value <= solution.objective * (1.0 + 1e-9)


# ------------------------------------------------------------------------------------------------- rules of the growth
def test_every_look_is_finite_and_within_its_bound():
    """Also before any clique is there, and where the first epoch is the last: no gap is inf - inf."""
    X, Y = data()
    for options in ({}, {"max_iter": 1}, {"max_edges": 0}, {"max_edges": 0, "max_iter": 1}):
        solution = model(X, Y).solve("clique_generation", tol=1e-3, **options)
        for row in solution.history:
            assert np.isfinite([row["objective"], row["dual_bound"], row["relative_gap"]]).all()
            assert row["dual_bound"] <= row["objective"]
    problem = model(X, Y)
    assert problem.solve("clique_generation", tol=1e-9, max_iter=3).status == "iteration_limit"
    late = problem.solve("clique_generation", tol=1e-12, max_seconds=1e-3)
    assert late.status == "time_limit"
    assert late.dual_bound <= late.objective < np.inf


@pytest.mark.slow
def test_max_edges_ends_with_the_model_of_those_edges_solved():
    """What joined last is solved for too: the objective is that of the model with these edges alone."""
    X, Y = data(n=60, K=5, edges=STAR)
    problem = model(X, Y, a=0.02)
    for most in (0, 1, 3):
        solution = problem.solve("clique_generation", tol=1e-5, max_edges=most)
        assert solution.status == "selected"
        assert solution.history[-1]["edges"] == most
        joined = [tuple(clique) for row in solution.history for clique in row["joined"]]
        assert len(joined) == most
        alone = model(X, Y, edges=joined, penalty=None if joined else mtl.ridge, a=0.02).solve(tol=1e-6)
        assert alone.status == "optimal"
        assert solution.objective == pytest.approx(alone.objective, rel=2e-5)
        assert len(edges_of(solution)) <= most
    whole = problem.solve("clique_generation", tol=1e-5)
    assert problem.solve("clique_generation", tol=1e-5, max_edges=99).objective == pytest.approx(
        whole.objective, rel=2e-5
    )
    assert solution.dual_bound <= whole.objective  # the bound is over all cliques, chosen or not


@pytest.mark.slow
def test_selection_of_a_graph_finds_the_true_edges():
    """CGM's synthetic experiment (5.2), smaller: four true edges of 45. The round that lowered the objective too little is taken back."""
    X, Y = data(n=600, K=10, d=10, seed=1, noise=0.0, edges=STAR)
    solution = model(X, Y, r=2, a=1e-3).solve("clique_generation", tol=1e-3, graph_selection=True)
    assert solution.status == "selected"
    joined = [tuple(clique) for row in solution.history for clique in row["joined"]]
    assert set(joined[:4]) == set(STAR)
    assert [all_pairs(10)[c] for c in edges_of(solution)] == list(STAR)
    assert len(joined) > solution.history[-1]["edges"] == 4


@pytest.mark.slow
def test_as_many_join_at_once_as_asked_for():
    X, Y = data(n=60, K=5, edges=STAR)
    problem, rounds = model(X, Y, a=0.02), {}
    for count in (1, 3):
        solution = problem.solve("clique_generation", tol=1e-4, cliques_per_round=count)
        sizes = [len(row["joined"]) for row in solution.history]
        assert max(sizes) == count
        rounds[count] = solution.history[-1]["round"]
        assert solution.status == "optimal"
    assert rounds[1] > rounds[3]


@for_each(
    "options, said",
    [
        ({"max_edges": -1}, "max_edges=-1.*whole number >= 0"),
        ({"max_edges": True}, "max_edges=True.*whole number"),
        ({"cliques_per_round": 0}, "cliques_per_round=0.*whole number >= 1"),
        ({"graph_selection": 1}, "graph_selection=1.*True or False"),
        ({"seed": -1}, "seed=-1.*whole number >= 0"),
        ({"seed": "a"}, "seed='a'.*whole number"),
        ({"method": "frank_wolfe"}, "method='frank_wolfe'.*'pairwise', 'spdca'"),
        ({"edges": 3}, "edges"),
    ],
)
def test_wrong_values_of_options_are_quoted(options, said):
    X, Y = data()
    with pytest.raises(SolverError, match=said):
        model(X, Y).solve("clique_generation", **options)


# --------------------------------------------------------------------------------------------------------- refusals
def test_what_it_does_not_take_is_said_in_one_sentence():
    X, Y = data(n=12, K=3)
    tasks = mtl.Tasks.shared(X, Y)
    U, V, W = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks), mtl.Weights(tasks)
    loss, on_edges = mtl.clique_hinge(U, V, tasks), mtl.half_squared_group_norm(V)
    unequal = mtl.half_squared_group_norm(V, columns=[[0, 1], list(range(2, 12))])
    models = [
        (mtl.hinge_loss(W, tasks) + mtl.ridge(W), r"hinge_loss\(W, tasks\) is not a clique_hinge"),
        (loss + mtl.ridge(U), "there is no penalty on V; add lam \\* ridge\\(V\\)"),
        (loss + on_edges, "there is no penalty on U"),
        (loss + mtl.ridge(U) + mtl.l21_norm(V), r"l21_norm\(V\) is neither a ridge nor"),
        (loss + mtl.trace_norm(U) + mtl.ridge(V), r"trace_norm\(U\) is neither a ridge nor"),
        (loss + mtl.ridge(U) + on_edges + mtl.ridge(V), r"ridge\(V\) is a second penalty on V"),
        (loss + mtl.ridge(U) + unequal, "other groups of columns than the cliques"),
        (loss + mtl.hinge_loss(W, tasks) + mtl.ridge(U) + on_edges + mtl.ridge(W), "hinge_loss"),
    ]
    for objective, said in models:
        with pytest.raises((SolverError, ModelError), match=said):
            mtl.minimize(objective).solve("clique_generation")
    with pytest.raises((SolverError, ModelError), match=r"U >= 0"):
        mtl.minimize(loss + mtl.ridge(U) + on_edges, subject_to=[U >= 0]).solve("clique_generation")
