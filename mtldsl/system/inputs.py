"""Inputs of a command or a process: the files and folders that were read, and the promise that no output replaces one of them.

Readers of data tell of every file they open, and so do commands of everything else they read: problem files, arrays, models, new rows. Every
file that is written is compared with these first. Inside `noting_inputs()`, around a command, what is read is forgotten at its end.
Outside, files of data alone are kept, to the end of the process: who loads a model may well save it under its name again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Literal

from mtldsl.errors import DataError

__all__ = [
    "Inputs",
    "Role",
    "inputs_kept",
    "note_folder",
    "note_input",
    "note_output",
    "noting_inputs",
    "require_apart",
    "require_no_input",
]

#: "data": rows or labels; "input": anything else that is read; "own": a file that its reader also writes, such as a checkpoint
Role = Literal["data", "input", "own"]


class Inputs:
    """Resolved paths, and the identity that the system gives a file whatever its name: links and other spellings have the same."""

    def __init__(self):
        self.files: set[str] = set()
        self.folders: set[Path] = set()
        self.identities: dict[tuple[int, int], list[str]] = {}

    def add(self, path) -> None:
        with suppress(OSError, ValueError, RuntimeError):
            there = os.path.realpath(path)
            if there not in self.files:
                self.files.add(there)
                self.identities.setdefault(_identity(there), []).append(there)

    def file_at(self, target: Path) -> str | None:
        """The input that would be written over."""
        with suppress(OSError):
            if str(target) in self.files and target.exists():
                return str(target)
            for known in self.identities.get(_identity(target), ()):
                with suppress(OSError):  # one that is gone, whose number the system has given away since
                    if known in self.files and os.path.samefile(known, target):
                        return known
        return None

    def folder_of(self, target: Path) -> Path | None:
        """The folder of data that would have one file more."""
        return next((folder for folder in self.folders if folder in (target, *target.parents)), None)

    def require_none(self, path) -> None:
        """DataError where writing to `path` would replace one of the files, or add one to a folder."""
        target = Path(path).resolve()
        if self.file_at(target) is not None:
            raise DataError(
                "was read as an input, which an output never replaces", term=path, write_instead="give another path"
            )  # fmt: skip
        folder = self.folder_of(target)
        if folder is not None:
            raise DataError(
                f"lies in {folder}, whose files were read as data: it would be one of them", term=path, write_instead="give a path elsewhere"
            )  # fmt: skip


_of_process = Inputs()
_noted: ContextVar[tuple[Inputs, ...]] = ContextVar("inputs of a command, and of what it reads", default=())


def note_input(path, role: Role = "input") -> None:
    """Keep in mind that this file is read."""
    for inputs in _where(role):
        inputs.add(path)


def note_folder(path) -> None:
    """Keep in mind that every file of this folder, and of those below it, is data."""
    for inputs in _where("data"):
        inputs.folders.add(Path(path).resolve())


def note_output(path) -> None:
    """Keep in mind that this file was written here: no input of that name is there any more."""
    for inputs in (*_noted.get(), _of_process):
        inputs.files.discard(os.path.realpath(path))


@contextmanager
def noting_inputs() -> Iterator[None]:
    """Everything that is read inside is an input until the end of the block: for a command."""
    token = _noted.set((Inputs(),))
    try:
        yield
    finally:
        _noted.reset(token)


@contextmanager
def inputs_kept() -> Iterator[Inputs]:
    """Everything that is read inside, which is an input of the command around it too, or of the process where there is none."""
    own = Inputs()
    token = _noted.set((*(_noted.get() or (_of_process,)), own))
    try:
        yield own
    finally:
        _noted.reset(token)


def require_no_input(path) -> None:
    """DataError where writing to `path` would replace a file that was read, or add one to a folder of data.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "d.csv"
    >>> _ = path.write_text("a,b\\n")
    >>> with noting_inputs():
    ...     note_input(path)
    ...     require_no_input(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    mtldsl.errors.DataError: ...d.csv: was read as an input, which an output never replaces; give another path
    """
    for inputs in (*_noted.get(), _of_process):
        inputs.require_none(path)


def require_apart(outputs: Iterable[tuple[str, Path]]) -> None:
    """DataError where one file, links followed, would be two outputs: (what is written, where) each.

    >>> require_apart([("the solution", Path("w.npz")), ("the proof", Path("./w.npz"))])
    Traceback (most recent call last):
    mtldsl.errors.DataError: w.npz: would be the solution and the proof, and only one is kept; give each a path of its own
    """
    there: dict[Path, str] = {}
    for what, path in outputs:
        other = there.setdefault(Path(path).resolve(), what)
        if other != what:
            raise DataError(
                f"would be {other} and {what}, and only one is kept", term=path, write_instead="give each a path of its own"
            )  # fmt: skip


def _where(role: Role) -> tuple[Inputs, ...]:
    if role == "own":
        return ()
    return _noted.get() or ((_of_process,) if role == "data" else ())


def _identity(path) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_dev, about.st_ino
