"""Runs of the paper's Table 4, one row a (data, way, size, partition, method) in calibrated_runs.csv; goes on where it was stopped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_data import SIZES, part
from benchmarks.papers.calibrated_methods import FAILURES, METHODS, run_method
from benchmarks.papers.calibrated_rows import append, done

__all__ = ["WAYS", "run_table"]

#: What the labels are divided by, see `Preparation`.
WAYS = {"school": ("one unit",), "sarcos": ("a unit a task", "one unit")}

COLUMNS = (
    "data", "way", "size", "partition", "method", "chosen", "validation", "nmse", "pooled", "rank", "fits", "uncertified",
    "failed", "fit_seconds", "search_seconds",
)  # fmt: skip
KEY = COLUMNS[:5]


def run_table(
    results: Path, data: str, *, partitions, methods=None, sizes=None, quick=False, log=print
) -> None:
    """Every method on every partition of every size."""
    path = results / "calibrated_runs.csv"
    finished = done(path, KEY)
    for number in partitions:
        for size in sizes or SIZES[data]:
            train, test = part(data, size, number)
            for way in WAYS[data]:
                for method in methods or [name for name in METHODS if data not in METHODS[name].left_out]:
                    unit = dict(zip(KEY, (data, way, str(size), str(number), method), strict=True))
                    if tuple(unit.values()) in finished:
                        continue
                    try:
                        fit = run_method(method, data, way, train, test, number, quick=quick, log=log)
                    except FAILURES as error:  # no row: a later run tries again
                        log(f"{data} {size}, {way}, partition {number}, {method} FAILED: {error}", flush=True)
                        continue
                    error = float(np.mean(fit.nmse))
                    append(
                        path,
                        COLUMNS,
                        unit
                        | {
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
                        },
                    )
                    log(
                        f"{data} {size}, {way}, partition {number}, {method}: nMSE {error:.4f} at {fit.chosen} "
                        f"({fit.search_seconds:.1f} s, {fit.uncertified} of {fit.fits} fits not certified)",
                        flush=True,
                    )
