"""Record of the time this process has spent compiling, and of who is told when it begins, without importing numba."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any


class _CompilationState:
    """One a process, as numba compiles under one lock: what a thread waits for another's function is compiling too."""

    def __init__(self):
        self.seconds, self.depth, self.compiled = 0.0, 0, 0
        self.lock = Lock()
        self.tell: Callable[[str], Any] | None = None


_state = _CompilationState()


def spent() -> float:
    """Seconds spent so far in importing the compiler, in compiling, and in reading what was compiled before.

    >>> spent() >= 0.0
    True
    """
    return _state.seconds


@contextmanager
def busy() -> Iterator[None]:
    """The time in this block counts, once: a function that calls others is compiled with them."""
    with _state.lock:
        _state.depth += 1
    started = time.perf_counter()
    try:
        yield
    finally:
        with _state.lock:
            _state.depth -= 1
            if _state.depth == 0:
                _state.seconds += time.perf_counter() - started


def begins(function: str) -> None:
    """A function is about to be compiled, not read."""
    _state.compiled += 1
    if _state.tell is not None:
        _state.tell(function)


@contextmanager
def announce_compilation(tell: Callable[[str], Any] | None) -> Iterator[None]:
    """`tell` hears the name of every function that is compiled in this block; None: nobody does."""
    before, _state.tell = _state.tell, tell
    try:
        yield
    finally:
        _state.tell = before


def compiling_too(seconds: float) -> str:
    """Return what is written behind the time of a solve.

    >>> "0.012 s" + compiling_too(1.234), compiling_too(0.0)
    ('0.012 s + 1.234 s compiling', '')
    """
    return f" + {seconds:.3f} s compiling" if seconds >= 0.0005 else ""
