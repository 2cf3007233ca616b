"""Losses across labels: of the whole table, and of its rows, against their definitions on X W."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import metrics as sk

import mtldsl as mtl
from mtldsl.errors import DataError

N, D, M = 20, 3, 4


def data(seed=0, missing=0.0, kind=np.asarray):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    Y = np.where(X @ rng.normal(size=(D, M)) + rng.normal(size=(N, M)) > 0.5, 1.0, -1.0)
    Y[3], Y[7] = 1.0, -1.0  # rows of one label
    Y[rng.random((N, M)) < missing] = np.nan
    return X, Y, mtl.Tasks.shared(kind(X), Y), rng


def whole_rows(Y):
    return [y for y in range(len(Y)) if np.any(Y[y] > 0) and np.any(Y[y] < 0)]


def value(loss, W, across, zero):
    """The value of a loss at W (D, M): beside a ridge without weight."""
    return mtl.minimize(loss + 0.0 * zero).value({"W": W.T.reshape(-1, 1)})


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_losses_are_those_of_the_table_and_of_its_rows(kind, missing):
    X, Y, tasks, rng = data(1, missing, kind)
    across = mtl.AcrossLabels(tasks)
    W = mtl.Weights(across.table)
    assert list(across.left_out) == [j for j in range(N) if j not in whole_rows(Y)]
    for size in (0.1, 0.5, 3.0):
        B = size * rng.normal(size=(D, M))
        Z = X @ B
        known = ~np.isnan(Y)
        micro = value(
            mtl.structured_hinge(W, across.table, metric=mtl.metrics.FScore()), B, across, mtl.ridge(W)
        )
        # the highest table of counts, by enumeration
        up, down = np.sort(Z[known & (Y > 0)]), np.sort(Z[known & (Y < 0)])[::-1]
        worth = [
            1 - 2 * (len(up) - c) / (2 * len(up) - c + b) - 2 * up[:c].sum() + 2 * down[:b].sum()
            for c in range(len(up) + 1) for b in range(len(down) + 1)
        ]  # fmt: skip
        assert micro == pytest.approx(max(worth), rel=1e-10)
        assert micro >= 1 - sk.f1_score(Y[known] > 0, Z[known] >= 0) - 1e-12

        pairs, scores = 0.0, 0.0
        for j in whole_rows(Y):
            right, wrong = Z[j, Y[j] > 0], Z[j, Y[j] < 0]
            pairs += np.mean(np.maximum(0.0, 1 - 2 * (right[:, None] - wrong[None, :])))
            scores += 1 - sk.f1_score(Y[j, known[j]] > 0, Z[j, known[j]] >= 0)
        ranking, sample = (
            value(
                mtl.structured_hinge(W @ across.spread, across.rows, metric=metric), B, across, mtl.ridge(W)
            )
            for metric in (mtl.metrics.ROCArea(), mtl.metrics.FScore())
        )
        by_pairs = value(mtl.hinge_loss(W, across.pairs), B, across, mtl.ridge(W))
        assert by_pairs == pytest.approx(pairs, rel=1e-10)
        assert ranking == pytest.approx(pairs, rel=1e-10) and sample >= scores - 1e-12


@pytest.mark.slow
def test_optima_are_proven_and_agree_with_the_reference():
    _, Y, tasks, _ = data(2)
    across = mtl.AcrossLabels(tasks)
    W = mtl.Weights(across.table)
    rows = W @ across.spread
    for loss in (
        mtl.structured_hinge(W, across.table, metric=mtl.metrics.FScore()),
        mtl.structured_hinge(rows, across.rows, metric=mtl.metrics.FScore()) / len(whole_rows(Y)),
        mtl.structured_hinge(rows, across.rows, metric=mtl.metrics.ROCArea()) / len(whole_rows(Y)),
    ):
        problem = mtl.minimize(mtl.group_norm(W, across.features) + 10 * loss)
        solution = problem.solve()
        assert solution.status == "optimal" and problem.cross_check(solution).agrees
        B = across.weights(solution["W"])
        assert B.shape == (D, M)
        norm = mtl.minimize(mtl.group_norm(W, across.features) + 0.0 * loss).value(solution)
        assert norm == pytest.approx(np.sum(np.linalg.norm(B, axis=1)))  # the l21_norm of (d, m)


@pytest.mark.slow
def test_a_metric_of_rows_is_a_clique_hinge_without_edges():
    """The values at any weights, and the optima, of which W is half the difference of U's columns."""
    X, Y, tasks, rng = data(5)
    metric = mtl.metrics.Jaccard()
    across = mtl.AcrossLabels(tasks)
    rows, n = across.labelled, len(whole_rows(Y))
    assert rows.X.shape == (n, D) and rows.task_names == tasks.task_names
    np.testing.assert_array_equal(rows.targets.reshape(M, n).T, Y[whole_rows(Y)])
    W, U, V = mtl.Weights(across.table), mtl.NodeWeights(rows), mtl.EdgeWeights(rows, [])
    by_row = mtl.structured_hinge(W @ across.spread, across.rows, metric=metric)
    by_graph = mtl.clique_hinge(U, V, rows, loss=metric)
    for size in (0.1, 1.0):
        B = size * rng.normal(size=(D, M))
        both = np.stack([-B, B], axis=2).reshape(D, 2 * M)
        np.testing.assert_allclose(across.weights(both), B)
        mean = mtl.minimize(by_graph + 0.0 * mtl.ridge(U)).value(both)
        assert n * mean == pytest.approx(value(by_row, B, across, mtl.ridge(W)), rel=1e-10)
    found = mtl.minimize(mtl.ridge(W) + by_row).solve(tol=1e-7)
    graph = mtl.minimize(0.5 * mtl.ridge(U) + n * by_graph).solve(tol=1e-7)
    assert found.status == graph.status == "optimal"
    assert graph.objective == pytest.approx(found.objective, rel=3e-7)
    # the objective grows by half the squared distance, of one as of the other
    reach = sum(np.sqrt(2.0 * one.gap.absolute) for one in (found, graph)) + 1e-9
    assert np.linalg.norm(across.weights(graph["U"]) - across.weights(found["W"])) <= reach


def test_what_is_refused():
    X, Y, tasks, _ = data(3)
    with pytest.raises(DataError, match="do not share their inputs"):
        mtl.AcrossLabels(mtl.Tasks.separate([X, X], [Y[:, 0], Y[:, 1]]))
    with pytest.raises(DataError, match="sample weights"):
        mtl.AcrossLabels(mtl.Tasks.shared(X, Y, sample_weights=np.ones(N)))
    with pytest.raises(DataError, match="labels are not -1 and"):
        mtl.AcrossLabels(mtl.Tasks.shared(X, X))
    with pytest.raises(DataError, match="no row has both"):
        mtl.AcrossLabels(mtl.Tasks.shared(X, np.sign(Y[:, [0, 0]])))
    with pytest.raises(DataError, match="one column"):
        mtl.AcrossLabels(tasks).weights(np.ones((2, 3)))
    with pytest.raises(DataError, match="Tasks"):
        mtl.AcrossLabels(X)  # type: ignore[arg-type]


def test_a_metric_of_rows_with_gaps_is_of_their_observed_labels():
    gaps = mtl.AcrossLabels(data(3, missing=0.2)[2]).labelled
    nodes = mtl.NodeWeights(gaps)
    loss = mtl.clique_hinge(nodes, mtl.EdgeWeights(gaps, []), gaps, loss=mtl.metrics.FScore())
    solution = mtl.minimize(loss + 0.1 * mtl.ridge(nodes)).solve(tol=1e-4, cross_check=True)
    assert solution.is_optimal and solution.cross_check.agrees
