"""Ctrl-C, SIGTERM and time limits during a computation, and LAPACK calls that can be interrupted."""

from __future__ import annotations

import _signal  # pyrefly: ignore[missing-import]
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mtldsl.utils.caching import setting

# --------------------------------------------------------------------------------------------------------------
# Ctrl-C, SIGTERM and time limits while something is computed: the first signal ends it in order, a second one soon after everything.
#
# Inside `handle_signals()` both signals are kept until there is a point to return; inside `allow_interrupts()`, around code that may be left anywhere, they
# raise KeyboardInterrupt. So does a second signal within SETTINGS.insistence_seconds of the first, wherever it comes.
#
# `time_limit(seconds)` is heard by those who ask `remaining_seconds()`. Who does not, and is in the main thread inside `allow_interrupts()`, is left by
# TimeIsUp a little after.
#
# A handler is put in place only in the main thread, only where a signal has the one that Python starts with (a program's own is
# left alone, and so is SIGTERM in a worker of `multiprocessing`, whose pool ends it that way), and it is taken back at the end.

# what `signal` wraps, whose functions turn every number and handler into a member of an enumeration and back


@dataclass(frozen=True)
class InterruptSettings:
    """Times of signals, and sizes of calls that they cannot end."""

    # second signal within so many of the first: it is meant for the program, not for what is computed now
    insistence_seconds: float = 10.0
    # a signal that came while a module was imported or a function compiled comes again so much later
    deferred_seconds: float = 0.1
    # of the limit, by which the alarm comes later: who asks for the time comes back without it
    late_share: float = 0.05
    late_seconds: float = 0.15  # and so many more
    repeat_seconds: float = 0.5  # from one alarm to the next, for code that catches what it should not
    # multiplications, some tenths of a second, from which on a call is worth a thread: sizes alone decide, never a clock
    thread_flops: float = 5e8
    # between two looks of who waits: a signal that another thread was given does not end a wait by itself
    listening_seconds: float = 0.2


SETTINGS = InterruptSettings()


#: The line on standard error after a first Ctrl-C, where a solve answers it.
INTERRUPTED = "interrupted: what was found so far is kept; press again to stop at once"

#: The same in a solve that is one part of many, such as a fold: what becomes of the others is said at the end.
STOPPED = "interrupted; press again to stop at once"

_end: ContextVar[float] = ContextVar("end of the time limit", default=float("inf"))


class TimeIsUp(KeyboardInterrupt):
    """The time limit has passed, for code that nothing else stops; like KeyboardInterrupt no Exception, so that little catches it."""


class _SignalState:
    """State of signals, which are of the process as well."""

    def __init__(self):
        self.last, self.number = -float("inf"), signal.SIGINT
        self.raises = self.pending = self.insisted = self.deferred = self.answered = self.of_parts = False


_state = _SignalState()


def _hear(number: int, frame) -> None:
    now = time.monotonic()
    _state.insisted = now - _state.last < SETTINGS.insistence_seconds
    _state.number = signal.Signals(number)
    _state.deferred = _state.raises and _is_whole_or_nothing(frame)
    if _state.deferred:
        timer = threading.Timer(SETTINGS.deferred_seconds, _send_again, (number,))
        timer.daemon = True
        timer.start()
        return
    _state.last = now
    if _state.answered and not _state.insisted and number == signal.SIGINT:
        with suppress(Exception):  # standard error may be closed, or be written to just now
            print(STOPPED if _state.of_parts else INTERRUPTED, file=sys.stderr)
    if _state.insisted or _state.raises:
        _state.pending = False
        raise KeyboardInterrupt
    _state.pending = True


@contextmanager
def handle_signals(raises: bool = False, of_parts: bool = False):
    """Both signals are heard here; they raise at once where `raises`, and are otherwise kept for `is_signal_pending()`.

    of_parts: the solves inside are parts of what is computed, and no result of their own

    What is kept still at the end is forgotten: whoever opens the block answers it. One that is to come again is heard by a block around.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, kept, answered, parts = _install(), _state.raises, _state.answered, _state.of_parts
    _state.raises, _state.insisted, _state.answered = raises, False, not raises
    _state.of_parts = parts or of_parts
    if before:
        _state.number = signal.SIGINT
    try:
        yield
    finally:
        _state.raises, _state.answered, _state.of_parts = kept, answered, parts
        _state.pending, _state.deferred = False, _state.deferred and not before
        for number, handler in before.items():
            if _signal.getsignal(number) is _hear:
                _signal.signal(number, handler)


@contextmanager
def allow_interrupts():
    """A signal raises KeyboardInterrupt here, at the start too where it came before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = _state.raises
    _state.raises = True
    try:
        if _state.pending:
            _state.pending = False
            raise KeyboardInterrupt
        yield
    finally:
        _state.raises = kept


@contextmanager
def hold_signals():
    """A signal is kept to the end of this block, whatever is around it: for what is done as a whole or not at all."""
    if threading.current_thread() is not threading.main_thread():
        with setting(_end, float("inf")):  # nor does a time limit leave it, `leave_if_late`
            yield
        return
    before = _state.raises
    if not before:
        yield
        return
    _state.raises = False
    try:
        yield
    finally:
        _state.raises = before
    if _state.pending:
        _state.pending = False
        raise KeyboardInterrupt


def remaining_seconds() -> float:
    """Seconds until the time limit around this code; inf without one."""
    return _end.get() - time.perf_counter()


def leave_if_late() -> None:
    """TimeIsUp in a thread, where nothing rings, once the time has been up for a while: asked between the parts of long products."""
    if (
        remaining_seconds() < -SETTINGS.late_seconds
        and threading.current_thread() is not threading.main_thread()
    ):
        raise TimeIsUp


@contextmanager
def time_limit(seconds: float | None, late: bool = True):
    """The code inside is to end after so many seconds (None: no limit; inside of another, the earlier counts); the alarm of who does not
    ask rings a little later, or at once where not `late`."""
    if seconds is None:
        yield
        return
    room = SETTINGS.late_share * seconds + SETTINGS.late_seconds if late else 0.0
    with setting(_end, min(_end.get(), time.perf_counter() + seconds)):
        alarmed = _set_alarm(remaining_seconds() + room)
        try:
            yield
        finally:
            if alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)


def can_set_alarm() -> bool:
    """Tell whether an alarm can be set here: in the main thread, where the program uses none itself."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGALRM) == signal.SIG_DFL and not any(
        signal.getitimer(signal.ITIMER_REAL)
    )


def _set_alarm(seconds: float) -> bool:
    if not can_set_alarm():
        return False
    try:
        signal.signal(signal.SIGALRM, _ring)
    except ValueError:  # not the main interpreter
        return False
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), SETTINGS.repeat_seconds)
    return True


def _ring(number: int, frame) -> None:
    if _state.raises and not _is_whole_or_nothing(frame):  # else the alarm rings again
        raise TimeIsUp


def _is_whole_or_nothing(frame) -> bool:
    """Tell whether a module is being imported or a function compiled: what is left half done there breaks all that needs it later."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == "numba" or name.startswith(("numba.", "llvmlite.", "importlib._bootstrap")):
            return True
        frame = frame.f_back
    return False


def _send_again(number: int) -> None:
    if _state.deferred:
        os.kill(os.getpid(), number)


def is_signal_pending() -> bool:
    """Tell whether a signal came that nobody has answered yet, in an import or a compilation too."""
    return (_state.pending or _state.deferred) and threading.current_thread() is threading.main_thread()


def was_insisted() -> bool:
    """Tell whether the KeyboardInterrupt that was just caught is a second one, not to be caught."""
    return _state.insisted and threading.current_thread() is threading.main_thread()


def exit_code() -> int:
    """The exit code of a program that the last signal ended: 130 after Ctrl-C, 143 after SIGTERM, as shells have it."""
    return 128 + _state.number


def _install() -> dict:
    """{signal: its handler before} of those that have Python's own."""
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler}
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is None or multiprocessing.parent_process() is None:
        usual[signal.SIGTERM] = signal.SIG_DFL
    found = {}
    for number, handler in usual.items():
        before = _signal.getsignal(number)
        if before == handler:
            try:
                _signal.signal(number, _hear)
            except ValueError:  # not the main interpreter
                return found
            found[number] = before
    return found


# --------------------------------------------------------------------------------------------------------------
# Long calls of compiled code that can be left: LAPACK hears neither a signal nor a time limit before it is done.
#
# Such a call runs in a thread of its own, and who waits for it hears both. Where the wait is left, the call goes on to its end, and what
# it returns is thrown away. It must let go of Python's lock (numpy's decompositions do, most of scipy's do not) and keep to its arguments.

R = TypeVar("R")


def interruptible(work: float, function: Callable[..., R], *args: Any) -> R:
    """function(*args), which takes about `work` multiplications. Raises TimeIsUp or KeyboardInterrupt where the wait for it is left."""
    if not work >= SETTINGS.thread_flops:
        return function(*args)
    answers: queue.SimpleQueue = queue.SimpleQueue()
    context = copy_context()

    def answer() -> None:
        try:
            answers.put((context.run(function, *args), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=answer, daemon=True).start()
    while True:
        left = remaining_seconds() + SETTINGS.late_seconds
        try:
            found, error = answers.get(timeout=min(max(left, 0.0), SETTINGS.listening_seconds))
            break
        except queue.Empty:
            if left <= 0.0:
                raise TimeIsUp from None
    if error is not None:
        raise error
    return found


def eigh(A) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return interruptible(9.0 * float(len(A)) ** 3, np.linalg.eigh, A)


def eigvalsh(A) -> np.ndarray:
    """Eigenvalues of a symmetric matrix."""
    return interruptible(1.5 * float(len(A)) ** 3, np.linalg.eigvalsh, A)


def svd(A, compute_uv: bool = True) -> Any:
    """U, s, V^T without the columns that s has no value for; or s alone."""
    short, long = sorted(map(float, A.shape))
    work = short * short * ((2.0 * long + 11.0 * short) if compute_uv else (long + short))
    return interruptible(work, lambda: np.linalg.svd(A, full_matrices=False, compute_uv=compute_uv))


def lstsq(A, b, rcond: float) -> np.ndarray:
    """argmin_x ||A x - b||, of smallest norm; singular values up to rcond times the largest count as 0."""
    short, long = sorted(map(float, A.shape))
    work = short * short * (2.0 * long + 4.0 * short)
    return interruptible(work, lambda: np.linalg.lstsq(A, b, rcond=rcond)[0])


def factor_of(A) -> np.ndarray:
    """R of A = Q R."""
    short, long = sorted(map(float, A.shape))
    return interruptible(long * short * short, lambda: np.asarray(np.linalg.qr(A, mode="r")))
