"""The data sets of the papers, read from the files as published. They are not part of this package."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mtldsl.datasets.readers import read_arff, read_mat
from mtldsl.errors import DataError
from mtldsl.tasks import Tasks

__all__ = [
    "data_folder",
    "load_emotions",
    "load_flags",
    "load_multi_target",
    "load_sarcos",
    "load_scene",
    "load_school",
    "load_segmentation",
]

VARIABLE = "MTLDSL_DATA"


def data_folder(folder=None) -> Path:
    """The folder with the data sets: `folder`, else $MTLDSL_DATA, else shared/data in or beside a parent of this directory."""
    if folder is not None:
        return Path(folder)
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    starts = [Path.cwd(), Path(__file__).resolve().parent]
    for start in starts:
        for parent in (start, *start.parents):
            if (parent / "shared" / "data").is_dir():
                return parent / "shared" / "data"
    raise DataError(
        f"the papers' data sets were not found: set the environment variable {VARIABLE}, or pass folder=..., to a folder that "
        "holds school/school.mat, emotions/emotions.arff, ... as published"
    )


def _file(folder, *parts) -> Path:
    path = data_folder(folder).joinpath(*parts)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file; the folder must hold the data set as published")
    return path


def load_school(folder=None) -> Tasks:
    """Inner London exam scores: 139 schools, 15,362 students, 28 features (column 27 is the constant 1), scores 1 to 70."""
    return read_mat(_file(folder, "school", "school.mat"))


def load_sarcos(folder=None) -> Tasks:
    """SARCOS inverse dynamics, the published test file: 4,449 rows, 21 inputs (position, velocity, acceleration), 7 torques."""
    from scipy.io import loadmat

    table = loadmat(_file(folder, "sarcos", "sarcos_inv_test.mat"))["sarcos_inv_test"].astype(float)
    features = [
        f"{kind} {joint}" for kind in ("position", "velocity", "acceleration") for joint in range(1, 8)
    ]
    return Tasks.shared(
        table[:, :21], table[:, 21:], task_names=[f"torque {j}" for j in range(1, 8)], feature_names=features
    )


def load_emotions(folder=None) -> Tasks:
    """Mulan's Emotions: 593 pieces of music, 72 features, 6 emotions as labels -1/+1."""
    return read_arff(_file(folder, "emotions", "emotions.arff"), "emotions.xml")


def load_flags(folder=None) -> Tasks:
    """Mulan's Flags: 194 flags, 7 colours as labels -1/+1; the nominal ones of 19 features become columns 0/1."""
    return read_arff(_file(folder, "flags", "flags.arff"), "flags.xml")


def load_scene(folder=None) -> Tasks:
    """Mulan's Scene, train and test part joined in this order: 2,407 images, 294 features, 6 labels -1/+1."""
    parts = [
        read_arff(_file(folder, "scene", f"scene-{part}.arff"), "scene.xml") for part in ("train", "test")
    ]
    X = np.vstack([part.X for part in parts])
    Y = np.vstack([part.targets.reshape(part.n_tasks, -1).T for part in parts])
    return Tasks.shared(X, Y, task_names=parts[0].task_names, feature_names=parts[0].feature_names)


def load_segmentation(folder=None) -> Tasks:
    """UCI image segmentation, both parts joined: 2,310 regions, 19 features, 7 one-against-rest tasks with labels -1/+1."""
    lines, names = [], []
    for part in ("segmentation.data", "segmentation.test"):
        text = _file(folder, "segmentation", part).read_text().splitlines()
        names = [line for line in text if line.startswith("REGION")][0].split(",")
        lines += [line.split(",") for line in text if line.count(",") == 19]
    classes = sorted({line[0] for line in lines})
    X = np.array([[float(cell) for cell in line[1:]] for line in lines])
    Y = np.array([[1.0 if line[0] == c else -1.0 for c in classes] for line in lines])
    return Tasks.shared(
        X, Y, task_names=[c.lower() for c in classes], feature_names=[n.strip().lower() for n in names]
    )


#: number of targets, the last attributes of each file
_TARGETS = {"enb": 2, "atp1d": 6, "andro": 6}


def load_multi_target(name: str = "enb", folder=None) -> Tasks:
    """Mulan's multi-target regression: "enb" (768 x 8, 2 targets), "atp1d" (337 x 411, 6), "andro" (49 x 30, 6)."""
    if name not in _TARGETS:
        raise DataError(
            f"load_multi_target({name!r}): there is no such set; write one of {', '.join(_TARGETS)}"
        )
    return read_arff(_file(folder, "multi-target", f"{name}.arff"), _TARGETS[name], binary=False)
