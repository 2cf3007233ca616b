"""Processes that a process has begun: cvxpy's backends run in one of their own, and their seconds count like ours."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

__all__ = ["children", "cpu_of", "end_children", "seconds_of_children"]


def children(pid: int) -> list[int]:
    """The processes that this one has begun and that live; none where there is no /proc."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields and int(fields[1]) == pid:
            found.append(int(folder.name))
    return found


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and of those that it has begun; 0 where the system does not tell."""
    return sum(_cpu(each) for each in (pid, *children(pid)))


def seconds_of_children() -> float:
    """CPU seconds of all processes that this one has begun, those that have ended included."""
    try:
        import resource
    except ImportError:
        return 0.0
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(map(_cpu, children(os.getpid())))


def end_children(pid: int) -> None:
    for each in children(pid):
        with contextlib.suppress(OSError):
            os.kill(each, signal.SIGKILL)


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _stat(pid: int) -> list[str]:
    """State, parent, ... of a process, what follows its name in /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return []
