"""The rows of all tasks are held once: stacked by task, shared by `inputs`, and not copied where nobody can write to them."""

import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from mtldsl import Tasks
from mtldsl.data.input_checks import labels_of
from tests.datasets import test_stored
from tests.loops import for_each
from tests.tasks.same_sums import dense

table = partial(test_stored.table, n=300, d=7, m=5, density=0.4)


def numbers(A):
    return A.data if sparse.issparse(A) else A


def made(how, X, y, ids):
    """The same tasks by every constructor that has separate inputs, and the tasks' rows of X."""
    order = list(dict.fromkeys(ids.tolist()))
    rows = [np.flatnonzero((ids == k) & ~np.isnan(y)) for k in order]
    every = [np.flatnonzero(ids == k) for k in order]
    separate = "separate" in how
    X = X if "sparse" in how else X.toarray()
    tasks = (
        Tasks.separate([X[r] for r in every], [y[r] for r in every]) if separate else Tasks.grouped(X, y, ids)
    )
    return tasks, rows


HOW = ["grouped sparse", "grouped dense", "separate sparse", "separate dense"]


@for_each("how", HOW)
def test_rows_are_held_once_found_again_and_read_only(how):
    X, y, ids = table()
    tasks, rows = made(how, X, y, ids)
    order = list(dict.fromkeys(ids.tolist()))
    np.testing.assert_array_equal(dense(tasks.stacked), X.toarray()[np.concatenate(rows)])
    np.testing.assert_array_equal(tasks.targets, y[np.concatenate(rows)])
    assert tasks.counts.tolist() == [r.size for r in rows]
    for task, (own, r) in enumerate(zip(tasks.inputs, rows, strict=True)):
        np.testing.assert_array_equal(dense(own), X.toarray()[r])
        assert np.shares_memory(numbers(own), numbers(tasks.stacked))
        if "sparse" in how:
            assert np.shares_memory(own.indices, tasks.stacked.indices)
            # scipy copies slices of larger arrays where it makes a matrix of them; not these
            assert np.shares_memory(own.T.data, tasks.stacked.data)
        whole = r if "grouped" in how else np.searchsorted(np.flatnonzero(ids == order[task]), r)
        np.testing.assert_array_equal(tasks.source_rows[task], whole)
        assert tasks.place(int(tasks.offsets[task]) + 2) == (task, whole[2])
    parts = [tasks.stacked, *tasks.inputs]
    for array in [numbers(X) for X in parts] + [X.indices for X in parts if sparse.issparse(X)]:
        with pytest.raises(ValueError, match="read-only"):
            array[:1] = 1


def sorted_table(n=300, dtype=float):
    X, y, ids = table(n=n)
    return X.astype(dtype), np.nan_to_num(y, nan=1.0), np.sort(ids)


def read_only(X):
    """The same numbers in arrays that own what nobody can write to."""
    if not sparse.issparse(X):
        X = X.copy()
        X.flags.writeable = False
        return X
    fixed = sparse.csr_array(X.shape)
    fixed.data, fixed.indices, fixed.indptr = (read_only(part) for part in (X.data, X.indices, X.indptr))
    return fixed


@for_each("kind", ["sparse", "dense"])
def test_only_arrays_that_nobody_can_write_to_are_not_copied(kind):
    X, y, ids = sorted_table()
    X = X if kind == "sparse" else X.toarray()
    fixed, view = read_only(X), numbers(X).view()
    kept = Tasks.grouped(fixed, y, ids)
    assert np.shares_memory(numbers(kept.stacked), numbers(fixed))
    assert np.shares_memory(numbers(Tasks.separate([fixed], [y]).stacked), numbers(fixed))
    view.flags.writeable = False  # of what can be written
    given = sparse.csr_array((view, X.indices, X.indptr), shape=X.shape) if kind == "sparse" else view
    copied = [Tasks.grouped(one, y, ids) for one in (X, given)]
    numbers(X)[...] = 0.0
    for tasks in (kept, *copied):
        np.testing.assert_array_equal(dense(tasks.stacked), dense(fixed))


@for_each("why", ["another order", "a row without a label", "float32", "twice in a row"])
def test_unfit_read_only_inputs_are_copied(why):
    X, y, ids = sorted_table()
    if why == "another order":
        ids = ids[::-1].copy()
        ids[0] = ids[-1]
    if why == "a row without a label":
        y[5] = np.nan
    if why == "float32":
        X = X.astype(np.float32)
    if why == "twice in a row":  # entries to be summed
        twice = np.append(X.indices[:1], X.indices[:-1])
        X = sparse.csr_array((X.data, twice, X.indptr), shape=X.shape)
    X = read_only(X)
    expected, stored = X.toarray(), X.data.copy()
    tasks = Tasks.grouped(X, y, ids)
    assert not np.shares_memory(tasks.stacked.data, X.data)
    assert tasks.stacked.dtype == float and tasks.stacked.has_canonical_format
    np.testing.assert_array_equal(X.data, stored)
    rows = np.concatenate(tasks.source_rows)
    np.testing.assert_allclose(tasks.stacked.toarray(), expected[rows], rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_mapped_files_are_used_where_they_are(tmp_path, dtype):
    X, y, ids = sorted_table(dtype=dtype)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = sparse.csr_array(tuple(parts), shape=X.shape)
    tasks = Tasks.grouped(mapped, y, ids)
    assert np.shares_memory(tasks.stacked.data, parts[0])
    assert tasks.stacked.dtype == dtype
    # float32 numbers are exact in float64, in which all products are: tolerance of sums in another order
    plain = Tasks.grouped(X.toarray().astype(float), y, ids)
    rng = np.random.default_rng(1)
    W, u = rng.normal(size=(7, 5)), rng.normal(size=300)
    for got, expected in (
        (tasks.forward(W), plain.forward(W)),
        (tasks.adjoint(u), plain.adjoint(u)),
        (tasks.gram(), plain.gram()),
    ):
        assert got.dtype == float
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    writable = sparse.csr_array((np.load(tmp_path / "data.npy", mmap_mode="r+"), *parts[1:]), shape=X.shape)
    assert not np.shares_memory(Tasks.grouped(writable, y, ids).stacked.data, writable.data)


def test_64_bit_indices_stay():
    X, y, ids = sorted_table()
    wide = sparse.csr_array(X.shape)
    wide.data, wide.indices, wide.indptr = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    wide = read_only(wide)
    tasks = Tasks.grouped(wide, y, ids)
    assert np.shares_memory(tasks.stacked.indices, wide.indices)
    assert tasks.inputs[2].indices.dtype == np.int64
    assert tasks.fingerprint() == Tasks.grouped(X, y, ids).fingerprint()


# 30 entries a row: 20 rows a task are put together, 2,000 rows go alone; and both beside each other
SIZES = {
    "tiny": [3] * 50,
    "large": [2000] * 3,
    "mixed": [5, 2000, 1, 7, 900, 2, 1500, 4],
    "none stored": [4, 4],
}


@for_each("order", ["C", "F"])
@for_each("sizes", SIZES)
def test_products_of_small_and_large_tasks(sizes, order):
    rng = np.random.default_rng(2)
    counts = SIZES[sizes]
    n, d, m = sum(counts), 60, len(counts)
    X = np.where(rng.random((n, d)) < 0.5 * (sizes != "none stored"), rng.normal(size=(n, d)), 0.0)
    ids, y = np.repeat(np.arange(m), counts), rng.normal(size=n)
    tasks = Tasks.grouped(sparse.csr_array(X), y, ids)
    W, u = np.asarray(rng.normal(size=(d, m)), order=order), rng.normal(size=n)
    expected = np.column_stack([X[ids == i].T @ u[ids == i] for i in range(m)])

    def compare(tasks):
        np.testing.assert_allclose(tasks.forward(W), (X * W.T[ids]).sum(axis=1), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(tasks.adjoint(u), expected, rtol=1e-12, atol=1e-11)

    compare(tasks)
    compare(tasks.take_rows([np.arange(k) for k in counts]))


@pytest.mark.slow
def test_building_holds_the_result_and_little_else():
    rng = np.random.default_rng(4)
    n, d = 200_000, 30
    X = sparse.csr_array(np.ones((n, d)))
    size = X.data.nbytes + X.indices.nbytes
    y, ids = np.ones(n), rng.integers(0, 100, n)
    tracemalloc.start()
    tasks = Tasks.grouped(X, y, ids)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tasks.n_samples == n
    assert held < 1.25 * size
    assert peak < 1.5 * size  # two pieces of 6 MB on their way, and some numbers a row


IDS = {
    "integers": np.array([5, 5, -3, 5, 900, -3]),
    "large integers": np.array([2**62, 7, 2**62, 7, 7, 1]),
    "floats": np.array([0.5, 0.0, -0.0, 0.5, 7, 7]),
    "booleans": np.array([True, False, True, True, False, True]),
    "text": np.array(["b", "a", "b", "cc", "a", "b"]),
    "objects": np.array(["b", 1, "b", None.__class__, 1, "b"], dtype=object),
    "a list": ["b", "a", "b", "c", "a", "b"],
    "pandas": pd.Series(["b", "a", "b", "c", "a", "b"], index=range(6, 0, -1)),
    "categories": pd.Series(pd.Categorical(["b", "a", "b", "c", "a", "b"])),
}


@for_each("kind", IDS)
def test_tasks_keep_the_order_of_first_appearance(kind):
    ids = IDS[kind]
    names, index = labels_of(ids, 6)
    assert names == list(dict.fromkeys(np.asarray(ids).tolist()))
    assert [names[i] for i in index] == np.asarray(ids).tolist()
