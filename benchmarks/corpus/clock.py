"""CPU seconds of one call, with a limit that is CPU seconds too, and without what compiling took."""

from __future__ import annotations

import gc
import signal
import threading
import time
from contextlib import contextmanager

from .processes import seconds_of_children

__all__ = ["compilations", "limited", "seconds_of"]

#: (seconds, how often a call that takes less is made)
_TIMES = ((0.1, 3), (1.0, 2))
_compiled = [0]


class _Watch(threading.Thread):
    """Looks at the process's CPU seconds ten times a second, and interrupts the main thread when they pass a mark.

    A timer of the system for CPU seconds will not do: while one is set, Linux tells a process's CPU time by the tick, four milliseconds
    at a time.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.end: float | None = None
        self.changed = threading.Condition()

    def run(self) -> None:
        while True:
            with self.changed:
                if self.end is None:
                    self.changed.wait()
                    continue
                self.changed.wait(0.1)
                if self.end is not None and time.process_time() > self.end:
                    self.end = None
                    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def set(self, end: float | None) -> None:
        with self.changed:
            self.end = end
            self.changed.notify()


_watch: list[_Watch] = []


@contextmanager
def limited(seconds: float):
    """KeyboardInterrupt (what Ctrl-C is to a solver) once the process has computed so long. In the main thread only."""
    if not _watch:
        _watch.append(_Watch())
        _watch[0].start()
    _watch[0].set(time.process_time() + seconds)
    try:
        yield
    finally:
        _watch[0].set(None)


def compilations() -> int:
    """How many functions numba has compiled in this process; counted from the first call on."""
    if _compiled[0] == 0:
        try:
            from numba.core import event
        except ImportError:
            return 0

        class Listener(event.Listener):
            def on_start(self, _):
                _compiled[0] += 1

            def on_end(self, _):
                pass

        event.register("numba:compile", Listener())
        _compiled[0] = 1
    return _compiled[0]


def seconds_of(call, most: float, prepare=None):
    """(CPU seconds, what `call()` returned, or `call(prepare())`): the least of two or three where it is short, the second where the
    first one compiled. Preparing is not timed."""
    best, result, runs, compiling = float("inf"), None, 0, True
    while compiling or any(best < short and runs < times for short, times in _TIMES):
        arguments = () if prepare is None else (prepare(),)
        gc.collect()
        known, outside = compilations(), seconds_of_children()
        with limited(most):
            started = time.process_time()
            result = call(*arguments)
            elapsed = time.process_time() - started
        elapsed += seconds_of_children() - outside
        compiling = compilations() > known and elapsed < most / 3 and runs < 2
        best, runs = min(best, elapsed), runs + 1
        if runs == 1 and elapsed > most:
            break
    return best, result
