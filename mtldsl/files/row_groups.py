"""Rows that belong together, such as those of a patient: a column of the data file by which rows are divided in one piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mtldsl.datasets.formats.csv_files import rows_of
from mtldsl.files.section import Reading
from mtldsl.language.words.did_you_mean import nearest
from mtldsl.tasks import Tasks

__all__ = ["groups_of", "numbers_of_rows"]


def numbers_of_rows(tasks: Tasks) -> np.ndarray:
    """The place in the data of every row: of the shared X, or of the labelled rows, task after task."""
    if tasks.is_shared:
        return np.arange(tasks.X.shape[0])
    return np.concatenate(tasks.source_rows or [np.arange(n) for n in tasks.counts])


def groups_of(reading: Reading, name: str, rows: np.ndarray, at: tuple) -> list[str]:
    """The cells of a column of the CSV file in these rows. DataError with the place `at` where there is no such file, or column, or value."""
    file, data = reading.file, reading.data
    path = data.get("path")
    if not isinstance(path, str) or (Path(path).suffix.lower() != ".csv" and data.get("format") != "csv"):
        raise file.error("groups by a column are of a CSV file", at, value=True)
    names, cells, lines = rows_of(reading.folder / path, data.get("delimiter", ","), data.get("header", True))
    if name not in names:
        raise file.error(f"{path} has no column {name!r}{nearest(name, names)}", at, value=True)
    found = [row[names.index(name)].strip() for row in cells]
    empty = next((line for line, cell in zip(lines, found, strict=True) if not cell), None)
    if empty is not None:
        raise file.error(f"{path}:{empty}: column {name!r} is empty, so that it is not clear to whom the row belongs", at, value=True)  # fmt: skip
    return [found[row] for row in rows]
