"""What every section of a report is made of: a title above indented content, pairs of label and value, and small numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mtldsl.system.compiling import compiling_too

__all__ = ["BAD", "DIM", "GOOD", "PLAIN", "pairs", "section", "small", "time"]

GOOD, BAD, DIM = "bold green", "bold red", "dim"

#: How rich is to print: names from data are not markup of its own, [red] and :smile: stay what they are.
PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


def section(title: str, *content: RenderableType) -> Group:
    """A title, its content indented, and an empty line."""
    return Group(
        Text(title, "bold"), *(Padding(part, (0, 0, 0, 2), expand=False) for part in content), Text()
    )


def pairs(rows: Iterable[tuple[str, str | Text]]) -> Table:
    """A label and a value a row."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=DIM, no_wrap=True)
    grid.add_column()
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
