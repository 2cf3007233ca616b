"""Whether an array fits into memory, asked before it is made."""

from __future__ import annotations

import os

from mtldsl.errors import SolverError

__all__ = ["available_memory", "require_memory"]


def available_memory() -> float:
    """Bytes that can be had now; inf where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except OSError:
        pass  # not Linux: the physical memory is an upper bound
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def require_memory(size: float, what: str, advice: str) -> None:
    """SolverError where `size` bytes are more than there are: what needs them, and what to write instead.

    >>> require_memory(1e18, "closed_form's system", "choose conjugate_gradient")
    Traceback (most recent call last):
    mtldsl.errors.SolverError: closed_form's system needs 1e+09 GB of memory, and ... GB are there; choose conjugate_gradient
    """
    available = available_memory()
    if size > available:
        raise SolverError(
            f"{what} needs {size / 1e9:.3g} GB of memory, and {available / 1e9:.3g} GB are there; {advice}"
        )
