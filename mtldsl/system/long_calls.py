"""Long calls of compiled code that can be left: LAPACK hears neither a signal nor a time limit before it is done.

Such a call runs in a thread of its own, and who waits for it hears both. Where the wait is left, the call goes on to its end, and what
it returns is thrown away. It must let go of Python's lock (numpy's decompositions do, most of scipy's do not) and keep to its arguments.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np

from mtldsl.system import stops

__all__ = ["LONG", "eigh", "eigvalsh", "factor_of", "lstsq", "may_be_left", "svd"]

R = TypeVar("R")

#: From so many multiplications on, some tenths of a second, a call is worth a thread. (What is done depends on sizes alone, never on a clock.)
LONG = 5e8

#: Who waits looks up so often: a signal that another thread was given does not end a wait by itself.
_LISTEN = 0.2


def may_be_left(work: float, function: Callable[..., R], *args: Any) -> R:
    """function(*args), which takes about `work` multiplications. Raises TimeIsUp or KeyboardInterrupt where the wait for it is left."""
    if not work >= LONG:
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
        left = stops.remaining() + stops.LATE_SECONDS
        try:
            found, error = answers.get(timeout=min(max(left, 0.0), _LISTEN))
            break
        except queue.Empty:
            if left <= 0.0:
                raise stops.TimeIsUp from None
    if error is not None:
        raise error
    return found


def eigh(A) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    return may_be_left(9.0 * float(len(A)) ** 3, np.linalg.eigh, A)


def eigvalsh(A) -> np.ndarray:
    """Eigenvalues of a symmetric matrix."""
    return may_be_left(1.5 * float(len(A)) ** 3, np.linalg.eigvalsh, A)


def svd(A, compute_uv: bool = True) -> Any:
    """U, s, V^T without the columns that s has no value for; or s alone."""
    short, long = sorted(map(float, A.shape))
    work = short * short * ((2.0 * long + 11.0 * short) if compute_uv else (long + short))
    return may_be_left(work, _svd, A, compute_uv)


def _svd(A, compute_uv: bool) -> Any:
    return np.linalg.svd(A, full_matrices=False, compute_uv=compute_uv)


def lstsq(A, b, rcond: float) -> np.ndarray:
    """argmin_x ||A x - b||, of smallest norm; singular values up to rcond times the largest count as 0."""
    short, long = sorted(map(float, A.shape))
    return may_be_left(short * short * (2.0 * long + 4.0 * short), _lstsq, A, b, rcond)


def _lstsq(A, b, rcond: float) -> np.ndarray:
    return np.linalg.lstsq(A, b, rcond=rcond)[0]


def factor_of(A) -> np.ndarray:
    """R of A = Q R."""
    short, long = sorted(map(float, A.shape))
    return may_be_left(long * short * short, _factor_of, A)


def _factor_of(A) -> np.ndarray:
    return np.asarray(np.linalg.qr(A, mode="r"))
