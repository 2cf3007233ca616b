"""MATLAB, NumPy and LIBSVM files: what is written with scipy, numpy and scikit-learn comes back as the same tasks."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from mtldsl import DataError, Tasks
from mtldsl.cli.problem_files.problem_file import load_problem
from mtldsl.datasets import read_libsvm, read_mat, read_npz
from tests.datasets.mat_here import cells, read_here
from tests.loops import for_each

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 3)).round(3)
Y = rng.normal(size=(6, 2))


@pytest.fixture(autouse=True)
def here(monkeypatch):
    read_here(monkeypatch)


def test_matlab_cells_of_bytes_do_not_overflow(tmp_path):
    """School's scores and inputs are uint8: 200 + 100 is 44 there."""
    bytes_ = [np.array([[200, 100], [3, 4]], np.uint8), np.array([[250, 250]], np.uint8)]
    savemat(
        tmp_path / "a.mat",
        {"X": cells(bytes_), "Y": cells([np.array([[1], [2]], np.uint8), np.array([[9]], np.uint8)])},
    )
    tasks = read_mat(tmp_path / "a.mat")
    assert tasks.counts.tolist() == [2, 1] and not tasks.is_shared
    np.testing.assert_array_equal(tasks.targets, [1, 2, 9])
    np.testing.assert_array_equal(tasks.forward(np.ones((2, 2))), [300, 7, 500])


def test_matlab_matrices(tmp_path):
    savemat(
        tmp_path / "a.mat",
        {"A": X, "B": Y, "S": sparse.csc_matrix(X), "table": np.hstack([X, Y]), "who": [1, 2, 1, 2, 2, 2]},
    )
    expected = Tasks.shared(X, Y).fingerprint()
    assert read_mat(tmp_path / "a.mat", "A", "B").fingerprint() == expected
    assert read_mat(tmp_path / "a.mat", "table", 2).fingerprint() == expected
    found = read_mat(tmp_path / "a.mat", "S", "B").fingerprint()
    assert found == Tasks.shared(sparse.csr_array(X), Y).fingerprint()
    grouped = read_mat(tmp_path / "a.mat", "table", 1, task_ids="who")
    assert grouped.task_names == ("1", "2") and grouped.counts.tolist() == [2, 4]
    np.testing.assert_array_equal(grouped.targets, Y[[0, 2, 1, 3, 4, 5], 1])


def test_numpy_archive_with_names_missing_labels_and_groups(tmp_path):
    labels = np.where(rng.random(Y.shape) < 0.5, 1, 0)
    holes = labels.astype(float)
    holes[0, 0] = np.nan
    np.savez(
        tmp_path / "a.npz", X=X, Y=labels, holes=holes, ids=["u", "v"] * 3, task_names=["s", "t"],
        feature_names=list("abc"),
    )  # fmt: skip
    tasks = read_npz(tmp_path / "a.npz", binary=True)
    np.testing.assert_array_equal(tasks.targets, 2.0 * labels.T.ravel() - 1)
    assert tasks.task_names == ("s", "t") and tasks.feature_names == ("a", "b", "c")
    assert read_npz(tmp_path / "a.npz", Y="holes").counts.tolist() == [5, 6]
    np.savez(tmp_path / "b.npz", X=X, y=Y[:, 0], ids=["u", "v"] * 3)
    grouped = read_npz(tmp_path / "b.npz", Y="y", task_ids="ids")
    assert grouped.fingerprint() == Tasks.separate([X[::2], X[1::2]], [Y[::2, 0], Y[1::2, 0]]).fingerprint()
    assert grouped.task_names == ("u", "v")


def test_libsvm_one_file_per_task(tmp_path):
    (tmp_path / "more").mkdir()
    paths = [tmp_path / "a.svm", tmp_path / "b.svm", tmp_path / "more" / "a.svm"]
    for path, y in zip(paths, (Y[:, 0], Y[:, 1], Y[:, 0]), strict=True):
        dump_svmlight_file(X, y, str(path), zero_based=False)
    tasks = read_libsvm(paths[:2])
    assert tasks.task_names == ("a", "b") and tasks.is_sparse
    np.testing.assert_array_equal(tasks.inputs[1].toarray(), X)
    np.testing.assert_allclose(tasks.targets, Y.T.ravel(), rtol=1e-14)
    assert read_libsvm(paths).task_names == tuple(map(str, paths))  # two are called a
    assert read_libsvm(paths[0], n_features=5).n_features == 5


def test_libsvm_classes_and_several_labels(tmp_path):
    path = tmp_path / "classes.svm"
    path.write_text("3 1:1\n1 2:1\n2 1:1 2:1\n1 1:4\n")
    tasks = read_libsvm(path, one_vs_rest=True)
    assert tasks.task_names == ("1", "2", "3")
    np.testing.assert_array_equal(
        np.stack(tasks.per_task(tasks.targets)), [[-1, 1, -1, 1], [-1, -1, 1, -1], [1, -1, -1, -1]]
    )
    np.testing.assert_array_equal(read_libsvm(path).targets, [3, 1, 2, 1])
    path.write_text("1,3 1:1\n3 2:1\n1 2:5\n")
    several = read_libsvm(path, multilabel=True)
    assert several.task_names == ("1", "3")
    np.testing.assert_array_equal(several.targets, [1, -1, 1, 1, 1, -1])
    path.write_text("1 1:1\n0 2:1\n")
    np.testing.assert_array_equal(read_libsvm(path, binary=True).targets, [1, -1])


def mat(folder, **content):
    savemat(folder / "a.mat", content)
    return read_mat(folder / "a.mat")


def archive(folder, options=None, **content):
    np.savez(folder / "a.npz", **content)
    return read_npz(folder / "a.npz", **(options or {}))


def text(folder, content, **options):
    (folder / "a.svm").write_text(content)
    return read_libsvm(folder / "a.svm", **options)


def raw(folder, name, content, reader):
    (folder / name).write_bytes(content)
    return reader(folder / name)


WRONG = {
    "unknown variable": (lambda f: mat(f, A=X, Y=Y), ["X='X'", "A, Y"]),
    "text": (lambda f: mat(f, X="hello", Y=Y), ["X does not hold real numbers"]),
    "a structure": (lambda f: mat(f, X={"a": 1}, Y=Y), ["X does not hold real numbers"]),
    "complex": (lambda f: mat(f, X=X + 1j, Y=Y), ["X does not hold real numbers", "complex128", "such as A.real"]),
    "cells and a matrix": (lambda f: mat(f, X=cells([X, X]), Y=Y), ["X holds cells", "Y must hold cells"]),
    "a cell of text": (lambda f: mat(f, X=cells([X, "b"]), Y=cells([Y[:, :1], Y[:, :1]])), ["X{2}"]),
    "cells of other lengths": (lambda f: mat(f, X=cells([X]), Y=cells([Y[:4, :1]])), ["'task0'", "6 rows", "4 labels"]),
    "no MATLAB file": (lambda f: raw(f, "b.mat", b"garbage" * 40, read_mat), ["b.mat", "cannot be read as a MATLAB file"]),
    "an empty file": (lambda f: raw(f, "b.mat", b"", read_mat), ["b.mat", "cannot be read"]),
    "version 7.3": (lambda f: raw(f, "b.mat", b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM", read_mat), ["7.3", "-v7"]),
    "no archive": (lambda f: raw(f, "b.npz", b"garbage", read_npz), ["cannot be read as an .npz file"]),
    "text in an archive": (lambda f: archive(f, X=X, Y=np.array(list("abcdef"))), ["Y does not hold real numbers but text, <U1; write classes as numbers"]),
    "labels that are one number": (lambda f: archive(f, X=X, Y=np.array(1.0)), ["Y"]),
    "unknown array": (lambda f: archive(f, X=X, y=Y), ["Y='Y'", "X, y"]),
    "names and ids": (lambda f: archive(f, {"task_ids": "i"}, X=X, Y=Y[:, 0], i=[1, 1, 2, 2, 3, 3], task_names=["a"]), ["named by their ids"]),
    "not binary": (lambda f: archive(f, {"binary": True}, X=X, Y=Y), ["binary=True"]),
    "no LIBSVM": (lambda f: text(f, "hello world\n"), ["a.svm:1: the label 'hello' is not a number"]),
    "ids that are a table": (lambda f: archive(f, {"task_ids": "i"}, X=np.eye(4), Y=np.ones(4), i=np.eye(2)), ["a.npz: i has shape (2, 2)"]),
    "NaN in X": (lambda f: archive(f, X=np.full((2, 2), np.nan), Y=np.ones(2)), ["a.npz: X: nan in row 0, column 0"]),
    "a flag in words": (lambda f: text(f, "1 1:2\n", binary="no"), ["read_libsvm(path, binary='no'): write binary=True"]),
    "a flag in words, of arrays": (lambda f: archive(f, {"binary": "no"}, X=X, Y=Y), ["read_npz(path, binary='no')"]),
    "several labels": (lambda f: text(f, "1,2 1:2\n"), ["multilabel=True"]),
    "too few features": (lambda f: text(f, "1 3:2\n", n_features=2), ["n_features was set to 2"]),
    "no file": (lambda f: read_libsvm([]), ["at least one file"]),
    "classes of two files": (lambda f: text(f, "1 1:1\n") and read_libsvm([f / "a.svm", f / "a.svm"], one_vs_rest=True), ["one file"]),
}  # fmt: skip


@for_each("case", WRONG)
def test_mistakes_are_told_with_their_file(case, tmp_path):
    build, pieces = WRONG[case]
    with pytest.raises(DataError) as error:
        build(tmp_path)
    assert all(piece in str(error.value) for piece in pieces), error.value


@for_each("kind", ["npz", "mat"])
@for_each("grouped", [False, True])
def test_missing_inputs_are_filled_in_as_in_a_table(kind, grouped, tmp_path):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((30, 3)) < 0.2, np.nan, rng.normal(size=(30, 3)))
    arrays = {"X": X, "Y": rng.normal(size=(30, 1 if grouped else 2)), "ids": np.arange(30) % 2}
    path = tmp_path / f"t.{kind}"
    np.savez(path, **arrays) if kind == "npz" else savemat(path, arrays)
    read = read_npz if kind == "npz" else read_mat
    options = {"task_ids": "ids"} if grouped else {}
    with pytest.raises(DataError, match="impute"):
        read(path, **options)
    with pytest.raises(DataError, match="write 'mean', 'median' or 'error'"):
        read(path, impute="mode", **options)
    tasks = read(path, impute="median", **options)
    expected = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    rows = tasks.source_rows if grouped else [np.arange(30)]
    for found, own in zip(tasks.inputs if grouped else [tasks.X], rows, strict=True):
        np.testing.assert_allclose(found, expected[own])
    assert tasks.imputation.strategy == "median"


def test_cells_are_not_filled_in_and_other_formats_say_so(tmp_path):
    two = cells([np.ones((3, 2))] * 2)
    savemat(tmp_path / "c.mat", {"X": two, "Y": two})
    with pytest.raises(DataError, match="write one matrix of all rows, with task_ids"):
        read_mat(tmp_path / "c.mat", impute="mean")
    (tmp_path / "t.svm").write_text("1 1:0.5\n-1 2:1\n")
    (tmp_path / "p.toml").write_text(
        'minimize = "hinge_loss(W, tasks)"\n[data]\npath = "t.svm"\nimpute = "mean"\n'
    )
    with pytest.raises(
        DataError, match=r"p.toml:4:1: format 'libsvm' cannot fill in missing inputs; impute is for csv"
    ):
        load_problem(tmp_path / "p.toml")


def test_libsvm_indices_count_from_0_in_all_files_or_in_none(tmp_path):
    train, test = tmp_path / "train.svm", tmp_path / "test.svm"
    train.write_text("1 0:5 1:1\n-1 2:2\n")
    test.write_text("1 1:3 2:1\n-1 2:2\n")
    from_0, from_1 = [[0, 3, 1], [0, 0, 2]], [[3, 1], [0, 2]]
    assert read_libsvm(test).X.toarray().tolist() == from_1
    assert read_libsvm(test, zero_based=False).X.toarray().tolist() == from_1
    assert read_libsvm(test, zero_based=True).X.toarray().tolist() == from_0
    with pytest.warns(UserWarning, match=r"train\.svm: indices are read as counting from 0.*zero_based=True"):
        both = read_libsvm([test, train])  # by one rule
    assert both.inputs[0].toarray().tolist() == from_0
    assert both.inputs[1].toarray().tolist() == [[5, 1, 0], [0, 0, 2]]
    with pytest.raises(DataError, match=r"train\.svm: it has an index 0"):
        read_libsvm([test, train], zero_based=False)
    assert read_libsvm(test, zero_based=True, n_features=3).n_features == 3
    with pytest.raises(DataError, match="n_features was set to 2, and it has 3 features"):
        read_libsvm(test, zero_based=True, n_features=2)
    assert read_libsvm(test, n_features=2).n_features == 2


@for_each(
    ("content", "words"),
    [
        ("# ranking\n1 qid:1 1:3\n2 qid:2 1:2\n", r"qid.*datasets\.scan"),
        ("1 1:2\n-1 qid:3 2:5\n", r"a\.svm:2: the row says its task"),
        ("1 1:2\n-1 1_0:5\n", r"a\.svm:2: the index '1_0'"),
    ],
)
def test_libsvm_words_that_other_readers_pass_over(content, words, tmp_path):
    with pytest.raises(DataError, match=words):
        text(tmp_path, content)
    assert text(tmp_path, "1 1:2 # qid:3 a_b\n-1 2:5\n").n_samples == 2
