"""CSV files that grow by whole units of work, so that a run stopped at any time goes on where it was."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np

__all__ = ["append", "cell", "done", "rows_of"]


def rows_of(path: Path) -> list[dict]:
    """Every row as text; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def done(path: Path, key) -> set[tuple]:
    """The keys of the rows there are."""
    return {tuple(row[name] for name in key) for row in rows_of(path)}


def append(path: Path, columns, *rows: dict) -> None:
    """All rows of a unit in one write; of an older file's columns, where it has fewer."""
    text = io.StringIO()
    head = None
    if path.is_file():
        with path.open(newline="") as file:
            head = next(csv.reader(file), None)
    writer = csv.DictWriter(text, head or columns, extrasaction="ignore", lineterminator="\n")
    if not head:
        writer.writeheader()
    writer.writerows(rows)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def cell(values, digits: int = 4) -> str:
    """Mean ± standard deviation of what is there; nothing of nothing."""
    values = np.array([float(value) for value in values if value != ""])
    if not values.size:
        return ""
    deviation = f" ± {values.std(ddof=1):.{digits}f}" if values.size > 1 else ""
    return f"{values.mean():.{digits}f}{deviation}"
