"""The start of the package: its version, known in a checkout that is not installed too, and Ctrl-C before all is imported."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import PurePath
from time import perf_counter

VERSION = "0.2.0"


# --------------------------------------------------------------------------------------------------------------
# Ctrl-C while the command imports: that takes a second, and a traceback from among modules of others says nothing.

#: Exit code of what Ctrl-C has ended.
_INTERRUPTED_EXIT_CODE = 130


def _is_command(words: list[str]) -> bool:
    """Tell whether an interpreter with these arguments runs `mtldsl` or `python -m mtldsl`.

    >>> [_is_command(words) for words in (["/bin/mtldsl", "solve"], ["-X", "dev", "-m", "mtldsl"], ["mine.py"], [])]
    [True, True, False, False]
    """
    if "-m" in words:
        return words[words.index("-m") + 1 :][:1] == ["mtldsl"]
    return bool(words) and PurePath(words[0]).stem == "mtldsl"


#: when the command began, before all is imported, on this clock; None in a program of others
BEGAN = perf_counter() if _is_command(sys.orig_argv[1:]) else None


def _leave(number: int, frame) -> None:
    with suppress(OSError):  # standard error may be closed
        os.write(2, b"mtldsl: interrupted while it started\n")
    os._exit(_INTERRUPTED_EXIT_CODE)  # modules are half imported: no code of theirs may run


def leave_quietly() -> None:
    """End at Ctrl-C with one line where this process is the command; in a program of others nothing is changed."""
    ours = _is_command(sys.orig_argv[1:]) and threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def leave_by_default() -> None:
    """Give Ctrl-C back to Python, once all is imported."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
