"""What is seen of a column of a table before anything is known of it: numbers, categories, text, what may be an id or a label."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mtldsl.datasets.formats.cells import ANSWERS, MISSING, is_number, number, with_point

__all__ = ["CLASSES", "Column", "decimal_of", "seen"]

#: Text columns of at most so many values are categories; labels of at most so many whole numbers may be classes.
_CATEGORIES, CLASSES = 20, 20
#: Text in at most this share of the cells is a mistake in a column of numbers.
_FEW = 0.1


@dataclass(frozen=True)
class Column:
    name: str
    kind: str  # "number", "category", "text"
    values: tuple  # distinct ones, without missing ones; of numbers as floats
    counts: tuple[int, ...]  # the rows of each value
    missing: int
    rows: int
    wrong: tuple[str, ...] = ()  # cells of text in a column of numbers

    @property
    def is_id(self) -> bool:
        """Whether every row has a value of its own, text or whole numbers close together: nothing can be learned from it."""
        if self.rows <= 2 or len(self.values) < self.rows:
            return False
        if self.kind != "number":
            return True
        numbers = np.array(self.values)  # amounts in whole euros may all differ too, but lie far apart
        return bool((numbers == np.round(numbers)).all() and np.ptp(numbers) < 10 * self.rows)

    @property
    def repeats(self) -> bool:
        """Whether it is text, or called an id, and has several values each of which comes again, as names of schools or shops do."""
        is_name = self.kind in ("category", "text") or self.is_called_id
        return is_name and not self.answers and len(self.counts) > 2 and min(self.counts) > 1

    @property
    def is_called_id(self) -> bool:
        return re.search(r"(?:(?:^|[^A-Za-z])[iI]|[a-z]I)[dD]$", self.name) is not None

    @property
    def is_constant(self) -> bool:
        return len(self.values) < 2

    @property
    def signs(self) -> bool:
        return self.kind == "number" and 0 < len(self.values) <= 2 and set(self.values) <= {-1.0, 1.0}

    @property
    def zero_one(self) -> bool:
        return self.kind == "number" and 0 < len(self.values) <= 2 and set(self.values) <= {0.0, 1.0}

    @property
    def answers(self) -> bool:
        """Text that says yes or no, as `binary` reads it."""
        return self.kind == "category" and {ANSWERS.get(value.lower()) for value in self.values} == {0.0, 1.0}

    @property
    def two_sided(self) -> bool:
        """Whether it is a label of yes and no in one spelling or another."""
        return self.signs or self.zero_one or self.answers

    @property
    def classes(self) -> bool:
        return self.kind == "category" and not self.is_constant

    @property
    def shares(self) -> list[float]:
        """The share of +1 in every task that these labels make."""
        if self.two_sided:
            positive = [(ANSWERS[v.lower()] if self.answers else v) == 1.0 for v in self.values]
            return [sum(n for n, one in zip(self.counts, positive, strict=True) if one) / sum(self.counts)]
        shares = [n / sum(self.counts) for n in self.counts]
        return shares[1:] if len(shares) == 2 else shares


def seen(name: str, texts: Sequence[str]) -> Column:
    """The column of these cells."""
    wrong = [text.strip() for text in texts if not is_number(text)]
    there = [text.strip() for text in texts if text.strip() not in MISSING]
    if wrong:
        if len(set(there)) > _CATEGORIES and len(wrong) <= _FEW * len(there):
            return Column(name, "text", (), (), len(texts) - len(there), len(texts), tuple(wrong))
        values = tuple(sorted(set(there)))
        kind, found = "category" if len(values) <= _CATEGORIES else "text", Counter(there)
        counts = tuple(found[value] for value in values)
        return Column(name, kind, values, counts, len(texts) - len(there), len(texts))
    numbers = np.array([number(text) for text in texts])
    known, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    missing = int(np.isnan(numbers).sum())
    return Column(name, "number", tuple(known.tolist()), tuple(counts.tolist()), missing, len(numbers))


def decimal_of(rows: Sequence[Sequence[str]], delimiter: str) -> str:
    """ "," where some column becomes one of numbers by it and no cell has a number with a point, else ".".

    >>> decimal_of([["a", "1,5"], ["b", "2"]], ";"), decimal_of([["1.5", "1,5"]], ";"), decimal_of([["1,5 and 2", "3"]], ";")
    (',', '.', '.')
    """
    if delimiter == ",":
        return "."
    found = False
    for texts in zip(*rows, strict=True):
        wrong = [text for text in texts if not is_number(text)]
        if any("." in text and is_number(text) for text in texts):
            return "."
        commas = sum(is_number(with_point(text)) for text in wrong)
        found |= commas > 0 and commas >= (1 - _FEW) * len(wrong)
    return "," if found else "."
