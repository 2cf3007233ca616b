"""Runs of the paper's Table 4, one row a (data, way, size, partition, method) in calibrated_runs.csv; goes on where it was stopped."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_data import GIVEN, part, sizes_of
from benchmarks.papers.calibrated_methods import FAILURES, METHODS, run_method
from benchmarks.papers.many import grow
from benchmarks.papers.rows import done

__all__ = ["WAYS", "run_table", "ways_of"]

#: What the labels are divided by, see `Preparation`.
WAYS = {"school": ("one unit",), "sarcos": ("a unit a task", "one unit")}


def ways_of(data: str) -> tuple[str, ...]:
    return WAYS[data if data not in GIVEN else "sarcos" if GIVEN[data].is_shared else "school"]


COLUMNS = (
    "data", "way", "size", "partition", "method", "chosen", "validation", "nmse", "pooled", "rank", "fits", "uncertified",
    "failed", "fit_seconds", "search_seconds",
)  # fmt: skip
KEY = COLUMNS[:5]


def run_table(results: Path, data: str, *, partitions, methods=None, sizes=None, quick=False) -> None:
    """Every method on every partition of every size."""
    path = results / "calibrated_runs.csv"
    finished = done(path, KEY)
    units = [
        dict(zip(KEY, (data, way, str(size), str(number), method), strict=True))
        for number in partitions
        for size in sizes or sizes_of(data)
        for way in ways_of(data)
        for method in methods or [name for name in METHODS if data not in METHODS[name].left_out]
    ]
    left = [unit for unit in units if tuple(unit.values()) not in finished]
    grow(path, COLUMNS, unit_rows, [(unit, GIVEN.get(data), quick) for unit in left])


def unit_rows(unit: dict, given, quick: bool) -> tuple[list[dict], str]:
    """The row of one method on one partition; none where the fit failed, so that a later run tries again."""
    data, way, size, number, method = unit.values()
    if given is not None:
        GIVEN[data] = given  # which a worker elsewhere has not been told
    line = f"{data} {size}, {way}, partition {number}, {method}"
    train, test = _part(data, int(size), int(number), given)
    try:
        fit = run_method(method, data, way, train, test, int(number), quick=quick)
    except FAILURES as error:
        return [], f"{line} FAILED: {error}"
    error = float(np.mean(fit.nmse))
    row = {
        "chosen": fit.chosen,
        "validation": f"{fit.validation:.6f}",
        "nmse": f"{error:.6f}",
        "pooled": f"{fit.pooled:.6f}",
        "rank": fit.rank,
        "fits": fit.fits,
        "uncertified": fit.uncertified,
        "failed": fit.failed,
        "fit_seconds": f"{fit.fit_seconds:.4f}",
        "search_seconds": f"{fit.search_seconds:.2f}",
    }
    line += f": nMSE {error:.4f} at {fit.chosen} ({fit.search_seconds:.1f} s, {fit.uncertified} of {fit.fits} fits not certified)"
    return [unit | row], line


@lru_cache(maxsize=1)  # units that follow each other are of one partition
def _part(data: str, size: int, number: int, given):
    return part(data, size, number)
