"""Where and with what a figure was measured: stands above every table that a benchmark writes."""

from __future__ import annotations

import os
import platform
import time
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["RESULTS", "fastest", "stamp"]

RESULTS = Path(__file__).parent / "results"
RESULTS.mkdir(exist_ok=True)


def stamp(*packages: str) -> str:
    """Date, processor, cores, and versions of numpy, scipy and the packages named."""
    versions = []
    for name in ("mtldsl", "numpy", "scipy", *packages):
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} not installed")
    return (
        f"Measured {date.today()} on {os.cpu_count()} cores ({_processor()}), Python {platform.python_version()}; "
        + ", ".join(versions)
        + "."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def fastest(action, repeats: int):
    """(CPU seconds, what the action returned); on one thread that is what a clock shows on a machine that nothing else uses."""
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        result = action()
        seconds.append(time.process_time() - started)
    return min(seconds), result
