"""Paths of files and folders."""

from __future__ import annotations

import os
from pathlib import Path

from mtldsl.errors import DataError
from mtldsl.values.number import quoted

__all__ = ["as_path"]


def as_path(value, typed: str) -> Path:
    """The path; DataError where it is neither text nor a path. `typed` is such as "stored(folder)"."""
    if isinstance(value, str | os.PathLike) and str(value):
        return Path(value)
    raise DataError(
        f"{quoted(value)} is not a path", term=typed, write_instead="write text, or a pathlib.Path"
    )
