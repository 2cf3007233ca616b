"""Products in blocks, by threads of our own: each on one thread of BLAS, whose threads would spin while they wait for one another."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from mtldsl.system.jobs import asked_jobs
from mtldsl.system.threads import configured_threads

__all__ = ["blocks_of", "in_blocks"]

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


def in_blocks(size: int, work: float, function: Callable[[int, slice], object]) -> None:
    """function(k, block) for all `blocks_of`, each of which writes into a place of its own: in as many threads as `solve(n_jobs=...)` says, or else
    BLAS was to have."""
    parts = blocks_of(size, work) or [slice(0, size)]
    workers = min(asked_jobs() or configured_threads(), len(parts))
    if workers < 2:
        for k, part in enumerate(parts):
            function(k, part)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(function, range(len(parts)), parts))
