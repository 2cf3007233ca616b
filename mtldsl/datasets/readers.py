"""Files as Tasks: CSV, ARFF, MATLAB, NPZ, LIBSVM. What cannot be read is named with its file, and its line where there is one."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtldsl.datasets.arff import label_names, parse_arff
from mtldsl.errors import DataError
from mtldsl.tasks import Tasks

__all__ = ["read_arff", "read_csv", "read_libsvm", "read_mat", "read_npz"]


def read_csv(
    path, labels: Sequence[str] | str, *, task: str | None = None, features: Sequence[str] | None = None,
    drop: Sequence[str] = (), delimiter: str = ",", binary: bool = False,
) -> Tasks:  # fmt: skip
    """A CSV file with a header line.

    labels   : the label columns, one per task (an empty cell: not labelled); with `task`, the one column of labels
    task     : a column that tells the rows of different tasks apart; then every task has its own rows
    features : the input columns (None: all others that are not in `drop`)
    binary   : labels are 0/1 and are read as -1/+1
    """
    path, names, rows = _table(path, delimiter)
    labels = [labels] if isinstance(labels, str) else list(labels)
    for column in [*labels, *(features or []), *drop, *([task] if task else [])]:
        if column not in names:
            raise DataError(
                f"{path}: there is no column {column!r}; the header names {', '.join(names[:12])}"
            )
    if task is not None and len(labels) != 1:
        raise DataError(f"{path}: with task={task!r} there is one column of labels, not {len(labels)}")
    excluded = {*labels, *drop, task}
    chosen = list(features) if features is not None else [name for name in names if name not in excluded]
    X = _columns(path, names, rows, chosen)
    Y = _signs(_columns(path, names, rows, labels, empty=np.nan), binary, path)
    if task is None:
        return Tasks.shared(X, Y, task_names=labels, feature_names=chosen)
    position = names.index(task)
    return Tasks.grouped(X, Y[:, 0], [row[position] for _, row in rows], feature_names=chosen)


def _table(path, delimiter):
    path = _existing(path)
    with open(path, newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines, delimiter=delimiter)
        names = [name.strip() for name in next(reader, [])]
        rows = [(reader.line_num, row) for row in reader if row]
    if not names or not rows:
        raise DataError(f"{path}: needs a header line and at least one row")
    for number, row in rows:
        if len(row) != len(names):
            raise DataError(f"{path}:{number}: {len(row)} cells, but the header names {len(names)} columns")
    return path, names, rows


def _columns(path, names, rows, chosen, empty=None) -> np.ndarray:
    positions = [names.index(name) for name in chosen]
    table = np.empty((len(rows), len(chosen)))
    for i, (number, row) in enumerate(rows):
        for j, position in enumerate(positions):
            cell = row[position].strip()
            if not cell and empty is not None:
                table[i, j] = empty
                continue
            try:
                table[i, j] = float(cell)
            except ValueError:
                raise DataError(
                    f"{path}:{number}: {cell!r} in column {chosen[j]!r} is not a number"
                ) from None
    return table


def read_arff(path, labels: int | Sequence[str] | str, *, binary: bool = True) -> Tasks:
    """An ARFF file, dense or sparse, as tasks that share their inputs.

    labels : how many of the last attributes are labels; or their names; or the path of Mulan's XML label list
    binary : nominal labels {0, 1} (and numeric 0/1 ones) are read as -1/+1
    Nominal features with k > 2 values become k columns "name=value"; with 2 values, one column 0/1 "name=second value".
    """
    path = _existing(path)
    attributes, table = parse_arff(path)
    names = [attribute.name for attribute in attributes]
    if isinstance(labels, int):
        if not 0 < labels < len(names):
            raise DataError(f"{path}: labels={labels}: the file has {len(names)} attributes")
        labels = names[-labels:]
    elif isinstance(labels, str):
        xml = Path(labels) if Path(labels).is_absolute() else path.parent / labels
        labels = label_names(_existing(xml))
    for name in labels:
        if name not in names:
            raise DataError(f"{path}: there is no attribute {name!r} for a label")
    Y = np.column_stack(
        [_label_column(attributes[names.index(n)], table[:, names.index(n)], path) for n in labels]
    )
    blocks, columns = [], []
    for attribute, column in zip(attributes, table.T, strict=True):
        if attribute.name in labels:
            continue
        if attribute.values is None:
            blocks.append(column[:, None])
            columns.append(attribute.name)
            continue
        if np.isnan(column).any():
            raise DataError(f"{path}: attribute {attribute.name!r} has a missing value '?'; impute it first")
        kept = range(1, 2) if len(attribute.values) == 2 else range(len(attribute.values))
        blocks.append((column[:, None] == np.array(kept)).astype(float))
        columns += [f"{attribute.name}={attribute.values[k]}" for k in kept]
    return Tasks.shared(
        np.hstack(blocks), _signs(Y, binary, path), task_names=list(labels), feature_names=columns
    )


def _label_column(attribute, column, path) -> np.ndarray:
    """The declared numbers of a nominal label such as {0, 1}; a numeric label as it is."""
    if attribute.values is None:
        return column
    try:
        numbers = np.array([float(value) for value in attribute.values])
    except ValueError:
        raise DataError(
            f"{path}: label {attribute.name!r} has the values {', '.join(attribute.values)}; labels must be numbers"
        ) from None
    known = ~np.isnan(column)
    result = np.full(column.shape, np.nan)
    result[known] = numbers[column[known].astype(int)]
    return result


def read_mat(path, X: str = "X", Y: str = "Y") -> Tasks:
    """A MATLAB file: cells X{i} (n_i, d) and Y{i} (n_i,) of separate tasks, or matrices X (n, d) and Y (n, m) that are shared.

    Integers are converted to float64 before anything is computed.
    """
    from scipy.io import loadmat

    path = _existing(path)
    try:
        content = loadmat(path)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise DataError(
            f"{path}: cannot be read as a MATLAB file ({error}); save it with -v7, not -v7.3"
        ) from error
    for name in (X, Y):
        if name not in content:
            known = ", ".join(key for key in content if not key.startswith("__"))
            raise DataError(f"{path}: there is no variable {name!r}; the file holds {known}")
    inputs, targets = content[X], content[Y]
    if inputs.dtype != object:
        return Tasks.shared(inputs.astype(float), np.asarray(targets, dtype=float))
    cells = [cell.astype(float) for cell in inputs.ravel()]
    return Tasks.separate(cells, [np.asarray(cell, dtype=float).ravel() for cell in targets.ravel()])


def read_npz(path, X: str = "X", Y: str = "Y", *, task_ids: str | None = None, binary: bool = False) -> Tasks:
    """A NumPy archive with X (n, d) and Y (n, m); with `task_ids` (n,), Y is (n,) and every task has its own rows."""
    path = _existing(path)
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: cannot be read as an .npz file ({error})") from error
    for name in [X, Y, *([task_ids] if task_ids else [])]:
        if name not in arrays:
            raise DataError(f"{path}: there is no array {name!r}; the file holds {', '.join(arrays)}")
    labels = _signs(np.asarray(arrays[Y], dtype=float), binary, path)
    return Tasks.grouped(arrays[X], labels, arrays[task_ids]) if task_ids else Tasks.shared(arrays[X], labels)


def read_libsvm(path, *, n_features: int | None = None, binary: bool = False) -> Tasks:
    """One LIBSVM file per task (a path, or a list of paths); inputs stay sparse."""
    from sklearn.datasets import load_svmlight_files

    paths = [_existing(p) for p in ([path] if isinstance(path, (str, Path)) else path)]
    try:
        loaded = load_svmlight_files([str(p) for p in paths], n_features=n_features)
    except ValueError as error:
        raise DataError(f"{', '.join(map(str, paths))}: cannot be read as LIBSVM ({error})") from error
    inputs, targets = loaded[0::2], [_signs(y, binary, p) for y, p in zip(loaded[1::2], paths, strict=True)]
    return Tasks.separate(inputs, targets, task_names=[p.stem for p in paths])


def _signs(Y: np.ndarray, binary: bool, path) -> np.ndarray:
    """Labels 0/1 as -1/+1 where asked for; other labels are left alone, or refused where they are neither 0 nor 1."""
    known = Y[~np.isnan(Y)]
    if not binary or np.isin(known, (-1.0, 1.0)).all():
        return Y
    if not np.isin(known, (0.0, 1.0)).all():
        value = known[~np.isin(known, (0.0, 1.0))][0]
        raise DataError(
            f"{path}: binary=True, but a label is {value:g}; labels must be 0 or 1 (binary=False keeps numbers)"
        )
    return 2.0 * Y - 1.0


def _existing(path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    return path
