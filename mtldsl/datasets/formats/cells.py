"""What one cell of a file says: a number, a missing value, a label."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mtldsl.errors import DataError, Spelled
from mtldsl.tasks.description import TableColumn

__all__ = [
    "ANSWERS",
    "MISSING",
    "answer",
    "answers_of",
    "as_numbers",
    "as_signs",
    "codes_of",
    "in_order",
    "is_lost",
    "is_missing",
    "is_number",
    "number",
    "with_point",
]

MISSING = {"", "?", "NA", "N/A", "NaN", "nan"}

#: what a label says in words where it is read as 0/1, in lower case
ANSWERS = {"no": 0.0, "n": 0.0, "false": 0.0, "f": 0.0, "yes": 1.0, "y": 1.0, "true": 1.0, "t": 1.0}


#: float64 has all whole numbers up to this one
_EXACT = 2.0**53
_WHOLE = re.compile(r"[+-]?\d+")


def number(text: str) -> float:
    """A cell as a float, NaN where it is empty or says that the value is missing; ValueError for anything else."""
    text = text.strip()
    if text in MISSING:
        return np.nan
    if "_" in text:  # Python reads 1_000 as a number; in data it is a code
        raise ValueError(text)
    value = float(text)
    if abs(value) >= _EXACT and _WHOLE.fullmatch(text) and int(text) != value:
        raise ValueError(text)  # a long code, such as an id, would become that of another
    if value == 0.0 and re.search("[1-9]", text.lower().partition("e")[0]):  # 1e-400 is not 0
        raise ValueError(text)
    return value


def is_number(text: str) -> bool:
    """Whether `number` reads it."""
    try:
        number(text)
    except ValueError:
        return False
    return True


def is_lost(text: str) -> bool:
    """Tell whether it is a whole number that float64 does not have.

    >>> is_lost("9007199254740993"), is_lost("9007199254740992"), is_lost("no number")
    (True, False, False)
    """
    return _WHOLE.fullmatch(text.strip()) is not None and not is_number(text)


def in_order(values: Iterable[str]) -> list[str]:
    """Categories as every reader orders them: no before yes, numbers by their size, words as text.

    >>> in_order(["yes", "no"]), in_order(["Y", "n"]), in_order(["10", "9"]), in_order(["positive", "negative"])
    (['no', 'yes'], ['n', 'Y'], ['9', '10'], ['negative', 'positive'])
    """
    values = list(values)
    said = [answer(value) for value in values]
    if sorted(said, key=str) == [0.0, 1.0]:
        return [value for _, value in sorted(zip(said, values, strict=True))]
    return sorted(values, key=float) if all(map(is_number, values)) else sorted(values)


def is_missing(text: str) -> bool:
    """Whether the cell is empty or says that the value is missing."""
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
    found: list[str | None] = [None, None]
    codes = []
    for text in map(str.strip, texts):
        code = answer(text)
        if code is None and not is_missing(text):
            return None
        if code is not None and is_number(text) and number(text) < 0:
            return None
        codes.append(np.nan if code is None else code)
        if code is not None and found[int(code)] is None:
            found[int(code)] = text
    no, yes = found
    opposite = {"no": "yes", "n": "y", "false": "true", "f": "t"}
    opposite |= {yes: no for no, yes in opposite.items()}
    known = no if yes is None else yes
    other = opposite.get((known or "").lower(), "0" if no is None else "1")
    return (no or other, yes or (other if known else "1")), codes


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
    known = ", ".join(map(repr, column.values[:12])) + ", ..." * (len(column.values) > 12)
    what = "class" if labels else "category"
    return DataError(
        f"{place}: column {column.name!r} has a {what} {cell!r} that the model does not know; it knows {known}",
        write_instead=f"did you mean {folded[near[0]]!r}?"
        if near
        else "write one of these, or leave out the row",
    )


def as_signs(Y: np.ndarray, where) -> np.ndarray:
    """Labels 0/1 as -1/+1 (those that are -1/+1 already stay); NaN stays. DataError for any other label."""
    known = Y[~np.isnan(Y)]
    if np.isin(known, (-1.0, 1.0)).all():
        return Y
    if not np.isin(known, (0.0, 1.0)).all():
        other = known[~np.isin(known, (0.0, 1.0))][0]
        raise DataError(
            f"{where}: "
            + Spelled.option("binary", "True")
            + f" is for labels 0/1, but there is a label {other:g}",
            write_instead="leave it out to keep numbers",
            argument="binary",
        )
    return 2.0 * Y - 1.0
