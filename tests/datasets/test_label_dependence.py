"""Mutual information against scikit-learn's, the Chow-Liu tree against brute force over all trees and against a tree that made the data."""

from itertools import combinations, product

import networkx
import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from mtldsl import DataError, Tasks, datasets
from mtldsl.data.synthetic import STAR
from mtldsl.datasets import chow_liu_tree, co_occurrence, mutual_information
from tests.loops import for_each

# Tolerances of 1e-13 to 1e-15 are the rounding of sums of a few dozen logarithms and shares.


def tasks_of(Y, **options):
    Y = np.asarray(Y, float)
    return Tasks.shared(np.ones((len(Y), 1)), Y, **options)


def random_labels(n=80, K=5, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.normal(size=(n, K)) + 1.5 * rng.normal(size=(n, 1)) > 0.4, 1.0, -1.0)


def test_co_occurrence_by_hand():
    Y = [[1, 1, -1], [1, -1, -1], [-1, 1, 1], [1, 1, 1]]
    expected = np.array([[3, 2, 1], [2, 3, 2], [1, 2, 2]]) / 4
    np.testing.assert_allclose(co_occurrence(tasks_of(Y)), expected, rtol=1e-15)


@for_each("seed", range(4))
def test_mutual_information_is_scikit_learns(seed):
    Y = random_labels(seed=seed)
    expected = [[mutual_info_score(a, b) for a in Y.T] for b in Y.T]
    np.testing.assert_allclose(mutual_information(tasks_of(Y)), expected, atol=1e-14)


def test_laws_of_mutual_information():
    Y = random_labels(K=6)
    tasks = tasks_of(Y)
    information, share = mutual_information(tasks), np.diag(co_occurrence(tasks))
    np.testing.assert_array_equal(information, information.T)
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    np.testing.assert_allclose(np.diag(information), entropy, rtol=1e-13)
    assert (information <= np.minimum.outer(entropy, entropy) + 1e-14).all() and (information >= 0).all()
    # the names of the two states carry no information
    turned = Y * np.array([-1, 1, 1, -1, 1, 1])
    np.testing.assert_allclose(mutual_information(tasks_of(turned)), information, atol=1e-14)
    # labels that are independent in the sample
    independent = [[a, b] for a in (-1, 1) for b in (-1, 1)]
    assert mutual_information(tasks_of(independent))[0, 1] == 0.0


def test_sample_weights_are_replication():
    Y, counts = random_labels(n=30), np.arange(30) % 3 + 1
    weighted, replicated = tasks_of(Y, sample_weights=counts), tasks_of(np.repeat(Y, counts, axis=0))
    for measure in (co_occurrence, mutual_information):
        np.testing.assert_allclose(measure(weighted), measure(replicated), atol=1e-14)


@for_each("seed", range(5))
def test_no_tree_has_more_information(seed):
    Y = random_labels(n=25, K=5, seed=seed)
    tree, information = chow_liu_tree(tasks_of(Y)), mutual_information(tasks_of(Y))
    best = max(
        sum(information[edge] for edge in edges)
        for edges in combinations(list(combinations(range(5), 2)), 4)
        if networkx.is_tree(networkx.Graph(edges)) and len({k for e in edges for k in e}) == 5
    )
    assert networkx.is_tree(tree) and tree.number_of_nodes() == 5
    assert sum(nats for *_, nats in tree.edges(data="mutual_information")) == pytest.approx(best, rel=1e-13)


def test_one_label_and_independent_labels():
    assert list(chow_liu_tree(tasks_of([[1], [-1]], task_names=["a"])).nodes) == ["a"]
    independent = [[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    assert chow_liu_tree(tasks_of(independent)).number_of_edges() == 2


@for_each("measure", [co_occurrence, mutual_information, chow_liu_tree])
@for_each(("tasks", "message"), [
    (tasks_of([[1, 1], [-1, np.nan], [1, -1]]), "labels are missing \\(1\\)"),
    (Tasks.separate([[[1.0], [2.0]]], [[1.0, -1.0]]), "separate inputs"),
    (tasks_of([[0, 1], [1, 0]]), "write 2 \\* Y - 1"),
    (tasks_of([[1, 1], [1, -1]]), "one class only"),
    (tasks_of([[1, 1], [-1, -1]], sample_weights=[[1.0, 1.0], [1.0, 2.0]]),
     "row 1 have different sample weights"),
])  # fmt: skip
def test_refuses_tasks_that_cannot_be_compared_row_by_row(measure, tasks, message):
    with pytest.raises(DataError, match=message) as error:
        measure(tasks)
    assert f"{measure.__name__}(tasks)" in str(error.value)


SMALL = {"n_train": 40, "n_test": 30}


def score(made, x, y):
    """The score of a labelling y in {0, 1}^K of one row, summed as the docstring writes it."""
    total = sum(made.node_weights[:, 2 * k + y[k]] @ x for k in range(len(y)))
    return total + sum(
        made.edge_weights[:, 4 * e + 2 * y[i] + y[j]] @ x for e, (i, j) in enumerate(made.edges)
    )


def table(tasks):
    return tasks.targets.reshape(tasks.n_tasks, -1).T


def test_the_papers_sizes():
    made = datasets.make_label_graph(random_state=0)
    assert made.train.X.shape == (2000, 10) and made.test.X.shape == (1000, 10)
    assert made.train.n_tasks == made.test.n_tasks == 10
    assert made.edges == ((0, 1), (0, 2), (0, 3), (0, 4))
    assert made.graph.number_of_nodes() == 10 and made.graph.degree["y0"] == 4
    assert made.train.task_names == made.test.task_names == tuple(made.graph.nodes)
    for weights, columns in ((made.node_weights, 20), (made.edge_weights, 16)):
        assert weights.shape == (10, columns)
    # 360 standard normal numbers: mean and variance within five standard errors
    weights = np.hstack([made.node_weights, made.edge_weights])
    assert abs(weights.mean()) < 5 / np.sqrt(360) and abs(weights.var() - 1) < 5 * np.sqrt(2 / 360)
    made.train.require_labels("sign", "here")


@for_each(
    ("K", "edges"),
    [
        (5, STAR),
        (4, []),
        (6, [(0, 1), (2, 1), (0, 2), (4, 5)]),  # a triangle, an edge, a label apart
        (5, [(i, j) for i in range(5) for j in range(i)]),
    ],
)
def test_labels_are_the_best_of_all_labellings(K, edges):
    made = datasets.make_label_graph(n_labels=K, n_features=3, edges=edges, **SMALL, random_state=3)
    for x, y in zip(made.test.X, table(made.test), strict=True):
        best = max(product((0, 1), repeat=K), key=lambda labels: score(made, x, labels))
        np.testing.assert_array_equal(y, 2 * np.array(best) - 1)


def test_noise_turns_training_labels_only():
    clean = datasets.make_label_graph(random_state=4)
    np.testing.assert_array_equal(clean.labels(clean.test.X), table(clean.test))
    longer = datasets.make_label_graph(n_test=1001, random_state=4)
    assert longer.train.fingerprint() == clean.train.fingerprint()
    noisy = datasets.make_label_graph(label_noise=0.05, random_state=4)
    assert noisy.test.fingerprint() == clean.test.fingerprint() and noisy.label_noise == 0.05
    np.testing.assert_array_equal(noisy.train.X, clean.train.X)
    turned = table(noisy.train) != table(clean.train)
    # 20,000 labels: five standard errors
    assert turned.mean() == pytest.approx(0.05, abs=5 * np.sqrt(0.05 * 0.95 / 20_000))
    all_turned = datasets.make_label_graph(label_noise=1.0, random_state=4)
    np.testing.assert_array_equal(all_turned.train.targets, -clean.train.targets)
