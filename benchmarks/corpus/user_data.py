"""Data files of a user, read with the package's own readers: every file of a folder and of the folders in it, or why not.

A file of labels 0/1 or -1/+1 makes classification problems, any other numbers make regressions. What the readers must be told is read
off the file's kind. ARFF: the XML of Mulan in the folder whose labels the file has; else MEKA's `-C n` in the relation's name; else the last
attribute is the target. CSV: columns whose names begin with y, target or label are the targets, else the last one; a column task or task_id
tells tasks apart. NPZ and MAT: arrays X and Y (or feature and label, ...), and task or task_id where rows are of different tasks. LIBSVM:
classes become one task each; lists of labels one task a label. `read_tasks` reads one file, and can be told what is otherwise read off.
"""

from __future__ import annotations

import csv
import re
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from .data import DataSet, Raw, raw_of

__all__ = ["TASKS", "read_tasks", "sets_of"]

_LIBSVM = (".svm", ".libsvm", ".svmlight", ".txt")
#: What files call inputs and labels.
_ARRAYS = (
    ("X", "Y"), ("X", "y"), ("x", "y"), ("data", "target"), ("data", "labels"), ("feature", "label"), ("features", "labels"),
)  # fmt: skip
#: Columns, or arrays, that tell the rows of different tasks apart.
TASKS = ("task", "task_id", "task_ids", "group")


def sets_of(folder: Path, say=print) -> dict[str, DataSet]:
    """Name -> data set. What is left out is said, with the reason; ValueError where nothing can be read."""
    if not folder.is_dir():
        raise ValueError(f"--data {folder}: there is no such folder")
    found: dict[str, DataSet] = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if not path.is_file() or path.suffix in (".xml", ".md", ".json", ".png") or hidden:
            continue
        try:
            tasks = read_tasks(path)
            if tasks.n_samples < 8:
                raise ValueError("fewer than 8 labelled rows")
            raw = raw_of(tasks)
        except Exception as error:
            say(f"skipped {inside}: {error}")
            continue
        targets = np.unique(tasks.targets)
        labels = set(targets) <= {-1.0, 0.0, 1.0} and len(targets) == 2
        if labels and 0.0 in targets:
            raw = _signs(raw)
        n = tasks.X.shape[0] if tasks.is_shared else tasks.n_samples
        layout = (
            "separate" if not tasks.is_shared
            else "csr" if tasks.is_sparse
            else "missing" if tasks.mask is not None
            else "dense"
        )  # fmt: skip
        if layout == "separate" and tasks.is_sparse:
            say(f"skipped {inside}: separate inputs that are sparse have no models in the corpus")
            continue
        name = next(each for each in (path.stem, path.name, "-".join(inside.parts)) if each not in found)
        found[name] = DataSet(
            name, "data", lambda raw=raw: raw, n, tasks.n_features, tasks.n_tasks, layout, labels
        )
        say(f"read {inside}: {tasks!r}")
    if not found:
        raise ValueError(f"--data {folder}: no file in it holds data of .arff, .csv, .npz, .mat or LIBSVM")
    return found


def _signs(raw: Raw) -> Raw:
    def of(y):
        return np.where(np.isfinite(y), np.where(y > 0, 1.0, -1.0), np.nan)

    return Raw(raw.X, [of(y) for y in raw.Y] if raw.separate else of(raw.Y))


def read_tasks(path: Path, *, xml=None, inputs=None, labels=None, task=None):
    """`Tasks` of one file.

    xml    : Mulan's list of the labels of an ARFF file
    inputs : the array of the inputs (NPZ, MAT)
    labels : names of the label columns, or how many of the last ones they are (ARFF, CSV); the array of the labels (NPZ, MAT)
    task   : the column, or array, that tells the rows of different tasks apart (CSV, NPZ, MAT)
    Errors are those of the package's readers; ValueError for another kind of file.
    """
    from mtldsl import datasets

    kind = path.suffix.lower()
    if kind == ".arff":
        return datasets.read_arff(path, str(xml) if xml else labels or _arff_labels(path, path.parent))
    if kind == ".csv":
        return _csv(path, labels, task)
    if kind in (".npz", ".mat"):
        return _arrays(datasets.read_npz if kind == ".npz" else datasets.read_mat, path, inputs, labels, task)
    if kind in _LIBSVM:
        return _libsvm(path)
    raise ValueError(
        f"{kind or 'a file without ending'} is none of .arff, .csv, .npz, .mat, {', '.join(_LIBSVM)}"
    )


def _arrays(reader, path: Path, inputs, labels, task):
    more = {"task_ids": task} if task else {}

    def read(X, Y):
        return (X, Y), reader(path, X, Y, **more)

    named = labels[0] if isinstance(labels, list) else labels
    pairs = dict.fromkeys((inputs or X, named or Y) for X, Y in _ARRAYS)
    names, tasks = _first([partial(read, *pair) for pair in pairs])
    if task or not tasks.is_shared or tasks.n_tasks > 1:
        return tasks
    for name in TASKS:  # one column: its rows may be of many tasks
        try:
            return reader(path, *names, task_ids=name)
        except Exception:  # no such array
            continue
    return tasks


def _first(attempts: list):
    """What the first attempt that succeeds returns; the first one's error where none does."""
    errors = []
    for attempt in attempts:
        try:
            return attempt()
        except Exception as error:
            errors.append(error)
    raise errors[0]


def _arff_labels(path: Path, folder: Path):
    """Mulan's XML whose labels this file has as attributes; else how many MEKA's relation name tells; else the last attribute."""
    text = path.read_text(encoding="utf-8", errors="replace")
    original = re.split("@data", text, maxsplit=1, flags=re.IGNORECASE)[0]
    head = original.lower()
    for each in sorted(
        folder.glob("*.xml"), key=lambda each: (not path.stem.startswith(each.stem), each.name)
    ):
        names = re.findall(r'<label\s+name="([^"]+)"', each.read_text(encoding="utf-8", errors="replace"))
        if names and all(name.lower() in head for name in names):
            return str(each)
    told = re.search(r"-c\s+(-?\d+)", head.split("@attribute")[0])
    if told and int(told[1]) < 0:
        return -int(told[1])
    if told:
        return [
            name.strip("'\"")
            for name in re.findall(r"(?i)@attribute\s+('[^']+'|\"[^\"]+\"|\S+)", original)[: int(told[1])]
        ]
    return 1


def _csv(path: Path, labels=None, task=None):
    from mtldsl import datasets

    with open(path, newline="", encoding="utf-8") as file:
        first = file.readline()
    delimiter = max(",;\t", key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter))]
    if all(_is_number(name) for name in names):  # no header
        return datasets.read_csv(path, 1, header=False, delimiter=delimiter)
    named = [name for name in names if name.lower().startswith(("y", "target", "label"))]
    options = {"delimiter": delimiter}
    tasks = [task] if task else [name for name in names if name.lower() in TASKS]
    if tasks:
        options["task"] = tasks[0]
    labels = labels or named or [names[-1]]
    if tasks and not isinstance(labels, int) and len(labels) == 1:
        labels = labels[0]  # every task has rows of its own of the one column
    further = ({}, {"one_hot": True}, {"one_vs_rest": True}, {"one_hot": True, "one_vs_rest": True})
    return _first([partial(datasets.read_csv, path, labels, **options, **more) for more in further])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _libsvm(path: Path):
    """Classes where targets are few whole numbers, lists of labels where there are commas, else a regression."""
    from mtldsl import datasets

    with open(path, encoding="utf-8") as file:
        first = [line.split(maxsplit=1)[0] for line in islice(file, 500) if line.strip()]
    if any("," in each for each in first):
        return datasets.read_libsvm(path, multilabel=True)
    values = {float(each) for each in first}
    whole = all(value == int(value) for value in values)
    return datasets.read_libsvm(path, one_vs_rest=whole and len(values) <= 20)
