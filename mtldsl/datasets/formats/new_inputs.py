"""Rows without labels, for a model that is there: the columns that it was learned on, by name, in its order."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.datasets.formats.cells import MISSING, is_number, number, with_point
from mtldsl.datasets.formats.csv_files import rows_of
from mtldsl.errors import DataError
from mtldsl.system.archives import read_archive
from mtldsl.system.reading import regular_file

__all__ = ["read_inputs"]


def read_inputs(
    path,
    names: Sequence[str],
    beside: Sequence[str] = (),
    *,
    delimiter: str = ",",
    decimal: str = ".",
    fill: np.ndarray | None = None,
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """(X (n, len(names)), {column: its cells as text} of the columns `beside`) from a CSV file, or an .npz file with an array X.

    Columns of the file that are not asked for are left out. A name such as "colour=red" is an indicator that `read_csv` made of
    the column "colour"; where the file has that column, the indicator is made of it again. fill: (len(names),) what stands in place of
    values that are missing; None: these are refused. DataError, with line and column, for a
    column that is not there and for a cell that is not a finite number.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "new.csv"
    >>> _ = path.write_text("id,colour,hours\\n7,red,1.5\\n8,blue,2\\n")
    >>> X, kept = read_inputs(path, ["hours", "colour=red"], ["id"])
    >>> X.tolist(), kept
    ([[1.5, 1.0], [2.0, 0.0]], {'id': ['7', '8']})
    """
    path = regular_file(path)
    if path.suffix == ".npz":
        return _of_archive(path, names, beside, fill)
    columns, rows, lines = rows_of(path, delimiter, True, decimal)
    place = {name: j for j, name in enumerate(columns)}
    texts = list(zip(*rows, strict=True))
    X = np.empty((len(rows), len(names)))
    for k, name in enumerate(names):
        if name in place:
            X[:, k] = _numbers(path, name, texts[place[name]], lines, None if fill is None else fill[k])
            continue
        column, equals, value = name.rpartition("=")
        if not equals or column not in place:
            raise DataError(
                f"there is no column {name!r}, which the model was learned on{_near(name, columns)}",
                term=path,
            )
        cells = [text.strip() for text in texts[place[column]]]
        X[:, k] = [cell == value for cell in cells]
        if fill is not None:
            X[[cell in MISSING for cell in cells], k] = fill[k]
    for name in beside:
        if name not in place:
            raise DataError(f"there is no column {name!r}{_near(name, columns)}", term=path)
    return X, {name: [text.strip() for text in texts[place[name]]] for name in beside}


def _of_archive(path: Path, names: Sequence[str], beside: Sequence[str], fill: np.ndarray | None):
    arrays: dict[str, Any] = read_archive(path, "inputs")
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise DataError("there is no matrix X in it", term=path, write_instead="write np.savez(path, X=X)")
    X = np.asarray(arrays["X"], dtype=float)
    if X.shape[1] != len(names):
        raise DataError(f"X has {X.shape[1]} columns, but the model was learned on {len(names)}", term=path)
    if fill is not None:
        X = np.where(np.isnan(X), fill, X)
    if not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        raise DataError(f"X[{i}, {j}] is {X[i, j]}", term=path, write_instead="impute or drop it")
    if beside:
        raise DataError(
            f"an .npz file has no column {beside[0]!r}", term=path, write_instead="give a CSV file"
        )
    return X, {}


def _numbers(path: Path, name: str, texts, lines, fill: float | None) -> list[float]:
    values = []
    for text, line in zip(texts, lines, strict=True):
        try:
            value = number(text)
            value = fill if fill is not None and np.isnan(value) else value
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            shown = repr(text.strip()) if text.strip() else "empty"
            comma = is_number(with_point(text)) and not is_number(text)
            raise DataError(
                f"{path}:{line}: column {name!r} is {shown}, not a finite number",
                write_instead="where commas stand for decimal points, say so: --decimal , on the command line, decimal=',' in Python"
                if comma
                else "fill it in, or leave out the row",
            )
        values.append(value)
    return values


def _near(name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1)
    return (
        f"; did you mean {near[0]!r}?"
        if near
        else f"; the columns are {', '.join(columns[:12])}{', ...' * (len(columns) > 12)}"
    )
