"""Check that an array fits into memory, asked before it is made."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path, PurePosixPath

from mtldsl.errors import MTLError, SolverError

# --------------------------------------------------------------------------------------------------------------
# Memory that is given back to the system only to be asked for again a moment later.

#: glibc's number for the size of free memory above which it is given back.
M_TRIM_THRESHOLD = -1


@dataclass(frozen=True)
class MemorySettings:
    """Sizes of memory that is kept, or asked about."""

    kept_bytes: int = 1 << 25  # free memory above which glibc gives it back
    unasked_bytes: int = (
        1 << 16
    )  # never asked about: asking takes 0.1 ms, and a process without so much is at its end anyway
    unlimited_bytes: float = 2.0**60  # what a control group without a limit says in version 1, about


SETTINGS = MemorySettings()


@cache
def keep_freed_memory() -> None:
    """Let up to 32 MiB of free memory stay with this process from now on, where its environment says that less should.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, so that large data that are gone leave no memory behind. Each small array of a computation
    in pieces then comes from the system anew, page by page, which takes as long as computing with it.
    """
    if not sys.platform.startswith("linux"):
        return
    with suppress(KeyError, ValueError, OSError):
        asked, library = int(os.environ["MALLOC_TRIM_THRESHOLD_"]), ctypes.CDLL(None)
        is_glibc = hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt")
        if is_glibc and 0 <= asked < SETTINGS.kept_bytes:
            library.mallopt(M_TRIM_THRESHOLD, SETTINGS.kept_bytes)


def available_memory() -> float:
    """Bytes that this process can have now, the least of: what the system has, what its control groups (containers, batch systems) leave,
    and what its own limit on addresses leaves; inf where nothing is said."""
    return min(_of_system(), _of_groups(Path("/")), _of_process())


def require_memory(
    size: float,
    what: str,
    advice: str,
    error: type[MTLError] = SolverError,
    argument: str | tuple[str, ...] = "",
) -> None:
    """`error` where `size` bytes are more than there are: what needs them, what to write instead, and of which argument.

    >>> require_memory(1e18, "closed_form's system", "choose conjugate_gradient")
    Traceback (most recent call last):
    mtldsl.errors.SolverError: closed_form's system needs 9.31e+08 GiB of memory, and ... GiB are there; choose conjugate_gradient
    """
    if size < SETTINGS.unasked_bytes:
        return
    available = available_memory()
    if size > available:
        raise error(
            f"{what} needs {gib(size)} of memory, and {gib(available)} are there",
            write_instead=advice,
            argument=argument,
        )


def as_dense(X, what: str, advice: str, error: type[MTLError] = SolverError):
    """X as a dense array; `error` where a sparse one would not fit."""
    if not hasattr(X, "toarray"):
        return X
    require_memory(float(prod(X.shape)) * X.dtype.itemsize, what, advice, error)
    return X.toarray()


@contextmanager
def memory_errors(who: str) -> Iterator[None]:
    """MemoryError as SolverError: what was not foreseen, and the system refused."""
    try:
        yield
    except MemoryError as error:
        said = str(error).rstrip(".") or "the system refused more"
        raise SolverError(
            f"{who} needs more memory than the {gib(available_memory())} that are there ({said})",
            write_instead="select features, take fewer rows or tasks, or name another solver",
        ) from error


def gib(size: float) -> str:
    return f"{size / 2**30:.3g} GiB"


def _of_system() -> float:
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except OSError:
        pass  # not Linux: the physical memory is an upper bound
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _of_process() -> float:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return float("inf")
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return float("inf")
    return max(0.0, float(limit - used))


def _of_groups(root: Path) -> float:
    return min((_left(*group) for group in _groups(root)), default=float("inf"))


@cache
def _groups(root: Path) -> list[tuple[Path, str, str, str]]:
    """The control groups of this process, each with all above it, that have a limit: of version 2, and the memory controller of version 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, names = "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        # in a container, only some of them can be seen
        found += [(root / top / group, *names) for group in (own, *own.parents)]
    return [group for group in found if _left(*group) < SETTINGS.unlimited_bytes]


def _left(folder: Path, limit: str, usage: str, idle: str) -> float:
    try:
        most = int((folder / limit).read_text())  # "max" is none
        used = int((folder / usage).read_text())
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return float("inf")
    # files that were read are counted, and given up where memory is needed
    return max(0.0, float(most - used + int(counts.get(idle, 0))))
