"""Products in blocks, by threads of our own: each on one thread of BLAS, whose threads would spin while they wait for one another."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise

import numpy as np

from mtldsl.system.jobs import asked_jobs
from mtldsl.system.stops import leave_if_late
from mtldsl.system.threads import configured_threads

__all__ = ["blocks_of", "in_blocks", "inner_product", "product", "slabs"]

#: Multiplications that are worth a block, and the most blocks.
_WORTH_A_BLOCK, _MOST_BLOCKS = 5e7, 8

#: A block begins at a multiple of so many, as loops of BLAS do.
_STEP = 64


def blocks_of(size: int, work: float) -> list[slice] | None:
    """Blocks of range(size) for so many multiplications in all; None where one is enough.

    They depend on size and work alone, never on how many threads there are or how busy the machine is: the same input, the same bits.
    """
    blocks = int(min(work // _WORTH_A_BLOCK, _MOST_BLOCKS, size // _STEP))
    if blocks < 2:
        return None
    ends = [int(end) * _STEP for end in np.linspace(0, size // _STEP, blocks + 1)]
    return [slice(a, b) for a, b in pairwise([*ends[:-1], size])]


def slabs(size: int, most: int = 1 << 14) -> list[slice]:
    """range(size) in pieces whose sums rounding hardly touches, and whose temporaries stay in the cache."""
    return [slice(first, first + most) for first in range(0, size, most)]


def in_blocks(size: int, work: float, function: Callable[[int, slice], object]) -> None:
    """function(k, block) for all `blocks_of`, each of which writes into a place of its own: in as many threads as `solve(n_jobs=...)` says, or else
    BLAS was to have."""
    parts = blocks_of(size, work) or [slice(0, size)]
    workers = min(asked_jobs() or configured_threads(), len(parts))
    if workers < 2:
        for k, part in enumerate(parts):
            if k:
                leave_if_late()
            function(k, part)
        return
    coming = [_pool(workers).submit(function, k, part) for k, part in enumerate(parts)]
    try:
        for done in coming:
            done.result()
    finally:  # none writes on after an interrupt
        for left in coming:
            left.cancel()
        wait(coming)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads that stay: to start them costs as much as a small product."""
    return ThreadPoolExecutor(workers, thread_name_prefix="mtldsl-blocks")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


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
