"""Time and memory of a certified solve (relative gap 1e-6) against rows n, features d and tasks m, with fitted exponents.

    python benchmarks/scaling.py             # writes benchmarks/results/scaling.md and scaling.png

Every point is a fresh process: one small solve first, so that compilation and imports do not count, then the best of three timed
solves; memory is the process's peak above what it held before the problem was made. Data are Gaussian with true weights of rank 3.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from machine import RESULTS, stamp

BASE = {"n": 1000, "d": 60, "m": 20}
SWEEPS = {
    "n": [500, 1000, 2000, 4000, 8000, 16000],
    "d": [30, 60, 120, 240, 480],
    "m": [5, 10, 20, 40, 80, 160],
}
MODELS = {
    "squared + l21, shared X": ("squared_loss", "l21_norm", True, 0.1),
    "squared + trace, separate X": ("squared_loss", "trace_norm", False, 0.05),
    "logistic + trace, shared X": ("logistic_loss", "trace_norm", True, 0.1),
}


def measure(model: str, n: int, d: int, m: int) -> dict:
    """Seconds, megabytes and what was proven, in this process."""
    import mtldsl as mtl
    from mtldsl.datasets import make_low_rank

    loss, norm, shared, ratio = MODELS[model]
    labels = "sign" if loss == "logistic_loss" else "real"

    def problem(n, d, m):
        tasks, _ = make_low_rank(m, n, d, min(3, d, m), 1.0, shared=shared, labels=labels, random_state=0)
        W, lam = mtl.Weights(tasks), mtl.Parameter(1.0)
        model = mtl.minimize(getattr(mtl, loss)(W, tasks) + lam * getattr(mtl, norm)(W))
        lam.value = ratio * model.lambda_max(lam)
        return model

    problem(40, 5, 4).solve()
    before = _peak_megabytes()
    built = problem(n, d, m)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        solution = built.solve(tol=1e-6)
        seconds.append(time.perf_counter() - started)
    return {
        "seconds": min(seconds),
        "megabytes": _peak_megabytes() - before,
        "status": solution.status,
        "solver": solution.solver,
        "iterations": solution.iterations,
    }


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(model: str, **sizes) -> dict:
    arguments = [sys.executable, __file__, "--point", json.dumps({"model": model, **sizes})]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def exponent(sizes, values) -> float:
    """Least-squares slope in log-log over the larger half, where constant costs no longer show."""
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half - 1 :]), np.log(np.maximum(values[half - 1 :], 1e-9)), 1)[0])


def main() -> None:
    table = [
        "| model | grows | sizes | seconds | exponent | peak MB | exponent | solver |",
        "|---|---|---|---|---|---|---|---|",
    ]
    curves = {}
    for model in MODELS:
        for axis, sizes in SWEEPS.items():
            points = [run(model, **{**BASE, axis: size}) for size in sizes]
            assert all(point["status"] == "optimal" for point in points), points
            seconds, megabytes = ([point[key] for point in points] for key in ("seconds", "megabytes"))
            curves[model, axis] = (sizes, seconds, megabytes)
            table.append(
                f"| {model} | {axis} | {sizes[0]} to {sizes[-1]} | {seconds[0]:.4f} to {seconds[-1]:.4f} | "
                f"{exponent(sizes, seconds):.2f} | {megabytes[0]:.0f} to {megabytes[-1]:.0f} | "
                f"{exponent(sizes, megabytes):.2f} | {points[-1]['solver']} |"
            )
            print(table[-1], flush=True)
    draw(curves)
    text = [
        "# Time and memory against problem size", "", stamp(), "",
        f"Certified relative gap 1e-6; the sizes not named are n = {BASE['n']} rows a task, d = {BASE['d']}, m = {BASE['m']}.",
        "Exponents are slopes in log-log over the larger half of the sizes.", "", *table, "", "![curves](scaling.png)", "",
    ]  # fmt: skip
    (RESULTS / "scaling.md").write_text("\n".join(text))


def draw(curves) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = {"n": "rows a task n", "d": "features d", "m": "tasks m"}
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), sharey="row", layout="constrained")
    for column, axis in enumerate(SWEEPS):
        for model in MODELS:
            sizes, seconds, megabytes = curves[model, axis]
            for row, values in enumerate((seconds, megabytes)):
                label = f"{model}: {exponent(sizes, values):.1f}"
                axes[row, column].loglog(
                    sizes, np.maximum(values, 0.05 if row else 1e-5), "o-", ms=4, label=label
                )
        axes[1, column].set_xlabel(names[axis])
        for row in (0, 1):  # the sizes measured, instead of powers of ten between them
            axes[row, column].set_xticks(SWEEPS[axis], [f"{size:,}" for size in SWEEPS[axis]], fontsize=8)
            axes[row, column].minorticks_off()
        for row in (0, 1):
            axes[row, column].legend(fontsize=7, title="slope", title_fontsize=7)
            axes[row, column].grid(alpha=0.3, which="both")
    axes[0, 0].set_ylabel("seconds to a proven gap of 1e-6")
    axes[1, 0].set_ylabel("peak memory of the solve, MB")
    figure.savefig(RESULTS / "scaling.png", dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--point", type=json.loads)
    point = parser.parse_args().point
    if point is None:
        main()
    else:
        print(json.dumps(measure(**point)))
