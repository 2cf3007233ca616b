"""Table that a reader found in a file: named columns of numbers or categories.

`DataTable.tasks` makes `Tasks` of it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from mtldsl.data.derived import imputed, with_fields
from mtldsl.data.input_checks import warn_of_spellings
from mtldsl.data.labels import as_signs
from mtldsl.data.scaling import STRATEGIES
from mtldsl.data.table_description import DataDescription, TableColumn
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, Spelled
from mtldsl.utils.arrays import MAX_EXACT_WHOLE
from mtldsl.utils.validation import MAX_MAGNITUDE, MIN_MAGNITUDE, MISSING_TEXTS, as_list, listed, nearest

# --------------------------------------------------------------------------------------------------------------
# What one cell of a file says: a number, a missing value, a label.

#: what a label says in words where it is read as 0/1, in lower case
ANSWERS = {"no": 0.0, "n": 0.0, "false": 0.0, "f": 0.0, "yes": 1.0, "y": 1.0, "true": 1.0, "t": 1.0}


_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?")
#: of a number that is not read: what is beyond the other end is read as infinite
_TINY = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]-\d+)?")


def number(text: str) -> float:
    """A cell as a float, NaN where it is empty or says that the value is missing; ValueError for anything else."""
    text = text.strip()
    return np.nan if text in MISSING_TEXTS else exact_number(text)


def exact_number(text: str) -> float:
    """A float; ValueError for what is none, for a whole number that float64 does not have, and for what is 0 there alone.

    >>> [exact_number(text) for text in ("1e3", "9007199254740992.0", "0e-400")]
    [1000.0, 9007199254740992.0, 0.0]
    >>> exact_number("9007199254740993.0")
    Traceback (most recent call last):
    ValueError: 9007199254740993.0
    """
    if "_" in text:  # Python reads 1_000 as a number; in data it is a code
        raise ValueError(text)
    value = float(text)
    whole = _WHOLE.fullmatch(text) if abs(value) >= MAX_EXACT_WHOLE else None
    if whole is not None and int(whole[1]) != value:
        raise ValueError(text)  # a long code, such as an id, would become that of another
    if value == 0.0 and re.search("[1-9]", text.lower().partition("e")[0]):  # 1e-400 is not 0
        raise ValueError(text)
    return value


def is_number(text: str) -> bool:
    """Tell whether `number` reads it."""
    try:
        number(text)
    except ValueError:
        return False
    return True


def how_lost(text: str) -> tuple[str, str]:
    """The reason why float64 lacks a number, and what to write instead; nothing of numbers that it has, and of text.

    >>> how_lost("9007199254740993"), how_lost("9007199254740992"), how_lost("no number")
    (('a whole number that float64 does not have', 'subtract a constant'), ('', ''), ('', ''))
    >>> how_lost("1e-400")
    ('nearer to 0 than any number of float64', 'write 0, or multiply by a constant')
    """
    if is_number(text):
        return "", ""
    if _WHOLE.fullmatch(text.strip()):
        return "a whole number that float64 does not have", "subtract a constant"
    if _TINY.fullmatch(text.strip()):
        return "nearer to 0 than any number of float64", "write 0, or multiply by a constant"
    return "", ""


def in_order(values: Iterable[str]) -> list[str]:
    """Categories as every reader orders them: no before yes, numbers by their size, words as text.

    >>> in_order(["yes", "no"]), in_order(["Y", "n"]), in_order(["10", "9"]), in_order(["positive", "negative"])
    (['no', 'yes'], ['n', 'Y'], ['9', '10'], ['negative', 'positive'])
    """
    values = list(values)
    said = [answer(value) for value in values]
    if sorted(said, key=str) == [0.0, 1.0]:
        return [value for _, value in sorted(zip(said, values, strict=True))]
    return (
        sorted(values, key=lambda text: (float(text), text))
        if all(map(is_number, values))
        else sorted(values)
    )


def is_missing(text: str) -> bool:
    """Tell whether the cell is empty or says that the value is missing."""
    return is_number(text) and bool(np.isnan(number(text)))


_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")


def with_point(text: str) -> str:
    """A number whose decimal mark is a comma, with a point; other text stays.

    >>> [with_point(text) for text in ("1,5", "-,25", "7", "a,b", "1.234,5")]
    ['1.5', '-.25', '7', 'a,b', '1.234,5']
    """
    return text.replace(",", ".") if _COMMA.fullmatch(text) else text


def as_numbers(texts) -> list[str]:
    """Cells of labels, no and yes as 0 and 1; others stay.

    >>> as_numbers(["No", "yes", "1", "?"])
    ['0', '1', '1', '?']
    """
    return [
        f"{ANSWERS[text.strip().lower()]:g}" if text.strip().lower() in ANSWERS else text for text in texts
    ]


def answer(text: str) -> float | None:
    """A cell of labels of yes and no as 0 or 1, -1 as 0; None for what says neither.

    >>> [answer(text) for text in ("Yes", "0", "-1", "1.0", "2", "")]
    [1.0, 0.0, 0.0, 1.0, None, None]
    """
    word = ANSWERS.get(text.strip().lower())
    value = word if word is not None else number(text) if is_number(text) else np.nan
    return max(value, 0.0) if value in (-1.0, 0.0, 1.0) else None


def answers_of(texts: Sequence[str]) -> tuple[tuple[str, str], list[float]] | None:
    """((no, yes) as the cells spell them first, the cells as 0/1 or NaN); None unless all say yes, no, 0, 1 or nothing.

    >>> answers_of(["No", "", "yes"]), answers_of(["-1", "1"]), answers_of(["1", "1"])
    ((('No', 'yes'), [0.0, nan, 1.0]), None, (('0', '1'), [1.0, 1.0]))
    """
    texts = [text.strip() for text in texts]
    codes = [answer(text) for text in texts]
    for text, code in zip(texts, codes, strict=True):
        if not is_missing(text) and (code is None or (is_number(text) and number(text) < 0)):
            return None
    first = {code: text for text, code in zip(reversed(texts), reversed(codes), strict=True)}
    no, yes = first.get(0.0), first.get(1.0)
    opposite = {"no": "yes", "n": "y", "false": "true", "f": "t"}
    opposite |= {yes: no for no, yes in opposite.items()}
    known = no if yes is None else yes
    other = opposite.get((known or "").lower(), "0" if no is None else "1")
    return (no or other, yes or (other if known else "1")), [
        np.nan if code is None else code for code in codes
    ]


def codes_of(
    column: TableColumn, cells: Sequence[str], place: Callable[[int], str], labels: bool = False
) -> np.ndarray:
    """(n,) the positions of the cells among the categories, NaN for cells that are missing. DataError for an unknown category.

    place  : number of a cell -> where it stands, for the message
    labels : the cells are labels: yes, no, 0, 1 and -1 stand for each other

    >>> codes_of(TableColumn.of("sex", ("female", "male")), ["male", "NA"], str)
    array([ 1., nan])
    >>> codes_of(TableColumn.of("sex", ("female", "male")), ["Male"], "t.csv:{}".format)
    Traceback (most recent call last):
    mtldsl.errors.DataError: t.csv:0: column 'sex' has a category 'Male' that the model does not know; it knows 'female', 'male'; did you mean 'male'?
    """
    known = {value: float(k) for k, value in enumerate(column.values)}
    said = {answer(value): float(k) for k, value in enumerate(column.values)} if labels else {}
    said.pop(None, None)
    codes = np.empty(len(cells))
    for i, cell in enumerate(cells):
        code = known.get(cell, said.get(answer(cell)) if said else None)
        if code is None and not is_missing(cell):
            raise _unknown(column, cell, place(i), labels)
        codes[i] = np.nan if code is None else code
    return codes


def _unknown(column: TableColumn, cell: str, place: str, labels: bool) -> DataError:
    folded = {value.lower(): value for value in column.values}
    near = difflib.get_close_matches(cell.lower(), folded, n=1)
    what = "class" if labels else "category"
    return DataError(
        f"{place}: column {column.name!r} has a {what} {cell!r} that the model does not know; it knows {listed(column.values, 12)}",
        write_instead=f"did you mean {folded[near[0]]!r}?"
        if near
        else "write one of these, or leave out the row",
    )


# --------------------------------------------------------------------------------------------------------------
# Missing inputs of a file that is read: refused, or filled in by what the rows to learn on say.


def check_impute(impute: object, path) -> None:
    """DataError for other words than those that there are."""
    if impute not in (*STRATEGIES, "error"):
        raise DataError(
            f"impute={impute!r}", term=path, write_instead="write 'mean', 'median' or 'error'", argument="impute"
        )  # fmt: skip


def fill_table_gaps(X, impute: str, path, make: Callable[..., Tasks]) -> Tasks:
    """make(X), with the gaps of X (n, d) filled in where `impute` says how; else `make` refuses them. DataError names the file."""
    try:
        if impute == "error":
            return make(X)
        if sparse.issparse(X):
            if np.isnan(X.data).any():
                raise DataError("impute is for dense tables", term=path, write_instead="leave the columns out", argument="impute")  # fmt: skip
            return make(X)
        gaps = np.isnan(X)
        # new rows may have gaps where these have none
        return imputed(make(np.where(gaps, 0.0, X)), gaps, impute)
    except DataError as error:
        raise error if str(error).startswith(str(path)) else error.within(str(path)) from None


@dataclass(frozen=True)
class DataColumn:
    name: str
    values: tuple[str, ...] | None = (
        None  # of a nominal column, whose cells are positions in here; None for numbers
    )
    unusable: str | Spelled | None = None  # why a column of text cannot be used


@dataclass(frozen=True, eq=False)
class DataTable:
    """`cells` (n, p) is dense or CSC; NaN is a missing value; `lines` are the rows' places in the file; `decimal` is the mark in numbers."""

    path: Path
    columns: tuple[DataColumn, ...]
    cells: np.ndarray | sparse.csc_array
    lines: np.ndarray
    decimal: str = "."

    def __post_init__(self):
        require_distinct(self.names, self.path)

    @cached_property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def tasks(
        self, labels, *, features=None, drop=(), task=None, sample_weights=None, binary=False, impute="error"
    ) -> Tasks:
        """Tasks from label columns over feature columns (None: all others); grouped where `task` is a column of ids.

        impute : "mean" or "median" in the place of inputs that are missing, "error" refuses them
        """
        check_impute(impute, self.path)
        roles = self.roles(labels, task, sample_weights, features=features, drop=drop)
        X, x_names, categories = self._design(self._features(features, drop, roles), impute)
        Y, y_names, label_columns = self._labels(roles["labels"], binary)
        weights = None if sample_weights is None else self._weights(*roles["sample_weights"])
        if task is not None and Y.shape[1] > 1:
            raise DataError(
                f"task={task!r} tells the tasks apart by rows, labels {', '.join(y_names)} by columns",
                term=self.path,
                write_instead="give one column of labels",
                argument="task",
            )
        ids = None if task is None else self._categories(*roles["task"])

        def made(X) -> Tasks:
            if ids is None:
                return Tasks.shared(X, Y, sample_weights=weights, task_names=y_names, feature_names=x_names)
            return Tasks.grouped(X, Y[:, 0], ids, sample_weights=weights, feature_names=x_names)

        tasks = fill_table_gaps(X, impute, self.path, made)
        by_rows = None if task is None else self.names[roles["task"][0]]
        return with_fields(
            tasks, description=DataDescription(categories, label_columns, by_rows, self.decimal)
        )

    # ---------------------------------------------------------------------------------- choice of columns

    def position(self, which, role: str) -> int:
        """Position of one column, given by its name or position (-1: the last)."""
        names = self.names
        if isinstance(which, str):
            if which in names:
                return names.index(which)
            near = nearest(which, names, "column", 12)
            raise DataError(f"{role}: there is no column {which!r}; {near}", term=self.path, argument=role)
        whole = isinstance(which, int | np.integer) and not isinstance(which, bool)
        if not whole or not -len(names) <= which < len(names):
            raise DataError(
                f"{role}: {which!r} is not a column's name, nor a position among {len(names)} columns",
                term=self.path,
                argument=role,
            )
        return int(which) % len(names)

    def positions(self, which, role: str) -> list[int]:
        """Positions of columns: a name, a list of names or positions, or a number k: the last k columns."""
        if isinstance(which, str):
            return [self.position(which, role)]
        if isinstance(which, int | np.integer) and not isinstance(which, bool):
            if not 0 < which < len(self.columns):
                raise DataError(
                    f"{role}={which}: a number means the last so many of {len(self.columns)} columns",
                    term=self.path,
                    argument=role,
                )
            return list(range(len(self.columns) - int(which), len(self.columns)))
        listed = as_list(which)
        if listed is None:
            raise DataError(
                f"{role}={which!r}: write a column's name, a list of names, or how many columns at the end",
                term=self.path,
                argument=role,
            )
        chosen = [self.position(name, role) for name in listed]
        if not chosen or len(set(chosen)) < len(chosen):
            what = "a column is named twice" if chosen else "no column is named"
            raise DataError(f"{role}={which!r}: {what}", term=self.path, argument=role)
        return chosen

    def roles(
        self, labels, task=None, sample_weights=None, *, one_hot=(), features=None, drop=()
    ) -> dict[str, list[int]]:
        """{role: the columns that the caller names in it}. DataError for one that is named in two."""
        found = {
            "one_hot": self.positions(one_hot, "one_hot") if len(one_hot) else [],
            "features": [] if features is None else self.positions(features, "features"),
            "drop": self.positions(drop, "drop") if len(drop) else [],
            "task": [] if task is None else [self.position(task, "task")],
            "sample_weights": []
            if sample_weights is None
            else [self.position(sample_weights, "sample_weights")],
            "labels": self.positions(labels, "labels"),
        }
        role_of: dict[int, str] = {}
        for role, places in found.items():
            for j in places:
                if j in role_of:
                    raise DataError(
                        f"column {self.names[j]!r} is named in {role_of[j]} and in {role}",
                        term=self.path,
                        write_instead="give each a column of its own",
                        argument=role_of[j],
                    )
                role_of[j] = role
        return found

    def _features(self, features, drop, roles) -> list[int]:
        if features is None:
            chosen = sorted({*range(len(self.columns))}.difference(*roles.values()))
            nameless = next((j for j in chosen if not self.names[j]), None)
            if nameless is not None:
                raise DataError(
                    f"column {nameless + 1} has no name, as where a data frame was written with its index",
                    term=self.path,
                    write_instead="write " + Spelled.option("drop", '[""]') + ", or give it a name",
                    argument="drop",
                )
        elif len(drop):
            raise DataError(
                f"{self.path}: write either "
                + Spelled.option("features", "...")
                + " or "
                + Spelled.option("drop", "...")
                + ", not both",
                argument="features",
            )
        else:
            chosen = roles["features"]
        for j in chosen:
            self._require_usable(j)
        if not chosen:
            raise DataError("no columns are left for the features", term=self.path)
        return chosen

    # -------------------------------------------------------------------------------------------- content

    def _numbers(self, j: int) -> np.ndarray:
        """Column j as a dense vector."""
        self._require_usable(j)
        cells: Any = self.cells[:, [j]]
        return (cells.toarray() if sparse.issparse(cells) else cells)[:, 0]

    def _require_usable(self, j: int) -> None:
        unusable = self.columns[j].unusable
        if unusable:
            raise DataError(f"{self.path}: column {self.names[j]!r} " + unusable)

    def _weights(self, j: int) -> np.ndarray:
        """Column j as sample weights; DataError names the line of one that is none."""
        weights = self._numbers(j)
        wrong = np.flatnonzero(~((weights >= MIN_MAGNITUDE) & (weights <= MAX_MAGNITUDE)))
        if wrong.size:
            raise DataError(
                f"{self.path}:{self.lines[wrong[0]]}: the weight in column {self.names[j]!r} is {weights[wrong[0]]:g}",
                write_instead=f"write a weight > 0, from {MIN_MAGNITUDE:g} to {MAX_MAGNITUDE:g}, or leave out the row",
                argument="sample_weights",
            )
        return weights

    def _categories(self, j: int) -> list[str]:
        """Column j as text: the ids of tasks."""
        self._refuse_missing([j], "task")
        cells, values = self._numbers(j), self.columns[j].values
        return [f"{cell:g}" if values is None else values[int(cell)] for cell in cells]

    def _design(self, positions: list[int], impute: str):
        """Feature matrix, names, and the columns of categories, which become indicators."""
        if impute == "error":
            self._refuse_missing(positions)
        parts, names, found = [], [], []
        for is_number, group in groupby(positions, key=lambda j: self.columns[j].values is None):
            group = list(group)
            if is_number:
                parts.append(self.cells[:, group])
                names += [self.names[j] for j in group]
                continue
            for j in group:
                column = TableColumn.of(self.names[j], self.columns[j].values or ())
                parts.append(column.indicators(self._numbers(j)))
                names += column.made
                found += [column] if column.values else []
        if sparse.issparse(self.cells):
            return (
                sparse.hstack([sparse.csc_array(part) for part in parts], format="csr"),
                names,
                tuple(found),
            )
        return np.hstack(parts), names, tuple(found)

    def _labels(self, positions: list[int], binary: bool):
        """Label matrix, task names and the columns: numbers as they are, classes and what `binary` reads as -1/+1."""
        parts, columns = [], []
        for j in positions:
            name, values, cells = self.names[j], self.columns[j].values, self._numbers(j)
            if values is None:
                signs = (
                    as_signs(cells, self.path) if binary else cells
                )  # one by one: some may be -1/+1 already
                units = () if signs is cells else ("0", "1")
                columns.append(TableColumn(name, units, (None, name) if units else (name,)))
                parts.append(signs[:, None])
                continue
            warn_of_spellings(values, f"{self.path}: column {name!r}")
            if len(values) == 2 and list(values) != in_order(values):  # whatever is declared first
                values, cells = values[::-1], 1.0 - cells
            parts_of = [name] * len(values) if len(values) < 3 else values if len(positions) == 1 else None
            columns.append(TableColumn.of(name, values, parts_of))
            parts.append(2.0 * columns[-1].indicators(cells) - 1.0)
        return np.hstack(parts), [part for column in columns for part in column.made], tuple(columns)

    def _refuse_missing(self, positions, role: str = "drop") -> None:
        cells = self.cells[:, positions]
        if isinstance(cells, np.ndarray):
            rows, columns = np.nonzero(np.isnan(cells))
        else:
            stored = cells.tocoo()
            rows, columns = (place[np.isnan(stored.data)] for place in stored.coords)
        if rows.size:
            first = np.lexsort((columns, rows))[0]
            counts = np.bincount(columns, minlength=len(positions))
            each = [
                f"{counts[k]} in {self.names[positions[k]]!r}"
                for k in np.argsort(-counts, kind="stable")
                if counts[k]
            ]
            shown = "" if len(each) == 1 else f": {', '.join(each[:6])}" + ", ..." * (len(each) > 6)
            raise DataError(
                f"{self.path}:{self.lines[rows[first]]}: column {self.names[positions[columns[first]]]!r} has no value "
                f"({rows.size} such cells{shown})",
                write_instead="fill it in, or leave out the row: every row needs a task"
                if role == "task"
                else "fill it in, write "
                + Spelled.option("impute", '"mean"')
                + ", leave out the row, or leave out the column with "
                + Spelled.option("drop", "[...]"),
                argument=role,
            )


def require_distinct(names: Sequence[str], path) -> None:
    """DataError where two columns of a table have one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are named {twice!r}", term=path, write_instead="rename one")
