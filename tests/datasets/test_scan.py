"""Files that are scanned are the tasks that the same rows are in memory; what is wrong is named with file and row."""

import bz2
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from mtldsl import DataError, Tasks, datasets
from tests.datasets.mat_here import sparse_arrays
from tests.tasks.same_sums import assert_same_sums

pytest.importorskip("dask", reason="pip install -e .[dask]")
pyarrow = pytest.importorskip("pyarrow", reason="pip install -e .[dask]")
parquet = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(4)
X = np.where(RNG.random((60, 3)) < 0.3, 0.0, RNG.normal(size=(60, 3)))
Y = RNG.normal(size=(60, 2))
Y[5, 0] = Y[50:, 1] = np.nan
IDS = np.array(["b", "a", "c"])[np.repeat([0, 1, 0, 2], [20, 15, 5, 20])]
WEIGHTS = RNG.random(60) + 0.1
CUTS = [slice(0, 25), slice(25, 26), slice(26, 60)]
TABLE = Tasks.shared(X, Y, sample_weights=WEIGHTS, feature_names=["p", "q", "r"], task_names=["y", "z"])
LONG = Tasks.grouped(X, Y[:, 0], IDS, feature_names=["p", "q", "r"])


same = partial(assert_same_sums, abs=1e-12)


def table_of(rows, Y=Y):
    columns = {
        "p": X[:, 0], "q": X[:, 1], "y": Y[:, 0], "z": Y[:, 1], "id": IDS, "weight": WEIGHTS, "r": X[:, 2],
    }  # fmt: skip
    return pyarrow.table({name: column[rows] for name, column in columns.items()})


@pytest.fixture
def folder(tmp_path):
    for k, rows in enumerate(CUTS):
        parquet.write_table(table_of(rows), tmp_path / f"part-{k}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    return tmp_path


def test_a_folder_of_parquet_files(folder):
    table = datasets.scan(folder, ["p", "q", "r"], ["y", "z"], sample_weights="weight")
    same(table, TABLE)
    assert table.parts.n_parts == 3 and table.parts.keep and table.parts.passes == 3
    assert table.label_facts.weights == pytest.approx([s.sum() for s in TABLE.per_task(TABLE.sample_weights)])
    same(datasets.scan(folder, ["p", "q", "r"], "y", task="id", keep=False), LONG)
    others = datasets.scan(str(folder), labels="y", task="file", features=["p"])
    assert others.task_names == ("part-0", "part-1", "part-2") and others.counts.tolist() == [24, 1, 34]
    same(datasets.scan(f"file://{folder}", ["p", "q", "r"], "y", task="id"), LONG)
    same(datasets.scan(sorted(folder.glob("*.parquet")), ["p", "q", "r"], "y", task="id"), LONG)


def test_a_large_file_is_cut_between_row_groups(folder, monkeypatch):
    from mtldsl.distributed import scan as parquet_pieces

    whole = folder / "whole"
    whole.mkdir()
    parquet.write_table(table_of(slice(None)), whole / "all.parquet", row_group_size=10)
    monkeypatch.setattr(
        parquet_pieces, "SETTINGS", replace(parquet_pieces.SETTINGS, partition_bytes=8 * 3 * 25)
    )
    cut = datasets.scan(whole, ["p", "q", "r"], "y", task="id")
    same(cut, LONG)
    assert cut.parts.names == tuple(
        f"all.parquet, row groups {a} to {a + 1} (rows from {10 * a})" for a in (0, 2, 4)
    )


def test_what_is_wrong_in_a_parquet_file_is_named(folder):
    wrong = X.copy()
    wrong[30, 1] = np.inf
    columns = table_of(CUTS[2]).set_column(1, "q", pyarrow.array(wrong[CUTS[2], 1]))
    parquet.write_table(columns, folder / "part-2.parquet")
    with pytest.raises(DataError, match=r"^part-2.parquet: X: inf in row 4, column 'q'"):
        datasets.scan(folder, ["p", "q", "r"], "y")
    with pytest.raises(DataError, match=r"features: there is no column 'x'; the columns are 'p', 'q', 'y'"):
        datasets.scan(folder, ["x"], "y")
    with pytest.raises(DataError, match=r"labels: there is no column 'label'"):
        datasets.scan(folder, ["p"])
    with pytest.raises(DataError, match=r"part-\d.parquet: X: column 'id'.* not numeric"):
        datasets.scan(folder, ["id"], "y")
    parquet.write_table(
        table_of(CUTS[2]), folder / "part-2.parquet"
    )  # of several wrong files any may be named
    parquet.write_table(table_of(CUTS[1]).drop_columns(["q"]), folder / "part-1.parquet")
    with pytest.raises(DataError, match=r"part-1.parquet: there is no column 'q', which other files have"):
        datasets.scan(folder, ["p", "q"], "y")
    (folder / "part-1.parquet").write_bytes(b"no Parquet")
    with pytest.raises(DataError, match=r"part-1.parquet: cannot be read as Parquet"):
        datasets.scan(folder, ["p", "q"], "y")


def test_a_column_that_one_file_alone_has(folder):
    columns = table_of(CUTS[1])
    parquet.write_table(columns.append_column("new", columns.column("p")), folder / "part-1.parquet")
    with pytest.raises(
        DataError, match=r"part-1\.parquet: there is a column 'new', which .* has not; name the features"
    ):
        datasets.scan(folder, labels="y")


def test_archives(tmp_path):
    for k, rows in enumerate(CUTS):
        np.savez(tmp_path / f"{k}.npz", X=X[rows], Y=Y[rows], s=WEIGHTS[rows])
    named = Tasks.shared(X, Y, sample_weights=WEIGHTS)
    same(datasets.scan(tmp_path, sample_weights="s"), named)
    for k, rows in enumerate(CUTS):
        parts = sparse_arrays(sparse.csr_array(X[rows]))
        np.savez(tmp_path / f"{k}.npz", y=Y[rows, 0], task=IDS[rows], **parts)
    long = datasets.scan(tmp_path, task="task")
    assert long.is_sparse
    same(long, Tasks.grouped(X, Y[:, 0], IDS))
    with pytest.raises(DataError, match=r"\d.npz: labels='w': there is no such array; the archive holds"):
        datasets.scan(tmp_path, labels="w")


def test_archives_name_their_columns(tmp_path):
    names = {"feature_names": list("pqr"), "task_names": ["y", "z"]}
    for k, rows in enumerate(CUTS):
        np.savez(tmp_path / f"{k}.npz", X=X[rows], Y=Y[rows], **names)
    same(datasets.scan(tmp_path), Tasks.shared(X, Y, **names))
    turned = names | {"task_names": ["z", "y"]}
    np.savez(tmp_path / "1.npz", X=X[CUTS[1]], Y=Y[CUTS[1]], **turned)
    with pytest.raises(DataError, match=r"1\.npz: the columns of Y have other names, or another order"):
        datasets.scan(tmp_path)


def lines_of(rows, shown):
    text = []
    for k in range(60)[rows]:
        entries = " ".join(f"{j + 1}:{X[k, j]:.17g}" for j in np.flatnonzero(X[k, :shown]))
        text.append(f"{Y[k, 0]:.17g} qid:{'bac'.index(IDS[k])} {entries}\n")
    return "".join(text)


def test_libsvm_files_whose_last_columns_are_empty(tmp_path):
    (tmp_path / "a.svm").write_text(lines_of(CUTS[0], 2))
    (tmp_path / "b.svm.bz2").write_bytes(bz2.compress(lines_of(slice(25, 60), 3).encode()))
    shown = X.copy()
    shown[CUTS[0], 2] = 0.0
    ids = ["bac".index(one) for one in IDS]
    same(datasets.scan(tmp_path), Tasks.grouped(shown, Y[:, 0], ids))
    assert datasets.scan(tmp_path, n_features=7).n_features == 7
    with pytest.raises(DataError, match="features"):
        datasets.scan(tmp_path, ["p"])
    (tmp_path / "b.svm.bz2").write_bytes(bz2.compress(b"1 qid:0 1:nan\n"))
    with pytest.raises(DataError, match=r"b.svm.bz2:1: the value nan of index 1"):
        datasets.scan(tmp_path)


def test_what_cannot_be_scanned(tmp_path):
    for path, said in (
        (tmp_path / "gone", "there is no file or folder"),
        (tmp_path, "there is no file in"),
        (3, "is a int"),
    ):
        with pytest.raises(DataError, match=said):
            datasets.scan(path)
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(DataError, match="do not tell one format"):
        datasets.scan(tmp_path)
    with pytest.raises(DataError, match="write one of 'parquet', 'npz', 'libsvm'"):
        datasets.scan(tmp_path, format="csv")


def part(k):
    return X[CUTS[k]], Y[CUTS[k], 0], IDS[CUTS[k]]


def test_loaders():
    made = datasets.from_parts(
        [partial(part, k) for k in range(3)], feature_names=["p", "q", "r"], names=["A", "B", "C"]
    )
    same(made, LONG)
    assert made.parts.names == ("A", "B", "C")
    for wrong in ([3], "ab", [], None):
        with pytest.raises(DataError, match=r"^from_parts\(loaders\): "):
            datasets.from_parts(wrong)
    with pytest.raises(DataError, match=r"names=\['A'\]; give 3 names"):
        datasets.from_parts([partial(part, k) for k in range(3)], names=["A"])
