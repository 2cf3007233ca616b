"""Reader of new rows for a saved solution, with its columns found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mtldsl.data.input_checks import as_learned, unlike
from mtldsl.data.readers.csv import rows_of
from mtldsl.data.readers.table import (
    as_numbers,
    codes_of,
    how_lost,
    is_number,
    number,
    require_distinct,
    with_point,
)
from mtldsl.data.table_description import NOTHING_KNOWN, DataDescription, TableColumn
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError
from mtldsl.utils.files import read_archive, regular_file
from mtldsl.utils.validation import listed, nearest

# --------------------------------------------------------------------------------------------------------------
# Rows without labels, for a model that is there: the columns that it was learned on, by name, in its order.


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows of a CSV file as text: {column: its cells}, and the line of every row."""

    path: Path
    cells: dict[str, list[str]]
    lines: np.ndarray

    @classmethod
    def read(cls, path: Path, delimiter: str, decimal: str) -> TextRows:
        names, rows, lines = rows_of(path, delimiter, True, decimal, known=False)
        require_distinct(names, path)
        texts = zip(names, zip(*rows, strict=True), strict=True)
        return cls(path, {name: [text.strip() for text in column] for name, column in texts}, lines)

    def place(self, row: int) -> str:
        """A row as a message calls it."""
        return f"{self.path}:{self.lines[row]}"

    def require(self, name: str, why: str = "") -> list[str]:
        """The cells of a column; DataError where there is none of that name."""
        if name not in self.cells:
            near = nearest(name, self.cells, "column", 12)
            raise DataError(f"there is no column {name!r}{why}; {near}", term=self.path)
        return self.cells[name]

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
            why, instead = how_lost(text)
            raise DataError(
                f"{self.place(i)}: column {name!r} is {repr(text) if text else 'empty'}, {why or 'not a finite number'}",
                write_instead=instead
                or (
                    "where commas stand for decimal points, say so: --decimal , on the command line, decimal=',' in Python"
                    if comma
                    else "fill it in, or leave out the row"
                ),
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
    if "X" not in arrays:
        raise DataError("there is no matrix X in it", term=path, write_instead="write np.savez(path, X=X)")
    wrong = unlike(names, list(map(str, arrays["feature_names"]))) if "feature_names" in arrays else None
    if wrong is not None:
        raise DataError(f"X has other columns than those learned on: {wrong}", term=path)
    X = as_learned(arrays["X"], names, f"{path}: X", "the model was learned on", fill)
    if beside:
        raise DataError(
            f"an .npz file has no column {beside[0]!r}", term=path, write_instead="give a CSV file"
        )
    return X, {}


# --------------------------------------------------------------------------------------------------------------
# Rows with labels, for a model that is there: the columns that it was learned on, and its tasks, by name.


def read_held_out(
    path, features: Sequence[str], tasks: Sequence[str], *, signs: bool, labels: str | None = None, task: str | None = None,
    description: DataDescription = NOTHING_KNOWN, delimiter: str = ",", decimal: str | None = None, fill: np.ndarray | None = None,
) -> Tasks:  # fmt: skip
    """Tasks with the features and tasks of a model, from a CSV file.

    labels      : the column of labels, where the tasks are told apart by rows (`task`), or are the classes of one column; None: those that
                  were learned on where the file has them, else a column a task
    task        : the column that tells the tasks apart by rows
    signs       : labels are -1 and +1, and 0/1 and no/yes are read as these
    description, decimal, fill : as in `read_inputs`
    Empty labels are missing. DataError for columns that are not there, labels that are not numbers, classes that are not known, and where no
    row has a label. Tasks told apart by rows that have none here are left out.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "held.csv"
    >>> _ = path.write_text("u,maths,physics\\n1,0,1\\n2,1,\\n")
    >>> read_held_out(path, ["u"], ["maths", "physics"], signs=True).per_task(read_held_out(path, ["u"], ["maths", "physics"], signs=True).targets)
    [array([-1.,  1.]), array([1.])]
    """
    path = regular_file(path)
    if task is not None and labels is None:
        raise DataError(f"task {task!r} tells tasks apart by rows", term=path, write_instead="name the column of their labels, too")  # fmt: skip
    rows = TextRows.read(path, delimiter, description.decimal if decimal is None else decimal)
    known = {column.name for column in description.labels}
    if labels is None and known | {description.task or ""} <= rows.cells.keys() | {""}:
        task = description.task
        columns = [column for column in description.labels if task or set(column.made) & set(tasks)]
    else:
        columns = []
    if labels is not None:
        columns = [_renamed(description, labels, tasks, task is not None)]
    columns = columns or [TableColumn(name, (), (name,)) for name in tasks]
    found: dict[str, np.ndarray] = {}
    for column in columns:
        found |= _labels(rows, column, signs)
    X = rows.inputs(features, description, fill)
    names = {"task_names": list(tasks), "feature_names": list(features)}
    lacking = [name for name in tasks if name not in found] if task is None else []
    if lacking:
        raise DataError(
            f"the column {labels!r} has labels of {listed(list(found), 4)}, and the model has the tasks {listed(tasks, 4)}",
            term=path,
            write_instead="name no column of labels where every task has one of its own name",
        )
    if task is None:
        return Tasks.shared(X, np.column_stack([found[name] for name in tasks]), **names)
    (y,) = found.values()
    ids = np.array(rows.require(task))
    strange = np.flatnonzero(~np.isin(ids, tasks))
    if strange.size:
        raise DataError(f"{rows.place(strange[0])}: column {task!r} names a task {str(ids[strange[0]])!r} that the model does not know")  # fmt: skip
    each = [np.flatnonzero((ids == name) & ~np.isnan(y)) for name in tasks]
    names["task_names"] = [name for name, own in zip(tasks, each, strict=True) if own.size]
    each = [own for own in each if own.size]
    if not each:
        raise DataError("no row has a label", term=path, argument="labels")
    return Tasks.separate([X[own] for own in each], [y[own] for own in each], **names)


def _renamed(description: DataDescription, labels: str, tasks: Sequence[str], by_rows: bool) -> TableColumn:
    """The column of labels as the caller calls it: what was learned on, else numbers, or the classes that the tasks are called by."""
    learned = description.label_of(tasks[0])
    if learned is not None:
        return TableColumn(labels, learned.values, learned.parts)
    alone = by_rows or len(tasks) == 1
    return TableColumn(labels, (), (tasks[0],)) if alone else TableColumn(labels, tuple(tasks), tuple(tasks))


def _labels(rows: TextRows, column: TableColumn, signs: bool) -> dict[str, np.ndarray]:
    """{task: (n,) labels}, NaN where there is none."""
    cells = rows.require(column.name)
    if not column.values:  # of numbers
        return {column.made[0]: _numbers(rows, column.name, signs)}
    table = 2.0 * column.indicators(codes_of(column, cells, rows.place, labels=True)) - 1.0
    return dict(zip(column.made, table.T, strict=True))


def _numbers(rows: TextRows, name: str, signs: bool) -> np.ndarray:
    cells = rows.require(name)
    cells = as_numbers(cells) if signs else cells
    wrong = next((i for i, cell in enumerate(cells) if not is_number(cell)), None)
    if wrong is not None:
        raise DataError(
            f"{rows.place(wrong)}: the labels {name!r} hold {cells[wrong]!r}, which is not a number"
        )
    y = np.array([number(cell) for cell in cells])
    known = y[~np.isnan(y)]
    if signs and np.isin(known, (0.0, 1.0)).all() and (known == 0).any():
        return 2.0 * y - 1.0
    return y
