"""Sums over parts are those of the tasks that were cut, in a fixed order; what is as long as the data stays where it is."""

import numpy as np
import pytest
from scipy import sparse

from mtldsl import DataError, Tasks
from mtldsl.distributed.distributed_folds import constant_scores
from mtldsl.distributed.distributed_tasks import DistributedTasks
from mtldsl.distributed.partitions import PartitionTasks, RowParts, TaskSum
from tests.loops import for_each

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = np.where(RNG.normal(size=(60, 3)) > 0, 1.0, -1.0)
HOLES = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)
HOLES[:20, 1] = np.nan  # a task that is in some parts only
WEIGHTS = RNG.random(60) + 0.5
IDS = np.repeat(["a", "b", "c", "d"], [25, 5, 20, 10])

LAYOUTS = {
    "table": Tasks.shared(X, Y),
    "table with missing labels and weights": Tasks.shared(X, HOLES, sample_weights=WEIGHTS),
    "sparse table": Tasks.shared(sparse.csr_array(X * (np.abs(X) > 1)), HOLES),
    "long table": Tasks.grouped(X, Y[:, 0], IDS),
    "long table with weights": Tasks.grouped(X, Y[:, 0], IDS, sample_weights=WEIGHTS),
    "sparse long table": Tasks.grouped(sparse.csr_array(X * (np.abs(X) > 1)), Y[:, 0], IDS),
}


@pytest.fixture(params=LAYOUTS)
def tasks(request):
    return LAYOUTS[request.param]


def squared_loss(part, W):
    z = part.tasks.forward(part.columns(W))
    return {"value": float(((z - part.tasks.targets) ** 2).sum()), "n": z.size}


def gradient(part, W):
    own = part.tasks.forward(part.columns(W)) - part.tasks.targets
    return TaskSum(part.which, part.tasks.adjoint(own).T)


@for_each("n_parts", [1, 3, 7])
def test_sums_over_parts_are_those_of_the_tasks(tasks, n_parts):
    cut = DistributedTasks.cut(tasks, n_parts)
    W = RNG.normal(size=(5, tasks.n_tasks))
    z = tasks.forward(W)
    found = cut.parts.run(squared_loss, W)
    assert found["n"] == tasks.n_samples == cut.n_samples
    assert found["value"] == pytest.approx(((z - tasks.targets) ** 2).sum(), rel=1e-12)
    slope = cut.parts.run(gradient, W).of_all(tasks.n_tasks).T
    assert slope == pytest.approx(tasks.adjoint(z - tasks.targets), abs=1e-12)
    grams = np.broadcast_to(tasks.gram(), cut.gram().shape)
    assert cut.gram() == pytest.approx(grams, abs=1e-12)
    assert cut.cross() == pytest.approx(tasks.cross(), abs=1e-12)
    lengths = [np.sqrt(np.asarray((X * X).sum(axis=0)).ravel()) for X in tasks.inputs]
    assert cut.column_lengths == pytest.approx(np.column_stack(lengths), abs=1e-12)


def test_spreads_of_labels_far_from_zero_are_those_of_the_labels():
    """Sums of squares minus squares of sums had none of their digits."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(90, 2))
    far = Tasks.shared(rng.normal(size=(90, 3)), np.round(2**20 * signal) / 2**20 + 2.0**30)
    cut = DistributedTasks.cut(far, 7)
    truth = 90 * np.std(np.round(2**20 * signal) / 2**20, axis=0) ** 2
    for tasks in (far, cut):
        assert tasks.label_sums()[1] == pytest.approx(truth, rel=1e-6)  # as far as the mean has digits
    assert constant_scores(cut.label_facts, cut.label_facts, classes=False) == pytest.approx(
        [0.0, 0.0], abs=1e-12
    )


def test_what_is_as_long_as_the_data_says_where_it_is():
    cut = DistributedTasks.cut(LAYOUTS["table with missing labels and weights"], 4)
    for ask in (
        lambda: cut.targets, lambda: cut.sample_weights, lambda: cut.X, lambda: cut.inputs, lambda: cut.stacked, lambda: cut.task_of,
        lambda: cut.forward(np.zeros((5, 3))), lambda: cut.adjoint(np.zeros(3)), lambda: cut.gram(np.ones(3)),
        lambda: cut.take_rows([0]), lambda: cut.with_targets([1.0]), lambda: cut.with_kernels("rbf"),
        lambda: cut.place(0), lambda: cut.per_task([]),
    ):  # fmt: skip
        with pytest.raises(
            DataError,
            match=r"in 4 parts \(this process\), so there is no tasks\.\w+.*here; (write|split|change|map) ",
        ):
            ask()
    assert DistributedTasks.cut(LAYOUTS["table"], 2).sample_weights is None
    assert not cut.in_memory and LAYOUTS["table"].in_memory
    missing = np.isnan(HOLES).sum()
    assert cut.n_missing == missing and f"({missing} missing)" in repr(cut) and "rows in 4 parts" in repr(cut)


def test_labels_that_do_not_fit_are_named_with_their_place():
    wrong = Y.copy()
    wrong[41, 2] = 3.0
    wrong[44, 0] = 0.5
    cut = DistributedTasks.cut(Tasks.shared(X, wrong, task_names=["p", "q", "r"]), 3)
    with pytest.raises(
        DataError, match=r"^hinge_loss\(W\): label 3 in task 'r', partition 2, row 1; labels must be -1"
    ):
        cut.require_labels("sign", "hinge_loss(W)")
    with pytest.raises(DataError, match="task 'p', partition 2, row 4"):  # of the tasks that are left
        cut.select([1, 0]).require_labels("sign", "hinge_loss(W)")
    cut.select([1]).require_labels("sign", "hinge_loss(W)")
    with pytest.raises(DataError, match="labels 0/1 write 2 "):
        DistributedTasks.cut(Tasks.shared(X, (Y + 1) / 2), 3).require_labels("sign", "hinge_loss(W)")
    one = Y.copy()
    one[:, 1] = 1.0
    with pytest.raises(DataError, match=r"task 'task1' has one class only \(all 60 labels are \+1\)"):
        DistributedTasks.cut(Tasks.shared(X, one), 3).require_labels("sign", "hinge_loss(W)")
    DistributedTasks.cut(Tasks.shared(X, one), 3).require_labels("real", "squared_loss(W)")


def test_a_task_without_labels_is_refused():
    parts = RowParts([PartitionTasks(LAYOUTS["table"], np.array([0, 1, 3]))])
    names = tuple(f"x{j}" for j in range(5))
    with pytest.raises(DataError, match="task 'c' has no labelled row"):
        DistributedTasks(parts, task_names=("a", "b", "c", "d"), feature_names=names)


def test_the_fingerprint_is_that_of_the_numbers():
    one, other = DistributedTasks.cut(LAYOUTS["table"], 3), DistributedTasks.cut(Tasks.shared(X, Y), 3)
    assert one.fingerprint() == other.fingerprint()
    changed = X.copy()
    changed[50, 2] += 1e-9
    assert DistributedTasks.cut(Tasks.shared(changed, Y), 3).fingerprint() != one.fingerprint()
