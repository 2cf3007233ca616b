"""How many threads a matrix product gets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from typing import ParamSpec, TypeVar

__all__ = ["fitting_blas_threads", "has_fitting_blas_threads", "one_blas_thread"]

P = ParamSpec("P")
R = TypeVar("R")

#: Multiplications in one pass over the data below which threads cost more than they bring: they are woken and joined
#: thousands of times a solve. Measured on 1,347 x 64 x 10: 0.46 s with one thread, 4.6 s with two on a busy machine.
_WORTH_THREADS = 50_000_000

#: BLAS has one setting for the whole process: how many blocks hold it at one thread, and what the first of them found.
_lock = threading.Lock()
_inside = 0
_found: list = []


class _Here(threading.local):
    """What the present thread holds: so many blocks."""

    blocks = 0


_here = _Here()


def fitting_blas_threads(work: float) -> AbstractContextManager:
    """A context in which BLAS runs on one thread where a pass takes little work, and as configured where it takes much.

    work : multiplications in one pass: the scalars of the data of a model, the cube of the side of a matrix that is factored
    """
    return one_blas_thread() if work < _WORTH_THREADS else nullcontext()


def has_fitting_blas_threads(work: Callable[..., float]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator. Entering takes some fifteen microseconds, but next to nothing where the caller is in such a block already.

    work : of the function's own arguments, the multiplications in one pass, as in `fitting_blas_threads`
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def inner(*args: P.args, **kwargs: P.kwargs) -> R:
            if _here.blocks:
                return function(*args, **kwargs)
            with fitting_blas_threads(work(*args, **kwargs)):
                return function(*args, **kwargs)

        return inner

    return decorate


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
