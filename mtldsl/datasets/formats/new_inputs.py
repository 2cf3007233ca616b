"""Rows without labels, for a model that is there: the columns that it was learned on, by name, in its order."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.datasets.formats.cells import codes_of, is_number, number, with_point
from mtldsl.datasets.formats.csv_files import rows_of
from mtldsl.datasets.formats.table import require_distinct
from mtldsl.errors import DataError
from mtldsl.system.archives import read_archive
from mtldsl.system.reading import regular_file
from mtldsl.tasks.description import NOTHING_KNOWN, DataDescription, TableColumn
from mtldsl.tasks.names import unlike
from mtldsl.values.array import as_array

__all__ = ["TextRows", "read_inputs"]


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows of a CSV file as text: {column: its cells}, and the line of every row."""

    path: Path
    cells: dict[str, list[str]]
    lines: np.ndarray

    @classmethod
    def read(cls, path: Path, delimiter: str, decimal: str) -> TextRows:
        names, rows, lines = rows_of(path, delimiter, True, decimal)
        require_distinct(names, path)
        texts = zip(names, zip(*rows, strict=True), strict=True)
        return cls(path, {name: [text.strip() for text in column] for name, column in texts}, lines)

    def place(self, row: int) -> str:
        """A row as a message calls it."""
        return f"{self.path}:{self.lines[row]}"

    def require(self, name: str, why: str = "") -> list[str]:
        """The cells of a column; DataError where there is none of that name."""
        if name not in self.cells:
            raise DataError(f"there is no column {name!r}{why}{self._near(name)}", term=self.path)
        return self.cells[name]

    def _near(self, name: str) -> str:
        near, known = difflib.get_close_matches(name, self.cells, n=1), list(self.cells)
        shown = ", ".join(known[:12]) + ", ..." * (len(known) > 12)
        return f"; did you mean {near[0]!r}?" if near else f"; the columns are {shown}"

    def inputs(
        self, names: Sequence[str], description: DataDescription, fill: np.ndarray | None
    ) -> np.ndarray:
        """(n, len(names)) the features of these names; see `read_inputs`."""
        X = np.empty((len(self.lines), len(names)))
        made = {part: column for column in description.features for part in column.made}
        columns = {name: made[name] for name in names if name in made and made[name].name in self.cells}
        lacking = [name for name in names if name not in columns and name not in self.cells]
        for name in lacking:
            if name in made:
                self.require(made[name].name, _LEARNED_ON)
        columns |= self._guessed(lacking)
        codes = {
            one.name: codes_of(one, self.cells[one.name], self.place)
            for one in dict.fromkeys(columns.values())
        }
        for k, name in enumerate(names):
            column = columns.get(name)
            if column is None:
                own, values = name, self._numbers(name)
            else:
                own, here = column.name, codes[column.name]
                values = np.where(np.isnan(here), np.nan, here == column.parts.index(name))
            X[:, k] = self._filled(own, values, None if fill is None else fill[k])
        return X

    def _guessed(self, names: Sequence[str]) -> dict[str, TableColumn]:
        """Columns of categories of features that no description tells of, as in files of older versions: "colour=red" where there is a
        column "colour". Only categories that have a feature are known of these."""
        found: dict[str, list[str]] = {}
        for name in names:
            of = [column for column in self.cells if name.startswith(f"{column}=")]
            if len(of) != 1:
                self.require(name, _LEARNED_ON)
            found.setdefault(of[0], []).append(name)
        return {
            name: TableColumn(column, tuple(one[len(column) + 1 :] for one in parts), tuple(parts))
            for column, parts in found.items()
            for name in parts
        }

    def _numbers(self, name: str) -> np.ndarray:
        cells, values = self.require(name, _LEARNED_ON), np.empty(len(self.lines))
        for i, text in enumerate(cells):
            try:
                values[i] = number(text)
            except ValueError:
                values[i] = np.inf  # refused as such
        return values

    def _filled(self, name: str, values: np.ndarray, gap: float | None) -> np.ndarray:
        """The values, what is missing filled in; DataError where a cell is not a finite number."""
        values = np.where(np.isnan(values), np.nan if gap is None else gap, values)
        for i in np.flatnonzero(~np.isfinite(values))[:1]:
            text = self.cells[name][i]
            comma = is_number(with_point(text)) and not is_number(text)
            raise DataError(
                f"{self.place(i)}: column {name!r} is {repr(text) if text else 'empty'}, not a finite number",
                write_instead="where commas stand for decimal points, say so: --decimal , on the command line, decimal=',' in Python"
                if comma
                else "fill it in, or leave out the row",
            )
        return values


_LEARNED_ON = ", which the model was learned on"


def read_inputs(
    path,
    names: Sequence[str],
    beside: Sequence[str] = (),
    *,
    description: DataDescription = NOTHING_KNOWN,
    delimiter: str = ",",
    decimal: str | None = None,
    fill: np.ndarray | None = None,
) -> tuple[np.ndarray, dict[str, list[str]]]:
    """(X (n, len(names)), {column: its cells as text} of the columns `beside`) from a CSV file, or an .npz file with an array X.

    Columns of the file that are not asked for are left out. A feature of a category is made of its column again.
    description : of the table that was learned on; without it a category is known where it has a feature, "colour=red"
    decimal     : None: as in the table that was learned on
    fill        : (len(names),) what stands in place of values that are missing; None: these are refused
    DataError, with line and column, for a column that is not there, a cell that is not a finite number, and a category that is not known.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "new.csv"
    >>> _ = path.write_text("id,colour,hours\\n7,red,1.5\\n8,blue,2\\n")
    >>> table = DataDescription(features=(TableColumn.of("colour", ("blue", "red")),))
    >>> X, kept = read_inputs(path, ["hours", "colour=red"], ["id"], description=table)
    >>> X.tolist(), kept
    ([[1.5, 1.0], [2.0, 0.0]], {'id': ['7', '8']})
    """
    path = regular_file(path)
    if path.suffix == ".npz":
        return _of_archive(path, names, beside, fill)
    rows = TextRows.read(path, delimiter, description.decimal if decimal is None else decimal)
    return rows.inputs(names, description, fill), {name: rows.require(name) for name in beside}


def _of_archive(path: Path, names: Sequence[str], beside: Sequence[str], fill: np.ndarray | None):
    arrays: dict[str, Any] = read_archive(path, "inputs")
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise DataError("there is no matrix X in it", term=path, write_instead="write np.savez(path, X=X)")
    X = np.array(as_array(arrays["X"], f"{path}: X"), dtype=float)
    wrong = unlike(names, list(map(str, arrays["feature_names"]))) if "feature_names" in arrays else None
    if wrong is not None:
        raise DataError(f"X has other columns than those learned on: {wrong}", term=path)
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
