"""Runs of the paper's Table 1, one row a (data, preparation, partition, seed, method) in fetr_runs.csv; goes on where it was stopped."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np

from benchmarks.papers.fetr_data import sarcos_part, school_part, thinned
from benchmarks.papers.fetr_methods import LINEAR, NETWORKS, PREPARATIONS, run_method

__all__ = ["COLUMNS", "run_table"]

COLUMNS = (
    "data", "preparation", "partition", "seed", "method", "chosen", "validation", "nmse", "mse", "nmse_by_task",
    "fits", "capped", "fit_seconds", "search_seconds",
)  # fmt: skip
_KEY = COLUMNS[:5]


def run_table(
    runs: Path, data: str, *, partitions, methods=None, preparations=None, seed=0, quick=False, log=print
) -> None:
    """Every method on every partition. Networks prepare their data themselves: they are run once, under "scaled labels"."""
    done = _done(runs)
    methods = list(methods or (*LINEAR, *NETWORKS))
    for number in partitions:
        part = (sarcos_part if data == "sarcos" else school_part)(number)
        for preparation in preparations or PREPARATIONS[data]:
            for method in methods:
                if method in NETWORKS and (data != "sarcos" or preparation != "scaled labels"):
                    continue
                rows = (
                    part if not preparation.endswith(" rows") else thinned(part, int(preparation.split()[-2]))
                )
                unit = dict(zip(_KEY, (data, preparation, str(number), str(seed), method), strict=True))
                if tuple(unit.values()) in done:
                    continue
                fit = run_method(method, data, preparation, rows, seed, quick)
                nmse = fit.test / part.variances
                _append(
                    runs,
                    unit
                    | {
                        "chosen": fit.chosen,
                        "validation": f"{fit.validation:.6f}",
                        "nmse": f"{np.mean(nmse):.6f}",
                        "mse": " ".join(f"{v:.6g}" for v in fit.test),
                        "nmse_by_task": " ".join(f"{v:.5g}" for v in nmse),
                        "fits": fit.fits,
                        "capped": fit.capped,
                        "fit_seconds": f"{fit.fit_seconds:.4f}",
                        "search_seconds": f"{fit.search_seconds:.2f}",
                    },
                )
                log(
                    f"{data}, {preparation}, partition {number}, {method}: NMSE {np.mean(nmse):.4f} at {fit.chosen} "
                    f"({fit.search_seconds:.1f} s, {fit.capped} of {fit.fits} fits capped)",
                    flush=True,
                )


def _done(runs: Path) -> set[tuple]:
    if not runs.is_file():
        return set()
    with runs.open(newline="") as file:
        return {tuple(row[name] for name in _KEY) for row in csv.DictReader(file)}


def _append(runs: Path, row: dict) -> None:
    """A row in one write, so that a run stopped at any time leaves whole rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not runs.is_file() or runs.stat().st_size == 0:
        writer.writeheader()
    writer.writerow(row)
    handle = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, text.getvalue().encode())
    finally:
        os.close(handle)
