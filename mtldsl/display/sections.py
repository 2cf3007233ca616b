"""Panels that an object shows: formulas, facts, tables and figures, with control characters made visible."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# --------------------------------------------------------------------------------------------------------------
# A panel: a title, a verdict, formulas, facts and tables, as plain text and LaTeX.

#: Tones of a verdict, for its colour; the words say it too.
GOOD = "good"
WRONG = "wrong"
NEUTRAL = "neutral"


@dataclass(frozen=True)
class SectionSettings:
    """Limit of a table: `shown_rows` are shown before the rest is counted."""

    shown_rows: int = 12


SETTINGS = SectionSettings()


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
    """Display of one object, from the top.

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


def aligned_lines(table: Sequence[Sequence[str]]) -> list[str]:
    """A line a row, the columns aligned.

    >>> aligned_lines([("a", "value"), ("long", "1")])
    ['a     value', 'long  1']
    """
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def some_rows(rows: Sequence[Sequence[str]], of: str) -> tuple[list[Sequence[str]], list[str]]:
    """(the first rows, a note on those that are left out).

    >>> some_rows([["a"]] * 14, "tasks")[1]
    ['2 more tasks are not shown.']
    """
    left = len(rows) - SETTINGS.shown_rows
    return list(rows[: SETTINGS.shown_rows]), [f"{left:,} more {of} are not shown."] if left > 0 else []


# --------------------------------------------------------------------------------------------------------------
# Text from files of others as it may be shown: what would move a terminal's cursor, or turn the order of letters, is spelled out.

#: Joiners inside words of Persian or Hindi, and inside emoji: they move nothing.
_JOINERS = "\u200c\u200d"


def visible(text: str, kept: str = "") -> str:
    r"""The text with every character that a screen obeys rather than shows written as \x1b or \u202e; those in `kept` stay.

    >>> print(visible("a\x1b[2Jb\rc"), visible("x\u202etxt.exe"), visible("two\nlines", "\n"), visible("größer ≤ ‖W‖"))
    a\x1b[2Jb\rc x\u202etxt.exe two
    lines größer ≤ ‖W‖
    """
    if text.isprintable():
        return text
    # what is not printable Python's repr spells out
    return "".join(repr(c)[1:-1] if _is_hidden(c) and c not in kept else c for c in text)


def visible_in_json(text: str) -> str:
    r"""JSON text whose strings hold none of these characters as such, but the same value.

    >>> print(visible_in_json('["a\u202eb"]'))
    ["a\u202eb"]
    """
    if text.isprintable():
        return text
    return "".join(_units(c) if c != "\n" and _is_hidden(c) else c for c in text)


def visible_record(value: Any) -> Any:
    """Plain values, every text in them as `visible` shows it: one line each."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_record(key): visible_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(visible_record, value))
    return value


def _is_hidden(c: str) -> bool:
    # control and formatting characters, halves of surrogate pairs, separators of lines, and what no letter is known for; spaces stay
    return not c.isprintable() and c not in _JOINERS and unicodedata.category(c) != "Zs"


def _units(c: str) -> str:
    data = c.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[k : k + 4]}" for k in range(0, len(data), 4))
