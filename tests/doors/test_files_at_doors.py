"""A table of quirks of files x doors: every cell says "the same value" or "the same typed error".

Whoever adds a door (`doors.py`) or a quirk (below) adds a column or a row here; a cell that is missing is an error.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.doors.doors import DOORS, Refused

SAME, ERROR = "the same value", "the same typed error"


@dataclass(frozen=True)
class Absent:
    """A cell for which there is nothing to do: the format cannot hold the quirk."""

    why: str


@dataclass(frozen=True)
class Quirk:
    """A table with something odd in it.

    columns  : (name, cells) of the inputs, then of the label "y"; files of every format are written from these
    features : the columns of X as every door is to read them; labels: those of y
    refused  : words of the typed error
    options  : of `read_csv`, and of the readers that have the same
    files    : {ending: content} in the place of what is written from the columns; parquet: writes files into a folder
    training : the table that `predict` and `report` learn on, which has nothing odd in it
    cells    : {door: SAME, ERROR or Absent}
    """

    columns: list
    cells: dict
    features: dict = field(default_factory=dict)
    labels: list = field(default_factory=list)
    refused: str = ""
    options: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    parquet: Callable | None = None
    training: list = field(default_factory=list)


A = [0.5, -1.0, 2.0, 0.25, 1.5, -0.75, 3.0, 1.25]
Y = [1.0, 0.5, -2.0, 4.0, 0.0, 1.5, -1.0, 2.5]
N = len(A)


def table(c, y=None):
    return [("a", A), ("c", c), ("y", Y if y is None else y)]


def columns_as(c):
    return {"a": A, "c": c}


#: groups of doors
TEXT = ("read_csv", "problem_file", "cv", "predict", "report")
ARFF = ("read_arff",)
ARRAYS = ("read_mat", "read_npz", "scan_npz", "store_npz")
PARQUET = ("scan_parquet", "store_parquet", "from_dask_dataframe")
LIBSVM = ("read_libsvm", "scan_libsvm", "store_libsvm")
EVERY = (*TEXT, *ARFF, *ARRAYS, *PARQUET, *LIBSVM)


def cells(*groups, **own):
    """{door: cell} of (cell, doors, doors, ...); doors named in `own` have cells of their own."""
    found = {door: cell for cell, *doors in groups for group in doors for door in group}
    return found | own


IS_TEXT = Absent("every cell of it is text")
IS_NUMBER = Absent("it holds numbers alone")
NO_NAMES = Absent("it has no names of columns")
TRAINED = Absent("it is a quirk of training")

PLAIN = [1.0, 2.0, -3.5, 0.0, 1e-3, 7.0, 2.5, -1.0]
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=k) for k in range(N)]
SEX = ["female", "male"] * (N // 2)

QUIRKS = {
    "numbers": Quirk(table(PLAIN), cells((SAME, EVERY)), columns_as(PLAIN), Y, training=table(PLAIN)),
    "whole numbers": Quirk(table(list(range(N))), cells((SAME, EVERY)), columns_as(list(range(N))), Y, training=table(PLAIN)),
    "a missing cell": Quirk(
        table([None, *PLAIN[1:]]), cells((ERROR, EVERY)), training=table(PLAIN),
        refused=r"has no value|is empty|nan in row|value nan|NaN",
    ),
    "an infinite cell": Quirk(
        table([float("inf"), *PLAIN[1:]]), cells((ERROR, EVERY)), training=table(PLAIN), refused=r"inf",
    ),
    "dates": Quirk(
        table(DAYS), cells((ERROR, TEXT, ARFF, PARQUET), (ERROR, ("read_npz", "scan_npz", "store_npz")), (IS_NUMBER, LIBSVM), read_mat=IS_NUMBER),
        refused="not a number|not a finite number|not numeric|date|not hold real numbers|times", training=table(PLAIN),
    ),
    "durations": Quirk(
        table([datetime.timedelta(days=k) for k in range(N)]),
        cells((ERROR, TEXT, ARFF, PARQUET), (ERROR, ("read_npz", "scan_npz", "store_npz")), (IS_NUMBER, LIBSVM), read_mat=IS_NUMBER),
        refused="not a number|not a finite number|not numeric|date|not hold real numbers|times", training=table(PLAIN),
    ),
    "digits as text": Quirk(
        table([f"{k:05d}" for k in range(N)]), cells((IS_TEXT, TEXT), (Absent("such a column is declared nominal"), ARFF), (ERROR, PARQUET, ARRAYS), (IS_NUMBER, LIBSVM)),
        refused="not numeric|not hold real numbers|text",
    ),
    "bytes": Quirk(
        table([b"1"] * N), cells((IS_TEXT, TEXT), (Absent("it holds no bytes"), ARFF), (ERROR, PARQUET), (ERROR, ("read_npz", "scan_npz", "store_npz")), (IS_NUMBER, LIBSVM), read_mat=IS_NUMBER),
        refused="not numeric|not hold real numbers|text",
    ),
    "truth values": Quirk(
        table([True, False] * (N // 2)),
        cells((SAME, PARQUET, ARRAYS), (Absent("True is a word there, as yes is"), TEXT), (IS_NUMBER, LIBSVM, ARFF)),
        columns_as([1.0, 0.0] * (N // 2)), Y,
    ),
    "categories": Quirk(
        table(SEX), cells((SAME, TEXT, ARFF), (ERROR, PARQUET, ARRAYS), (IS_NUMBER, LIBSVM)),
        {"a": A, "c=male": [0.0, 1.0] * (N // 2)}, Y, refused="not numeric|not hold real numbers|text",
        options={"one_hot": ("c",)}, training=table(SEX),
    ),
}  # fmt: skip


@pytest.mark.parametrize("quirk", QUIRKS)
def test_no_cell_is_missing(quirk):
    """A door or a quirk that is new has a cell for each of the others."""
    assert set(QUIRKS[quirk].cells) == set(DOORS)


@pytest.mark.parametrize(
    ("quirk", "door"),
    [(name, door) for name, quirk in QUIRKS.items() for door, cell in quirk.cells.items() if not isinstance(cell, Absent)],
)  # fmt: skip
def test_quirk_at_door(quirk, door, tmp_path, capsys):
    odd = QUIRKS[quirk]
    if odd.cells[door] == ERROR:
        with pytest.raises(Refused, match=odd.refused):
            DOORS[door](odd, tmp_path, capsys)
        return
    features, labels = DOORS[door](odd, tmp_path, capsys)
    assert list(features) == list(odd.features)
    for name, column in odd.features.items():
        np.testing.assert_array_equal(features[name], column)
    np.testing.assert_array_equal(labels, odd.labels)
