"""Threads and BLAS: tasks worked on several at a time, BLAS kept to one thread, and products of matrices in blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache, wraps
from itertools import pairwise
from math import inf
from threading import Event
from typing import ParamSpec, TypeVar

import numpy as np

from mtldsl.utils.caching import setting
from mtldsl.utils.interrupts import leave_if_late

# --------------------------------------------------------------------------------------------------------------
# Tasks that share nothing, several at a time: in so many threads as `solve(n_jobs=...)` says, one after another without it.
#
# Every task is computed from its own data into a place of its own, by the same steps whoever else is at work: the bits do not depend on the
# number of threads. What runs in parallel is what lets go of Python's lock: products, factorizations and compiled loops.

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class ParallelSettings:
    """Sizes of work that is worth threads."""

    thread_flops: float = 5e7  # multiplications, in all, that are worth threads: some ten milliseconds on one
    block_flops: float = 5e7  # multiplications that are worth a block
    max_blocks: int = 8  # blocks
    aligned_rows: int = 64  # a block begins at a multiple of so many, as loops of BLAS do


SETTINGS = ParallelSettings()


_asked: ContextVar[int | None] = ContextVar("how many threads were asked for", default=None)


def jobs(n: int | None) -> AbstractContextManager[None]:
    """Use so many threads in the block; None: whatever is around it."""
    return setting(_asked, _asked.get() if n is None else n)


def asked_jobs() -> int | None:
    """Return how many threads were asked for; None where nobody said."""
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
    threads = (_asked.get() or 1) if work >= SETTINGS.thread_flops else 1
    if threads > 1:  # else items that are made as they come are gone as the next one comes
        items = list(items)
        threads = min(threads, len(items))
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


# --------------------------------------------------------------------------------------------------------------
# How many threads a matrix product gets: one of BLAS's own, and of ours where blocks of it are worth them (`mtldsl.utils.parallel`).
#
# Threads of BLAS spin while they wait. Beside eleven other processes on two cores, X^T (X W) of 20,000 x 600 x 60 took 0.06 s of CPU and 0.25 s on
# one thread, 0.47 s and 1.9 s on two. And what they share out among them, and so the last bits, depends on how many they are.

P = ParamSpec("P")

#: BLAS has one setting for the whole process: how many blocks hold it at one thread, and what the first of them found.
_lock = threading.Lock()
_inside = 0
_found: list = []


class _ThreadState(threading.local):
    """State of the present thread: how many blocks it holds."""

    blocks = 0


_here = _ThreadState()


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
    """Return how many threads BLAS would run on, had it not been told otherwise here: what the environment, the machine or the caller say."""
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


# --------------------------------------------------------------------------------------------------------------
# Products in blocks, by threads of our own: each on one thread of BLAS, whose threads would spin while they wait for one another.


def blocks_of(size: int, work: float) -> list[slice] | None:
    """Blocks of range(size) for so many multiplications in all; None where one is enough.

    They depend on size and work alone, never on how many threads there are or how busy the machine is: the same input, the same bits.
    """
    blocks = int(min(work // SETTINGS.block_flops, SETTINGS.max_blocks, size // SETTINGS.aligned_rows))
    if blocks < 2:
        return None
    ends = [
        int(end) * SETTINGS.aligned_rows for end in np.linspace(0, size // SETTINGS.aligned_rows, blocks + 1)
    ]
    return [slice(a, b) for a, b in pairwise([*ends[:-1], size])]


def slabs(size: int, most: int = 1 << 14) -> list[slice]:
    """range(size) in pieces whose sums rounding hardly touches, and whose temporaries stay in the cache."""
    return [slice(first, first + most) for first in range(0, size, most)]


def runs(ends: np.ndarray, most: float) -> list[tuple[int, int]]:
    """(first, last + 1) of neighbours that have at most `most` together, or are one alone; k has ends[k + 1] - ends[k].

    >>> runs(np.array([0, 2, 4, 9, 10]), 4)
    [(0, 2), (2, 3), (3, 4)]
    """
    found, first = [], 0
    while first < len(ends) - 1:
        last = max(int(np.searchsorted(ends, ends[first] + most, side="right")) - 1, first + 1)
        found.append((first, last))
        first = last
    return found


def in_blocks(size: int, work: float, function: Callable[[int, slice], object]) -> None:
    """function(k, block) for all `blocks_of`, each of which writes into a place of its own: in as many threads as `solve(n_jobs=...)` says, or else
    BLAS was to have."""

    def one(part: tuple[int, slice], _) -> None:
        if part[0]:
            leave_if_late()
        function(*part)

    parts = blocks_of(size, work) or [slice(0, size)]
    with jobs(asked_jobs() or configured_threads()):
        in_jobs(one, enumerate(parts))


def product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B for A (p, k) and a wide B (k, n): some columns at a time."""
    (p, k), n = A.shape, B.shape[1]
    work = float(p) * k * n
    if blocks_of(n, work) is None:
        return A @ B
    made = np.empty((p, n))
    in_blocks(n, work, lambda _, columns: np.matmul(A, B[:, columns], out=made[:, columns]))
    return made


def inner_product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B for A (p, n) and B (n, q) that are long in between: some of the n at a time, added in their order.

    In one piece where the parts that are added would take much memory beside A and B.
    """
    (p, n), q = A.shape, B.shape[1]
    work = float(p) * n * q
    blocks = blocks_of(n, work)
    if blocks is None or 16 * len(blocks) * p * q > n * (p + q):
        return A @ B
    parts = np.empty((len(blocks), p, q))
    in_blocks(n, work, lambda k, rows: np.matmul(A[:, rows], B[rows], out=parts[k]))
    for part in parts[1:]:
        parts[0] += part
    return parts[0]
