"""A description of the table that tasks were made of: its categories, the units of its labels, how its numbers are written.

It is made where a file is read, goes along with the tasks, is saved with what was learned on them, and reads later rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TableColumn:
    """A column of a table as the columns of X, or the tasks, that were made of it.

    values : the categories in their order, as the table writes them; () for numbers
    parts  : beside every category the feature that is 1, or the task that is +1, where it stands; None beside one without. The second of
             two categories has the only part; numbers have one

    >>> TableColumn.of("colour", ("blue", "red")).parts, TableColumn.of("size", ("l", "m", "s")).parts
    ((None, 'colour=red'), ('size=l', 'size=m', 'size=s'))
    """

    name: str
    values: tuple[str, ...]
    parts: tuple[str | None, ...]

    @classmethod
    def of(cls, name: str, values: Sequence[str], parts: Sequence[str] | None = None) -> TableColumn:
        """The column of these categories; its parts are called "name=category" unless they are given, one a category."""
        parts = [f"{name}={value}" for value in values] if parts is None else parts
        return cls(name, tuple(values), (None, parts[1]) if len(values) == 2 else tuple(parts))

    @property
    def made(self) -> list[str]:
        """The names of its parts."""
        return [part for part in self.parts if part is not None]

    def indicators(self, codes: np.ndarray) -> np.ndarray:
        """(n, parts) of the positions of categories: 1 where the part's category is, else 0. NaN stays."""
        which = [k for k, part in enumerate(self.parts) if part is not None]
        table = (codes[:, None] == np.array(which)).astype(float)
        table[np.isnan(codes)] = np.nan
        return table


@dataclass(frozen=True)
class DataDescription:
    """The columns of a table behind X and Y. A feature that no column of categories has a part for is a column of numbers of its own name.

    features : the columns of categories among the inputs
    labels   : the columns of labels; one where the tasks are told apart by rows
    task     : the column that tells the tasks apart by rows
    decimal  : the mark between the digits of a number
    signs    : whether all labels were -1 or +1
    """

    features: tuple[TableColumn, ...] = ()
    labels: tuple[TableColumn, ...] = ()
    task: str | None = None
    decimal: str = "."
    signs: bool = False

    def label_of(self, task: str) -> TableColumn | None:
        """The column of labels that a task is of; None where it is not known."""
        if self.task is not None:
            return self.labels[0]
        return next((column for column in self.labels if task in column.parts), None)

    def stored(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(plain values, no arrays), as a file keeps them."""
        return asdict(self), {}

    @classmethod
    def restored(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> DataDescription:
        """Return what `stored` gave. ValueError for what no description has."""
        if not isinstance(facts, dict) or facts.keys() != cls.__dataclass_fields__.keys():
            raise ValueError("the description of its data has other fields")
        columns = {key: tuple(map(_column, facts[key])) for key in ("features", "labels")}
        task, decimal, signs = facts["task"], facts["decimal"], facts["signs"]
        sound = (task is None or isinstance(task, str)) and decimal in (".", ",") and isinstance(signs, bool)
        if not sound or (task is not None and len(columns["labels"]) != 1):
            raise ValueError("the description of its data contradicts itself")
        return cls(**columns, task=task, decimal=decimal, signs=signs)


#: of arrays and data frames, which have numbers alone
NOTHING_KNOWN = DataDescription()


def _column(facts: dict[str, Any]) -> TableColumn:
    name, values, parts = facts["name"], facts["values"], facts["parts"]
    texts = [name, *values, *(part for part in parts if part is not None)]
    fits = len(parts) == max(len(values), 1) and len(set(values)) == len(values)
    if not fits or not all(isinstance(text, str) for text in texts):
        raise ValueError("the description of its data contradicts itself")
    return TableColumn(name, tuple(values), tuple(parts))
