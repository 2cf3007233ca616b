"""How many threads a matrix product gets: one of BLAS's own, and of ours where blocks of it are worth them (`mtldsl.system.blocks`).

Threads of BLAS spin while they wait. Beside eleven other processes on two cores, X^T (X W) of 20,000 x 600 x 60 took 0.06 s of CPU and 0.25 s on
one thread, 0.47 s and 1.9 s on two. And what they share out among them, and so the last bits, depends on how many they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

__all__ = ["configured_threads", "on_one_blas_thread", "one_blas_thread"]

P = ParamSpec("P")
R = TypeVar("R")

#: BLAS has one setting for the whole process: how many blocks hold it at one thread, and what the first of them found.
_lock = threading.Lock()
_inside = 0
_found: list = []


class _Here(threading.local):
    """What the present thread holds: so many blocks."""

    blocks = 0


_here = _Here()


def on_one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: `one_blas_thread` while the function runs. Entering takes some fifteen microseconds, but next to nothing where the caller is
    in such a block already."""

    @wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        if _here.blocks:
            return function(*args, **kwargs)
        with one_blas_thread():
            return function(*args, **kwargs)

    return inner


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS runs on one thread in the block. Blocks may be nested, and run in several threads: the last to leave restores what the first
    found."""
    entered = False
    try:
        with _lock:
            _enter()
            entered = True
        yield
    finally:
        if entered:
            with _lock:
                _leave()


def configured_threads() -> int:
    """How many threads BLAS would run on, had it not been told otherwise here: what the environment, the machine or the caller say."""
    with _lock:
        found = (
            [threads for _, threads in _found] if _inside else [one.get_num_threads() for one in _libraries()]
        )
    return max((threads or 1 for threads in found), default=1)


def _enter() -> None:
    global _inside, _found
    _here.blocks += 1
    if _inside == 0:
        counts = [(library, library.get_num_threads()) for library in _libraries()]
        _found = [(library, threads) for library, threads in counts if threads != 1]
        for library, _ in _found:
            library.set_num_threads(1)
    _inside += 1


def _leave() -> None:
    global _inside
    _here.blocks -= 1
    _inside -= 1
    if _inside == 0:
        for library, threads in _found:
            _restore(library, threads)


def _restore(library, threads) -> None:
    # Newer threadpoolctl lets only the thread that set OpenBLAS's limit first set it again, and ignores the others without a word.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release(force=True)
    if threads not in (
        None,
        1,
    ):  # one: nothing was changed, and who else has set that may have ended meanwhile
        library.set_num_threads(threads)
    if release is not None:
        release(force=True)


@cache
def _libraries() -> tuple:
    # Finding the libraries takes milliseconds, so it is done once - after scipy has loaded a BLAS of its own.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)
