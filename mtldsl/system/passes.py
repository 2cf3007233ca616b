"""Passes over rows that are elsewhere: how long each took, for whoever forecasts what a solve will take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

__all__ = ["Hearer", "clock", "expect", "heard_by", "timed"]

#: The clock of passes; a test puts its own here.
clock = time.perf_counter


class Hearer(Protocol):
    """Whoever is told of passes as they are made, and of how many the solver at work usually needs."""

    def passed(self, seconds: float) -> Any: ...

    def expects(self, solver: str, low: int, high: int) -> Any: ...


_hearer: ContextVar[Hearer | None] = ContextVar("hearer of passes", default=None)


@contextmanager
def heard_by(hearer: Hearer | None) -> Iterator[None]:
    """Tell `hearer` of the passes that are made in this block; None: nobody is told."""
    token = _hearer.set(hearer)
    try:
        yield
    finally:
        _hearer.reset(token)


@contextmanager
def timed() -> Iterator[None]:
    """Count this block as a pass, if it comes to its end."""
    started = clock()
    yield
    hearer = _hearer.get()
    if hearer is not None:
        hearer.passed(clock() - started)


def expect(solver: str, usual: tuple[int, int]) -> None:
    """Say that a solver begins which usually needs so many passes, from the first number to the second."""
    hearer = _hearer.get()
    if hearer is not None:
        hearer.expects(solver, *usual)
