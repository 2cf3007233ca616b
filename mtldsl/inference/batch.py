"""A batch cut into as many parts as there are threads: compiled loops run without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["in_parts"]

#: Instances below which a second thread costs more than it brings.
WORTH_THREADS = 256


def in_parts(n: int, threads: int, action: Callable[[slice], None]) -> None:
    """Calls action(rows) on slices that cover 0..n-1, at most `threads` of them at the same time."""
    share = n if n < WORTH_THREADS or threads < 2 else -(-n // threads)
    parts = [slice(begin, min(begin + share, n)) for begin in range(0, n, share)] if n else []
    if len(parts) < 2:
        for rows in parts:
            action(rows)
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        for _ in pool.map(action, parts):  # the loop raises what a part raised
            pass
