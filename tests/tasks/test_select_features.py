"""Some of the features of tasks: the columns that were asked for, and everything else as it was."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl import DataError, Tasks
from mtldsl.utils import memory
from tests.loops import for_each
from tests.models import with_weights
from tests.tasks.same_sums import dense

rng = np.random.default_rng(5)
NAMES = ["age", "size", "rooms", "floor", "light"]
X = rng.normal(size=(12, 5)) * [1, 20, 3, 0.1, 1] + [0, 5, 0, 1, 0]
X[rng.random(X.shape) < 0.3] = 0.0
Y = rng.normal(size=(12, 3))
Y_MISSING = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
WEIGHTS = rng.uniform(0.5, 2, size=12)
IDS = np.array(list("bacabcabccab"))
COLUMNS = [3, 0, 4]


def layouts():
    """Tasks of every layout, weighted, with names of their features."""
    table, long = pd.DataFrame(X, columns=NAMES), Y[:, 0]
    named = {"feature_names": NAMES}
    return {
        "shared": Tasks.shared(table, Y_MISSING, sample_weights=WEIGHTS),
        "shared sparse": Tasks.shared(sparse.csr_array(X), Y, **named),
        "separate": Tasks.separate([table, table[2:9]], [Y[:, 0], Y_MISSING[2:9, 1]]),
        "separate sparse": Tasks.separate(
            [sparse.csr_array(X), sparse.csc_array(X[4:])], [Y_MISSING[:, 0], Y[4:, 1]], **named
        ),
        "grouped": Tasks.grouped(table, np.where(IDS == "c", long, Y_MISSING[:, 0]), IDS, sample_weights=WEIGHTS),
        "grouped sparse": Tasks.grouped(sparse.csr_array(X), long, IDS, **named),
        "float32": Tasks.shared(X.astype(np.float32), Y, **named),
    }  # fmt: skip


@for_each("layout", layouts())
@for_each("scaled", [False, True])
def test_columns_change_and_nothing_else(layout, scaled):
    tasks = layouts()[layout]
    if scaled:
        tasks = tasks.standardize(center=not tasks.is_sparse)
    small = tasks.select_features([NAMES[j] for j in COLUMNS])
    assert type(small) is Tasks and small.feature_names == tuple(NAMES[j] for j in COLUMNS)
    assert small.is_sparse == tasks.is_sparse and small.is_shared == tasks.is_shared
    for all_columns, some in zip(tasks.inputs, small.inputs, strict=True):
        np.testing.assert_array_equal(dense(some), dense(all_columns)[:, COLUMNS])
    for field in ("task_names", "mask", "counts", "offsets", "targets", "sample_weights", "one_table"):
        np.testing.assert_array_equal(getattr(small, field), getattr(tasks, field))
    assert [small.place(flat) for flat in range(small.n_samples)] == [
        tasks.place(flat) for flat in range(tasks.n_samples)
    ]
    W = rng.normal(size=(3, tasks.n_tasks))
    whole = np.zeros((5, tasks.n_tasks))
    whole[COLUMNS] = W
    np.testing.assert_allclose(small.forward(W), tasks.forward(whole), rtol=1e-12, atol=1e-12)
    u = rng.normal(size=tasks.n_samples)
    np.testing.assert_allclose(small.adjoint(u), tasks.adjoint(u)[COLUMNS], rtol=1e-12, atol=1e-12)
    new = rng.normal(size=(4, 5))
    new = sparse.csr_array(new) if tasks.is_sparse else new
    np.testing.assert_allclose(
        dense(small.transform(new[:, COLUMNS])), dense(tasks.transform(new))[:, COLUMNS], rtol=1e-12
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(small)).forward(W), small.forward(W))


WAYS = [
    ["floor", "light"], [3, 4], [-2, -1], slice(3, 5), [False, False, False, True, True], np.array([3, 4]),
    np.array([-2, 4], dtype=np.int32), np.arange(5) > 2, ("floor", 4), range(3, 5),
]  # fmt: skip


@for_each("which", WAYS, ids=repr)
def test_every_way_to_name_features(which):
    for tasks in layouts().values():
        assert tasks.select_features(which).feature_names == ("floor", "light")


WRONG = {
    "unknown": (["age", "sizes"], ["select_features('sizes')", "there is no such feature", "did you mean 'size'?"]),
    "nothing like it": ("zzz", ["the features are 'age', 'size', 'rooms', 'floor', 'light'"]),
    "repeated": (["age", "size", "age"], ["the feature 'age' is named twice", "can be selected once"]),
    "repeated by position": ([1, "size"], ["'size' is named twice"]),
    "repeated in an array": (np.array([4, -1]), ["'light' is named twice"]),
    "out of range": ([0, 5], ["select_features", "index 5", "position, 0 to 4"]),
    "out of range in an array": (np.array([0, -6]), ["select_features", "-6", "size 5"]),
    "a fraction": ([0.5], ["select_features", "0.5", "position, 0 to 4"]),
    "none": ([], ["no feature is selected"]),
    "an empty mask": ([False] * 5, ["no feature is selected"]),
    "a short mask": ([True, False], ["a mask of 2 booleans for 5"]),
    "no list": (None, ["select_features", "None"]),
}  # fmt: skip


@for_each("case", WRONG)
def test_what_is_not_a_selection_of_features(case):
    which, words = WRONG[case]
    with pytest.raises(DataError) as error:
        layouts()["shared"].select_features(which)
    assert all(piece in str(error.value) for piece in words), error.value


def kernelised(scaled=True):
    tasks = layouts()["shared"]
    tasks = tasks.standardize() if scaled else tasks
    return tasks.with_kernels({"rbf": ("rbf", {"gamma": 0.3}), "line": "linear"})


@for_each("columns", [[0, 3, 13, 14], [1], [12, 14, 2, 5], slice(2, None), [12, 13, 14, 15, 16]])
def test_some_features_of_kernels(columns):
    tasks = kernelised()
    small = tasks.select_features(columns)
    index = np.arange(tasks.n_features)[columns]
    assert small.feature_names == tuple(tasks.feature_names[j] for j in index) == small.kernel_map.names
    assert sum(view.stop - view.start for view in small.views.values()) == small.n_features
    for name, view in small.views.items():
        assert all(column.startswith(name) for column in small.feature_names[view])
    new = rng.normal(size=(4, 5))
    np.testing.assert_allclose(small.transform(new), tasks.transform(new)[:, index], rtol=1e-9, atol=1e-12)
    assert small.scaling is tasks.scaling
    again = small.select_features([0])
    np.testing.assert_allclose(
        again.transform(new), tasks.transform(new)[:, index[:1]], rtol=1e-9, atol=1e-12
    )
    raw = layouts()["shared"].with_kernels(small.kernel_map)
    np.testing.assert_allclose(raw.X, small.X, rtol=1e-9, atol=1e-12)


@for_each("columns", [[0, 13, 1], [3, 1], [13, 0, 14]])
def test_features_of_one_kernel_stay_together(columns):
    with pytest.raises(DataError, match="torn apart or out of order"):
        kernelised().select_features(columns)


@pytest.mark.parametrize("kernels", [False, True])
def test_a_solution_of_some_features_predicts_after_reading(tmp_path, kernels):
    tasks = kernelised() if kernels else layouts()["shared"].standardize()
    small, W = with_weights(tasks.select_features([0, 2, 3]))
    solution = mtl.minimize(mtl.squared_loss(W, small) + mtl.ridge(W)).solve()
    solution.save(tmp_path / "some.npz")
    read = mtl.Solution.load(tmp_path / "some.npz")
    new = X if kernels else X[:, [0, 2, 3]]
    np.testing.assert_allclose(solution.predict(new), small.X @ solution.W, atol=1e-8)
    np.testing.assert_array_equal(read.predict(new), solution.predict(new))


def test_columns_that_do_not_fit_into_memory_are_refused(monkeypatch):
    tasks = Tasks.shared(np.ones((200, 3)), np.arange(200.0))
    monkeypatch.setattr("mtldsl.utils.memory.available_memory", lambda: 10.0)
    monkeypatch.setattr(memory, "SETTINGS", replace(memory.SETTINGS, unasked_bytes=0))
    with pytest.raises(DataError, match="a copy of 2 columns needs"):
        tasks.select_features([0, 1])
