"""Names of classes and tasks that differ by blanks or capitals alone: two, and a warning that names both, at every door."""

import warnings

import numpy as np
import pandas as pd
import pytest

import mtldsl as mtl
from mtldsl.data.input_checks import SpellingWarning
from mtldsl.estimators import MultiTaskClassifier, MultiTaskClassifierCV
from tests.loops import for_each

X = np.random.default_rng(0).normal(size=(40, 2))


def names(one: str, other: str) -> np.ndarray:
    return np.where(X[:, 0] > 0, "no", np.where(X[:, 1] > 0, one, other))


def as_table(y, path):
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv(path, index=False)
    return path


DOORS = {
    "vector": lambda y, path: MultiTaskClassifier().fit(X, y),
    "folds": lambda y, path: MultiTaskClassifierCV(cv=2, values=[1.0]).fit(X, y),
    "table": lambda y, path: MultiTaskClassifier().fit(X, pd.DataFrame({"y": np.where(y == "no", y[y != "no"][0], y)})),
    "classes": lambda y, path: mtl.Tasks.from_classes(X, y),
    "tasks": lambda y, path: mtl.Tasks.grouped(X, X[:, 0], y),
    "file": lambda y, path: mtl.datasets.read_csv(as_table(y, path), labels="y", one_vs_rest=True),
}  # fmt: skip


@for_each("door", [name for name in DOORS if name != "file"])
def test_blanks_make_two_names_and_a_warning(door, tmp_path):
    with pytest.warns(SpellingWarning, match="'yes' and 'yes ' are two names, and differ by blanks"):
        DOORS[door](names("yes", "yes "), tmp_path / "t.csv")


@for_each("door", DOORS)
def test_capitals_make_two_names_and_a_warning(door, tmp_path):
    with pytest.warns(SpellingWarning, match="'Yes' and 'yes' are two names, and differ by capitals"):
        DOORS[door](names("Yes", "yes"), tmp_path / "t.csv")


@for_each("door", DOORS)
def test_names_that_differ_by_a_letter_are_left_alone(door, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpellingWarning)
        DOORS[door](names("yes", "yess"), tmp_path / "t.csv")


def test_blanks_around_the_cells_of_a_file_are_no_part_of_them(tmp_path):
    path = as_table(names("yes", "yes "), tmp_path / "t.csv")
    assert mtl.datasets.read_csv(path, labels="y", binary=True).task_names == ("y",)
