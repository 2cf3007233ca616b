"""cvxpy's backends in a process of their own, so that Ctrl-C and a time limit are heard while they run.

cvxpy states the cone program and reads the solution here; only the backend's own work is done there. The process is kept for the next
solve, and killed where one is not waited for.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

__all__ = ["ProcessDied", "ask"]

#: A backend looks at its own clock between iterations, which may be long: after so many seconds more it is killed.
GRACE = 0.4

#: Idle processes that are kept: solves in several threads have one each.
MOST_IDLE = 2


class ProcessDied(Exception):
    """Its text says how."""


class _Process:
    def __init__(self):
        self.process = subprocess.Popen(
            # -P: the worker's own folder, whose files have everyday names, stays off the path
            [sys.executable, "-P", str(Path(__file__).with_name("backend_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a terminal's Ctrl-C is for the process that waits
        )
        self.answers: queue.SimpleQueue = queue.SimpleQueue()
        self.greeting: list | None = list(sys.path)

    def ask(self, request: tuple, seconds: float | None) -> tuple[str, object]:
        """(kind, answer); queue.Empty after so many seconds. A thread has the exchange, which may block for ever, so that the one who
        waits for it hears signals.
        """
        threading.Thread(target=self._exchange, args=[request], daemon=True).start()
        return self.answers.get(timeout=seconds)

    def _exchange(self, request: tuple) -> None:
        try:
            if self.greeting is not None:
                pickle.dump(self.greeting, self.process.stdin)
                self.greeting = None
            pickle.dump(request, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self.process.stdin.flush()
            self.answers.put(pickle.load(self.process.stdout))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.answers.put(("died", None))

    def end(self) -> int:
        """Its exit code, where it had ended by itself."""
        self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError, ValueError):  # what was on its way is lost with it
                pipe.close()
        return code


_idle: list[_Process] = []


def ask(backend: str, request: dict, seconds: float) -> object:
    """What the function of that name in `backend_worker` returns for these arguments.

    queue.Empty where it takes longer than `seconds` and a little; ProcessDied where the process is no more; RuntimeError with its
    text for an error there.
    """
    process = _idle.pop() if _idle else _Process()
    try:
        kind, answer = process.ask(
            (backend, request), None if seconds == float("inf") else max(seconds, 0.0) + GRACE
        )
        if kind == "died":
            process.process.wait()  # it is about to end
            raise ProcessDied(_of_death(backend, process.process.returncode))
    except BaseException:
        process.end()
        raise
    if len(_idle) < MOST_IDLE:
        _idle.append(process)
    else:
        process.end()
    if kind == "failed":
        raise RuntimeError(answer)
    return answer


def _of_death(backend: str, code: int) -> str:
    if code == -signal.SIGKILL:
        return f"the process of {backend} was killed, as a system does when memory runs out; solve on less data, or with another backend"
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return f"the process of {backend} ended {how}"


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _forget() -> None:
    """In a fork: they are the other process's."""
    for one in _idle:
        one.process.returncode = 0
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
