"""What one cell of a file says: a number, a missing value, a label."""

from __future__ import annotations

import re

import numpy as np

from mtldsl.errors import DataError, Spelled

__all__ = ["ANSWERS", "MISSING", "as_numbers", "as_signs", "is_number", "number", "with_point"]

MISSING = {"", "?", "NA", "N/A", "NaN", "nan"}

#: what a label says in words where it is read as 0/1, in lower case
ANSWERS = {"no": 0.0, "n": 0.0, "false": 0.0, "f": 0.0, "yes": 1.0, "y": 1.0, "true": 1.0, "t": 1.0}


def number(text: str) -> float:
    """A cell as a float, NaN where it is empty or says that the value is missing; ValueError for anything else."""
    text = text.strip()
    if text in MISSING:
        return np.nan
    if "_" in text:  # Python reads 1_000 as a number; in data it is a code
        raise ValueError(text)
    return float(text)


def is_number(text: str) -> bool:
    """Whether `number` reads it."""
    try:
        number(text)
    except ValueError:
        return False
    return True


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
