"""Data files of a user, read with the package's own readers: every file of a folder, or why not.

A file of labels 0/1 or -1/+1 makes classification problems, any other numbers make regressions. What the readers must be told is read
off the file's kind: ARFF: Mulan's XML of the same name, or the only one in the folder; without one, the last attribute is the target.
CSV: columns whose names begin with y, target or label are the targets, else the last one. NPZ and MAT: arrays X and Y. LIBSVM: classes
become one task each; lists of labels one task a label.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from .data import DataSet, Raw, raw_of

__all__ = ["sets_of"]

_LIBSVM = (".svm", ".libsvm", ".svmlight", ".txt")


def sets_of(folder: Path, say=print) -> dict[str, DataSet]:
    """Name -> data set. What is left out is said, with the reason."""
    found: dict[str, DataSet] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() or path.suffix in (".xml", ".md", ".json", ".png") or path.name.startswith("."):
            continue
        try:
            tasks = _read(path, folder)
            if tasks.n_samples < 8:
                raise ValueError("fewer than 8 labelled rows")
            raw = raw_of(tasks)
        except Exception as error:
            say(f"skipped {path.name}: {error}")
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
            say(f"skipped {path.name}: separate inputs that are sparse have no models in the corpus")
            continue
        name = path.stem if path.stem not in found else path.name
        found[name] = DataSet(
            name, "data", lambda raw=raw: raw, n, tasks.n_features, tasks.n_tasks, layout, labels
        )
        say(f"read {path.name}: {tasks!r}")
    return found


def _signs(raw: Raw) -> Raw:
    def of(y):
        return np.where(np.isfinite(y), np.where(y > 0, 1.0, -1.0), np.nan)

    return Raw(raw.X, [of(y) for y in raw.Y] if raw.separate else of(raw.Y))


def _read(path: Path, folder: Path):
    from mtldsl import datasets

    kind = path.suffix.lower()
    if kind == ".arff":
        return datasets.read_arff(path, _arff_labels(path, folder))
    if kind == ".csv":
        return datasets.read_csv(path, _csv_labels(path))
    if kind == ".npz":
        return datasets.read_npz(path)
    if kind == ".mat":
        return datasets.read_mat(path)
    if kind in _LIBSVM:
        return _libsvm(path)
    raise ValueError(
        f"{kind or 'a file without ending'} is none of .arff, .csv, .npz, .mat, {', '.join(_LIBSVM)}"
    )


def _arff_labels(path: Path, folder: Path):
    own = path.with_suffix(".xml")
    if own.exists():
        return str(own)
    others = sorted(folder.glob("*.xml"))
    fitting = [each for each in others if path.stem.startswith(each.stem)]
    return str(fitting[0]) if fitting else 1


def _csv_labels(path: Path):
    with open(path, newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    named = [name for name in header if name.strip().lower().startswith(("y", "target", "label"))]
    return named or [header[-1]]


def _libsvm(path: Path):
    """Classes where targets are few whole numbers, lists of labels where there are commas, else a regression."""
    from mtldsl import datasets

    with open(path, encoding="utf-8") as file:
        first = [line.split(maxsplit=1)[0] for line in (next(file, "") for _ in range(200)) if line.strip()]
    if any("," in each for each in first):
        return datasets.read_libsvm(path, multilabel=True)
    values = {float(each) for each in first}
    whole = all(value == int(value) for value in values)
    return datasets.read_libsvm(path, one_vs_rest=whole and len(values) <= 20)
