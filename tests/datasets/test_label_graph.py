"""The generator of CGM's section 5.2: sizes and moments, the best labelling by brute force, what a linear classifier can do."""

from itertools import product

import numpy as np
import pytest

from mtldsl import datasets
from mtldsl.data.synthetic import STAR
from tests.loops import for_each

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
