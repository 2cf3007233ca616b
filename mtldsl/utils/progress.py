"""Progress lines of a solve, the callbacks of users, and the defaults of this process."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.utils.caching import setting
from mtldsl.utils.validation import quoted

# --------------------------------------------------------------------------------------------------------------
# What is done unasked, for the whole process: `mtl.defaults(...)`.

#: Solutions are not checked unasked: a small solve takes a millisecond, and cvxpy needs thirty to state the same model.
_now: dict[str, bool | str] = {"cross_check": "never"}


def as_cross_check(value, typed: str) -> bool | str:
    """True, "subsample" or "never" (False is the same); ModelError for all else. `typed` is such as "solve"."""
    if value is False:
        return "never"
    if value is True or (isinstance(value, str) and value in ("subsample", "never")):
        return value
    raise ModelError(
        f"{typed}(cross_check={quoted(value)})", write_instead='write True, "subsample" or "never"'
    )


def default_cross_check() -> bool | str:
    """Return what holds for solves that say nothing of it."""
    return _now["cross_check"]


class Defaults:
    """Context manager that `defaults` returns: it puts back, at its end, what was so before."""

    def __init__(self, before: dict[str, bool | str]):
        self._before = before

    def __enter__(self) -> Defaults:
        return self

    def __exit__(self, *_) -> None:
        _now.update(self._before)

    def __repr__(self) -> str:
        return f"<defaults: {', '.join(f'{name}={value!r}' for name, value in _now.items())}>"


def defaults(*, cross_check: bool | str | None = None) -> Defaults:
    """Set what every later `solve()` and `path()` of this process does unasked; in a `with` statement, of that block alone. Says what holds.

    cross_check : "never" (as it is at first): no solution is checked unless its solve says so. True: each is checked against the
                  reference as a whole, where that is within cvxpy's reach (`cross_check`'s max_size, 1,000,000 scalars of input data as
                  it counts them); above it none is. "subsample": each is checked, on few rows where there are many.
                  None: as it is

    It holds for what is solved by `solve` and `path`. Folds, bootstrap samples, halves and estimators, which have `check=`, are left alone.
    What came of a check is `solution.cross_check`. ModelError for another value.

    >>> import numpy as np, mtldsl as mtl
    >>> tasks = mtl.Tasks.shared(np.eye(3), np.array([[3.0, 0], [0, 1], [0, 0]]))
    >>> W = mtl.Weights(tasks)
    >>> problem = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.l1_norm(W))
    >>> with mtl.defaults(cross_check=True):
    ...     problem.solve().cross_check.agrees
    True
    >>> mtl.defaults()
    <defaults: cross_check='never'>
    """
    before = dict(_now)
    if cross_check is not None:
        _now["cross_check"] = as_cross_check(cross_check, "defaults")
    return Defaults(before)


# --------------------------------------------------------------------------------------------------------------
# What is said while long work goes on: on standard error, so that what a program prints stays its own.

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
def propagate_callback_errors() -> Iterator[None]:
    """Return what a callback raised inside comes out as it was.

    >>> def broken(record):
    ...     return 1 / 0
    >>> with propagate_callback_errors():
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
    """A look at the certificate as one line; of rows that are elsewhere with what is left to be done (`distributed/forecast.py`).

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
def progress_bar(what: str, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
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


# --------------------------------------------------------------------------------------------------------------
# Passes over rows that are elsewhere: how long each took, for whoever forecasts what a solve will take.

#: The clock of passes; a test puts its own here.
clock = time.perf_counter


#: whoever is told of passes as they are made, and of how many the solver at work usually needs: `distributed.forecast.Forecast`
_hearer: ContextVar[Any] = ContextVar("hearer of passes", default=None)


def listen_to_passes(hearer: Any) -> AbstractContextManager[None]:
    """Tell `hearer` of the passes that are made in this block; None: nobody is told."""
    return setting(_hearer, hearer)


@contextmanager
def time_pass() -> Iterator[None]:
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
