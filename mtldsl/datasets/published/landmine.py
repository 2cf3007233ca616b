"""The Landmine data as it is passed around: a MATLAB file with a cell of features and a cell of labels for every field."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mtldsl.datasets.formats.array_files import tasks_of_variables
from mtldsl.datasets.formats.mat_files import mat_variables
from mtldsl.errors import DataError
from mtldsl.tasks import Tasks

__all__ = ["load_landmine"]

#: What the two variables may be called, in lower case.
_PAIRS = (("feature", "label"), ("features", "labels"), ("x", "y"), ("data", "label"), ("data", "labels"))


def load_landmine(path, X: str | None = None, Y: str | None = None) -> Tasks:
    """A task for every field: is what the radar saw a mine (+1) or clutter (-1)?  From the `.mat` file at `path`.

    Landmine: 29 fields, 14,820 places, 9 features (moments, correlations, an energy ratio, a spatial variance), about 6 % mines; the
    first 15 fields are covered with leaves, the others bare. Any number of tasks and features is read.

    X, Y : names of the variables; default: feature and label, features and labels, X and Y, in upper or lower case. Each is
           a cell array, 1 x T or T x 1: (n_t, d) features and n_t labels, 0/1 or -1/+1, the same in all cells

    Tasks are "field 1", "field 2", ...; features "feature 1", .... The file is not part of this package. DataError for a file without
    such variables, cells that do not match, labels of another kind, naming cell and row.

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
    path = Path(path)
    content = mat_variables(path)
    names = _chosen(path, content, X, Y)
    raw = tasks_of_variables(path, content, *names)
    labels = raw.per_task(raw.targets)
    return Tasks.separate(
        raw.inputs,
        [2.0 * y - 1.0 for y in labels] if _are_zero_one(path, names[1], raw) else labels,
        task_names=[f"field {t}" for t in range(1, raw.n_tasks + 1)],
        feature_names=[f"feature {k}" for k in range(1, raw.n_features + 1)],
    )


def _chosen(path, content, X, Y) -> tuple[str, str]:
    """The names of the two variables, both cell arrays of one length."""
    cells = {name: value.shape for name, value in content.items() if value.dtype == object}
    if (X is None) != (Y is None):
        raise DataError(
            term=f"load_landmine(X={X!r}, Y={Y!r})",
            write_instead="name both variables, or neither",
            argument="X",
        )
    spelled = {name.lower(): name for name in cells}
    pairs = [(spelled[x], spelled[y]) for x, y in _PAIRS if x in spelled and y in spelled]
    for name in () if X is None else (X, Y):
        if name not in cells:
            raise DataError(f"there is no cell array {name!r}; {_found(cells)}", term=path)
    if X is None and not pairs:
        raise DataError(
            f"no cell arrays 'feature' and 'label' (nor features and labels, X and Y); {_found(cells)}",
            term=path,
            write_instead="name them: load_landmine(path, X=..., Y=...)",
        )
    X, Y = pairs[0] if X is None else (X, Y)
    for name in (X, Y):
        if len([side for side in cells[name] if side != 1]) > 1:
            raise DataError(
                f"{name} is a cell array of shape {cells[name]}; a task a cell needs 1 x T or T x 1",
                term=path,
            )
    if np.prod(cells[X]) != np.prod(cells[Y]):
        raise DataError(
            f"{X} has {np.prod(cells[X])} cells but {Y} has {np.prod(cells[Y])}",
            term=path,
            write_instead="give one of each per task",
        )
    return X, Y


def _found(cells) -> str:
    return f"its cell arrays: {', '.join(map(repr, cells))}" if cells else "it has no cell arrays"


def _are_zero_one(path, name, raw: Tasks) -> bool:
    """Whether the labels are 0/1 (else they are -1/+1); decided for all cells together, as a cell may hold one class."""
    y = raw.targets
    zero_one, signs = np.isin(y, (0.0, 1.0)), np.isin(y, (-1.0, 1.0))
    if signs.all() or zero_one.all():
        return not signs.all()
    first = y[y != 1.0][0]  # what the first of them are is what the others should be
    wrong = ~(zero_one if first == 0.0 else signs)
    task, row = raw.place(int(np.flatnonzero(wrong)[0]))
    other = f", and those before it are {'0/1' if first == 0.0 else '-1/+1'}" if first in (-1.0, 0.0) else ""
    raise DataError(
        f"{name}{{{task + 1}}}, row {row + 1}, is {y[wrong][0]:g}; labels must be 0/1 or -1/+1{other}",
        term=path,
    )
