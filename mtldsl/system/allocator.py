"""Memory that is given back to the system only to be asked for again a moment later."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

__all__ = ["freed_memory_is_kept"]

#: glibc's number for the size of free memory above which it is given back, and what that is here.
_TRIM_THRESHOLD, _KEPT = -1, 1 << 25
_NAME = "MALLOC_TRIM_THRESHOLD_"

_lock = threading.Lock()
_inside = 0


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Up to 32 MiB of free memory stay with the process meanwhile, where its environment says that less should.

    Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, so that large data that are gone leave no memory behind. Each small array of a computation
    in pieces then comes from the system anew, page by page, which takes as long as computing with it. What was set is set again afterwards.
    """
    global _inside
    usual = _usual()
    if usual is None:
        yield
        return
    with _lock:
        _inside += 1
        if _inside == 1:
            _glibc().mallopt(_TRIM_THRESHOLD, _KEPT)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _glibc().mallopt(_TRIM_THRESHOLD, usual)


def _usual() -> int | None:
    """What the environment says, where that is less, and the library is glibc."""
    with suppress(KeyError, ValueError):
        size = int(os.environ[_NAME])
        if 0 <= size < _KEPT and _glibc() is not None:
            return size
    return None


@cache
def _glibc() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    with suppress(OSError):
        library = ctypes.CDLL(None)
        if hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt"):
            return library
    return None
