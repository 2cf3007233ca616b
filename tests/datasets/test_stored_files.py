"""Parts on the disk - LIBSVM, Parquet, NumPy archives - become the tasks that `Tasks.grouped` makes of the same rows."""

import bz2
import gzip
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from mtldsl import DataError, MissingExtraError, Tasks
from mtldsl.data import store_chunks as parts_libsvm
from mtldsl.data import store_parquet as parts_parquet
from mtldsl.datasets import hash_columns, store
from tests.datasets.mat_here import sparse_arrays
from tests.datasets.test_stored import assert_same, chunks, table
from tests.loops import for_each


def full_table():
    """A table with all its labels and something in its last column, from which the number of columns is read."""
    X, y, ids = table()
    X = sparse.csr_array(X)
    X[0, 11] = 1.5
    return X, np.nan_to_num(y, nan=1.0), ids


def libsvm(folder, X, y, ids, size=37, **options):
    folder.mkdir()
    for k, (part, labels, tasks) in enumerate(chunks(X, y, ids, size)):
        dump_svmlight_file(
            part, labels, str(folder / f"{k:02d}.svm"), query_id=tasks, **{"zero_based": False} | options
        )
    return folder


@pytest.mark.slow
@for_each("how", ["in one go", "in pieces", "from 0", "with comments", "gz", "bz2"])
def test_libsvm_files(tmp_path, monkeypatch, how):
    X, y, ids = full_table()
    options = (
        {"zero_based": True}
        if how == "from 0"
        else {"comment": "made\nby hand"}
        if how == "with comments"
        else {}
    )
    source = libsvm(tmp_path / "source", X, y, ids, **options)
    if how == "in pieces":
        monkeypatch.setattr(parts_libsvm, "SETTINGS", replace(parts_libsvm.SETTINGS, chunk_bytes=300))
    if how in ("gz", "bz2"):
        for path in list(source.iterdir()):
            (source / f"{path.stem}.svmlight.{how}").write_bytes(
                {"gz": gzip, "bz2": bz2}[how].compress(path.read_bytes())
            )
            path.unlink()
    tasks = store(source, tmp_path / "there", zero_based=how == "from 0")
    assert_same(tasks, Tasks.grouped(X, y, ids))


def test_a_libsvm_file_per_task_is_named_by_it(tmp_path):
    X, y, _ = full_table()
    paths = [tmp_path / "b.svm", tmp_path / "a.svm.gz"]
    dump_svmlight_file(X[:90], y[:90], str(paths[0]), zero_based=False)
    dump_svmlight_file(X[90:], y[90:], str(tmp_path / "x"), zero_based=False)
    paths[1].write_bytes(gzip.compress((tmp_path / "x").read_bytes()))
    tasks = store(paths, tmp_path / "there", n_features=12)
    assert_same(tasks, Tasks.grouped(X, y, np.repeat(["b", "a"], [90, 110])))


#: lines that mean the same row, a comment or nothing, and what is not a LIBSVM line
GOOD = ["1 qid:3 1:2 4:-5e-1", "  +1   qid:3\t1:2.0 4:-.5  # 1:2 ", "1.0 qid:03 01:2e0 4:-0.5\r"]
EMPTY = ["", "   ", "# qid:1", "\r"]
BAD_LINES = {
    "1 qid:3 1:a": "the value 'a' is not a number", "x qid:3 1:1": "the label 'x' is not a number",
    "1,2 qid:3 1:1": "several labels a line", "1 qid:x 1:1": "the qid 'x' is not a number",
    "1 qid:1.5 1:1": "qid:1.5 is not a whole number", "1 1:1": 'there is no "qid:"',
    "1 qid:3 1 2": "'1' is not \"index:value\"", "1 qid:3 1:2:3 4": "'1:2:3' is not \"index:value\"",
    "1 qid:3 1: 2": "the value '' is not a number", "1 qid:3 1 :2": "'1' is not \"index:value\"",
    "1 qid:3 :2": "the index '' is not a number", "1:2 qid:3 1:2": "the label '1:2' is not a number",
    "1 1:2 qid:3": "the index 'qid' is not a number", "1 qud:3 1:2": "the index 'qud' is not a number",
    "1 qid:3 0:1": "LIBSVM counts from 1", "1 qid:3 -1:1": "the index -1 is negative",
    "1 qid:3 1.5:1": "the index 1.5 is not a whole number",
    "1 qid:3 1e300:1": "is not a whole number up to 2^53",
    "1 qid:3 2:1 2:1": "the index 2 follows 2; indices must ascend",
    "1 qid:3 5:1 4:1": "the index 4 follows 5; indices must ascend",
    "1 qid:3 4:nan": "the value nan of index 4", "1 qid:3 4:inf": "the value inf of index 4",
    "inf qid:3 4:1": "the label inf", "1 qid:3 1:1_0": "the value '1_0' is not a number",
    "1 qid:3 13:1": "the index 13 is beyond n_features=12",
    "1 qid:3 1:9007199254740993": "the value '9007199254740993' is a whole number that float64 does not have",
    "99999999999999999 qid:3 1:1": "the label '99999999999999999' is a whole number that float64",
    "1 qid:9007199254740993 1:1": "the qid '9007199254740993' is a whole number that float64",
    "1 qid:3 1:1e-400": "the value '1e-400' is nearer to 0 than any number of float64",
    "1 qid:3 1:0x1": "the value '0x1' is not a number",
}  # fmt: skip


def test_numbers_are_those_that_python_reads(tmp_path):
    """To the last bit."""
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=300) * 10.0 ** rng.integers(-30, 30, 300), [5e-324, 1e308]])
    words = [f"{v:{f}}" for v in values for f in (".3g", ".6f", ".15e", ".16g", ".17e", "+.0f")]
    words += [
        "1.", "-.5", "1E5", "1e+05", "9007199254740994", "0.9007199254740993e1", "1e-22", "1e23",
        "00012.50",
    ]  # fmt: skip
    words += ["100000000000000000", "100000000000000000000", "1.00000000000000000000001", "1e-0005"]
    words = [word for word in words if float(word)]
    (tmp_path / "a.svm").write_text("\n".join(f"{word} qid:1 1:{word}" for word in words))
    tasks = store(tmp_path / "a.svm", tmp_path / "there")
    for parsed in (tasks.targets, tasks.stacked.data):
        np.testing.assert_array_equal(parsed, [float(word) for word in words])


@for_each("line", BAD_LINES)
def test_wrong_lines_are_named(tmp_path, line):
    path = tmp_path / "a.svm"
    path.write_text("\n".join([*EMPTY, *GOOD, line, *GOOD]))
    with pytest.raises(DataError) as error:
        store(path, tmp_path / "there", n_features=12)
    assert str(error.value).startswith(f"{path}:8: ") and BAD_LINES[line] in str(error.value)


def test_lines_are_counted_through_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(parts_libsvm, "SETTINGS", replace(parts_libsvm.SETTINGS, chunk_bytes=50))
    (tmp_path / "a.svm").write_text("\n".join([*GOOD * 30, "1 qid:3 1:a"]))
    with pytest.raises(DataError, match=r"a\.svm:91: "):
        store(tmp_path / "a.svm", tmp_path / "there")


def test_labels_that_are_not_numbers_are_no_labels(tmp_path):
    (tmp_path / "a.svm").write_text("nan qid:1 1:1\n1 qid:1 2:3\n2 qid:1\n")
    tasks = store(tmp_path / "a.svm", tmp_path / "there")
    np.testing.assert_array_equal(tasks.stacked.toarray(), [[0, 3], [0, 0]])
    assert tasks.source_rows[0].tolist() == [1, 2]


def test_archives_sparse_and_dense(tmp_path):
    X, y, ids = table()
    names = np.array([f"user {k}" for k in ids])
    np.savez(tmp_path / "a.npz", y=y[:80], task=names[:80], **sparse_arrays(X[:80].tocsc()))
    np.savez(tmp_path / "b.npz", X=X[80:].toarray().astype(np.float32), y=y[80:], task=names[80:])
    tasks = store([tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "there")
    expected = X.copy()
    expected.data[X.indptr[80] :] = expected.data[X.indptr[80] :].astype(np.float32)
    assert_same(tasks, Tasks.grouped(expected, y, names))


def parquet(path, columns):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow reads Parquet")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.table(columns), path)
    return path


@pytest.mark.slow
@for_each("ids", ["whole numbers", "text", "categories"])
def test_parquet_with_a_column_a_feature(tmp_path, monkeypatch, ids):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow reads Parquet")
    monkeypatch.setattr(parts_parquet, "SETTINGS", replace(parts_parquet.SETTINGS, batch_rows=16))
    X, y, tasks = table(d=3)
    X = sparse.csr_array(np.round(X.toarray()))
    text = [f"user {k}" for k in tasks]
    column = {"whole numbers": tasks, "text": text, "categories": arrow.array(text).dictionary_encode()}[ids]
    (tmp_path / "source").mkdir()
    for k, rows in enumerate((slice(0, 90), slice(90, 200))):
        parquet(
            tmp_path / "source" / f"{k}.parquet",
            {
                "age": X[rows].toarray()[:, 0],
                "user": column[rows],
                "count": X[rows].toarray()[:, 1].astype(np.int8),
                "label": arrow.array(y[rows], from_pandas=True),  # NaN as null
                "tall": X[rows].toarray()[:, 2] != 0,
            },
        )
    made = store(tmp_path / "source", tmp_path / "there", task="user")
    expected = np.column_stack([X.toarray()[:, :2], X.toarray()[:, 2] != 0])
    names = tasks if ids == "whole numbers" else text
    assert_same(
        made, Tasks.grouped(sparse.csr_array(expected), y, names, feature_names=["age", "count", "tall"])
    )
    one = store(tmp_path / "source", tmp_path / "one", task="user", features=["count"])
    assert one.feature_names == ("count",)


def test_parquet_with_lists(tmp_path, monkeypatch):
    monkeypatch.setattr(parts_parquet, "SETTINGS", replace(parts_parquet.SETTINGS, batch_rows=16))
    X, y, ids = full_table()
    X.data[X.indptr[1] :][:5] = np.arange(1, 6)
    split = [np.split(part, X.indptr[1:-1]) for part in (X.indices, X.data)]
    path = parquet(
        tmp_path / "a.parquet",
        {
            "indices": [list(p) for p in split[0]],
            "values": [list(p) for p in split[1]],
            "label": y,
            "task": ids,
        },
    )
    assert_same(store(path, tmp_path / "there"), Tasks.grouped(X, y, ids))
    assert_same(store(path, tmp_path / "hashed", hashed=4), Tasks.grouped(hash_columns(X, 4), y, ids))
    alone = store(path, tmp_path / "file", task="file")
    assert alone.task_names == ("a",) and alone.n_samples == 200


PARQUET = {
    "no label": ({"a": [1, 2], "task": [1, 2]}, {}, "labels: there is no column 'label'; the columns are 'a', 'task'"),
    "no task": ({"a": [1, 2], "label": [1, 2]}, {}, "task: there is no column 'task'"),
    "no value": ({"a": [1.0, None], "label": [1, 2], "task": [1, 2]}, {}, "a.parquet, rows from 0: X: nan in row 1, column 'a'; inputs must be finite"),
    "no id": ({"a": [1, 2], "label": [1, 2], "task": [1, None]}, {}, "task_ids: None in row 1"),
    "lists of other lengths": ({"indices": [[1], [2, 3]], "values": [[1.0], [2.0]], "label": [1, 2], "task": [1, 2]},
     {}, "row 1 has 2 indices and 1 values"),
    "a negative index": ({"indices": [[1], [-3]], "values": [[1.0], [2.0]], "label": [1, 2], "task": [1, 2]}, {}, "index -3 in row 1"),
    "an unknown feature": ({"a": [1, 2], "label": [1, 2], "task": [1, 2]}, {"features": ["b"]}, "there is no column 'b'"),
}  # fmt: skip


@for_each("case", PARQUET)
def test_wrong_parquet_files_are_named(tmp_path, case):
    columns, options, message = PARQUET[case]
    path = parquet(tmp_path / "a.parquet", columns)
    with pytest.raises(DataError) as error:
        store(path, tmp_path / "there", **options)
    assert str(path) in str(error.value) and message in str(error.value)


def test_parquet_files_with_other_columns(tmp_path):
    parquet(tmp_path / "a.parquet", {"a": [1, 2], "label": [1, 2], "task": [1, 2]})
    parquet(tmp_path / "b.parquet", {"b": [1, 2], "label": [1, 2], "task": [1, 2]})
    with pytest.raises(
        DataError, match=r"b\.parquet: its columns are named otherwise than those of .*a\.parquet"
    ):
        store([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "there")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"pip install .\.\[parquet\]"):
        store(tmp_path / "a.parquet", tmp_path / "there")


def test_wrong_parts_are_named(tmp_path):
    def refused(message, parts, **options):
        with pytest.raises(DataError) as error:
            store(parts, tmp_path / "there", **options)
        assert message in str(error.value)

    refused("there is no such file", tmp_path / "nothing.svm")
    refused("at least one part", [])
    (tmp_path / "empty").mkdir()
    refused("no file in that folder", tmp_path / "empty")
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n")
    refused("do not tell one format", tmp_path / "a.txt")
    refused("format='svm'", tmp_path / "a.txt", format="svm")
    refused('a task is "qid", or "file"', tmp_path / "a.txt", format="libsvm", task="user")
    refused("label='y': a LIBSVM file has no names", tmp_path / "a.txt", format="libsvm", label="y")
    (tmp_path / "a.npz").write_bytes(b"no archive")
    refused("do not tell one format", [tmp_path / "a.txt", tmp_path / "a.npz"])
    refused("a.npz: cannot be read as an .npz archive", tmp_path / "a.npz")
    refused("zero_based=True is for LIBSVM", tmp_path / "a.npz", zero_based=True)
    np.savez(tmp_path / "b.npz", X=[[1.0, np.inf]], y=[1.0], task=[1])
    refused("b.npz: X: inf in row 0, column 1", tmp_path / "b.npz")
    refused(
        "task='user': there is no such array; the archive holds X, y, task", tmp_path / "b.npz", task="user"
    )
    (tmp_path / "none.svm").write_text("# nothing\n\n")
    refused("there is no row in these parts", tmp_path / "none.svm")
    (tmp_path / "a.svm.gz").write_bytes(gzip.compress(b"1 qid:1 1:1\n" * 9)[:-9])
    refused("a.svm.gz: cannot be read", tmp_path / "a.svm.gz")
    assert store(tmp_path / "a.txt", tmp_path / "there", format="libsvm").n_samples == 1
