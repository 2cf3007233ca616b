"""Tasks made of distributed ones are what the same step makes of the rows in memory."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from mtldsl import DataError, Tasks
from mtldsl.data.labels import OneClassWarning
from mtldsl.distributed.distributed_tasks import DistributedTasks
from tests.loops import for_each
from tests.tasks.same_sums import assert_same_sums

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 4)) * [1.0, 10.0, 1e-3, 1.0] + [0.0, 5.0, 10.0, -2.0]
X[:, 3] = 7.0
Y = np.where(RNG.normal(size=(80, 3)) > 0, 1.0, -1.0)
HOLES = np.where(RNG.random(Y.shape) < 0.3, np.nan, Y)
IDS = RNG.permutation(np.repeat(["a", "b", "c"], [50, 10, 20]))
LAYOUTS = {
    "table": Tasks.shared(X, HOLES, sample_weights=RNG.random(80) + 0.1, task_names=["p", "q", "r"]),
    "long table": Tasks.grouped(X, Y[:, 0], IDS, sample_weights=RNG.random(80) + 0.1),
}


same = partial(assert_same_sums, rel=1e-10, abs=1e-9)


@pytest.fixture(params=LAYOUTS)
def tasks(request):
    return LAYOUTS[request.param]


@for_each("center, scale", [(True, True), (False, True), (True, False)])
def test_standardised(tasks, center, scale):
    cut = DistributedTasks.cut(tasks, 5)
    done, wanted = cut.standardize(center, scale), tasks.standardize(center, scale)
    assert done.scaling.mean == pytest.approx(wanted.scaling.mean, rel=1e-12)
    assert done.scaling.scale == pytest.approx(wanted.scaling.scale, rel=1e-10)
    assert done.parts.passes == 0 and cut.parts.passes == 2  # the facts, and the moments
    same(done, wanted)
    with pytest.raises(DataError, match="standardised already"):
        done.standardize()


def test_standardised_with_the_statistics_of_others(tasks):
    scaling = tasks.standardize().scaling
    same(DistributedTasks.cut(tasks, 3).scaled_by(scaling), tasks.scaled_by(scaling))
    with pytest.raises(DataError, match="statistics of 4 features for tasks with 2"):
        DistributedTasks.cut(tasks, 3).select_features([0, 1]).scaled_by(scaling)


def test_sparse_rows_are_scaled_but_not_centred():
    thin = Tasks.shared(sparse.csr_array(np.where(np.abs(X) > 3, X, 0.0)), HOLES)
    cut = DistributedTasks.cut(thin, 4)
    with pytest.raises(DataError, match="centering would make sparse inputs dense"):
        cut.standardize()
    done = cut.standardize(center=False)
    wanted = thin.standardize(center=False)
    assert done.is_sparse and done.scaling.scale == pytest.approx(
        wanted.scaling.scale, rel=1e-6
    )  # of squares less means


def test_some_tasks(tasks):
    for which in ([1], [2, 0], slice(0, 2)):
        same(DistributedTasks.cut(tasks, 6).select(which), tasks.select(which))
    with pytest.raises(DataError, match="there is no such task"):
        DistributedTasks.cut(tasks, 6).select("z")


def test_tasks_of_one_class_are_left_out():
    one = Y.copy()
    one[:, 1] = -1.0
    with pytest.warns(OneClassWarning, match="1 of 3 tasks .*'task1'"):
        left = DistributedTasks.cut(Tasks.shared(X, one), 4).without_one_class()
    assert left.task_names == ("task0", "task2")


def test_some_features(tasks):
    same(DistributedTasks.cut(tasks, 3).select_features([2, 0]), tasks.select_features([2, 0]))
    scaled = DistributedTasks.cut(tasks, 3).standardize().select_features(["x1"])
    assert scaled.scaling.mean == pytest.approx(X[:, 1].mean())


@for_each("rows", [1, 7, 30, 1000])
def test_a_seeded_sample_has_rows_of_the_data_and_every_class(tasks, rows):
    cut = DistributedTasks.cut(tasks, 5)
    drawn = cut.subsample(rows, random_state=3)
    assert (drawn.task_names, drawn.is_shared) == (tasks.task_names, tasks.is_shared)
    for i in range(3):
        assert set(drawn.per_task(drawn.targets)[i]) == {-1.0, 1.0}
    known = {X_row.tobytes(): k for k, X_row in enumerate(X)}
    assert all(row.tobytes() in known for Z in drawn.inputs for row in Z)
    if tasks.is_shared:
        at = [known[row.tobytes()] for row in drawn.X]
        assert len(set(at)) == len(at) and min(rows, 80) <= len(at) <= max(rows, 6)
        again = tasks.take_rows(at)
        assert drawn.targets.tolist() == again.targets.tolist()
        assert drawn.sample_weights.tolist() == again.sample_weights.tolist()
    else:
        assert all(count == min(max(rows, 2), n) for count, n in zip(drawn.counts, tasks.counts, strict=True))
    assert cut.subsample(rows, random_state=3).fingerprint() == drawn.fingerprint()
    if 6 < rows < 80:
        assert cut.subsample(rows, random_state=4).fingerprint() != drawn.fingerprint()


@pytest.mark.slow
def test_every_row_is_drawn_as_often_as_others():
    plain = Tasks.shared(np.arange(40.0)[:, None] + 1.0, RNG.normal(size=40))
    cut = DistributedTasks.cut(plain, 3)
    drawn = np.concatenate([cut.subsample(10, seed).X.ravel() - 1 for seed in range(200)]).astype(int)
    times = np.bincount(drawn, minlength=40)
    assert (
        times.sum() == 2000 and ((times - 50.0) ** 2 / 50.0).sum() < 80.0
    )  # chi-squared, 39 degrees of freedom: 66 at p = 0.004
