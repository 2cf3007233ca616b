"""Runs of the paper's Table 1, one row a (data, preparation, partition, seed, method) in fetr_runs.csv; goes on where it was stopped."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers.fetr_data import given_part, sarcos_part, school_part, thinned
from benchmarks.papers.fetr_methods import (
    LIKE,
    LINEAR,
    NETWORKS,
    PREPARATIONS,
    networks_missing,
    run_method,
)
from benchmarks.papers.many import grow
from benchmarks.papers.rows import done

__all__ = ["COLUMNS", "run_table"]

COLUMNS = (
    "data", "preparation", "partition", "seed", "method", "chosen", "validation", "nmse", "mse", "nmse_by_task",
    "fits", "capped", "fit_seconds", "search_seconds",
)  # fmt: skip
_KEY = COLUMNS[:5]


def run_table(
    runs: Path,
    data: str,
    *,
    partitions,
    methods=None,
    preparations=None,
    seed=0,
    quick=False,
    tasks=None,
) -> None:
    """Every method on every partition. Networks prepare their data themselves: they are run once, under "scaled labels".

    tasks : of the user; data is then their name
    """
    finished, missing = done(runs, _KEY), networks_missing()
    methods = list(methods or (*LINEAR, *NETWORKS))
    like = data if tasks is None else LIKE[tasks.is_shared]
    if missing and like == "sarcos" and set(methods) & set(NETWORKS):
        print(missing, flush=True)
        methods = [name for name in methods if name not in NETWORKS]
    units = [
        dict(zip(_KEY, (data, preparation, str(number), str(seed), method), strict=True))
        for number in partitions
        for preparation in preparations or PREPARATIONS[like]
        for method in methods
        if method not in NETWORKS or (like == "sarcos" and preparation == "scaled labels")
    ]
    left = [unit for unit in units if tuple(unit.values()) not in finished]
    grow(runs, COLUMNS, unit_rows, [(unit, tasks, quick) for unit in left])


def unit_rows(unit: dict, tasks, quick: bool) -> tuple[list[dict], str]:
    """The row of one method on one partition; none where the partition has too few rows for the preparation."""
    data, preparation, number, seed, method = unit.values()
    part = _part(data, int(number), tasks)
    line = f"{data}, {preparation}, partition {number}, {method}: "
    if preparation.endswith(" rows"):
        rows = int(preparation.split()[-2])
        if part.train.X.shape[0] <= rows:
            return [], line + f"not run, {part.train.X.shape[0]} rows to train on"
        part = thinned(part, rows)
    like = data if tasks is None else LIKE[tasks.is_shared]
    fit = run_method(method, like, preparation, part, int(seed), quick)
    nmse = fit.test / part.variances
    row = {
        "chosen": fit.chosen,
        "validation": f"{fit.validation:.6f}",
        "nmse": f"{np.mean(nmse):.6f}",
        "mse": " ".join(f"{v:.6g}" for v in fit.test),
        "nmse_by_task": " ".join(f"{v:.5g}" for v in nmse),
        "fits": fit.fits,
        "capped": fit.capped,
        "fit_seconds": f"{fit.fit_seconds:.4f}",
        "search_seconds": f"{fit.search_seconds:.2f}",
    }
    line += f"NMSE {np.mean(nmse):.4f} at {fit.chosen} ({fit.search_seconds:.1f} s, {fit.capped} of {fit.fits} fits capped)"
    return [unit | row], line


@lru_cache(maxsize=1)  # units that follow each other are of one partition
def _part(data: str, number: int, tasks):
    if tasks is not None:
        return given_part(tasks, number)
    return (sarcos_part if data == "sarcos" else school_part)(number)
