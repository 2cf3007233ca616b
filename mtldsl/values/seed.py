"""Where randomness begins: `random_state`, as every function takes it."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError, MTLError
from mtldsl.values.number import as_whole, quoted

__all__ = ["check_seed", "generator"]


def generator(random_state, typed: str, error: type[MTLError] = DataError) -> np.random.Generator:
    """A generator seeded by None or a whole number >= 0, or the numpy generator that is given; else `error`."""
    return np.random.default_rng(check_seed(random_state, typed, error))


def check_seed(random_state, typed: str, error: type[MTLError] = DataError):
    """What `generator` begins with; `error` where it cannot."""
    given = isinstance(random_state, np.random.Generator | np.random.BitGenerator | np.random.SeedSequence)
    if given or random_state is None:
        return random_state
    seed = as_whole(random_state)
    if seed is None or seed < 0:
        raise error(
            f"{typed}(random_state={quoted(random_state)}): write a whole number >= 0, or None",
            argument="random_state",
        )
    return seed
