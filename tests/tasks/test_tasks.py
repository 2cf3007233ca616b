"""The data: layouts that must mean the same, products against plain numpy, and every bad input named."""

import copy
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import mtldsl as mtl
from mtldsl import DataError, Tasks
from mtldsl.data.labels import OneClassWarning
from tests.loops import for_each
from tests.tasks.same_sums import dense

rng = np.random.default_rng(0)
X = rng.normal(size=(9, 4))
Y = rng.normal(size=(9, 3))
Y_MISSING = np.where(rng.random((9, 3)) < 0.3, np.nan, Y)
SIGN = np.where(Y >= 0, 1.0, -1.0)


def layouts(Y):
    """The same tasks in every layout."""
    kept = [~np.isnan(y) for y in Y.T]
    ys = [y[k] for y, k in zip(Y.T, kept, strict=True)]
    long_X, long_y = np.vstack([X[k] for k in kept]), np.concatenate(ys)
    ids = np.repeat(["a", "b", "c"], [k.sum() for k in kept])
    return {
        "shared": Tasks.shared(X, Y),
        "shared sparse": Tasks.shared(sparse.csc_matrix(X), Y),
        "separate": Tasks.separate([X[k] for k in kept], ys),
        "separate sparse": Tasks.separate([sparse.coo_array(X[k]) for k in kept], ys),
        "grouped": Tasks.grouped(long_X, long_y, ids),
        "float32": Tasks.shared(X.astype(np.float32), Y.astype(np.float32)),
    }


@for_each("labels", [Y, Y_MISSING], ids=["complete", "missing"])
@for_each("layout", layouts(Y))
def test_products_against_plain_numpy(layout, labels):
    tasks = layouts(labels)[layout]
    tol = {"rtol": 1e-5, "atol": 1e-5} if layout == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    kept = [~np.isnan(y) for y in labels.T]
    W, scale = rng.normal(size=(4, 3)), rng.uniform(0.5, 2, size=tasks.n_samples)
    u = rng.normal(size=tasks.n_samples)
    assert tasks.counts.tolist() == [k.sum() for k in kept]
    np.testing.assert_allclose(
        tasks.targets, np.concatenate([y[k] for y, k in zip(labels.T, kept, strict=True)]), **tol
    )
    np.testing.assert_allclose(
        tasks.forward(W), np.concatenate([X[k] @ W[:, i] for i, k in enumerate(kept)]), **tol
    )
    np.testing.assert_allclose(tasks.forward(np.asfortranarray(W)), tasks.forward(W), rtol=1e-13, atol=1e-13)
    pieces, scales = tasks.per_task(u), tasks.per_task(scale)
    expected = np.column_stack([X[k].T @ v for v, k in zip(pieces, kept, strict=True)])
    np.testing.assert_allclose(tasks.adjoint(u), expected, **tol)
    assert np.vdot(u, tasks.forward(W)) == pytest.approx(np.vdot(tasks.adjoint(u), W), rel=1e-12)
    grams = np.stack([X[k].T @ (X[k] * s[:, None]) for s, k in zip(scales, kept, strict=True)])
    np.testing.assert_allclose(tasks.gram(scale), grams, **tol)
    plain = np.stack([X[k].T @ X[k] for k in kept])
    np.testing.assert_allclose(np.broadcast_to(tasks.gram(), plain.shape), plain, **tol)
    np.testing.assert_allclose(tasks.task_of, np.repeat(np.arange(3), tasks.counts))


def test_names_from_pandas_and_polars():
    frame = pd.DataFrame(X, columns=list("pqrs"))
    labels = pl.DataFrame({"one": Y[:, 0], "two": [None, *Y[1:, 1].tolist()]})
    tasks = Tasks.shared(frame, labels)
    assert tasks.feature_names == ("p", "q", "r", "s") and tasks.task_names == ("one", "two")
    assert tasks.counts.tolist() == [9, 8]
    grouped = Tasks.grouped(
        frame, pd.Series(Y[:, 0]), pd.Series(["u", "v", "u", "u", "v", "v", "u", "u", "v"])
    )
    assert grouped.task_names == ("u", "v") and grouped.counts.tolist() == [5, 4]
    np.testing.assert_allclose(grouped.inputs[1], X[[1, 4, 5, 8]])


def test_what_the_caller_writes_later_is_not_seen():
    dense, csr, y = X.copy(), sparse.csr_array(X), Y.copy()
    tasks, sparse_tasks = Tasks.shared(dense, y), Tasks.shared(csr, y)
    dense[:], csr.data[:], y[:] = 0, 0, 0
    np.testing.assert_array_equal(tasks.X, X)
    np.testing.assert_array_equal(sparse_tasks.X.toarray(), X)
    np.testing.assert_array_equal(tasks.targets, Y.T.ravel())


def test_data_cannot_change_under_a_solver():
    tasks = Tasks.shared(X, Y)
    with pytest.raises(AttributeError, match=r"tasks\.targets"):
        tasks.targets = Y
    for array in (tasks.targets, tasks.X, tasks.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


AMOUNTS = Tasks.shared(np.eye(3), [[1.0, 2.0], [0.5, 0.0], [2.0, 3.0]], task_names=["a", "b"])
TEXT = pd.DataFrame({"ill": ["yes", "no"]})
BAD = {
    "infinite label": (lambda: Tasks.shared(X, np.where(Y[3, 2] == Y, np.inf, Y)), ["infinite label", "row 3", "task 2"]),
    "empty task": (
        lambda: Tasks.shared(X, np.column_stack([Y[:, 0], np.full(9, np.nan)]), task_names=["good", "empty"]),
        ["'empty'", "no labelled row"],
    ),
    "duplicate task names": (lambda: Tasks.shared(X, Y, task_names=["a", "b", "a"]), ["'a'", "twice"]),
    "duplicate feature names": (lambda: Tasks.shared(X, Y, feature_names=["a", "b", "b", "c"]), ["'b'", "twice"]),
    "too few names": (lambda: Tasks.shared(X, Y, task_names=["a"]), ["1 names for 3"]),
    "no task": (lambda: Tasks.separate([], []), ["at least one task"]),
    "lists of different length": (lambda: Tasks.separate([X], [Y[:, 0], Y[:, 1]]), ["1 input", "2 label"]),
    "different features": (lambda: Tasks.separate([X, X[:, :2]], [Y[:, 0], Y[:, 1]], task_names=["u", "v"]), ["'v' has 2 features", "'u' has 4"]),
    "lengths within a task": (lambda: Tasks.separate([X, X], [Y[:, 0], Y[:3, 1]]), ["'task1'", "9 rows", "3 labels"]),
    "task ids": (lambda: Tasks.grouped(X, Y[:, 0], [1, 2]), ["task_ids", "9 rows"]),
    "one class": (
        lambda: Tasks.shared(X, np.column_stack([SIGN[:, 0], np.ones(9)])).require_labels(
            "sign", "hinge_loss(W, tasks)"
        ),
        ["'task1'", "one class only", "+1", "tasks.without_one_class()"],
    ),
    "one class everywhere": (lambda: Tasks.shared(np.eye(2), [1.0, 1.0]).without_one_class(), ["no task has labels of two classes"]),
    "text in Y": (lambda: Tasks.shared(np.eye(2), TEXT), ["column 'ill'", "write -1 and +1"]),
    "text in X": (lambda: Tasks.shared(TEXT, np.ones((2, 1))), ["column 'ill'", "one column per category"]),
    "text in y of a long table": (lambda: Tasks.grouped(np.eye(2), TEXT["ill"], ["a", "b"]), ["column 'ill'", "write -1 and +1"]),
    "no rows": (lambda: Tasks.grouped(np.empty((0, 2)), [], []), ["X has no rows"]),
    "NaN far down a dense table": (
        lambda: Tasks.grouped(np.where(np.arange(3_000_000)[:, None] == 2_500_001, np.nan, 1.0), *np.ones((2, 3_000_000))),
        ["X: nan in row 2500001, column 0; inputs must be finite, neither NaN nor inf - impute or drop it (1 such entries)"],
    ),
    "an amount that is none": (lambda: mtl.gamma_loss(mtl.Weights(AMOUNTS), AMOUNTS),
     ["gamma_loss(W, tasks): label 0 in task 'b', row 1; labels must be > 0"]),
    "half a count": (lambda: Tasks.shared(X, [0.5, *[1.0] * 8]).require_labels("count", "p"), ["0.5", "'task0'", "row 0"]),
    "row numbers count missing labels": (lambda: Tasks.shared(X, [np.nan, 1, -1, 3, 1, 1, 1, 1, 1]).require_labels("sign", "h"), ["label 3", "row 3"]),
    "rows are counted as the user gave them": (
        lambda: Tasks.separate([X], [[np.nan, 1, -1, 5, 1, 1, 1, 1, 1]]).require_labels("sign", "h"),
        ["label 5", "row 3"],
    ),
    "rows are those of the long table, after a selection too": (
        lambda: (
            Tasks.grouped(X, [1, 1, -1, -1, 1, 7, 1, 1, 1], list("ababababa"))
            .select("b")
            .require_labels("sign", "h")
        ),
        ["label 7", "'b'", "row 5"],
    ),
    "a lazy frame": (lambda: Tasks.shared(pl.DataFrame(X).lazy(), Y), ["collect()"]),
    "names as one string": (lambda: Tasks.shared(X, Y, task_names="abc"), ["task_names='abc'", "list"]),
    "columns in another order": (
        lambda: Tasks.separate(
            [pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(X, columns=list("abdc"))], list(Y.T[:2])
        ),
        ["'task1'", "column 2", "'d', not 'c'"],
    ),
    "dicts": (lambda: Tasks.separate({"a": X}, {"a": Y[:, 0]}), ["task_names=list(keys)"]),
    "select an unknown name": (lambda: Tasks.shared(X, Y, task_names=["height", "width", "age"]).select("hight"),
     ["'hight'", "did you mean 'height'"]),
    "rows there are not": (lambda: Tasks.shared(X, Y).take_rows([99]), ["take_rows", "99"]),
    "subsample half a row": (lambda: Tasks.shared(X, Y).subsample(2.5), ["subsample(rows=2.5)"]),
    "a seed of letters": (lambda: Tasks.shared(X, Y).split(0.5, "x"), ["random_state='x'"]),
    "scaled by nothing": (lambda: Tasks.shared(X, Y).scaled_by(None), ["scaled_by(None)"]),
    "scaled twice": (lambda: Tasks.shared(X, Y).standardize().standardize(), ["standardised already"]),
    "transform other columns": (lambda: Tasks.shared(X, Y).transform(X[:, :2]), ["shape (9, 2)", "4 features"]),
    "impossible split": (lambda: Tasks.shared(X, np.array([1.0] + [-1.0] * 8)).split(0.3, 0), ["'task0' has the label +1 in a single row"]),
    "standardize sparse": (lambda: Tasks.shared(sparse.csr_array(X), Y).standardize(), ["center=False"]),
    "no one X": (lambda: Tasks.separate([X], [Y[:, 0]]).X, ["tasks.inputs[i]"]),
}  # fmt: skip


@for_each("case", BAD)
def test_bad_data_is_named(case):
    build, pieces = BAD[case]
    with pytest.raises(DataError) as error:
        build()
    assert all(piece in str(error.value) for piece in pieces), error.value


@for_each("layout", ["shared", "separate", "shared sparse"])
def test_split_is_a_partition_and_keeps_both_classes(layout):
    big_X, big_Y = rng.normal(size=(40, 4)), np.where(rng.normal(size=(40, 3)) > 0.8, 1.0, -1.0)
    tasks = {
        "shared": lambda: Tasks.shared(big_X, big_Y),
        "shared sparse": lambda: Tasks.shared(sparse.csr_array(big_X), big_Y),
        "separate": lambda: Tasks.separate([big_X] * 3, list(big_Y.T)),
    }[layout]()
    train, test = tasks.split(0.25, random_state=1)
    assert (train.counts + test.counts == tasks.counts).all() and (test.counts == 10).all()
    for part in (train, test):
        part.require_labels("sign", "split")
    again, _ = tasks.split(0.25, random_state=1)
    assert again.fingerprint() == train.fingerprint() != tasks.split(0.25, random_state=2)[0].fingerprint()
    row_sets = [{tuple(r) for r in np.round(dense(p.inputs[0]), 12)} for p in (train, test)]
    assert not row_sets[0] & row_sets[1]


def test_split_deals_out_rare_classes_first():
    """Thirty classes of two rows each: a plain random split has both sides right once in 2^30."""
    labels = np.full((60, 30), -1.0)
    for k in range(30):
        labels[[k, 30 + k], k] = 1.0
    tasks = Tasks.shared(np.arange(60.0)[:, None], labels)
    train, test = tasks.split(0.5, random_state=0)
    assert (train.counts == 30).all()
    for part in (train, test):
        part.require_labels("sign", "split")
    assert sorted(np.vstack([train.X, test.X])[:, 0]) == list(range(60))


def test_split_keeps_missing_labels_and_weights_with_their_rows():
    weights = np.arange(1.0, 10.0)
    tasks = Tasks.shared(X, Y_MISSING, sample_weights=weights)
    for part in tasks.split(0.4, random_state=2):
        for i in range(3):
            rows = [np.flatnonzero((x == X).all(axis=1)).item() for x in part.inputs[i]]
            np.testing.assert_array_equal(part.per_task(part.targets)[i], Y_MISSING[rows, i])
            np.testing.assert_array_equal(part.per_task(part.sample_weights)[i], weights[rows])


def test_subsample_keeps_every_class_and_is_seeded():
    labels = np.full((50, 2), -1.0)
    labels[7, 0] = labels[[3, 30], 1] = 1.0
    tasks = Tasks.shared(rng.normal(size=(50, 2)), labels)
    small = tasks.subsample(6, random_state=3)
    assert small.n_samples == 12
    small.require_labels("sign", "subsample")
    assert small.fingerprint() == tasks.subsample(6, random_state=3).fingerprint()


def test_standardize_remembers_its_statistics():
    data = np.column_stack([X * [1, 10, 0.1, 3] + [5, -2, 0, 1], np.full(9, 7.0)])
    tasks = Tasks.shared(data, Y).standardize()
    np.testing.assert_allclose(tasks.X[:, :4].mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(tasks.X[:, :4].std(axis=0), 1, rtol=1e-12)
    np.testing.assert_array_equal(tasks.X[:, 4], 0.0)
    np.testing.assert_allclose(tasks.scaling.apply(data), tasks.X)
    train, test = tasks.split(0.3, 0)
    assert train.scaling is tasks.scaling and test.scaling is tasks.scaling
    sparse_tasks = Tasks.shared(sparse.csr_array(data), Y).standardize(center=False)
    spread = np.where(data.std(axis=0) > 1e-10, data.std(axis=0), 1)
    np.testing.assert_allclose(sparse_tasks.X.toarray(), data / spread)


@for_each("which", ["b", 1, -2, ["b"], slice(1, 2), [False, True, False]])
def test_every_way_to_select_a_task(which):
    for tasks in layouts(Y_MISSING).values():
        names = tasks.task_names
        chosen = tasks.select(names[1] if which == "b" else [names[1]] if which == ["b"] else which)
        assert chosen.task_names == names[1:2]
        np.testing.assert_array_equal(chosen.targets, tasks.per_task(tasks.targets)[1])


def test_tasks_of_one_class_are_left_out_and_named():
    Y = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, np.nan], [1.0, -1.0, 1.0]])
    tasks = Tasks.shared(np.eye(3), Y, task_names=["two", "never", "always"])
    with pytest.warns(
        OneClassWarning,
        match=r"2 of 3 tasks have labels of one class alone and are left out: 'never', 'always'",
    ):
        left = tasks.without_one_class()
    assert left.task_names == ("two",) and left.targets.tolist() == [1.0, -1.0, 1.0] and left.X is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert left.without_one_class() is left
    apart = Tasks.separate([np.eye(2), np.eye(2)[:1]], [[1.0, -1.0], [1.0]], task_names=["a", "b"])
    with pytest.warns(OneClassWarning):
        assert apart.without_one_class().task_names == ("a",)


def test_repr_and_describe():
    assert (
        repr(Tasks.shared(X[:, :1], Y[:, 0])) == "<Tasks: 1 task, 1 feature, shared inputs, 9 labelled rows>"
    )
    many = Tasks.separate([sparse.csr_array(X)] * 5, [Y[:, 0]] * 5)
    assert repr(many) == "<Tasks: 5 tasks, 4 features, sparse separate inputs, 5 x 9 labelled rows>"
    about = Tasks.shared(X, Y_MISSING, sample_weights=np.ones(9)).standardize().describe()
    assert about["samples"] + about["missing"] == 27 and about["missing"] == np.isnan(Y_MISSING).sum() > 0
    assert about["weighted"] and about["standardized"] and not about["sparse"]
    assert json.loads(json.dumps(about)) == about


def test_fingerprint_tells_every_number_and_layout_apart():
    prints = [tasks.fingerprint() for name, tasks in layouts(Y).items() if name not in ("float32", "grouped")]
    other_x, other_y = X.copy(), Y.copy()
    other_x[3, 2] += 1e-15
    other_y[3, 2] += 1e-15
    prints += [Tasks.shared(other_x, Y).fingerprint(), Tasks.shared(X, other_y).fingerprint()]
    prints += [Tasks.shared(X, Y, sample_weights=np.ones(9)).fingerprint()]
    assert len(set(prints)) == len(prints)
    assert layouts(Y)["grouped"].fingerprint() == layouts(Y)["separate"].fingerprint()


def test_tasks_are_copied_and_pickled():
    made = Tasks.shared(X, Y)
    assert np.array_equal(copy.deepcopy(made).targets, made.targets)
    assert np.array_equal(pickle.loads(pickle.dumps(made)).targets, made.targets)
