"""A batch cut into parts: one a thread, for compiled loops run without the interpreter's lock, and none so long that a signal waits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["in_parts", "rows_at_once"]

#: Instances below which a second thread costs more than it brings.
WORTH_THREADS = 256

#: Operations in one call of compiled code, in which no signal and no time limit is heard: some tenths of a second.
AT_ONCE = 200_000_000


def rows_at_once(operations: float) -> int:
    """How many instances of so many operations each one call of compiled code may take."""
    return max(1, int(AT_ONCE / max(operations, 1.0)))


def in_parts(n: int, threads: int, action: Callable[[slice], None], operations: float = 1.0) -> None:
    """Calls action(rows) on slices that cover 0..n-1, at most `threads` of them at the same time. operations: of one row."""
    threads = 1 if n < WORTH_THREADS else max(threads, 1)
    share = min(-(-n // threads), rows_at_once(operations))
    parts = [slice(begin, min(begin + share, n)) for begin in range(0, n, share)] if n else []
    if threads == 1 or len(parts) < 2:
        for rows in parts:
            action(rows)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        for _ in pool.map(action, parts):  # the loop raises what a part raised
            pass
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C no part is begun any more
