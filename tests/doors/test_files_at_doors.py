"""A table of quirks of files x doors: every cell says "the same value" or "the same typed error".

Whoever adds a door (`doors.py`) or a quirk (below) adds a column or a row here; a cell that is missing is an error.
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.doors.doors import DOORS, Refused
from tests.loops import for_each

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
NPZ = ("read_npz", "scan_npz", "store_npz")
ARRAYS = ("read_mat", *NPZ)
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

SIGNS = ["<=5", ">5", "x=y", "<=5", ">5", "x=y", "<=5", ">5"]
NO_BINARY = Absent("it has no option for labels 0/1")
NO_CATEGORIES = ((Absent("it holds no categories"), PARQUET, ARRAYS, LIBSVM),)
NEW_ROWS = cells((TRAINED, EVERY), (ERROR, ("predict", "report")))
PARQUET_ALONE = cells((Absent("it is a quirk of Parquet"), EVERY), (SAME, PARQUET))

BESIDE_DASK = PARQUET_ALONE | {
    "from_dask_dataframe": Absent("dask.dataframe.read_parquet itself fails on it")
}


def with_index(name):
    """Writes the table as pandas does, with rows that have numbers of their own."""

    def write(folder):
        frame = pytest.importorskip("pandas").DataFrame({"a": A, "c": PLAIN, "y": Y})
        frame.set_index(np.arange(N)[::-1] * 7).rename_axis(name).to_parquet(folder / "t.parquet")

    return write


def in_folders(values):
    """Writes the table as pandas does, a folder for every value of "c"."""

    def write(folder):
        frame = pytest.importorskip("pandas").DataFrame({"a": A, "y": Y, "c": values})
        for k, value in enumerate(dict.fromkeys(values)):
            part = frame[frame["c"] == value].drop(columns="c")
            there = folder / f"c={str(value).replace(' ', '%20')}"
            there.mkdir()
            part.to_parquet(there / f"{k}.parquet", index=False)

    return write


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
    **{
        name: Quirk(
            table(times), cells((ERROR, TEXT, ARFF, PARQUET, NPZ), (IS_NUMBER, LIBSVM), read_mat=IS_NUMBER),
            refused="not a number|not a finite number|not numeric|date|not hold real numbers|times", training=table(PLAIN),
        )
        for name, times in {"dates": DAYS, "durations": [day - DAYS[0] for day in DAYS]}.items()
    },
    "digits as text": Quirk(
        table([f"{k:05d}" for k in range(N)]), cells((IS_TEXT, TEXT), (Absent("such a column is declared nominal"), ARFF), (ERROR, PARQUET, ARRAYS), (IS_NUMBER, LIBSVM)),
        refused="not numeric|not hold real numbers|text",
    ),
    "bytes": Quirk(
        table([b"1"] * N), cells((IS_TEXT, TEXT), (Absent("it holds no bytes"), ARFF), (ERROR, PARQUET, NPZ), (IS_NUMBER, LIBSVM), read_mat=IS_NUMBER),
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
    **{
        name: Quirk(table(new * (N // len(new))), NEW_ROWS, refused=words, options={"one_hot": ("c",)}, training=table(old * (N // len(old))))
        for name, new, words, old in (
            ("an unknown category", ["female", "diverse"], r"new.csv:3: column 'c' has a category 'diverse' .*knows 'female', 'male'", SEX),
            ("a category in another case", ["Male", "female"], r"new.csv:2: column 'c' has a category 'Male' .*did you mean 'male'", SEX),
            ("a code with a point", ["1", "2.0", "3", "2"], r"new.csv:3: column 'c' has a category '2.0' .*knows '1', '2', '3'", ["1", "2", "3", "2"]),
        )
    },
    **{
        f"a category that is {text or 'empty'}": Quirk(
            table([text, *SEX[1:]]), cells((ERROR, TEXT), (Absent("of nominal columns ? alone is missing, and others are not declared"), ARFF), *NO_CATEGORIES),
            refused=r".csv:2: column 'c' (has no value|is (empty|'NA'|'\?'|'NaN'))", options={"one_hot": ("c",)}, training=table(SEX),
        )
        for text in ("", "NA", "?", "NaN")
    },
    "a missing category": Quirk(
        table([None, *SEX[1:]]), cells((ERROR, TEXT, ARFF), *NO_CATEGORIES), refused=r":\d+: column 'c' (has no value|is empty)",
        options={"one_hot": ("c",)}, training=table(SEX),
    ),
    "a missing category that is imputed": Quirk(
        table([None, *SEX[1:]]), cells((SAME, TEXT, ARFF), *NO_CATEGORIES, cv=Absent("every fold has a mean of its own")),
        {"a": A, "c=male": [4 / 7, 1.0, *[0.0, 1.0] * (N // 2 - 1)]}, Y,
        options={"one_hot": ("c",), "impute": "mean"}, training=table([None, *SEX[1:]]),
    ),
    "categories with =": Quirk(
        table(SIGNS), cells((SAME, TEXT, ARFF), *NO_CATEGORIES),
        {"a": A, **{f"c={v}": [float(one == v) for one in SIGNS] for v in ("<=5", ">5", "x=y")}}, Y, options={"one_hot": ("c",)}, training=table(SIGNS),
    ),
    "a column of categories with = in its name": Quirk(
        [("a", A), ("c=d", SEX), ("y", Y)], cells((SAME, TEXT, ARFF), *NO_CATEGORIES),
        {"a": A, "c=d=male": [0.0, 1.0] * (N // 2)}, Y, options={"one_hot": ("c=d",)}, training=[("a", A), ("c=d", SEX), ("y", Y)],
    ),
    "a column of numbers with = in its name": Quirk(
        [("a", A), ("a=1", PLAIN), ("y", Y)], cells((SAME, TEXT, ARFF, PARQUET, ARRAYS), (NO_NAMES, LIBSVM)),
        {"a": A, "a=1": PLAIN}, Y, training=[("a", A), ("a=1", PLAIN), ("y", Y)],
    ),
    "two columns of one name": Quirk(
        [("a", A), ("a", PLAIN), ("y", Y)], cells((ERROR, TEXT, ARFF, ("scan_parquet", "store_parquet", "read_npz")), (NO_NAMES, LIBSVM, ("read_mat", "scan_npz", "store_npz")), from_dask_dataframe=Absent("pandas cannot read such a file")),
        refused="two columns are named 'a'|name 'a' occurs twice|declared twice", training=[("a", A), ("y", Y)],
    ),
    "whole numbers that float64 does not have": Quirk(
        table([2**53 + 1] * N), cells((ERROR, TEXT, ARFF, PARQUET, ARRAYS), (Absent("its values are decimal numbers"), LIBSVM)),
        refused="9007199254740993", training=table(PLAIN),
    ),
    "labels 0/1": Quirk(
        table(PLAIN, [0, 1] * (N // 2)), cells((SAME, TEXT, ARFF, ("read_mat", "read_npz", "read_libsvm")), (NO_BINARY, PARQUET, ("scan_npz", "store_npz", "scan_libsvm", "store_libsvm"))),
        columns_as(PLAIN), [-1.0, 1.0] * (N // 2), options={"binary": True}, training=table(PLAIN, [1, 0] * (N // 2)),
    ),
    "labels no/yes": Quirk(
        table(PLAIN, ["No", "yes"] * (N // 2)), cells((SAME, TEXT, ARFF), (ERROR, PARQUET), (IS_NUMBER, LIBSVM, ARRAYS)),
        columns_as(PLAIN), [-1.0, 1.0] * (N // 2), options={"binary": True}, training=table(PLAIN, ["yes", "no"] * (N // 2)),
        refused="column 'y' is String, not numeric|Y: column 'y'",
    ),
    "a missing label": Quirk(
        table(PLAIN, [None, *Y[1:]]), cells((SAME, EVERY), (Absent("every line begins with a label"), LIBSVM), (Absent("it predicts every row"), ("predict",)), cv=Absent("folds are of all rows")),
        {"a": A[1:], "c": PLAIN[1:]}, Y[1:], training=table(PLAIN),
    ),
    **{
        name: Quirk(table(PLAIN), own, columns_as(PLAIN), Y, parquet=with_index(index))
        for name, own, index in (
            ("the index of a data frame", PARQUET_ALONE, None),
            ("an index with a name", BESIDE_DASK, "id"),
            ("the index that Dask writes", BESIDE_DASK, "__null_dask_index__"),
        )
    },
    "a column without a name": Quirk(
        [("", list(range(N))), ("a", A), ("c", PLAIN), ("y", Y)],
        cells((ERROR, TEXT), (Absent("each of its columns has a name"), ARFF, PARQUET, ARRAYS, LIBSVM), (Absent("columns that are not asked for are left alone"), ("predict", "report"))),
        refused="column 1 has no name",
    ),
    "folders that are a column": Quirk(
        table(PLAIN), {**PARQUET_ALONE, "from_dask_dataframe": ERROR}, columns_as([12.0] * 4 + [3.0] * 4), Y, parquet=in_folders([12] * 4 + [3] * 4),
        refused="column 'c' is Categorical, not numeric",  # what Dask makes of it
    ),
    "folders of text": Quirk(
        table(PLAIN), {**PARQUET_ALONE, **dict.fromkeys(PARQUET, ERROR)}, parquet=in_folders(["x y"] * 4 + ["12"] * 4), refused="column 'c' is .*not numeric",
    ),
    **{
        name: Quirk(
            table(PLAIN), cells((ERROR, TEXT), (Absent("it is a quirk of CSV"), ARFF, ARRAYS, PARQUET, LIBSVM)), files={".csv": content}, refused=words, training=table(PLAIN),
        )
        for name, content, words in (
            ("a quote that is never closed", f'a,c,y\n{A[0]},"1,2\n' + "1,2,3\n" * (N - 1), r"\.csv:2: a cell begins with a quote that is never closed"),
            ("text behind a closing quote", "a,c,y\n" + "1,2,3\n" * (N - 1) + '1,"2"3,4\n', rf"\.csv:{N + 1}: a cell begins with a quote that is closed in line {N + 1}"),
        )
    },
    "indices from 0": Quirk(
        table(PLAIN), cells((Absent("it has no indices"), TEXT, ARFF, ARRAYS, PARQUET), (SAME, LIBSVM)), columns_as(PLAIN), Y, options={"zero_based": True},
        files={".svm": "".join(f"{y!r} 0:{a!r} 1:{c!r}\n" for y, a, c in zip(Y, A, PLAIN, strict=True))},
    ),
    "an index 0 where they count from 1": Quirk(
        table(PLAIN), cells((Absent("it has no indices"), TEXT, ARFF, ARRAYS, PARQUET), (ERROR, LIBSVM)), options={"zero_based": False},
        files={".svm": "1 1:2\n-1 0:3\n" * N}, refused="index 0",
    ),
}  # fmt: skip


@for_each("quirk", QUIRKS)
def test_no_cell_is_missing(quirk):
    """A door or a quirk that is new has a cell for each of the others."""
    assert set(QUIRKS[quirk].cells) == set(DOORS)


@pytest.mark.by_default("problem_file")
@pytest.mark.parametrize("door", DOORS)
@for_each("quirk", QUIRKS)
def test_quirk_at_door(quirk, door, tmp_path, capsys):
    odd = QUIRKS[quirk]
    if isinstance(odd.cells[door], Absent):
        return
    if odd.cells[door] == ERROR:
        with pytest.raises(Refused, match=odd.refused):
            DOORS[door](odd, tmp_path, capsys)
        return
    features, labels = DOORS[door](odd, tmp_path, capsys)
    assert list(features) == list(odd.features)
    for name, column in odd.features.items():
        np.testing.assert_array_equal(features[name], column)
    np.testing.assert_array_equal(labels, odd.labels)
