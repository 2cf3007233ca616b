"""The [groups] table of a problem file: which group a task is in, and which group that one is in."""

from __future__ import annotations

import csv
from pathlib import Path

from mtldsl.errors import DataError
from mtldsl.files.section import Reading, Section
from mtldsl.files.toml_source import TomlFile
from mtldsl.language.text.kinds import kind_of
from mtldsl.system.reading import reading as reading_file
from mtldsl.system.reading import regular_file

__all__ = ["GROUPS"]


def _read(reading: Reading) -> None:
    """name -> {task or group: the group it is in}, or a list with the group of every task.

    DataError with its place where a group is not a name, and where a CSV file of pairs cannot be read.
    """
    for name, value in reading.table("groups").items():
        reading.names[name] = _groups(reading.file, name, value, reading.folder)


def _groups(file: TomlFile, name: str, value, folder: Path) -> dict[str, str | None] | list:
    path = ("groups", name)
    if isinstance(value, str):
        try:
            return _stored(folder / value)
        except DataError as error:
            raise error.at(file.place(path, value=True)) from error
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        raise file.error(
            f'write {name} = {{Oslo = "north", ...}}, a list with the group of every task, or the path of a CSV file, '
            f"not {kind_of(value)}",
            path,
            value=True,
        )
    for key, group in items:
        whole = isinstance(group, int) and not isinstance(group, bool)
        if not isinstance(group, str) and not (whole and isinstance(value, list)):
            raise file.error(f"a group is a name in quotes, not {kind_of(group)}", (*path, key), value=True)
    return value


def _stored(path: Path) -> dict[str, str | None]:
    """The pairs of a CSV file; an empty second cell means: in no group."""
    found: dict[str, str | None] = {}
    with (
        reading_file(regular_file(path), "a CSV file"),
        path.open(newline="", encoding="utf-8-sig") as stored,
    ):
        for line in (lines := csv.reader(stored, strict=True)):
            if not line:
                continue
            if len(line) != 2 or not line[0].strip():
                raise DataError(
                    f"line {lines.line_num} has to hold a name and its group, such as Oslo,north", term=path
                )
            name, group = (cell.strip() for cell in line)
            if name in found:
                raise DataError(f"line {lines.line_num}: {name!r} is in a group already", term=path)
            found[name] = group or None
    if not found:
        raise DataError("the file is empty", term=path)
    return found


GROUPS = Section("groups", names=True, read=_read)
