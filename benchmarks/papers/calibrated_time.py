"""The paper's Table 5: seconds of one fit, on School with 20 % and SARCOS with 300 rows, at the settings that were chosen there."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np

from benchmarks.papers.calibrated_data import Preparation, part
from benchmarks.papers.calibrated_methods import PAPERS, Method, along
from benchmarks.papers.calibrated_table import ways_of
from benchmarks.papers.rows import rows_of

__all__ = ["ACCURACIES", "TIMED", "run_time"]

TIMED = {"school": 20, "sarcos": 300}
ACCURACIES = (1e-4, 1e-6)
LOW_RANK = ("NN-MTL", "Capped-MTL", "Robust-MTL", "NC-MTL", "NC-CMTL")


def run_time(results: Path, *, repeats: int = 5, timed=None, log=print) -> None:
    """Median processor time of `repeats` fits after one that is not counted; each of a new model, its products with the data included."""
    runs = rows_of(results / "calibrated_runs.csv")
    with (results / "calibrated_time.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("data", "size", "method", "chosen", "tol", "seconds", "iterations", "status", "accuracy")
        )
        for data, size in (timed or TIMED).items():
            way = ways_of(data)[0]
            train, _ = part(data, size, 0)
            prepared = Preparation.of(train, way).apply(train)
            for name in LOW_RANK:
                chosen = [
                    r["chosen"]
                    for r in runs
                    if (r["data"], r["way"], r["size"], r["partition"], r["method"])
                    == (data, way, str(size), "0", name)
                ]
                if not chosen:
                    log(f"time: {data} {size}, {name}: no run of partition 0 to take its setting from")
                    continue
                value, second = (*map(float, chosen[0].split()), None)[:2]
                for tol in ACCURACIES:
                    seconds = []
                    for _ in range(repeats + 1):
                        began = time.process_time()
                        ((_, solution),) = along(
                            Method(PAPERS[name].build, (value,), warm=False),
                            prepared,
                            second,
                            tol=tol,
                            max_seconds=60.0,
                        )
                        seconds.append(time.process_time() - began)
                        if isinstance(solution, Exception):
                            raise solution
                    accuracy = (
                        solution.relative_gap
                        if solution.stationarity is None
                        else solution.stationarity.residual
                    )
                    writer.writerow(
                        (
                            data, size, name, chosen[0], f"{tol:g}", f"{np.median(seconds[1:]):.4f}", solution.iterations,
                            solution.status, f"{accuracy:.1e}",
                        )
                    )  # fmt: skip
                    log(
                        f"time: {data}, {name}, {tol:g}: {np.median(seconds[1:]):.4f} s, {solution.status}",
                        flush=True,
                    )
