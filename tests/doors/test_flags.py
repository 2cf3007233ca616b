"""Flags, and names that differ by blanks or capitals alone, at every public door."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.io

import mtldsl as mtl
from mtldsl import datasets, nn, testing
from mtldsl.data.input_checks import SpellingWarning
from mtldsl.estimators import MultiTaskClassifier, MultiTaskClassifierCV
from tests.loops import for_each

X = np.random.default_rng(0).normal(size=(30, 3))
Y = (X[:, :2] > 0).astype(float)
TASKS = mtl.Tasks.shared(X, Y)
W = mtl.Weights(TASKS)
PROBLEM = mtl.minimize(mtl.squared_loss(W, TASKS) + mtl.ridge(W))
CODES = datasets.encode_sequences(["ACACG", "TACAC"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every kind of file that takes a flag when it is read."""
    there = tmp_path_factory.mktemp("files")
    pd.DataFrame(np.hstack([X, Y]), columns=list("abcde")).to_csv(there / "t.csv", index=False)
    np.savez(there / "t.npz", X=X, Y=Y)
    scipy.io.savemat(there / "t.mat", {"X": X, "Y": Y})
    (there / "t.svm").write_text("1 1:2 2:1\n0 1:1 2:3\n")
    (there / "t.arff").write_text("@relation r\n@attribute a numeric\n@attribute y {0,1}\n@data\n1,0\n2,1\n")
    PROBLEM.solve().certificate.save(there / "proof.npz")
    datasets.store(there / "t.svm", there / "stored")
    return there


DOORS = {
    "exact": lambda at, flag: mtl.verify_proof(at / "proof.npz", PROBLEM, exact=flag),
    "data": lambda at, flag: PROBLEM.solve().certificate.save(at / "never.npz", data=flag),
    "raise_on_disagreement": lambda at, flag: PROBLEM.cross_check(raise_on_disagreement=flag),
    "binary of csv": lambda at, flag: datasets.read_csv(at / "t.csv", "e", binary=flag),
    "one_vs_rest of csv": lambda at, flag: datasets.read_csv(at / "t.csv", "e", one_vs_rest=flag),
    "header": lambda at, flag: datasets.read_csv(at / "t.csv", "e", header=flag),
    "binary of arff": lambda at, flag: datasets.read_arff(at / "t.arff", 1, binary=flag),
    "binary of npz": lambda at, flag: datasets.read_npz(at / "t.npz", binary=flag),
    "binary of mat": lambda at, flag: datasets.read_mat(at / "t.mat", binary=flag),
    "binary of libsvm": lambda at, flag: datasets.read_libsvm(at / "t.svm", binary=flag),
    "one_vs_rest of libsvm": lambda at, flag: datasets.read_libsvm(at / "t.svm", one_vs_rest=flag),
    "multilabel": lambda at, flag: datasets.read_libsvm(at / "t.svm", multilabel=flag),
    "check": lambda at, flag: datasets.stored(at / "stored", check=flag),
    "normalize of spectrum": lambda at, flag: datasets.spectrum_kernel(CODES, CODES, normalize=flag),
    "normalize of degrees": lambda at, flag: datasets.weighted_degree_kernel(CODES, CODES, normalize=flag),
    "laws": lambda at, flag: testing.check_word("ridge", laws=flag, solvers=False),
    "solvers": lambda at, flag: testing.check_word("ridge", laws=False, solvers=flag),
    "intercept of nn": lambda at, flag: nn.MultiTaskNetwork(intercept=flag).fit(TASKS),
    "standardize of nn": lambda at, flag: nn.MultiTaskNetwork(standardize=flag).fit(TASKS),
}
OF_DASK = {
    "zero_based": lambda at, flag: datasets.scan(at / "t.svm", zero_based=flag),
    "keep": lambda at, flag: datasets.scan(at / "t.svm", keep=flag),
}


@for_each("name", [*DOORS, *OF_DASK])
def test_a_flag_is_true_or_false(name, folder):
    if name in OF_DASK:
        pytest.importorskip("dask")
    for flag in ("no", 1, np.float64(0.0)):
        with pytest.raises(mtl.MTLError, match=rf"{name.partition(' ')[0]}=.*write .*True"):
            (DOORS | OF_DASK)[name](folder, flag)


def test_columns_to_turn_into_indicators_are_names_or_true(folder):
    with pytest.raises(mtl.DataError, match=r"one_hot=1\): write names of columns, or one_hot=True"):
        datasets.read_csv(folder / "t.csv", "e", one_hot=1)


ROWS = np.random.default_rng(0).normal(size=(40, 2))


def names(one: str, other: str) -> np.ndarray:
    return np.where(ROWS[:, 0] > 0, "no", np.where(ROWS[:, 1] > 0, one, other))


def as_table(y, path):
    pd.DataFrame(ROWS, columns=["a", "b"]).assign(y=y).to_csv(path, index=False)
    return path


SPELLINGS = {
    "vector": lambda y, path: MultiTaskClassifier().fit(ROWS, y),
    "folds": lambda y, path: MultiTaskClassifierCV(cv=2, values=[1.0]).fit(ROWS, y),
    "table": lambda y, path: MultiTaskClassifier().fit(ROWS, pd.DataFrame({"y": np.where(y == "no", y[y != "no"][0], y)})),
    "classes": lambda y, path: mtl.Tasks.from_classes(ROWS, y),
    "tasks": lambda y, path: mtl.Tasks.grouped(ROWS, ROWS[:, 0], y),
    "file": lambda y, path: mtl.datasets.read_csv(as_table(y, path), labels="y", one_vs_rest=True),
}  # fmt: skip


@for_each("door", SPELLINGS)
@for_each("one, other, by", [("Yes", "yes", "capitals"), ("yes", "yes ", "blanks"), ("e\u0301", "\u00e9", "how accents are stored"), ("2", "2.0", "zeros behind a point")])  # fmt: skip
def test_blanks_or_capitals_make_two_names_and_a_warning(door, one, other, by, tmp_path):
    if (door, by) == ("file", "blanks"):
        pytest.skip("blanks around the cells of a file are not part of them")
    with pytest.warns(SpellingWarning, match=f"'{one}' and '{other}' are two names, and differ by {by}"):
        SPELLINGS[door](names(one, other), tmp_path / "t.csv")


@for_each("door", SPELLINGS)
def test_names_that_differ_by_a_letter_are_left_alone(door, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpellingWarning)
        SPELLINGS[door](names("yes", "yess"), tmp_path / "t.csv")


def test_blanks_around_the_cells_of_a_file_are_no_part_of_them(tmp_path):
    path = as_table(names("yes", "yes "), tmp_path / "t.csv")
    assert mtl.datasets.read_csv(path, labels="y", binary=True).task_names == ("y",)
