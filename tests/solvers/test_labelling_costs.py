"""`loss=` of clique_hinge, by definition; optima and proofs: test_missing_labels_of_graphs.py."""

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.losses.label_graph_losses import MetricCost, every_labelling, whole_costs
from mtldsl.reference.label_graph import labellings, task_losses
from tests.label_graph_models import cost, dependent, regularized
from tests.loops import for_each

N, D, K = 20, 3, 4
TABLE = [[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 0.5, 2.0], [2.0, 1.0, 0.0, 1.0], [5.0, 2.0, 1.0, 0.0]]
LOSSES = {
    "zero-one": "zero_one",
    "F-score": mtl.metrics.FScore(),
    "F2-score": mtl.metrics.FScore(beta=2.0),
    "Jaccard": mtl.metrics.Jaccard(),
    "a table": {("a", "c"): TABLE},
    "tables of single labels": {("b",): [[0, 5], [1, 0]], ("d",): [[0, 1], [1, 0]], (0, "d"): TABLE},
}


def model(loss, seed=0, edges="all", n=N, k=K):
    X, Y, _ = dependent(seed, n, k, D)
    tasks = mtl.Tasks.shared(X, Y, task_names=list("abcdefghijklmnopq")[:k])
    return regularized(mtl.clique_hinge, tasks, edges, loss=loss)


def costs_by_hand(loss, labels, truth):
    """What rows of labels cost beside one true row."""
    return [cost(loss, dict(enumerate(y)), dict(enumerate(truth.tolist()))) for y in labels.tolist()]


@for_each("loss", LOSSES.values(), ids=LOSSES)
def test_costs_are_what_they_say(loss):
    """Package and reference, beside every true labelling: by hand."""
    form = model(loss).form()
    atom = form.losses[0].atom
    every = every_labelling(K)
    for truth in every:
        found = atom.delta(every, np.broadcast_to(truth, every.shape))
        np.testing.assert_allclose(found, costs_by_hand(loss, every, truth), atol=1e-12)
    rows, table = atom.whole.beside(every)
    np.testing.assert_allclose(table[rows[5]], costs_by_hand(loss, every, every[5]), atol=1e-12)
    theirs = task_losses(atom.loss, labellings(K), every)
    expected = np.transpose([costs_by_hand(loss, labellings(K), truth) for truth in every])
    np.testing.assert_allclose(theirs, expected, atol=1e-12)


@pytest.mark.slow
def test_a_metric_of_ones_own_and_its_limits():
    class Half(mtl.Metric):
        name = "Half"

        def delta(self, b, c, positives, negatives):
            return 0.5 * (b + c) + 0.0 * positives

    own, half = model(Half(), 4), model([0.5] * K, 4)
    assert own.solve(tol=1e-7).objective == pytest.approx(half.solve(tol=1e-7).objective, rel=3e-7)
    assert own.cross_check().agrees
    with pytest.raises(mtl.ModelError, match=r"loss=AUC\(\) is nan where .* in a row with 0 of 4 true ones"):
        model(mtl.metrics.AUC()).solve()


REFUSED = [
    ("zero-one", 'write loss="hamming" or "zero_one", a metric such as FScore'),
    (mtl.metrics.PrecisionAt(2), "not of labellings of any number of positives"),
    ({("a", "z"): TABLE}, "there is no label 'z'; there are 'a', 'b', 'c', 'd'"),
    ({("a", "b"): [[0, 1], [1, 0]]}, "a table of 4 by 4 finite numbers >= 0"),
    ({("a", "b"): np.ones((4, 4))}, "right values cost nothing"),
    ({("a", "a"): TABLE}, "of different labels"),
    ({("a",): [[0, -1], [1, 0]]}, "a table of 2 by 2 finite numbers >= 0"),
]


@for_each("loss, message", REFUSED)
def test_what_is_not_a_loss_is_refused(loss, message):
    with pytest.raises(mtl.ModelError, match=message):
        model(loss)


def test_whole_labellings_are_of_few_labels():
    with pytest.raises(
        mtl.ModelError, match="17 labels have too many: at most 16 labels, or costs of single"
    ):
        model("zero_one", k=17, n=3, edges=[])
    model("hamming", k=17, n=3, edges=[])
    with pytest.raises(mtl.SolverError, match="the paper's method is of costs of single labels"):
        model("zero_one").solve("clique_generation", method="spdca")
    assert whole_costs("hamming") is None and isinstance(whole_costs(mtl.metrics.FScore()), MetricCost)


def test_as_it_is_printed():
    assert "loss='zero_one'" in str(model("zero_one"))
    assert "loss=FScore()" in str(model(mtl.metrics.FScore()))
    assert "loss=<costs of 0-2>" in str(model({("a", "c"): TABLE}))
    for costs in ([1, 2, 0.5, 0], {"d": 0, "a": 1, "c": 0.5, "b": 2}):
        assert "loss=[1, 2, 0.5, 0])" in str(model(costs))
