"""Files that are whole or not there: written under another name, forced to the disk, then put in the place of the old one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mtldsl.errors import DataError
from mtldsl.system.inputs import note_output, require_no_input

__all__ = ["atomic_file", "check_writable", "new_file", "remove_leftovers", "writing"]

_ENDING = ".partial"


@contextmanager
def atomic_file(path) -> Iterator[BinaryIO]:
    """A binary file that becomes `path` where the block ends well; where it does not, `path` stays what it was.

    A process that is killed at any moment leaves the old file or the new one, whole. Beside it may lie `.<name>.<letters>.partial`, which
    nothing reads. A link is followed; the permissions of a file that is there are kept. DataError, with the path and what the
    system says, where the file cannot be written, and where it was read as an input.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with atomic_file(path) as file:
    ...     _ = file.write(b"whole")
    >>> path.read_text(), [found.name for found in path.parent.iterdir()]
    ('whole', ['a.txt'])
    """
    target, there, partial = _places(path)
    try:
        with writing(path), new_file(partial, path) as file:
            yield file
            if there is not None:
                os.chmod(partial, there.st_mode & 0o7777)
        with writing(path):
            os.replace(partial, target)
        note_output(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    _sync_folder(target.parent)


def check_writable(path) -> None:
    """DataError where `path` could not be written now, or is an input: asked before the work whose result it is to hold.

    >>> check_writable("no/such/folder/a.npz")
    Traceback (most recent call last):
    mtldsl.errors.DataError: no/such/folder/a.npz: cannot be written (No such file or directory); give a path ...
    """
    _, _, partial = _places(path)
    with writing(path):
        open(partial, "xb").close()
        partial.unlink()


def _places(path) -> tuple[Path, os.stat_result | None, Path]:
    """(the file meant, what it is now, another name beside it)."""
    with writing(path):
        target = Path(path).resolve()
        there = target.stat() if target.exists() else None
    if there is not None and not target.is_file():
        what = "a folder" if target.is_dir() else "not a regular file"
        raise DataError(
            f"cannot be written (it is {what})", term=path, write_instead="give the path of a file"
        )
    require_no_input(path)
    return target, there, target.with_name(f".{target.name}.{secrets.token_hex(6)}{_ENDING}")


@contextmanager
def new_file(path, shown=None) -> Iterator[BinaryIO]:
    """A binary file that is on the disk, whole, where the block ends well. Errors other than those of the file itself pass.

    shown : the path that a message names, where it is another
    """
    shown = shown or path
    with writing(shown):
        file = open(path, "wb")  # noqa: SIM115 - closed below
    try:
        yield file
        with writing(shown):
            file.flush()
            os.fsync(file.fileno())
            file.close()
    finally:
        with suppress(OSError):  # of a full disk, once more
            file.close()


@contextmanager
def writing(path) -> Iterator[None]:
    """What the system refuses in the block, as DataError: which path, and why."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"cannot be written ({error.strerror or error})",
            term=path,
            write_instead="give a path in a folder that is there, has room and may be written to",
        ) from error


def remove_leftovers(path) -> None:
    """Removes what processes that were killed left of `path`. Only for who holds its lock."""
    target = Path(path).resolve()
    with suppress(OSError):
        for found in target.parent.iterdir():
            if found.name.startswith(f".{target.name}.") and found.name.endswith(_ENDING):
                found.unlink()


def _sync_folder(folder: Path) -> None:
    # The new name itself reaches the disk only with its folder. Not every system can do that.
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
