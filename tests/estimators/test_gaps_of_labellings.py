"""What a loss of rows with missing labels is, and what it is not.

It is the loss of the graph that a row's observed labels induce: convex, and proven. It is not the loss of the best labelling of all labels
with the gaps filled, which is not convex; so it can be zero where the labelling that is predicted has an observed label wrong.
"""

from itertools import product

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.errors import DataError
from mtldsl.estimators import LabelGraphClassifier


def hinge(Y, U, V, edges=((0, 1),)) -> float:
    """The clique hinge of the first row: the others are of X = 0, see to both classes of every label, and lose as much as they have labels."""
    labels = np.array(Y)
    tasks = mtl.Tasks.shared(np.eye(len(labels))[:, :1], labels)
    nodes, edges = mtl.NodeWeights(tasks), mtl.EdgeWeights(tasks, list(edges))
    model = mtl.minimize(mtl.clique_hinge(nodes, edges, tasks) + 0.0 * (mtl.ridge(nodes) + mtl.ridge(edges)))
    return len(labels) * model.value({nodes.name: U, edges.name: V}) - np.isfinite(labels[1:]).sum()


def filled(U, V) -> float:
    """Label 0 is positive, and label 1, which is missing, is filled with what costs least."""
    return min(hinge([[1.0, missing], [-1.0, -missing]], U, V) for missing in (-1.0, 1.0))


def best_labelling(U, V) -> tuple[int, int]:
    def score(y):
        return U[0, y[0]] + U[0, 2 + y[1]] + V[0, 2 * y[0] + y[1]]

    return max(product((0, 1), repeat=2), key=score)


def test_a_gap_filled_with_its_best_label_is_not_convex():
    V = np.zeros((1, 4))
    one, other = np.array([[-1.0, 1.0, -2.0, 2.0]]), np.array([[-1.0, 1.0, 2.0, -2.0]])
    assert filled(one, V) == filled(other, V) == 0.0
    assert filled(0.5 * (one + other), V) == pytest.approx(1.0)


def test_the_predictor_may_err_where_the_loss_is_zero():
    """The predictor is of the whole graph and may be wrong where the loss is zero."""
    U, V = np.array([[-1.0, 1.0, -5.0, 5.0]]), np.array([[0.0, 5.0, 0.0, 0.0]])
    assert hinge([[1.0, np.nan], [-1.0, -1.0], [1.0, 1.0]], U, V) == 0.0  # all is well, it says
    assert best_labelling(U, V)[0] == 0  # and the label that is known is predicted wrong
    assert filled(U, V) >= 1.0  # which every labelling of both says


def labels_with_gaps(share, n=60):
    """(inputs, labels with NaN, all labels): the third label is whether the first two agree, give or take."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(n, 3))
    whole = (inputs @ rng.normal(size=(3, 3)) > 0).astype(float)
    whole[:, 2] = (whole[:, 0] == whole[:, 1]) ^ (rng.random(n) < 0.05)
    return inputs, np.where(rng.random(whole.shape) < share, np.nan, whole), whole


@pytest.mark.slow
def test_the_estimator_learns_from_rows_with_gaps():
    """More rows, though with gaps, are at least as good as those that are complete."""
    inputs, labels, whole = labels_with_gaps(0.3, n=120)
    found = LabelGraphClassifier(lam=0.1).fit(inputs, labels)
    assert found.solution_.is_optimal
    predicted = found.predict(inputs)
    assert predicted.shape == whole.shape and np.isin(predicted, (0, 1)).all()
    assert np.mean(predicted == whole) > 0.8
    rest = np.isnan(labels).any(axis=1)
    assert 60 < rest.sum() < 110
    few = LabelGraphClassifier(lam=0.1).fit(inputs[~rest], labels[~rest])
    assert np.mean(predicted[rest] == whole[rest]) >= np.mean(few.predict(inputs)[rest] == whole[rest])


@pytest.mark.slow
def test_a_weight_of_zero_is_a_missing_label():
    inputs, labels, whole = labels_with_gaps(0.2)
    there = ~np.isnan(labels)
    by_weight = LabelGraphClassifier(lam=0.1).fit(inputs, whole, sample_weight=2.0 * there)
    by_gap = LabelGraphClassifier(lam=0.1).fit(inputs, labels, sample_weight=np.full(60, 2.0))
    np.testing.assert_array_equal(by_weight.solution_.coef, by_gap.solution_.coef)
    with pytest.raises(DataError, match="several values in row 0"):
        LabelGraphClassifier(lam=0.1).fit(inputs, whole, sample_weight=1.0 + np.arange(3.0) * there)
