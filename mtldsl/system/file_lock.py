"""One user at a time for a file or a folder that is written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["sole_use"]

#: Seconds to wait for one that is just leaving.
_PATIENCE = 0.5


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
        lock.acquire(timeout=_PATIENCE, poll_interval=0.02)
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
