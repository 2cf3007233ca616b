"""Files that are whole or not there: written under another name, forced to the disk, then put in the place of the old one."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mtldsl.errors import DataError
from mtldsl.system.inputs import note_output, require_no_input

__all__ = ["atomic_file", "check_writable", "new_file", "remove_leftovers", "writing"]

_ENDING = ".partial"
_LEFT_OVER = re.compile(rf"\..+\.[0-9a-f]{{12}}{re.escape(_ENDING)}")


@contextmanager
def atomic_file(path) -> Iterator[BinaryIO]:
    """A binary file that becomes `path` where the block ends well; where it does not, `path` stays what it was.

    A process that is killed at any moment leaves the old file or the new one, whole. Beside it may lie `.<name>.<letters>.partial`, which
    nothing reads, and which the next file that is written to the folder removes. A link is followed; the permissions of a file that is
    there are kept. DataError, with the path and what the system says, where the file cannot be written, and where it was read as an input.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> with atomic_file(path) as file:
    ...     _ = file.write(b"whole")
    >>> path.read_text(), [found.name for found in path.parent.iterdir()]
    ('whole', ['a.txt'])
    """
    target, there = _place(path)
    remove_leftovers(target)
    with writing(path):
        partial, file, lock = _open_beside(target)
    try:
        with writing(path), _forced(file, path):
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
    finally:
        lock.close()
    _sync_folder(target.parent)


def check_writable(path) -> None:
    """DataError where `path` could not be written now, or is an input: asked before the work whose result it is to hold.

    >>> check_writable("no/such/folder/a.npz")
    Traceback (most recent call last):
    mtldsl.errors.DataError: no/such/folder/a.npz: cannot be written (No such file or directory); give a path ...
    """
    target, _ = _place(path)
    with writing(path):
        partial, file, lock = _open_beside(target)
        file.close()
        partial.unlink()
        lock.close()


def _place(path) -> tuple[Path, os.stat_result | None]:
    """(the file meant, what it is now)."""
    with writing(path):
        target = Path(path).resolve()
        there = target.stat() if target.exists() else None
    if there is not None and not target.is_file():
        what = "a folder" if target.is_dir() else "not a regular file"
        raise DataError(
            f"cannot be written (it is {what})", term=path, write_instead="give the path of a file"
        )
    require_no_input(path)
    return target, there


def _open_beside(target: Path) -> tuple[Path, BinaryIO, BinaryIO]:
    """(another name beside the target, the new file of that name, what holds its lock until it is closed, too).

    The system takes the lock away when the process ends, however it ends: whoever gets the lock of such a file knows that it is left over.
    """
    while True:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(6)}{_ENDING}")
        file = open(partial, "xb")  # noqa: SIM115 - closed by the callers
        lock = os.fdopen(
            os.dup(file.fileno()), "wb"
        )  # the same lock: it outlives the closing that a file needs before it is renamed
        _locked(file, wait=True)
        if os.fstat(file.fileno()).st_nlink or os.name == "nt":
            return partial, file, lock
        file.close()  # somebody took it for left over before it was locked
        lock.close()


def _locked(file: BinaryIO, wait: bool) -> bool:
    """Whether the file is locked now; False where another has the lock, or the system has none."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True


@contextmanager
def new_file(path) -> Iterator[BinaryIO]:
    """A binary file that is on the disk, whole, where the block ends well. Errors other than those of the file itself pass."""
    with writing(path):
        file = open(path, "wb")  # noqa: SIM115 - closed below
    with _forced(file, path):
        yield file


@contextmanager
def _forced(file: BinaryIO, shown) -> Iterator[None]:
    """The file is on the disk at the end, and closed; `shown` is the path that a message names."""
    try:
        yield
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
    """Remove what processes that were killed left beside `path`. What a living one writes is locked by it, and stays."""
    with suppress(OSError):
        for found in Path(path).resolve().parent.iterdir():
            if _LEFT_OVER.fullmatch(found.name):
                _remove_if_left_over(found)


def _remove_if_left_over(path: Path) -> None:
    with suppress(OSError), open(path, "rb") as file:
        if _locked(file, wait=False):
            path.unlink()


def _sync_folder(folder: Path) -> None:
    # The new name itself reaches the disk only with its folder. Not every system can do that.
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
