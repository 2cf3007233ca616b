"""Solutions over a graph of labels: predictions, margins, marginals, the graph and its measures, each against brute force in plain numpy."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.inference.cliques import Cliques
from mtldsl.atoms.regularizers import HalfSquaredKSupportNorm
from mtldsl.errors import DataError, ModelError
from tests.inference.brute_force import chosen_entries
from tests.loops import for_each

NAMES = ["sea", "beach", "city", "snow"]


def data(n=30, d=3, K=4, seed=0):
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(n, d - 1)), np.ones((n, 1))])
    Y = np.where(X @ rng.normal(size=(d, K)) + 0.5 * rng.normal(size=(n, K)) > 0, 1.0, -1.0)
    Y[:, 1] = np.where(rng.random(n) < 0.8, Y[:, 0], -Y[:, 1])
    return X, Y


X, Y = data()
TASKS = mtl.Tasks.shared(X, Y, task_names=NAMES)
NEW = data(n=40, seed=5)[0]


def problem(tasks=TASKS, edges="all", lam=0.05, penalty=mtl.half_squared_group_norm, loss=mtl.clique_hinge):
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, edges)
    return mtl.minimize(loss(U, V, tasks) + lam * mtl.ridge(U) + lam * penalty(V))


@pytest.fixture(scope="module")
def hinge():
    return problem().solve(tol=1e-5)


@pytest.fixture(scope="module")
def likelihood():
    return problem(loss=mtl.pairwise_log_loss, penalty=mtl.column_group_norm).solve(tol=1e-5)


@pytest.fixture(scope="module")
def triple():
    return problem(edges=[("sea", "beach"), ("beach", "city", "snow"), (1, 2)], penalty=mtl.ridge).solve(
        tol=1e-4
    )


ALL = chosen_entries(4, [])[0]


def values(solution, inputs, left_out=()):
    """(n, 2^K) of every labelling, from the blocks by the definition."""
    members = solution.label_graph.cliques.members
    kept = np.repeat([clique not in left_out for clique in members], [2 ** len(clique) for clique in members])
    return inputs @ np.hstack([solution["U"], solution["V"] * kept]) @ chosen_entries(4, members)[1].T


def best(table):
    return ALL[table.argmax(axis=1)]


@for_each("which", ["hinge", "likelihood", "triple"])
def test_predictions_are_certified_best_of_all_labellings(which, request):
    solution = request.getfixturevalue(which)
    labels, certified = solution.predict(NEW, return_certified=True)
    np.testing.assert_array_equal(labels, 2.0 * best(values(solution, NEW)) - 1)
    assert certified.shape == (40,) and certified.all()
    np.testing.assert_array_equal(solution.predict(NEW), labels)
    np.testing.assert_array_equal(solution.predict(sparse.csr_array(NEW)), labels)


@for_each("which", ["hinge", "likelihood", "triple"])
def test_a_labels_margin_is_the_fall_of_the_turned_score(which, request):
    solution = request.getfixturevalue(which)
    table, margins = values(solution, NEW), solution.decision_function(NEW)
    for i, y in enumerate(best(table)):
        for k in range(4):
            turned = y.copy()
            turned[k] = 1 - y[k]
            fall = table[i].max() - table[i, int("".join(map(str, turned)), 2)]
            assert margins[i, k] == pytest.approx((2 * y[k] - 1) * fall, abs=1e-12)
    assert (np.sign(margins) == solution.predict(NEW)).all()


def test_probabilities_are_the_marginals(likelihood, hinge):
    table = values(likelihood, NEW)
    weights = np.exp(table - table.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(likelihood.predict_proba(NEW), weights @ ALL, atol=1e-12)
    with pytest.raises(ModelError, match="clique_hinge models no probabilities; use pairwise_log_loss"):
        hinge.predict_proba(NEW)


def test_without_edges_the_labels_are_independent():
    solution = problem(edges=[], loss=mtl.pairwise_log_loss, penalty=mtl.ridge).solve(tol=1e-5)
    logits = NEW @ (solution["U"][:, 1::2] - solution["U"][:, 0::2])
    np.testing.assert_allclose(solution.predict_proba(NEW), 1 / (1 + np.exp(-logits)), atol=1e-12)
    np.testing.assert_allclose(solution.decision_function(NEW), logits, atol=1e-12)
    assert not solution.graph.edges and solution.edge_usage(NEW) == {} and solution.certified.all()


@pytest.mark.slow
def test_inference_that_is_not_exact_says_so(hinge):
    """Random weights between all pairs of labels: message passing; where its bound does not meet the labelling all labellings of 20
    labels are looked at, and of 21 there is no certificate.
    """
    rng, new = np.random.default_rng(0), NEW[:8]
    for K, proven in ((18, True), (21, False)):
        cliques = Cliques(K, tuple(combinations(range(K), 2)))
        names, weights = tuple(f"y{k}" for k in range(K)), np.ones(cliques.n_cliques)
        dense = replace(hinge.label_graph, names=names, cliques=cliques, weights=weights)
        solution = replace(hinge, label_graph=dense, coef=rng.normal(size=(3, cliques.n_entries)))
        labels, certified = solution.predict(new, return_certified=True)
        assert labels.shape == (8, K) and dense.inference[2] is False and certified.all() == proven


def test_what_a_labelling_has_not_is_refused(hinge):
    plain = mtl.minimize(mtl.squared_loss(W := mtl.Weights(TASKS), TASKS) + mtl.ridge(W)).solve()
    separate = mtl.Tasks.separate([X] * 4, list(Y.T), task_names=NAMES)
    swapped = mtl.Tasks.shared(X, Y[:, [1, 0, 2, 3]], task_names=["beach", "sea", "city", "snow"])
    of_none = "squared_loss is not a loss over a graph of labels; clique_hinge"
    for call, kind, said in (
        (lambda: plain.predict(X, return_certified=True), ModelError, of_none),
        (lambda: plain.graph, ModelError, of_none),
        (lambda: plain.edge_usage(X), ModelError, of_none),
        (lambda: hinge.tune_threshold(TASKS), ModelError, "clique_hinge decides a labelling as a whole, so that no label has a threshold"),
        (lambda: hinge.predict([X, X]), DataError, "predict: 2 input matrices, but a labelling is of all labels at once"),
        (lambda: hinge.predict(X[:, :2]), DataError, r"X has shape \(30, 2\), but the weights were learned on 3 features"),
        (lambda: hinge.predict(TASKS), DataError, r"predict\(tasks\): give the inputs"),
        (lambda: hinge.scores(mtl.Tasks.shared(X, Y[:, :3])), DataError, "the weights 3 x 4; give all tasks of training in their order, .*; where labels are missing, give NaN"),
        (lambda: hinge.scores(separate), DataError, "separate inputs, and a labelling is of all labels of one sample"),
        (lambda: hinge.score(swapped), DataError, "task 'beach' is number 0 here, but was 1 in training"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said):
            call()


def test_scores_are_of_the_labels_and_of_the_margins(hinge, likelihood):
    new = data(n=40, seed=5)
    tasks = mtl.Tasks.shared(*new, task_names=NAMES)
    labels, margins = hinge.predict(new[0]), hinge.decision_function(new[0])
    right = (labels == new[1]).mean(axis=0)
    np.testing.assert_allclose(hinge.scores(tasks), right)
    assert hinge.score(tasks) == pytest.approx(right.mean())
    np.testing.assert_allclose(hinge.scores(tasks, mtl.metrics.ErrorRate()), right)
    squares = (likelihood.predict_proba(new[0]) - (new[1] > 0)) ** 2
    np.testing.assert_allclose(likelihood.scores(tasks, "brier"), squares.mean(axis=0))
    with pytest.raises(ModelError, match="predicts labellings, and this measure is of numbers"):
        hinge.scores(tasks, "mse")
    f1, auc = hinge.scores(tasks, mtl.metrics.FScore()), hinge.scores(tasks, mtl.metrics.ROCArea())
    np.testing.assert_allclose(hinge.scores(tasks, "roc_auc"), auc)
    for k in range(4):
        y, z = new[1][:, k] > 0, labels[:, k] > 0
        assert f1[k] == pytest.approx(2 * (y & z).sum() / (y.sum() + z.sum()))
        pairs = margins[y, k][:, None] - margins[~y, k][None, :]
        assert auc[k] == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))


def test_labels_that_are_missing_are_not_scored(hinge):
    inputs, holes = data(n=40, seed=5)
    right = hinge.predict(inputs) == holes
    holes[:25, 2] = np.nan
    found = hinge.scores(mtl.Tasks.shared(inputs, holes, task_names=NAMES))
    np.testing.assert_allclose(found, [(right[25:] if k == 2 else right)[:, k].mean() for k in range(4)])


def test_standardised_tasks_and_kernels_take_new_inputs():
    scaled = TASKS.standardize()
    solution = problem(scaled).solve(tol=1e-3)
    labels = 2.0 * best(values(solution, np.asarray(scaled.scaling.apply(NEW)))) - 1
    np.testing.assert_array_equal(solution.predict(NEW), labels)
    assert solution.score(TASKS) == solution.score(scaled)
    assert solution.edge_usage(TASKS) == solution.edge_usage(X) == solution.edge_usage(scaled)


def test_the_attributes_of_the_graph(hinge):
    graph, V = hinge.graph, hinge["V"]
    assert list(graph.nodes) == NAMES
    norms = {pair: np.linalg.norm(V[:, 4 * c : 4 * c + 4]) for c, pair in enumerate(combinations(NAMES, 2))}
    assert {frozenset(edge) for edge in graph.edges} == {frozenset(p) for p, w in norms.items() if w > 0}
    total = sum(norms.values())
    for c, (pair, norm) in enumerate(norms.items()):
        if norm == 0:
            continue
        edge, scores = graph.edges[pair], X @ V[:, 4 * c : 4 * c + 4]
        agree = (scores[:, 0] + scores[:, 3] - scores[:, 1] - scores[:, 2]) / 2
        assert edge["weight"] == pytest.approx(norm)
        assert edge["share"] == pytest.approx(norm / total)  # r = 1: eta in proportion to the norms
        assert edge["coupling"] == pytest.approx(agree.mean())
        assert edge["attraction"] == pytest.approx((agree > 0).mean())
        assert "cliques" not in edge
    for k, name in enumerate(NAMES):
        assert graph.nodes[name]["weight"] == pytest.approx(np.linalg.norm(hinge["U"][:, 2 * k : 2 * k + 2]))
    listed = graph.graph["cliques"]
    weights = sorted((w for w in norms.values() if w > 0), reverse=True)
    np.testing.assert_allclose([one["weight"] for one in listed], weights, rtol=1e-12)


def test_shares_of_the_k_support_norm_are_the_best_etas():
    """They attain the minimum over eta that defines the norm: 1/2 sum a^2 / eta."""
    solution = problem(penalty=lambda V: mtl.half_squared_k_support_norm(V, 2)).solve(tol=1e-4)
    shares, norms = solution.label_graph.shares, solution.label_graph.weights
    assert shares.max() <= 1 + 1e-12 and shares.sum() <= 2 + 1e-9
    held = norms > 0
    ridge = problem(penalty=mtl.ridge).solve(tol=1e-3)
    assert ridge.label_graph.shares is None and "share" not in ridge.graph.edges["sea", "beach"]
    norm = HalfSquaredKSupportNorm(2, [list(range(4 * c, 4 * c + 4)) for c in range(6)])
    assert 0.5 * np.sum(norms[held] ** 2 / shares[held]) == pytest.approx(norm.value(solution["V"]), rel=1e-9)


def test_cliques_of_three_stand_as_the_edges_among_their_members(triple):
    graph, V = triple.graph, triple["V"]
    # the cliques as the model holds them: sea-beach, beach-city-snow, beach-city
    norms = [np.linalg.norm(V[:, a:b]) for a, b in ((0, 4), (4, 12), (12, 16))]
    pairs = [("sea", "beach"), ("beach", "city"), ("beach", "snow"), ("city", "snow")]
    assert set(map(frozenset, graph.edges)) == set(map(frozenset, pairs))
    assert graph.edges["beach", "snow"]["weight"] == pytest.approx(norms[1])
    assert graph.edges["beach", "city"]["weight"] == pytest.approx(np.hypot(norms[1], norms[2]))
    assert set(graph.edges["beach", "city"]["cliques"]) == {("beach", "city", "snow"), ("beach", "city")}
    assert "cliques" not in graph.edges["sea", "beach"]
    three, two = X @ V[:, 4:12], X @ V[:, 12:16]
    agree = three[:, [0, 1, 6, 7]].mean(axis=1) - three[:, [2, 3, 4, 5]].mean(axis=1)
    agree += two[:, [0, 3]].mean(axis=1) - two[:, [1, 2]].mean(axis=1)
    assert graph.edges["beach", "city"]["coupling"] == pytest.approx(agree.mean())
    listed = {one["labels"]: one["weight"] for one in graph.graph["cliques"]}
    assert listed[("beach", "city", "snow")] == pytest.approx(norms[1])


@for_each("which", ["hinge", "triple"])
def test_the_usage_of_an_edge_is_how_often_it_decides(which, request):
    solution = request.getfixturevalue(which)
    usage, whole = solution.edge_usage(NEW), best(values(solution, NEW))
    assert len(usage) == len(solution.label_graph.used)
    assert list(usage.values()) == sorted(usage.values())[::-1]
    for clique in solution.label_graph.cliques.members:
        labels = tuple(NAMES[k] for k in clique)
        if labels in usage:
            without = best(values(solution, NEW, left_out=(clique,)))
            assert usage[labels] == pytest.approx(np.mean((without != whole).any(axis=1)))
    assert max(usage.values()) > 0


@pytest.mark.slow
def test_the_round_in_which_an_edge_came():
    """A star of four edges, two a round: those without weights never came, the strongest came first."""
    made = mtl.datasets.make_label_graph(n_labels=6, n_features=4, n_train=150, n_test=1, random_state=0)
    model = problem(made.train, lam=1e-3)
    solution = model.solve("clique_generation", tol=1e-2, max_edges=4, cliques_per_round=2)
    graph = solution.label_graph
    assert solution.status == "selected" and sorted(graph.added[graph.added >= 0]) == [1, 1, 2, 2]
    assert (graph.weights[graph.added < 0] == 0).all()
    edges = solution.graph.edges(data="added")
    assert sorted(when for _, _, when in edges) == [1, 1, 2, 2]
    first = {frozenset(edge[:2]) for edge in edges if edge[2] == 1}
    assert first <= {frozenset(edge) for edge in made.graph.edges}
    assert model.solve("admm", tol=0.5, max_iter=20).label_graph.added is None


def test_multipliers_are_a_table_that_gives_the_weights(hinge):
    """At the optimum lam U = -(the labels' columns of X^T u): the multipliers of the scores, one row a sample."""
    u = hinge.multipliers["clique_hinge(U, V, tasks)"]
    assert u.shape == (30, 8 + 24)
    table = u.toarray() if sparse.issparse(u) else u
    # a dual point of a gap of 1e-5 relative: lam / 2 ||U - U*||^2 is at most the gap, 1e-5 times an objective of about 2
    allowed = 0.05 * 2 * np.sqrt(2e-5 * 2 / 0.05)
    np.testing.assert_allclose(0.05 * hinge["U"], -(X.T @ table)[:, :8], atol=allowed)
    lost, won = table[:, 0:8:2], table[:, 1:8:2]  # what one value loses the other wins
    np.testing.assert_allclose(lost + won, 0, atol=1e-9)


@for_each("which", ["hinge", "likelihood", "triple"])
def test_what_is_saved_is_read_back(which, request, tmp_path):
    import networkx

    solution = request.getfixturevalue(which)
    read = mtl.Solution.load(solution.save(tmp_path / "s"))
    np.testing.assert_array_equal(read.predict(NEW), solution.predict(NEW))
    np.testing.assert_array_equal(read.certified, solution.certified)
    assert read.label_graph.cliques == solution.label_graph.cliques and read.task_names == solution.task_names
    assert networkx.utils.graphs_equal(read.graph, solution.graph)
    assert read.edge_usage(NEW) == solution.edge_usage(NEW)
    np.testing.assert_array_equal(read.scores(TASKS), solution.scores(TASKS))


def test_a_saved_graph_without_edges_and_costs(tmp_path):
    U, V = mtl.NodeWeights(TASKS), mtl.EdgeWeights(TASKS, [])
    typed = mtl.clique_hinge(U, V, TASKS, loss=[1, 2, 0.5, 1])
    solution = mtl.minimize(typed + 0.1 * mtl.ridge(U)).solve(tol=1e-3)
    read = mtl.Solution.load(solution.save(tmp_path / "s"))
    assert not read.graph.edges and read.loss["parameters"]["loss"] == [1, 2, 0.5, 1]
    np.testing.assert_array_equal(read.predict(NEW), solution.predict(NEW))


def test_it_is_printed(hinge):
    text = str(hinge.label_graph)
    assert text.splitlines()[0] == f"LearnedGraph: {len(hinge.label_graph.used)} of 6 edges between 4 labels"
    assert text.splitlines()[1].startswith("city - snow   ")
