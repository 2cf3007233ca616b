"""Parts of a weight matrix: into which pieces a function separates, and which pieces a proximal step scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = [
    "COLUMNS",
    "ENTRIES",
    "MATRIX",
    "ROWS",
    "Parts",
    "RowProfile",
    "column_groups",
    "is_same_along_rows",
    "row_groups",
]

#: one axis: every line by itself, all lines together, or disjoint groups of lines (lines in no group stand outside)
Axis = str | tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Parts:
    """The matrix cut into rectangles: every part is one piece of the rows by one piece of the columns."""

    rows: Axis
    columns: Axis

    def within(self, other: Parts) -> bool:
        """Whether every part of this lies within one part of the other."""
        return _within(self.rows, other.rows) and _within(self.columns, other.columns)


def _within(inner: Axis, outer: Axis) -> bool:
    if inner == "each" or outer == "all":
        return True
    if inner == "all" or outer == "each":
        return inner == outer
    owner = {
        line: g for g, group in enumerate(outer) for line in group
    }  # of lines in no group: None, a piece of its own
    return all(len({owner.get(line) for line in group}) == 1 for group in inner)


ENTRIES = Parts("each", "each")
ROWS = Parts("each", "all")
COLUMNS = Parts("all", "each")
MATRIX = Parts("all", "all")


def row_groups(groups) -> Parts:
    """Disjoint groups of whole rows."""
    return Parts(tuple(map(tuple, groups)), "all")


def column_groups(groups) -> Parts:
    """Disjoint groups of whole columns; None: every column by itself."""
    return COLUMNS if groups is None else Parts("all", tuple(map(tuple, groups)))


@dataclass(frozen=True, eq=False)
class RowProfile:
    """sum_ij absolute_ij |W_ij| + sum_r length_r ||W_r||_2 + 1/2 sum_ij square_ij W_ij^2; None where such a sum is not there.

    absolute, square : a number, or an array that broadcasts to the shape of W
    length           : a number, or one a row
    """

    absolute: float | np.ndarray | None = None
    length: float | np.ndarray | None = None
    square: float | np.ndarray | None = None


def is_same_along_rows(values) -> bool:
    """Whether a number, or an array that broadcasts to a matrix, is one number along every row."""
    return np.ndim(values) == 0 or bool(np.all(values == values[..., :1]))
