"""Tasks that share nothing, several at a time: in so many threads as `solve(n_jobs=...)` says, one after another without it.

Every task is computed from its own data into a place of its own, by the same steps whoever else is at work: the bits do not depend on the
number of threads. What runs in parallel is what lets go of Python's lock: products, factorizations and compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from math import inf
from threading import Event
from typing import TypeVar

__all__ = ["asked_jobs", "in_jobs", "jobs"]

T = TypeVar("T")
R = TypeVar("R")

#: Multiplications, in all, that are worth threads: some ten milliseconds on one.
_WORTH_THREADS = 5e7

_asked: ContextVar[int | None] = ContextVar("how many threads were asked for", default=None)


@contextmanager
def jobs(n: int | None) -> Iterator[None]:
    """So many threads in the block; None: whatever is around it."""
    token = _asked.set(_asked.get() if n is None else n)
    try:
        yield
    finally:
        _asked.reset(token)


def asked_jobs() -> int | None:
    """How many threads were asked for; None where nobody said."""
    return _asked.get()


def in_jobs(
    function: Callable[[T, Callable[[], bool]], R],
    items: Iterable[T],
    expired: Callable[[], bool] = bool,
    work: float = inf,
) -> list[R]:
    """[function(item, expired) for item in items], several at a time. A function that runs long asks its `expired` between its steps.

    work : multiplications in all; few of them are not worth the threads

    What a function raises ends the others at their next question, and so does a signal, which only the caller's thread hears; then it
    is raised here, of several the first in the items' order. Inside a function there are no further threads.

    >>> with jobs(2):
    ...     in_jobs(lambda item, expired: item**2, [1, 2, 3])
    [1, 4, 9]
    """
    asked = _asked.get() or 1
    if asked < 2 or work < _WORTH_THREADS:  # items that are made as they come are gone as the next one comes
        return [function(item, expired) for item in items]
    items = list(items)
    threads = min(asked, len(items))
    if threads < 2:
        return [function(item, expired) for item in items]
    left = Event()

    def one(item: T) -> R:
        _asked.set(1)
        return function(item, lambda: left.is_set() or expired())

    pool = ThreadPoolExecutor(threads)
    try:
        coming = [pool.submit(copy_context().run, one, item) for item in items]
        return [found.result() for found in coming]
    except BaseException:
        left.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
