"""Mutual information against scikit-learn's, the Chow-Liu tree against brute force over all trees and against a tree that made the data."""

from itertools import combinations

import networkx
import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from mtldsl import DataError, Tasks
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
@for_each(
    ("tasks", "message"),
    [
        (tasks_of([[1, 1], [-1, np.nan], [1, -1]]), "labels are missing \\(1\\)"),
        (Tasks.separate([[[1.0], [2.0]]], [[1.0, -1.0]]), "separate inputs"),
        (tasks_of([[0, 1], [1, 0]]), "write 2 \\* Y - 1"),
        (tasks_of([[1, 1], [1, -1]]), "one class only"),
        (tasks_of([[1, 1], [-1, -1]], sample_weights=[[1.0, 1.0], [1.0, 2.0]]),
         "row 1 have different sample weights"),
    ],
)  # fmt: skip
def test_refuses_tasks_that_cannot_be_compared_row_by_row(measure, tasks, message):
    with pytest.raises(DataError, match=message) as error:
        measure(tasks)
    assert f"{measure.__name__}(tasks)" in str(error.value)
