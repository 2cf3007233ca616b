"""A panel: a title, a verdict, formulas, facts and tables, as plain text and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["GOOD", "NEUTRAL", "WRONG", "Formula", "Panel", "Table", "some_rows"]

#: What a verdict says, for its colour; the words say it too.
GOOD, WRONG, NEUTRAL = "good", "wrong", "neutral"

#: Rows of a table that are shown before the rest is counted.
_MOST_ROWS = 12


@dataclass(frozen=True)
class Formula:
    """Lines of LaTeX, each with the words before it: [("minimize", r"\\|W\\|_F")]; `where` explains symbols: [(LaTeX, words)]."""

    lines: Sequence[tuple[str, str]]
    where: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Table:
    """A head, and rows of as many cells as text; `caption` stands above it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class Panel:
    """What one object shows, from the top.

    verdict : a few words, and `tone` whether they are good news; `lead` one line of text beside them
    facts   : (name, value) pairs;  text : as typed;  notes : sentences below everything
    folded  : panels that are opened on demand
    """

    title: str
    verdict: str = ""
    tone: str = NEUTRAL
    lead: str = ""
    formula: Formula | None = None
    facts: Sequence[tuple[str, str]] = ()
    text: str = ""
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    folded: Sequence[Panel] = ()


def some_rows(rows: Sequence[Sequence[str]], of: str) -> tuple[list[Sequence[str]], list[str]]:
    """(the first rows, a note on those that are left out).

    >>> some_rows([["a"]] * 14, "tasks")[1]
    ['2 more tasks are not shown.']
    """
    left = len(rows) - _MOST_ROWS
    return list(rows[:_MOST_ROWS]), [f"{left:,} more {of} are not shown."] if left > 0 else []
