"""CPU seconds of one call, with a limit that is CPU seconds too, and without what compiling took."""

from __future__ import annotations

import gc
import signal
import time
from contextlib import contextmanager

from .processes import seconds_of_children

__all__ = ["compilations", "limited", "seconds_of"]

_SHORT = 1.0  # seconds below which a call is repeated
_TIMES = 3
_compiled = [0]


@contextmanager
def limited(seconds: float):
    """KeyboardInterrupt (what Ctrl-C is to a solver) once the process has computed so long; on systems without the timer, never."""
    if not hasattr(signal, "ITIMER_PROF"):
        yield
        return
    before = signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


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
    """(CPU seconds, what `call()` returned, or `call(prepare())`): the median of three where it is short (the least may be a fault of a
    virtual machine's clock), the second where the first one compiled. Preparing is not timed."""
    seen, result, runs, compiling = [], None, 0, True
    while runs < _TIMES and (min(seen, default=0.0) < _SHORT or compiling):
        arguments = () if prepare is None else (prepare(),)
        gc.collect()
        known, outside, started = compilations(), seconds_of_children(), time.process_time()
        with limited(most):
            result = call(*arguments)
        elapsed = time.process_time() - started
        elapsed += seconds_of_children() - outside
        compiling = compilations() > known and elapsed < most / 3
        seen, runs = sorted([*seen, elapsed]), runs + 1
        if runs == 1 and elapsed > most:
            break
    return seen[(len(seen) - 1) // 2], result
