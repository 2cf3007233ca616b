"""Files that somebody named: whether there is one, and what goes wrong while it is read."""

from __future__ import annotations

import stat
from contextlib import contextmanager
from pathlib import Path

from mtldsl.errors import DataError, MTLError
from mtldsl.system.inputs import Role, note_input
from mtldsl.values.path import as_path

__all__ = ["reading", "regular_file"]


def regular_file(path, role: Role = "input") -> Path:
    """The path; DataError that begins with it where no regular file is there.

    Links are followed. A folder, a device such as /dev/zero or a pipe, which would be read for ever, a loop of links and a name that
    no file can have are refused without being opened. As an input, no output replaces it: `role` as in `system.inputs`.

    >>> regular_file("/dev/null")
    Traceback (most recent call last):
    mtldsl.errors.DataError: /dev/null: cannot be read: is not a regular file but a device; give the path of a file
    """
    path = as_path(path, "reading a file")
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        looked = "" if path.is_absolute() else f" (looked from {Path.cwd()})"
        raise DataError(f"there is no such file{looked}", term=path) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", term=path) from None
    except ValueError as error:  # a NUL, half a pair of surrogates
        raise DataError(f"is not the path of a file ({error})", term=path) from None
    if not stat.S_ISREG(mode):
        raise DataError(
            f"cannot be read: is not a regular file but {_kind(mode)}",
            term=path,
            write_instead="give the path of a file",
        )
    note_input(path, role)
    return path


@contextmanager
def reading(path, what: str = "a file of this kind"):
    """What is raised inside, as a DataError that begins with the path; errors of mtldsl stay.

    For the calls of a library on the bytes of a file alone: of damaged bytes readers raise errors of every kind, KeyError and
    AttributeError among them, which are not faults of ours.

    >>> with reading("w.npz", "a solution"):
    ...     {}["json"]
    Traceback (most recent call last):
    mtldsl.errors.DataError: w.npz: cannot be read as a solution: KeyError: 'json'
    """
    try:
        yield
    except MTLError:
        raise
    except OSError as error:
        raise DataError(f"cannot be read as {what}: {error.strerror or error}", term=path) from error
    except MemoryError as error:
        raise DataError(f"cannot be read as {what}: it needs more memory than there is", term=path) from error
    except Exception as error:
        said = error if isinstance(error, ValueError) and str(error) else _named(error)
        raise DataError(f"cannot be read as {what}: {said}", term=path) from error


def _named(error: Exception) -> str:
    said, kind = str(error), type(error).__name__
    return f"{kind}: {said}" if said else kind


def _kind(mode: int) -> str:
    for is_it, what in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if is_it(mode):
            return what
    return "something else"
