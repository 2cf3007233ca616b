"""Rows over a graph of labels, all or some observed: their loss is that of the graph which these induce.

The judge is every labelling of the observed labels, looked at row by row, or the reference, which states each smaller graph.
"""

from itertools import cycle, product

import numpy as np
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl.atoms.inference import decoder as changes
from mtldsl.atoms.inference.cliques import GAP, Cliques
from mtldsl.certificates.certificate import certify
from mtldsl.reference.compile import to_cvxpy
from mtldsl.reference.solve import solve_reference
from tests.label_graph_models import cost, dependent, regularized
from tests.loops import for_each

K, D = 4, 3
EDGES = [(0, 1), (1, 3), (0, 2, 3)]
TABLE = [[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.5, 2.0], [2.0, 1.0, 0.0, 1.0], [5.0, 2.0, 1.0, 0.0]]
COSTS = {
    "hamming": "hamming",
    "a cost a label": [0.5, 2.0, 1.0, 0.0],
    "zero-one": "zero_one",
    "F-score": mtl.metrics.FScore(),
    "tables": {(0, 2): TABLE, (1,): [[0.0, 5.0], [1.0, 0.0]]},
}
WORDS = {
    **{
        name: (lambda U, V, t, loss=loss: mtl.clique_hinge(U, V, t, loss=loss))
        for name, loss in COSTS.items()
    },
    "likelihood": mtl.pairwise_log_loss,
}
every_loss = for_each("name", WORDS)


def data(seed=0, n=18, share=0.35):
    """X (n, D), Y (n, K) with gaps, if any; the first two rows have all labels, the last one has none."""
    X, Y, rng = dependent(seed, n, K, D)
    gaps = rng.random((n, K)) < share
    gaps[:2], gaps[-1] = False, share > 0
    Y[gaps] = np.nan
    return X, Y


def model(word, X, Y, edges=EDGES, weights=None, **options):
    return regularized(word, mtl.Tasks.shared(X, Y, sample_weights=weights), edges, **options)


def loss_of_row(name, s, y, edges=EDGES) -> float:
    """Over the labellings of the observed labels, from the scores (S,) of all entries: no other label is mentioned."""
    truth = {k: int(y[k] > 0) for k in range(len(y)) if not np.isnan(y[k])}

    def score(labelling):
        total, start = sum(s[2 * k + value] for k, value in labelling.items()), 2 * len(y)
        for clique in edges:
            if all(k in labelling for k in clique):
                total += s[start + int("".join(str(labelling[k]) for k in clique), 2)]
            start += 2 ** len(clique)
        return total

    every = [dict(zip(truth, values, strict=True)) for values in product((0, 1), repeat=len(truth))]
    if name == "likelihood":
        return float(np.log(sum(np.exp(score(one)) for one in every)) - score(truth))
    return max(cost(COSTS[name], one, truth) + score(one) for one in every) - score(truth)


@pytest.mark.slow
@every_loss
def test_the_loss_of_a_row_is_that_of_its_observed_labels(name):
    """A mean over the rows that have a label, by their weights; by the package, and by the reference."""
    X, Y = data()
    weights = np.random.default_rng(4).uniform(0.5, 2.0, len(X))
    problem = model(WORDS[name], X, Y, weights=weights)
    form, rng = problem.form(), np.random.default_rng(1)
    stated = to_cvxpy(form)
    for size in (0.0, 0.3, 3.0):
        point = {block: size * rng.normal(size=shape) for block, shape in form.shapes.items()}
        scores = X @ np.hstack([point["U"], point["V"]])
        rows = [loss_of_row(name, s, y) for s, y in zip(scores, Y, strict=True)]
        assert rows[-1] == 0.0
        norms = [np.linalg.norm(point["V"][:, a:b]) for a, b in ((0, 4), (4, 8), (8, 16))]
        penalty = 0.05 * (np.sum(point["U"] ** 2) + sum(norms) ** 2)
        expected = np.average(rows[:-1], weights=weights[:-1]) + penalty
        assert form.value(point) == pytest.approx(expected, rel=1e-12)
        assert stated.objective_value(point) == pytest.approx(expected, rel=1e-10)
        term = form.losses[0]
        found = term.atom.value_of_samples(term.atom.scores(np.ravel(scores.T)), term.truth)
        np.testing.assert_allclose(found, rows, rtol=1e-12, atol=1e-12)
        assert found[-1] == 0.0


PENALTIES = [mtl.half_squared_group_norm, mtl.ridge, lambda V: mtl.half_squared_k_support_norm(V, 2)]
#: every word on rows with gaps and without, with an intercept in turn
LAYOUTS = list(zip(product(WORDS, [0.0, 0.4]), cycle([True, False, False, True]), strict=False))


@pytest.mark.slow
@for_each(
    "case, penalty, first", zip(LAYOUTS, cycle(PENALTIES), cycle([0, 1, 0, 1, 1, 0, 1, 0]), strict=False)
)
def test_solvers_reach_the_optimum_of_the_reference(case, penalty, first):
    """Every solver on every word, with gaps and without, and with an intercept and without."""
    (name, share), intercept = case
    X, Y = data(2, share=share)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if intercept else None
    problem = model(WORDS[name], X, Y, weights=weights, intercept=intercept, penalty=penalty)
    best = solve_reference(problem.form()).objective
    of_hinges = ("admm", "clique_generation", "dual_ascent")[first::2]
    for solver in ("admm", "proximal_gradient") if name == "likelihood" else of_hinges:
        solution = problem.solve(solver, tol=1e-6)
        assert solution.status == "optimal", solution
        assert solution.objective == pytest.approx(best, rel=2e-6)
        assert solution.dual_bound <= best * (1 + 1e-9)
        again = problem.solve(solver, tol=1e-6, warm_start=solution)
        assert again.status == "optimal" and again.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.slow
def test_the_papers_own_method_and_sparse_inputs():
    X, Y = data(4)
    ridge = model(mtl.clique_hinge, X, Y, penalty=mtl.ridge)
    best = solve_reference(ridge.form()).objective
    found = ridge.solve("clique_generation", method="spdca", tol=1e-3)
    assert found.is_optimal and found.dual_bound <= best <= found.objective <= 1.001 * best
    best = solve_reference(model(mtl.clique_hinge, X, Y).form()).objective
    thin = model(mtl.clique_hinge, sparse.csr_array(X), Y).solve(tol=1e-6)
    assert thin.is_optimal and thin.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.by_default("zero-one-True")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", WORDS)
def test_value_and_bound_at_random_points(name, intercept):
    """The value is the reference's; the bound, from the point's own multipliers or from random ones, is below the optimum."""
    X, Y = data(5)
    form, rng = model(WORDS[name], X, Y, intercept=intercept).form(), np.random.default_rng(2)
    stated, best = to_cvxpy(form), solve_reference(form).objective
    for size in (0.0, 0.1, 1.0, 10.0):
        point = {block: size * rng.normal(size=shape) for block, shape in form.shapes.items()}
        for duals in (None, [size * rng.normal(size=form.losses[0].tasks.n_samples)]):
            found = certify(form, point, duals)
            assert found.objective == pytest.approx(stated.objective_value(point), rel=1e-12)
            assert np.isfinite(found.dual_bound) and found.dual_bound <= best + 1e-8


@pytest.mark.slow
@for_each("name", ["hamming", "tables", "likelihood"])
def test_labels_that_no_row_has_together_get_no_edge(name):
    """Their columns of V see no row, and a norm leaves them at zero; the others are learned."""
    X, Y = data(8, n=30, share=0.0)
    Y[::2, 0], Y[1::2, 1] = np.nan, np.nan
    Y[0, 2:], Y[1, 2:] = 1.0, -1.0
    Y[[2, 4], 1], Y[[3, 5], 0] = [1.0, -1.0], [1.0, -1.0]
    solution = model(WORDS[name], X, Y, edges="all", lam=0.02).solve(tol=1e-6)
    assert solution.is_optimal
    members = list(solution.label_graph.cliques.members)
    weights = dict(zip(members, solution.label_graph.weights, strict=True))
    assert weights[0, 1] == 0.0
    assert max(weights[0, 2], weights[0, 3], weights[1, 2], weights[1, 3], weights[2, 3]) > 1e-2
    assert solution.predict(X).shape == (30, K) and not np.isnan(solution.predict(X)).any()


@pytest.mark.slow
@for_each("pair, intercept", LAYOUTS)
def test_its_proof_is_checked_by_another_program(pair, intercept, tmp_path):
    name, share = pair
    X, Y = data(9, n=6, share=share)
    weights = np.random.default_rng(5).uniform(0.5, 2.0, len(X))
    problem = model(WORDS[name], X, Y, weights=weights, intercept=intercept)
    # at intercepts that nothing bounds, a proof of admm holds for a region: not of what is asked here
    for solver in ("auto",) if intercept else ("auto", "admm"):
        solution = problem.solve(solver, tol=1e-5)
        path = solution.certificate.save(tmp_path / f"{solver}.npz", data=True)
        for exact in (False, True):
            verdict = mtl.verify_proof(path, exact=exact)
            assert verdict.confirmed and not verdict.unchecked, (solver, verdict)
        again = mtl.Solution.load(solution.save(tmp_path / f"{solver} solution"))
        np.testing.assert_array_equal(again.predict(X), solution.predict(X))


def test_a_proof_knows_its_labels_with_gaps(tmp_path):
    """The file holds hashes of the data; it does not prove anything of the same data with one gap closed."""
    X, Y = data(10)
    path = model(mtl.clique_hinge, X, Y).solve(tol=1e-4).certificate.save(tmp_path / "proof.npz")
    assert mtl.verify_proof(path, mtl.Tasks.shared(X, Y)).confirmed
    closed = Y.copy()
    closed[-1] = 1.0
    with pytest.raises(mtl.MTLError):
        mtl.verify_proof(path, mtl.Tasks.shared(X, closed))


@pytest.mark.slow
def test_a_path_a_warm_start_and_scores_of_rows_with_gaps():
    X, Y = data(12, n=40)
    tasks, lam = mtl.Tasks.shared(X, Y), mtl.Parameter(0.1, name="lam")
    problem = regularized(mtl.clique_hinge, tasks, lam=lam)
    *_, last = problem.path(lam, values=[0.3, 0.1])
    assert last.is_optimal and problem.cross_check(last).agrees
    again = problem.solve(warm_start=last, tol=1e-6)
    assert again.is_optimal and again.iterations <= last.iterations + 50
    assert last.certified.all() and len(last.certified) == len(X)
    labels, there = last.predict(X), ~np.isnan(Y)
    right = [np.mean(labels[there[:, k], k] == Y[there[:, k], k]) for k in range(K)]
    np.testing.assert_allclose(last.scores(tasks), right)
    assert problem.cross_validate(lam, values=[0.3, 0.1], folds=2).solution.is_optimal


@pytest.mark.slow
def test_overlapping_groups_of_a_clique_and_those_that_hold_it():
    """Hierarchical penalty of HLLM-L1: a clique has weights only where all cliques inside it may."""
    X, Y = data(share=0.0)
    tasks, members = mtl.Tasks.shared(X, Y), [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    U, V = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, members)
    assert V.cliques.members == tuple(members)
    above = [[*range(4 * c, 4 * c + 4), *range(12, 20)] for c in range(3)] + [[*range(12, 20)]]
    objective = mtl.pairwise_log_loss(U, V, tasks) + 0.05 * mtl.ridge(U)
    for columns in above:
        objective = objective + 0.03 * mtl.column_group_norm(V[:, columns], [[*range(len(columns))]])
    problem, rng = mtl.minimize(objective), np.random.default_rng(0)
    at = {"U": rng.normal(size=(D, 2 * K)), "V": rng.normal(size=(D, 20))}
    scores = zip(X @ np.hstack([at["U"], at["V"]]), Y, strict=True)
    expected = np.mean([loss_of_row("likelihood", s, y, members) for s, y in scores])
    expected += 0.025 * np.sum(at["U"] ** 2) + 0.03 * sum(np.linalg.norm(at["V"][:, c]) for c in above)
    assert problem.value(at) == pytest.approx(expected, rel=1e-12)
    assert problem.solve(tol=1e-6).is_optimal and problem.cross_check().agrees


def test_many_pairs_by_matrix_products_and_one_by_one():
    rng = np.random.default_rng(13)
    n, k = 7, 33
    cliques = Cliques(k, tuple((i, j) for j in range(k) for i in range(j)))
    truth = rng.integers(0, 3, size=(n, k)).astype(np.uint8)
    starts = np.arange(0, 3 * n + 1, 3)
    labels = np.where(np.repeat(truth, 3, axis=0) == GAP, GAP, rng.integers(0, 2, size=(3 * n, k)))
    weights, X = rng.random(3 * n), rng.normal(size=(n, 2))
    table = changes.expected_changes(cliques, truth, labels, weights, starts)
    each = np.stack([cliques.indicators(labels[3 * i : 3 * i + 3]) for i in range(n)])
    by_hand = np.einsum("ij,ijs->is", weights.reshape(n, 3), each - cliques.indicators(truth)[:, None])
    np.testing.assert_allclose(table.toarray(), by_hand, atol=1e-14)
    found = changes.changes_times(cliques, truth, labels, weights, starts, X)
    np.testing.assert_allclose(found, by_hand.T @ X, atol=1e-13)


def test_weights_of_labels_and_separate_inputs_are_refused():
    X, Y = data()
    weights = np.ones(Y.shape)
    weights[0, 1] = 2.0
    with pytest.raises(mtl.DataError, match="other weights for other labels"):
        model(mtl.clique_hinge, X, Y, weights=weights)
    tasks = mtl.Tasks.separate([X, X], [np.sign(X[:, 0]), np.sign(X[:, 1])])
    with pytest.raises(mtl.DataError, match="separate inputs"):
        mtl.clique_hinge(mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks), tasks)
