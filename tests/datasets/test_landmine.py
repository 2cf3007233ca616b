"""Landmine-style files: small ones are written with scipy, read back, and everything unlike them is refused."""

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from mtldsl import DataError, Tasks
from mtldsl.datasets import READERS, load_landmine
from tests.datasets.mat_here import cells, read_here
from tests.loops import for_each

rng = np.random.default_rng(0)
SIZES = (5, 3, 4)
INPUTS = [rng.normal(size=(n, 9)) for n in SIZES]
LABELS = [np.array([0, 1, 0, 0, 1]), np.array([1, 1, 1]), np.array([0, 0, 0, 1])]
SIGNS = [2.0 * y - 1.0 for y in LABELS]


@pytest.fixture(autouse=True)
def here(monkeypatch):
    read_here(monkeypatch)


def load(folder, options=None, **content):
    savemat(folder / "LandmineData.mat", content)
    return load_landmine(folder / "LandmineData.mat", **(options or {}))


@for_each("column", [False, True])
def test_a_field_a_cell(tmp_path, column):
    content = {"feature": cells(INPUTS, column), "label": cells([y[:, None] for y in LABELS], column)}
    tasks = load(tmp_path, **content, about="ten percent of it", size=3)
    expected = Tasks.separate(
        INPUTS,
        SIGNS,
        task_names=["field 1", "field 2", "field 3"],
        feature_names=[f"feature {k}" for k in range(1, 10)],
    )
    assert tasks.fingerprint() == expected.fingerprint()
    assert tasks.task_names == expected.task_names and tasks.feature_names == expected.feature_names


@for_each(
    "change",
    [
        lambda y: y[None, :],
        lambda y: y.astype(np.uint8)[:, None],
        lambda y: y.astype(bool)[:, None],
        lambda y: 2 * y[:, None] - 1,
        lambda y: sparse.csc_matrix(y[:, None].astype(float)),
    ],
)
def test_what_the_labels_may_be(tmp_path, change):
    tasks = load(tmp_path, feature=cells(INPUTS), label=cells([change(y) for y in LABELS]))
    np.testing.assert_array_equal(tasks.targets, np.concatenate(SIGNS))


def test_one_class_in_a_cell_says_nothing_about_the_coding(tmp_path):
    """Field 2 has ones only: with 0/1 in the other cells and with -1/+1 they are +1."""
    for labels in (LABELS, SIGNS):
        tasks = load(tmp_path, feature=cells(INPUTS), label=cells(labels))
        np.testing.assert_array_equal(tasks.per_task(tasks.targets)[1], [1, 1, 1])


def test_other_names_when_asked(tmp_path):
    content = {
        "feature": cells(INPUTS), "label": cells(LABELS), "mine": cells(LABELS[::-1]), "where": cells(INPUTS[::-1]),
    }  # fmt: skip
    tasks = load(tmp_path, {"X": "where", "Y": "mine"}, **content)
    np.testing.assert_array_equal(tasks.targets, np.concatenate(SIGNS[::-1]))
    np.testing.assert_array_equal(tasks.inputs[0], INPUTS[2])
    assert READERS["landmine"](tmp_path / "LandmineData.mat").n_tasks == 3


WRONG = {
    "other cells": (dict(radar=cells(INPUTS), mine=cells(LABELS)), {}, ["X='feature'", "the file holds radar, mine"]),
    "unknown name": (dict(feature=cells(INPUTS), label=cells(LABELS)), {"Y": "mine"}, ["Y='mine'", "feature, label"]),
    "a cell less": (dict(feature=cells(INPUTS), label=cells(LABELS[:2])), {}, ["3 input matrices but 2 label vectors"]),
    "text": (dict(feature=cells([*INPUTS[:2], "hello"]), label=cells(LABELS)), {}, ["feature{3}", "real numbers"]),
    "a count": (dict(feature=cells(INPUTS), label=cells([LABELS[0], LABELS[1], np.array([0, 0, 2, 1])])), {},
     ["LandmineData.mat", "labels 0/1", "there is a label 2"]),
}  # fmt: skip


@for_each("case", WRONG)
def test_refuses(tmp_path, case):
    content, options, pieces = WRONG[case]
    with pytest.raises(DataError) as error:
        load(tmp_path, options, **content)
    assert all(piece in str(error.value) for piece in pieces), error.value
