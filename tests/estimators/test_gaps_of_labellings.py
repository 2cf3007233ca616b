"""Why a labelling has no gaps: of the losses that one could have, one is not convex and the other is of another predictor."""

from itertools import product

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.estimators import LabelGraphClassifier, MultiTaskClassifier

#: the loss is the mean of two rows': of X = 1, and of X = 0, which only sees to both classes and loses as much as it has labels
X = np.array([[1.0], [0.0]])


def hinge(U, V, missing) -> float:
    """The clique hinge of the row at these weights, label 0 being positive and label 1, which is missing, what is filled in."""
    tasks = mtl.Tasks.shared(X, np.array([[1.0, missing], [-1.0, -missing]]))
    nodes, edges = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, [(0, 1)])
    model = mtl.minimize(
        mtl.clique_hinge(nodes, edges, tasks) + 0.0 * mtl.ridge(nodes) + 0.0 * mtl.ridge(edges)
    )
    return 2.0 * model.value({nodes.name: U, edges.name: V}) - 2.0


def hinge_without(U) -> float:
    """The same of the graph without label 1 and its edge."""
    tasks = mtl.Tasks.shared(X, np.array([[1.0], [-1.0]]))
    nodes, edges = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, [])
    model = mtl.minimize(mtl.clique_hinge(nodes, edges, tasks) + 0.0 * mtl.ridge(nodes))
    return 2.0 * model.value(U[:, :2]) - 1.0


def best_labelling(U, V) -> tuple[int, int]:
    def score(y):
        return U[0, y[0]] + U[0, 2 + y[1]] + V[0, 2 * y[0] + y[1]]

    return max(product((0, 1), repeat=2), key=score)


def test_a_gap_filled_with_its_best_label_is_not_convex():
    V = np.zeros((1, 4))
    one, other = np.array([[-1.0, 1.0, -2.0, 2.0]]), np.array([[-1.0, 1.0, 2.0, -2.0]])

    def filled(U):
        return min(hinge(U, V, missing) for missing in (-1.0, 1.0))

    assert filled(one) == filled(other) == 0.0
    assert filled(0.5 * (one + other)) == pytest.approx(1.0)


def test_a_loss_that_leaves_the_label_out_is_of_another_predictor():
    U, V = np.array([[-1.0, 1.0, -5.0, 5.0]]), np.array([[0.0, 5.0, 0.0, 0.0]])
    assert hinge_without(U) == 0.0  # all is well, it says
    assert best_labelling(U, V)[0] == 0  # and the label that is known is predicted wrong
    assert min(hinge(U, V, missing) for missing in (-1.0, 1.0)) >= 1.0  # which every labelling of both says


def test_gaps_are_filled_before():
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 3))
    labels = (inputs @ rng.normal(size=(3, 3)) > 0).astype(float)
    labels[::7, 1] = np.nan
    with pytest.raises(DataError, match="MultiTaskClassifier predicts"):
        LabelGraphClassifier(lam=0.1).fit(inputs, labels)
    first = MultiTaskClassifier(lam=1.0).fit(inputs, labels)
    whole = np.where(np.isnan(labels), first.predict(inputs), labels)
    second = LabelGraphClassifier(lam=0.1).fit(inputs, whole)
    assert first.solution_.is_optimal and second.solution_.is_optimal
    assert second.score(inputs, whole) > 0.8
