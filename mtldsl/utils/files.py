"""Files read with clear errors and written whole or not at all, never over an input."""

from __future__ import annotations

import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal
from zipfile import ZipFile

import numpy as np
from scipy import sparse

from mtldsl.errors import DataError, MTLError
from mtldsl.utils.caching import setting
from mtldsl.utils.memory import available_memory
from mtldsl.utils.validation import as_path

# --------------------------------------------------------------------------------------------------------------
# Inputs of a command or a process: the files and folders that were read, and the promise that no output replaces one of them.
#
# Readers of data tell of every file they open, and so do commands of everything else they read: problem files, arrays, models, new rows. Every
# file that is written is compared with these first. Inside `noting_inputs()`, around a command, what is read is forgotten at its end.
# Outside, files of data alone are kept, to the end of the process: who loads a model may well save it under its name again.

#: "data": rows or labels; "input": anything else that is read; "own": a file that its reader also writes, such as a checkpoint
Role = Literal["data", "input", "own"]


class InputPaths:
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


_of_process = InputPaths()
_noted: ContextVar[tuple[InputPaths, ...]] = ContextVar(
    "inputs of a command, and of what it reads", default=()
)


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


def noting_inputs() -> AbstractContextManager[None]:
    """Everything that is read inside is an input until the end of the block: for a command."""
    return setting(_noted, (InputPaths(),))


@contextmanager
def inputs_kept() -> Iterator[InputPaths]:
    """Everything that is read inside, which is an input of the command around it too, or of the process where there is none."""
    own = InputPaths()
    with setting(_noted, (*(_noted.get() or (_of_process,)), own)):
        yield own


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


def _where(role: Role) -> tuple[InputPaths, ...]:
    if role == "own":
        return ()
    return _noted.get() or ((_of_process,) if role == "data" else ())


def _identity(path) -> tuple[int, int]:
    about = os.stat(path)
    return about.st_dev, about.st_ino


# --------------------------------------------------------------------------------------------------------------
# Files that somebody named: whether there is one, and what goes wrong while it is read.


def _other_place(path: Path) -> str:
    """Advice for a path that is the address of a page, or begins with a home folder's sign; nothing for others."""
    first = path.parts[0] if path.parts else ""
    if re.fullmatch(r"[a-z][a-z0-9+.-]+:", first):  # pathlib makes one stroke of the two
        return f"{first}// is an address: download the file, and give its path"
    return "~ is not read as the home folder: write the whole path" if first.startswith("~") else ""


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
        raise DataError(
            f"there is no such file{looked}", term=path, write_instead=_other_place(path)
        ) from None
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
    """Return what is raised inside, as a DataError that begins with the path; errors of mtldsl stay.

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
    kinds = {"d": "a folder", "p": "a pipe", "s": "a socket", "c": "a device", "b": "a device"}
    return kinds.get(stat.filemode(mode)[0], "something else")


# --------------------------------------------------------------------------------------------------------------
# NumPy's files, .npy and .npz, from anybody: every size that a file claims is compared with what is there before memory is asked for.

_HEADERS: dict[tuple, Callable] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def npz_path(path: Path) -> Path:
    """The path with the ending that an archive has; DataError for a folder, beside which it would lie.

    >>> npz_path(Path("run.1")).name, npz_path(Path("run.npz")).name
    ('run.1.npz', 'run.npz')
    """
    return path if path.suffix == ".npz" else named(path).with_name(path.name + ".npz")


def named(path: Path) -> Path:
    """A path without an ending, to which one is added; DataError for a folder, beside which that would lie."""
    if not path.name or os.path.isdir(path):  # a name that is too long is none of a folder
        raise DataError(f"{path}: is a folder", write_instead="give the name of a file in it")
    return path


def read_archive(path, what: str = "an .npz file", names=None, role: Role = "input") -> dict[str, np.ndarray]:
    """name -> array of an .npz file: all of them, or those in `names` that it holds, with None for the others.

    DataError for a file of another kind or with damaged bytes; for Python objects, which are never unpickled; for an array whose
    header claims another size than the archive has for it, for a name that is there twice, and for more than fits into memory.
    """
    path = regular_file(path, role)
    with reading(path, what), ZipFile(path) as archive:
        members: dict[str, Any] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name in members:
                raise ValueError(f"it holds {name!r} twice, of which only one would be read")
            members[name] = info
        arrays: dict[str, Any] = {name: None for name in members if names is not None and name not in names}
        wanted = {name: info for name, info in members.items() if name not in arrays}
        _require_memory(sum(info.file_size for info in wanted.values()))
        for name, info in wanted.items():
            with archive.open(info) as stream:
                arrays[name] = _array(stream, info.file_size, name)
    return {name: arrays[name] for name in members}


def read_array(path: Path, what: str = "an .npy file") -> np.ndarray:
    """The array of an .npy file; as `read_archive`."""
    path = regular_file(path)
    with reading(path, what), path.open("rb") as stream:
        size = path.stat().st_size
        _require_memory(size)
        return _array(stream, size, path.name)


def checked_csr(data, indices, indptr, shape) -> sparse.csr_array:
    """The CSR matrix of a file's arrays; ValueError where indices do not fit: compiled loops follow them without a look."""
    X = sparse.csr_array((data, indices, indptr), shape=tuple(shape))
    X.check_format(full_check=True)
    return X


def require_shapes(**arrays) -> None:
    """ValueError for the first array, given as name=(array, shape), of another shape; None stands for any length.

    >>> require_shapes(values=(np.ones(3), (None,)), basis=(np.ones((4, 3)), (4, 2)))
    Traceback (most recent call last):
    ValueError: basis has the shape (4, 3), not (4, 2)
    """
    for name, (array, shape) in arrays.items():
        fits = len(shape) == array.ndim and all(
            want in (None, side) for want, side in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{name} has the shape {array.shape}, not {shape}")


def _require_memory(size: int) -> None:
    if size > available_memory():
        raise ValueError(
            f"its arrays have {size / 1e9:.3g} GB, and {available_memory() / 1e9:.3g} GB of memory are there"
        )


def _array(stream: Any, size: int, name: str) -> np.ndarray:
    """One array of `size` bytes with its header."""
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:  # the third is for names of fields
        raise ValueError(f"{name!r} is of version {version} of the format")
    shape, _, dtype = _HEADERS[version](stream)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError(f"{name!r} holds Python objects or records, which are not read")
    if any(isinstance(side, bool) or not 0 <= side < 2**63 for side in shape):
        raise ValueError(f"{name!r} claims the shape {shape}")
    length = math.prod(shape) * dtype.itemsize
    if length != size - stream.tell():
        raise ValueError(f"{name!r} claims {length:,} bytes, and has {size - stream.tell():,}")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)


# --------------------------------------------------------------------------------------------------------------
# Files that are whole or not there: written under another name, forced to the disk, then put in the place of the old one.

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
    """Tell whether the file is locked now; False where another has the lock, or the system has none."""
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
    """Return what the system refuses in the block, as DataError: which path, and why."""
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
                with suppress(OSError), open(found, "rb") as file:
                    if _locked(file, wait=False):
                        found.unlink()


def _sync_folder(folder: Path) -> None:
    # The new name itself reaches the disk only with its folder. Not every system can do that.
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# --------------------------------------------------------------------------------------------------------------
# One user at a time for a file or a folder that is written to.


@dataclass(frozen=True)
class FileSettings:
    """Limit of a wait: `lock_seconds` for a process that is just leaving."""

    lock_seconds: float = 0.5


SETTINGS = FileSettings()


@contextmanager
def sole_use(path, taken: Exception) -> Iterator[None]:
    """Nobody else, of this process or another on any system with locks, is in such a block of the same path: `taken` is raised instead.

    The lock is a file `.<name>.lock` beside it, which is gone afterwards. It is the system that holds it, and lets go of it when a process
    ends, however it ends. Where that file cannot be made, `path` cannot be written either, and the block runs without a lock.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.npz"
    >>> with sole_use(path, ValueError("in use")):
    ...     with sole_use(path, ValueError("in use")):
    ...         pass
    Traceback (most recent call last):
    ValueError: in use
    >>> list(path.parent.iterdir())
    []
    """
    from filelock import FileLock, Timeout

    target = Path(path).resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"), thread_local=False)
    try:
        lock.acquire(timeout=SETTINGS.lock_seconds, poll_interval=0.02)
    except Timeout:
        raise taken from None
    except OSError:
        yield
        return
    try:
        yield
    finally:
        # Removed while it is held: whoever opened it before and gets it now is told by filelock that it has no name.
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()
