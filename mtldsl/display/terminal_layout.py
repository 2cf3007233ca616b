"""Layout of reports for the terminal: a title above indented content, tables that fit its width, pairs, and small numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mtldsl.utils.compilation import compiling_too

GOOD = "bold green"
BAD = "bold red"
DIM = "dim"

#: How rich is to print: names from data are not markup of its own, [red] and :smile: stay what they are.
PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


def section(title: str, *content: RenderableType, notes: Iterable[str] = ()) -> Group:
    """A title, its content and faint notes indented, and an empty line."""
    parts = [*content, *(Text(note, DIM) for note in notes)]
    return Group(Text(title, "bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in parts), Text())


class FittingTable:
    """A table that leaves out whole columns where the terminal is narrow, and says which; no cell is cut.

    columns : (name, style) each, numbers but for the first;  rows : (cells, style) each
    dropped : positions of columns in the order in which they go
    """

    def __init__(
        self, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[Sequence[str], str]], dropped: Sequence[int]
    ):  # fmt: skip
        self.columns, self.rows, self.dropped = columns, rows, dropped

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # first all in one line, then names that are broken, then columns fewer and fewer
        attempts = [(False, 0), *((True, n) for n in range(len(self.dropped) + 1))]
        for broken, n in attempts:
            gone = self.dropped[:n]
            table = self._without(gone, broken)
            if console.measure(table).maximum <= options.max_width:
                break
        yield table
        if gone:
            yield Text(f"no room for {', '.join(dict.fromkeys(self.columns[k][0] for k in gone))}", DIM)

    def _without(self, gone: Sequence[int], broken: bool) -> Table:
        table = plain_table()
        kept = [k for k in range(len(self.columns)) if k not in gone]
        for k in kept:
            name, style = self.columns[k]
            name = name.replace("_", "\n") if broken else name
            table.add_column(name, justify="right" if k else "left", style=style, no_wrap=True)
        for cells, style in self.rows:
            table.add_row(*(Text(cells[k], style) for k in kept if k < len(cells)))
        return table


def plain_table(first: str | None = None, *numbers: str, words: str = "", dim: bool = False) -> Table:
    """An empty table without lines: a column of names, columns of numbers, and a last one of words."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=DIM)
    if first is not None:
        table.add_column(first, style=DIM if dim else "", overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    if words:
        table.add_column(words, overflow="fold")
    return table


def ends(rows: Sequence[Any], shown: int, each: int) -> list:
    """The rows; of more than `shown` so many at each end, with None between."""
    return list(rows) if len(rows) <= shown else [*rows[:each], None, *rows[-each:]]


def agreement(check: dict, agreed: str) -> list[Text]:
    """The verdict of a cross-check, and every disagreement and note."""
    words = [Text(agreed, "green") if check["agrees"] else Text("The two DISAGREE:", BAD)]
    words += [Text(f"- {text}", "red") for text in check["disagreements"]]
    return words + [Text(f"- {text}", "yellow") for text in check["notes"]]


def pairs(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """A label and a value a row."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=DIM, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(Text(label), value if isinstance(value, Text) else Text(value))
    return grid


def time(solution: dict, digits: int = 3) -> str:
    """The seconds of the solve that a solution's record tells, and beside them those of compiling, where there were any."""
    return f"{solution['seconds']:.{digits}f} s{compiling_too(solution['compile_seconds'])}"


def small(value: float) -> str:
    """A difference, a gap or a violation: its size is what matters."""
    if not math.isfinite(value):
        return "unknown"
    return "0" if value == 0 else f"{value:.1e}"
