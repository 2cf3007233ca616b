"""The papers' data as published: the sizes that the papers report, and the labels counted by other means than our readers."""

import os
import re

import numpy as np
import pytest
from scipy.io import loadmat
from scipy.io.arff import loadarff

from mtldsl import DataError, datasets
from mtldsl.data.published import data_folder
from tests.loops import for_each

try:
    FOLDER = data_folder()
except DataError as error:
    FOLDER, WHY = None, str(error)
else:
    WHY = f"{FOLDER} lacks it"


def papers(*parts):
    """Marked `papers`, and skipped where the file is absent."""

    def decorate(test):
        there = FOLDER is not None and FOLDER.joinpath(*parts).is_file()
        return pytest.mark.papers(pytest.mark.skipif(not there, reason=f"{'/'.join(parts)}: {WHY}")(test))

    return decorate


@pytest.mark.slow
@papers("school", "school.mat")
def test_school():
    tasks = datasets.load_school()
    assert (tasks.n_tasks, tasks.n_samples, tasks.n_features) == (139, 15362, 28)
    assert (tasks.counts.min(), tasks.counts.max()) == (22, 251)
    assert tasks.targets.min() == 1 and tasks.targets.max() == 70
    pooled = np.vstack(tasks.inputs)
    assert (pooled[:, 27] == 1).all() and np.linalg.matrix_rank(pooled) == 23
    assert all((X[:, 21:27] == X[0, 21:27]).all() for X in tasks.inputs)


@pytest.mark.slow
@papers("sarcos", "sarcos_inv_test.mat")
def test_sarcos():
    tasks = datasets.load_sarcos()
    table = loadmat(FOLDER / "sarcos" / "sarcos_inv_test.mat")["sarcos_inv_test"]
    np.testing.assert_array_equal(tasks.X, table[:, :21])
    np.testing.assert_array_equal(np.column_stack(tasks.per_task(tasks.targets)), table[:, 21:])
    assert tasks.feature_names[7] == "velocity 1" and tasks.task_names[6] == "torque 7"


@papers("emotions", "emotions.arff")
def test_emotions_against_scipy():
    tasks = datasets.load_emotions()
    records, attributes = loadarff(FOLDER / "emotions" / "emotions.arff")
    assert tasks.X.shape == (593, 72) and tasks.n_tasks == 6
    for name, x in zip(tasks.feature_names, tasks.X.T, strict=True):
        np.testing.assert_array_equal(x, records[name])
    for name, y in zip(tasks.task_names, tasks.per_task(tasks.targets), strict=True):
        np.testing.assert_array_equal(y == 1, records[name] == b"1")
    assert set(tasks.feature_names) | set(tasks.task_names) == set(attributes.names())
    train, test = datasets.load_emotions(part="train"), datasets.load_emotions(part="test")
    assert (len(train.X), len(test.X)) == (391, 202)


@papers("flags", "flags.arff")
def test_flags_with_their_nominal_columns():
    tasks = datasets.load_flags()
    rows = [
        line.split(",") for line in (FOLDER / "flags" / "flags.arff").read_text().split("@data")[1].split()
    ]
    table = np.array(rows, dtype=float)
    assert tasks.X.shape == (
        194,
        43,
    )  # 10 numeric; 6 + 4 + 10 + 8 for landmass, zone, language, religion; 5 of two values
    column = dict(zip(tasks.feature_names, tasks.X.T, strict=True))
    np.testing.assert_array_equal(column["landmass=5"], table[:, 0] == 5)
    np.testing.assert_array_equal(column["area"], table[:, 2])
    np.testing.assert_array_equal(column["text=1"], table[:, 18])
    zones = [column[f"zone={k}"] for k in (1, 2, 3, 4)]
    assert (np.sum(zones, axis=0) == 1).all()
    np.testing.assert_array_equal(np.stack(tasks.per_task(tasks.targets)), 2 * table[:, 19:].T - 1)
    assert tasks.targets.size and (tasks.targets == 1).sum() / 194 == pytest.approx(
        3.39, abs=0.005
    )  # as published


@pytest.mark.slow
@papers("scene", "scene-train.arff")
def test_scene_joins_both_parts():
    tasks, test = datasets.load_scene(), datasets.load_scene(part="test")
    assert tasks.X.shape == (2407, 294) and test.X.shape == (1196, 294)
    np.testing.assert_array_equal(tasks.X[1211:], test.X)
    assert tasks.task_names == ("Beach", "Sunset", "FallFoliage", "Field", "Mountain", "Urban")
    tasks.require_labels("sign", "hinge_loss(W, tasks)")


@papers("segmentation", "segmentation.data")
def test_segmentation():
    tasks = datasets.load_segmentation()
    assert tasks.X.shape == (2310, 19) and tasks.n_tasks == 7
    labels = np.stack(tasks.per_task(tasks.targets))
    assert ((labels == 1).sum(axis=1) == 330).all() and ((labels == 1).sum(axis=0) == 1).all()
    assert np.ptp(tasks.X[:, 2]) == 0
    text = (FOLDER / "segmentation" / "segmentation.test").read_text()
    assert (labels[tasks.task_names.index("sky"), 210:] == 1).sum() == len(
        re.findall("^SKY,", text, re.MULTILINE)
    )


@for_each(("name", "shape"), [("enb", (768, 8, 2)), ("atp1d", (337, 411, 6)), ("andro", (49, 30, 6))])
@papers("multi-target", "enb.arff")
def test_multi_target(name, shape):
    tasks = datasets.load_multi_target(name)
    assert (*tasks.X.shape, tasks.n_tasks) == shape and tasks.mask is None
    last = (FOLDER / "multi-target" / f"{name}.arff").read_text().strip().splitlines()[-1].split(",")
    np.testing.assert_array_equal(tasks.X[-1], np.array(last[: shape[1]], dtype=float))
    np.testing.assert_array_equal(
        [y[-1] for y in tasks.per_task(tasks.targets)], np.array(last[shape[1] :], dtype=float)
    )


def test_where_the_data_may_be(tmp_path, monkeypatch):
    monkeypatch.setenv("MTLDSL_DATA", str(tmp_path))
    assert data_folder() == tmp_path and data_folder("here") == data_folder().__class__("here")
    with pytest.raises(DataError, match=r"school\.mat: there is no such file"):
        datasets.load_school()
    with pytest.raises(DataError, match=r"write one of 'enb', 'atp1d', 'andro'"):
        datasets.load_multi_target("sf1")
    with pytest.raises(DataError, match=r"part='valid'"):
        datasets.load_flags(part="valid")


def test_found_above_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("MTLDSL_DATA", raising=False)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    assert os.path.samefile(data_folder(), tmp_path / "shared" / "data")
