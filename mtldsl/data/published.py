"""Loaders of published data sets: digits, Landmine, School, SARCOS, and Mulan's labels and targets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.data.derived import with_fields
from mtldsl.data.readers.arff import arff_tasks, read_arff
from mtldsl.data.readers.array_files import read_mat
from mtldsl.data.table_description import NOTHING_KNOWN
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.files import regular_file
from mtldsl.utils.validation import one_of

# --------------------------------------------------------------------------------------------------------------
# scikit-learn's handwritten digits as ten one-vs-rest tasks.


def load_digits() -> Tasks:
    """1,797 pictures of 8 x 8 pixels; task "digit k" asks whether the picture is a k (+1) or not (-1).

    Pixels are divided by 16, so that they are in [0, 1]. All tasks share X (1797, 64). Three pixels are 0 in every picture.
    Source: scikit-learn's `load_digits`, the test part of UCI's optical recognition of handwritten digits.

    >>> from mtldsl import datasets
    >>> tasks = datasets.load_digits()
    >>> tasks.n_tasks, tasks.X.shape, tasks.task_names[3], tasks.feature_names[9]
    (10, (1797, 64), 'digit 3', 'pixel 1,1')
    """
    from sklearn.datasets import load_digits as load

    data: Any = load()
    return Tasks.shared(
        data.data / 16.0,
        np.where(data.target[:, None] == np.arange(10), 1.0, -1.0),
        task_names=[f"digit {k}" for k in range(10)],
        feature_names=[f"pixel {row},{column}" for row in range(8) for column in range(8)],
    )


# --------------------------------------------------------------------------------------------------------------
# The Landmine data as it is passed around: a MATLAB file with a cell of features and a cell of labels for every field.


def load_landmine(path, X: str = "feature", Y: str = "label") -> Tasks:
    """A task for every field: is what the radar saw a mine (+1) or clutter (-1)?  From the `.mat` file at `path`.

    Landmine: 29 fields, 14,820 places, 9 features (moments, correlations, an energy ratio, a spatial variance), about 6 % mines; the
    first 15 fields are covered with leaves, the others bare. Any number of tasks and features is read.

    X, Y : names of the variables. Each is a cell array, 1 x T or T x 1: (n_t, d) features and n_t labels, 0/1 or -1/+1

    Tasks are "field 1", "field 2", ...; features "feature 1", .... The file is not part of this package. DataError for a file without
    such variables, cells that do not match, labels of another kind.

    Source: Xue, Liao, Carin, Krishnapuram, Multi-Task Learning for Classification with Dirichlet Process Priors (JMLR 2007).

    >>> import tempfile, pathlib, numpy, scipy.io
    >>> from mtldsl import datasets
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "LandmineData.mat"
    >>> feature, label = numpy.empty((1, 2), object), numpy.empty((1, 2), object)
    >>> feature[0, :] = [numpy.eye(3), numpy.ones((2, 3))]
    >>> label[0, :] = [[[1], [0], [0]], [[0], [1]]]
    >>> scipy.io.savemat(path, {"feature": feature, "label": label})
    >>> tasks = datasets.load_landmine(path)
    >>> tasks, tasks.targets
    (<Tasks: 2 tasks, 3 features, separate inputs, 3 + 2 labelled rows>, array([ 1., -1., -1., -1.,  1.]))
    """
    raw = read_mat(path, X, Y, binary=True)
    return with_fields(
        raw,
        task_names=tuple(f"field {t}" for t in range(1, raw.n_tasks + 1)),
        feature_names=tuple(f"feature {k}" for k in range(1, raw.n_features + 1)),
        description=NOTHING_KNOWN,
    )


# --------------------------------------------------------------------------------------------------------------
# The data sets of the papers, read from the files as published. They are not part of this package.

VARIABLE = "MTLDSL_DATA"


def data_folder(folder=None) -> Path:
    """The folder with the data sets: `folder`, else $MTLDSL_DATA, else shared/data in or beside a parent of this directory."""
    if folder is not None:
        return Path(folder)
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    starts = [Path.cwd(), Path(__file__).resolve().parent]
    for start in starts:
        for parent in (start, *start.parents):
            if (parent / "shared" / "data").is_dir():
                return parent / "shared" / "data"
    raise DataError(
        f"the papers' data sets were not found: set the environment variable {VARIABLE}, or pass folder=..., to a folder that "
        "holds school/school.mat, emotions/emotions.arff, ... as published",
        argument="folder",
    )


def _file(folder, *parts) -> Path:
    path = data_folder(folder).joinpath(*parts)
    if not path.is_file():
        raise DataError(
            "there is no such file; the folder must hold the data set as published, unconverted", term=path
        )
    return regular_file(path, "data")


def load_school(folder=None) -> Tasks:
    """Inner London exam scores: 139 schools, 15,362 students, 28 features, scores 1 to 70.

    Column 27 is the constant 1, columns 21 to 26 are constant within a school: the pooled rank is 23.
    """
    return read_mat(_file(folder, "school", "school.mat"))


def load_sarcos(folder=None) -> Tasks:
    """SARCOS inverse dynamics, the 4,449 rows of the published *test* file: 21 inputs of 7 joints, 7 torques.

    The 44,484 rows of the training file are not read: name it a 4,449-row subsample wherever you print a number.
    """
    tasks = read_mat(_file(folder, "sarcos", "sarcos_inv_test.mat"), X="sarcos_inv_test", Y=7)
    kinds = ("position", "velocity", "acceleration")
    return Tasks.shared(
        tasks.X,
        tasks.targets.reshape(7, -1).T,
        task_names=[f"torque {joint}" for joint in range(1, 8)],
        feature_names=[f"{kind} {joint}" for kind in kinds for joint in range(1, 8)],
    )


def load_emotions(folder=None, part: str = "all") -> Tasks:
    """Mulan's Emotions: 593 pieces of music, 72 features, 6 emotions as labels -1/+1; part="train" (391) or "test" (202)."""
    return _mulan(folder, "emotions", {"all": [""], "train": ["-train"], "test": ["-test"]}, part)


def load_flags(folder=None, part: str = "all") -> Tasks:
    """Mulan's Flags: 194 flags, 7 colours as labels -1/+1; part="train" (129) or "test" (65).

    9 of the 19 features are nominal; their 0/1 columns make it 43, see `read_arff`.
    """
    return _mulan(folder, "flags", {"all": [""], "train": ["-train"], "test": ["-test"]}, part)


def load_scene(folder=None, part: str = "all") -> Tasks:
    """Mulan's Scene: 2,407 images, 294 features, 6 labels -1/+1; part="train" (the first 1,211 of them) or "test" (1,196)."""
    return _mulan(folder, "scene", {"all": ["-train", "-test"], "train": ["-train"], "test": ["-test"]}, part)


def _mulan(folder, name, parts, part) -> Tasks:
    one_of(part, parts, f"load_{name}(part")
    return arff_tasks([_file(folder, name, f"{name}{end}.arff") for end in parts[part]], f"{name}.xml")


def load_segmentation(folder=None) -> Tasks:
    """UCI image segmentation, both parts joined: 2,310 regions, 19 features, 7 one-vs-rest tasks with labels -1/+1.

    The third feature, region-pixel-count, is constant.
    """
    rows = []
    for part in ("segmentation.data", "segmentation.test"):
        path = _file(folder, "segmentation", part)
        text = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith(";")]
        names, rows = [name.strip().lower() for name in text[0].split(",")], rows + text[1:]
    cells = [row.split(",") for row in rows]
    classes = np.array([row[0].lower() for row in cells])
    kinds = np.unique(classes)
    Y = np.where(classes[:, None] == kinds, 1.0, -1.0)
    return Tasks.shared(
        np.array([row[1:] for row in cells], dtype=float), Y, task_names=kinds, feature_names=names
    )


#: number of targets, the last attributes of each file
_TARGETS = {"enb": 2, "atp1d": 6, "andro": 6}


def load_multi_target(name: str = "enb", folder=None) -> Tasks:
    """Mulan's multi-target regression: "enb" (768 x 8, 2 targets), "atp1d" (337 x 411, 6), "andro" (49 x 30, 6)."""
    one_of(name, _TARGETS, "load_multi_target(name")
    return read_arff(_file(folder, "multi-target", f"{name}.arff"), _TARGETS[name])
