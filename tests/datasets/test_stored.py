"""Data larger than memory: what is stored is what `Tasks.grouped` would have made of it all, whatever it came from and happened."""

import json
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import murmurhash3_32

from mtldsl import DataError, Tasks
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.data import store_passes as stored_placing
from mtldsl.data import store_passes as stored_spool
from mtldsl.datasets import hash_columns, store, stored
from tests.datasets.mat_here import sparse_arrays
from tests.loops import for_each

#: the module; in the package, the function of this name is before it
STORED = sys.modules["mtldsl.data.store"]


def table(n=200, d=12, m=6, seed=0, density=0.3):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(sparse.random_array((n, d), density=density, rng=rng, data_sampler=rng.normal))
    X.data[:] = X.data.round(3)  # so that text says it exactly
    y = rng.choice([-1.0, 1.0], n)
    y[rng.random(n) < 0.05] = np.nan
    return X, y, rng.integers(10, 10 + m, n)


def chunks(X, y, ids, size=37):
    for a in range(0, y.size, size):
        yield X[a : a + size], y[a : a + size], ids[a : a + size]


def assert_same(tasks, expected):
    assert tasks.task_names == expected.task_names and tasks.feature_names == expected.feature_names
    assert tasks.fingerprint() == expected.fingerprint()
    assert len(tasks.source_rows) == tasks.n_tasks
    for a, b in zip(tasks.source_rows, expected.source_rows, strict=True):
        np.testing.assert_array_equal(a, b)


def test_stored_tasks_are_those_of_the_whole_table(tmp_path):
    X, y, ids = table()
    expected = Tasks.grouped(X, y, ids)
    tasks = store(chunks(X, y, ids), tmp_path / "there")
    for one in (tasks, stored(tmp_path / "there", check=True)):
        assert_same(one, expected)
        assert one.place(70) == expected.place(70)
        assert isinstance(one.stacked.data.base, np.memmap) and not one.stacked.data.flags.writeable
        assert np.shares_memory(one.inputs[3].data, one.stacked.data)
    assert not (tmp_path / "there" / "parts").exists()


@for_each("batch", [1, 40, 10**9])
def test_placing_in_pieces_of_any_size(tmp_path, monkeypatch, batch):
    X, y, ids = table(n=600, m=50)
    monkeypatch.setattr(stored_placing, "SETTINGS", replace(stored_placing.SETTINGS, placed_entries=batch))
    assert_same(store(chunks(X, y, ids, 20), tmp_path / "there"), Tasks.grouped(X, y, ids))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_on_the_disk(tmp_path, dtype):
    X, y, ids = table()
    tasks = store(chunks(X, y, ids), tmp_path / "there", dtype=dtype)
    assert tasks.stacked.dtype == dtype
    rounded = X.astype(dtype).astype(float)
    expected = Tasks.grouped(rounded, y, ids)
    by, other = (t.standardize(center=False).scaling.scale for t in (tasks, expected))
    np.testing.assert_allclose(by, other, rtol=1e-13)
    assert tasks.select([1]).fingerprint() == expected.select([1]).fingerprint()  # in memory: float64
    with pytest.raises(DataError, match="beyond float32"):
        store(iter([(sparse.csr_array([[1e60]]), [1.0], [1])]), tmp_path / "large", dtype="float32")


def test_an_iterator_that_breaks_is_begun_again(tmp_path):
    X, y, ids = table()

    def breaks():
        yield from list(chunks(X, y, ids))[:3]
        raise RuntimeError("the line is dead")

    with pytest.raises(RuntimeError, match="the line is dead"):
        store(breaks(), tmp_path / "there")
    with pytest.raises(DataError, match=r"interrupted.*call it again"):
        stored(tmp_path / "there")
    # other chunks than before: nothing of the first attempt may stay
    other, labels, tasks = table(seed=1)
    assert_same(
        store(chunks(other, labels, tasks, 90), tmp_path / "there"), Tasks.grouped(other, labels, tasks)
    )


def archives(folder, X, y, ids, size=37):
    folder.mkdir()
    for k, (part, labels, tasks) in enumerate(chunks(X, y, ids, size)):
        np.savez(folder / f"{k:03d}.npz", y=labels, task=tasks, **sparse_arrays(part))
    return folder


def count_parts(monkeypatch):
    """The parts that are read from now on."""
    read = []
    monkeypatch.setattr(
        STORED,
        "write_part",
        lambda folder, number, *a, **k: (
            read.append(number) or stored_spool.write_part(folder, number, *a, **k)
        ),
    )
    return read


def test_files_go_on_where_they_were_interrupted(tmp_path, monkeypatch):
    X, y, ids = table()
    source = archives(tmp_path / "source", X, y, ids)
    third = (source / "003.npz").read_bytes()
    (source / "003.npz").write_bytes(third[: len(third) // 2])
    with pytest.raises(DataError, match=r"003\.npz: cannot be read"):
        store(source, tmp_path / "there")
    (source / "003.npz").write_bytes(third)
    read = count_parts(monkeypatch)
    assert_same(store(source, tmp_path / "there"), Tasks.grouped(X, y, ids))
    assert read == [3, 4, 5]
    # and what is there is not made again
    read.clear()
    assert_same(store(source, tmp_path / "there"), Tasks.grouped(X, y, ids))
    assert read == []


@pytest.mark.slow
@for_each("what", ["shortened", "another file", "another option", "no record"])
def test_a_part_that_is_not_what_it_was_is_read_again(tmp_path, monkeypatch, what):
    X, y, ids = table()
    source = archives(tmp_path / "source", X, y, ids)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk"):
        patch.setattr(STORED, "place", lambda *a: (_ for _ in ()).throw(OSError("disk full")))
        store(source, tmp_path / "there")
    rows = tmp_path / "there" / "parts" / "00002.rows"
    hashed = 8 if what == "another option" else None
    if what == "shortened":
        rows.write_bytes(rows.read_bytes()[:-8])
    if what == "no record":
        rows.with_suffix(".json").unlink()
    if what == "another file":
        X, y, ids = table(seed=3)
        X = sparse.csr_array(X)
        (source / "002.npz").unlink()
        archives(tmp_path / "other", X, y, ids)
        for k in range(6):
            (tmp_path / "other" / f"{k:03d}.npz").replace(source / f"{k:03d}.npz")
    read = count_parts(monkeypatch)
    tasks = store(source, tmp_path / "there", hashed=hashed)
    assert_same(tasks, Tasks.grouped(hash_columns(X, 8) if hashed else X, y, ids))
    assert read == ([2] if what in ("shortened", "no record") else list(range(6)))


@pytest.mark.slow
def test_memory_is_that_of_a_piece(tmp_path, monkeypatch):
    """12 MB of entries through 2 MB of memory, and products on them through less than one task's rows."""
    sizes = replace(stored_placing.SETTINGS, placed_entries=1 << 14)
    monkeypatch.setattr(stored_placing, "SETTINGS", sizes)
    rng = np.random.default_rng(0)

    def many():
        for _ in range(100):
            X = sparse.csr_array(
                (np.ones(10_000), rng.integers(0, 64, 10_000), np.arange(0, 10_001, 20)), shape=(500, 64)
            )
            yield X, np.ones(500), rng.integers(0, 20, 500)

    tracemalloc.start()
    tasks = store(many(), tmp_path / "there")
    # the rows of tasks, 8 bytes each, are not part of it: `stored` maps them
    _, peak = tracemalloc.get_traced_memory()
    size = tasks.stacked.data.size * 12
    assert tasks.n_samples == 50_000 and size > 10e6
    assert peak < 4e6
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    tasks.forward(np.ones((64, 20)))
    tasks.adjoint(np.ones(50_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 4e6  # predictions and dual variables of 50,000 rows are 0.4 MB each


def test_hashed_columns_are_signed_sums_and_stay_the_same(tmp_path):
    X, y, ids = table(d=500)
    tasks = store(chunks(X, y, ids), tmp_path / "there", hashed=16)
    assert_same(tasks, Tasks.grouped(hash_columns(X, 16), y, ids))
    assert json.loads((tmp_path / "there" / "stored.json").read_text())["hashed"] == 16
    # a column's place and sign do not depend on the other columns, nor on the width of its index
    H = hash_columns(sparse.eye_array(500, format="csr"), 16).toarray()
    for j, row in enumerate(H):
        h = murmurhash3_32(j)  # as scikit-learn hashes
        assert np.abs(row).sum() == 1 and row[abs(h) % 16] == (1 if h >= 0 else -1)
    np.testing.assert_allclose(hash_columns(X, 16).toarray(), X.toarray() @ H, atol=1e-13)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(hash_columns(wide, 16).toarray(), hash_columns(X, 16).toarray())


def test_indices_beyond_32_bits_are_hashed_with_all_their_bits():
    far = 7 + (np.arange(64, dtype=np.int64) << 32)
    X = sparse.csr_array((np.ones(64), far, np.arange(65)), shape=(64, 2**40))
    places = np.abs(hash_columns(X, 1024).toarray()).argmax(axis=1)
    # 64 balls in 1,024 urns: fewer than 50 urns hit has a probability below 1e-6
    assert np.unique(places).size >= 50


X, LABELS, IDS = table()


def kept(there, change=lambda there: None, check=False):
    """What is read of a folder that was changed after it was stored."""
    store(chunks(X, LABELS, IDS), there)
    change(there)
    stored(there)  # only sizes are looked at
    stored(there, check=check)


def cut(there, size, new=b""):
    path = there / "data.npy"
    path.write_bytes(path.read_bytes()[:-size] + new)


def said(there, change):
    path = there / "stored.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | change(about)))


def beside(there):
    there.mkdir()
    (there / "thesis.tex").write_text("")
    store(chunks(X, LABELS, IDS), there)


def nan_in_a_chunk(there):
    bad, labels, ids = table()
    bad.data[bad.indptr[5]] = np.nan
    store(chunks(bad, labels, ids, 4), there)


NO_ID, NO_LABEL = np.where(np.arange(200) == 7, np.nan, IDS), np.where(IDS == 12, np.nan, LABELS)
WRONG = {
    "another result": (lambda f: kept(f, lambda f: store(chunks(X, LABELS, IDS), f)), "holds stored tasks already"),
    "a folder with something else": (beside, "is not empty"),
    "no folder": (stored, "there is no such folder"),
    "a folder of something else": (lambda f: stored(f.parent), "not a folder that store() wrote"),
    "a shortened array": (lambda f: kept(f, lambda f: cut(f, size=800)), "data.npy: missing or damaged"),
    "a changed number": (lambda f: kept(f, lambda f: cut(f, size=1, new=b"\x01"), check=True), "its files are not those that store() wrote"),
    "another version": (lambda f: kept(f, lambda f: said(f, lambda about: {"version": 2})), "is of version 2, not 1"),
    "arrays of another result": (lambda f: kept(f, lambda f: said(f, lambda about: {"task_names": about["task_names"][1:]})), "do not belong together"),
    "not a triple": (lambda f: store(iter([(X, LABELS)]), f), "chunk 0 is tuple, not (X, y, task_ids)"),
    "no chunk": (lambda f: store(iter([]), f), "there is no row in these parts"),
    "NaN in a chunk": (nan_in_a_chunk, "chunk 1: X: nan in row 1"),
    "lengths": (lambda f: store(iter([(X, LABELS[:5], IDS)]), f), "chunk 0: X has 200 rows but y has 5 labels"),
    "no id": (lambda f: store(iter([(X, LABELS, NO_ID)]), f), "chunk 0: task_ids: nan in row 7"),
    "a task without labels": (lambda f: store(iter([(X, NO_LABEL, IDS)]), f), "task '12' has no labelled row"),
    "other columns": (lambda f: store(iter([(X, LABELS, IDS), (X[:, :4], LABELS, IDS)]), f), "chunk 1 has 4 columns, chunk 0 has 12; write n_features"),
    "more columns than n_features": (lambda f: store(iter([(X, LABELS, IDS)]), f, n_features=9), "chunk 0 has 12 columns, more than n_features=9"),
    "hashed to half a column": (lambda f: store(chunks(X, LABELS, IDS), f, hashed=0.5), "hashed=0.5"),
    "an option of files": (lambda f: store(chunks(X, LABELS, IDS), f, label="y"), "label='y' is for files"),
    "float16": (lambda f: store(chunks(X, LABELS, IDS), f, dtype="float16"), "dtype='float16'"),
    "a number": (lambda f: store(5, f), "store(5)"),
}  # fmt: skip


@for_each("name", WRONG)
def test_what_is_wrong_is_said(tmp_path, name):
    build, message = WRONG[name]
    with pytest.raises(DataError) as error:
        build(tmp_path / "there")
    assert message in str(error.value)


def test_narrow_chunks_with_n_features(tmp_path):
    X, y, ids = table()
    narrow = X[:, :4]
    tasks = store(iter([(X, y, ids), (narrow, y, ids)]), tmp_path / "there", n_features=15)
    wide = sparse.csr_array(np.vstack([X.toarray(), np.pad(narrow.toarray(), ((0, 0), (0, 8)))]))
    wide = sparse.csr_array((wide.data, wide.indices, wide.indptr), shape=(400, 15))
    assert_same(tasks, Tasks.grouped(wide, np.tile(y, 2), np.tile(ids, 2)))


def test_a_problem_file_names_the_folder(tmp_path):
    X, y, ids = table()
    store(chunks(X, np.nan_to_num(y, nan=1.0), ids), tmp_path / "there")
    (tmp_path / "p.toml").write_text(
        'minimize = "logistic_loss(W, tasks) + l21_norm(W)"\n[weights]\nW = {}\n'
        '[data]\npath = "there"\nformat = "stored"\ncheck = true\n'
    )
    assert load_problem(tmp_path / "p.toml").tasks_train.n_samples == 200
