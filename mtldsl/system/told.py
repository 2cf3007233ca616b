"""What is said while long work goes on: on standard error, so that what a program prints stays its own."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["Listener", "callbacks_may_fail", "counted", "line_of", "of_callback", "say"]

#: Who is told of every look at the certificate, as a dict; what is true of the answer ends the solve.
Listener = Callable[[dict[str, Any]], Any]

log = logging.getLogger("mtldsl")


class _RaisedByCallback(Exception):
    """Carries what a callback raised past everybody who catches errors of a solver: a division by zero of the user's own is none of its
    numerical troubles."""

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


def of_callback(callback: Listener) -> Listener:
    """The callback under the floating-point rules of whoever wrote it, its errors ready to pass through solvers."""
    rules = np.geterr()

    def told(record: dict[str, Any]) -> Any:
        try:
            with np.errstate(**rules):
                return callback(record)
        except Exception as error:
            raise _RaisedByCallback(error) from error

    return told


@contextmanager
def callbacks_may_fail() -> Iterator[None]:
    """What a callback raised inside comes out as it was.

    >>> def broken(record):
    ...     return 1 / 0
    >>> with callbacks_may_fail():
    ...     of_callback(broken)({})
    Traceback (most recent call last):
    ZeroDivisionError: division by zero
    """
    try:
        yield
    except _RaisedByCallback as carried:
        raise carried.error from carried.error.__cause__


def say(text: str) -> None:
    """One line, at once."""
    print(text, file=sys.stderr, flush=True)


def line_of(record: dict[str, Any]) -> str:
    """A look at the certificate as one line; of rows that are elsewhere with what is left to be done (`solvers/passes/forecast.py`).

    >>> line_of({"solver": "admm", "iteration": 7, "objective": 2.0, "bound": 1.0, "gap": 0.5, "violation": 0.0, "seconds": 0.25})
    '                admm       7  objective 2  bound 1  gap 5.00e-01  violation 0.0e+00  0.25 s'
    """
    far = f"residual {record['residual']:.2e}" if "residual" in record else f"gap {record['gap']:.2e}"
    left = ""
    if record.get("passes_left"):
        left = f"  about {record['passes_left']} passes, {record['seconds_left']:.0f} s to go"
    return (
        f"{record['solver']:>20} {record['iteration']:7d}  objective {record['objective']:.10g}  bound {record['bound']:.10g}  {far}  "
        f"violation {record['violation']:.1e}  {record['seconds']:.2f} s{left}"
    )


@contextmanager
def counted(what: str, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """A function to be called with a few words after each of `total` steps, which go to the logger "mtldsl" at level DEBUG.

    shown : on standard error too: a bar in a terminal, a line a step elsewhere
    """
    done = 0

    def plain(words: str) -> None:
        nonlocal done
        done += 1
        log.debug("%s %d of %d: %s", what, done, total, words)
        if shown and not sys.stderr.isatty():
            say(f"{what} {done} of {total}: {words}")

    if not (shown and sys.stderr.isatty()):
        yield plain
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def drawn(words: str) -> None:
            plain(words)
            bar.update(task, advance=1, description=f"{what}: {words}")

        yield drawn
