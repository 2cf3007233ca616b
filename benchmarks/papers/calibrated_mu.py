"""The paper's Fig. 2: nMSE on SARCOS against mu, of the four models of one low-rank penalty each; data, and the picture made of it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

import mtldsl as mtl
from benchmarks.papers.calibrated_data import Preparation, nmse, part, sizes_of
from benchmarks.papers.calibrated_methods import EPS, METHODS, MOST_SECONDS, TOL, Method, along
from benchmarks.papers.calibrated_table import ways_of
from benchmarks.papers.rows import append, done, rows_of

__all__ = ["CAP", "MODELS", "draw_mu", "read_mu", "run_mu"]

CAP = 1.0
#: The paper's 1e-4, ..., 1e4, and half-way between.
VALUES = tuple(float(f"{10.0 ** (k / 2):.4g}") for k in range(8, -9, -1))

COLUMNS = ("way", "size", "partition", "method", "mu", "nmse", "status", "seconds")
KEY = COLUMNS[:5]


def _trace(tasks, _):
    """NN-MTL with the loss of (4) and (6), so that mu means the same for the three with least squares."""
    W, mu = mtl.Weights(tasks), mtl.Parameter(1.0, name="mu")
    return mtl.minimize(mtl.sum_of_squares(W, tasks) + mu * mtl.trace_norm(W)), mu


MODELS: dict[str, Method] = {
    "NN-MTL": Method(_trace, VALUES),
    "Capped-MTL": Method(METHODS["Capped-MTL"].build, VALUES, (CAP,), warm=False),
    "NC-MTL": Method(METHODS["NC-MTL"].build, VALUES, (EPS,), warm=False),
    "NC-CMTL": Method(METHODS["NC-CMTL"].build, VALUES, (EPS,), warm=False),
}


def run_mu(results: Path, *, partitions, data="sarcos", sizes=None, quick=False, log=print) -> None:
    path = results / "calibrated_mu.csv"
    finished = done(path, KEY)
    for number in partitions:
        for size in sizes or sizes_of(data):
            train, test = part(data, size, number)
            for way in ways_of(data):
                preparation = Preparation.of(train, way)
                prepared = preparation.apply(train)
                for name, method in MODELS.items():
                    left = [
                        v
                        for v in method.values
                        if (way, str(size), str(number), name, f"{v:g}") not in finished
                    ]
                    left = left[::4] if quick else left
                    some = Method(method.build, tuple(left), method.seconds, method.warm)
                    for value, solution in along(
                        some, prepared, some.seconds[0], tol=TOL, max_seconds=MOST_SECONDS
                    ):
                        failed = isinstance(solution, Exception)
                        if failed:
                            log(f"  {name} at {value:g}: {type(solution).__name__}: {solution}", flush=True)
                        error = (
                            np.nan if failed else np.mean(nmse(preparation.predict(solution.W, test), test))
                        )
                        keys = (way, str(size), str(number), name, f"{value:g}")
                        append(
                            path,
                            COLUMNS,
                            dict(zip(KEY, keys, strict=True))
                            | {
                                "nmse": f"{error:.6f}",
                                "status": "failed" if failed else solution.status,
                                "seconds": "" if failed else f"{solution.seconds:.4f}",
                            },
                        )
                    log(f"mu: {size} rows, {way}, partition {number}, {name}", flush=True)


def read_mu(results: Path) -> dict[tuple, dict[float, np.ndarray]]:
    """(way, size, method) -> mu -> nMSE of the partitions."""
    found: dict = defaultdict(lambda: defaultdict(list))
    for row in rows_of(results / "calibrated_mu.csv"):
        found[row["way"], int(row["size"]), row["method"]][float(row["mu"])].append(float(row["nmse"]))
    return {key: {mu: np.array(v) for mu, v in sorted(of_mu.items())} for key, of_mu in found.items()}


def draw_mu(results: Path, name: str, unit: str, test: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curves = read_mu(results)
    ways = list(dict.fromkeys(key[0] for key in curves))
    sizes = sorted({key[1] for key in curves})
    figure, axes = plt.subplots(
        len(ways), len(sizes), figsize=(4.4 * len(sizes), 3.4 * len(ways)), layout="constrained",
        sharex=True, sharey=True, squeeze=False,
    )  # fmt: skip
    for i, way in enumerate(ways):
        for j, size in enumerate(sizes):
            axis = axes[i, j]
            for name, marker in zip(MODELS, "os^D", strict=True):
                of_mu = curves.get((way, size, name))
                if not of_mu:
                    continue
                mean = np.array([v.mean() for v in of_mu.values()])
                spread = np.array([v.std() for v in of_mu.values()])
                (line,) = axis.plot(list(of_mu), mean, marker=marker, ms=3.5, label=name)
                axis.fill_between(
                    list(of_mu),
                    np.maximum(mean - spread, 0.01),
                    mean + spread,
                    color=line.get_color(),
                    alpha=0.15,
                    lw=0,
                )
            axis.set(xscale="log", yscale="log", title=f"{size}{unit}, {_named(way)}")
            if name.startswith("SARCOS"):
                axis.set_ylim(0.13, 1.2)
                axis.set_yticks([0.15, 0.2, 0.3, 0.5, 1.0], ["0.15", "0.2", "0.3", "0.5", "1"], minor=False)
                axis.set_yticks([], minor=True)
            axis.grid(alpha=0.3)
        axes[i, 0].set_ylabel(f"nMSE on the test {test}")
    for axis in axes[-1]:
        axis.set_xlabel("mu")
    axes[0, 0].legend(fontsize=8)
    figure.suptitle(f"{name}: mean and deviation over partitions")
    figure.savefig(results / "calibrated_mu.png", dpi=110)
    plt.close(figure)


def _named(way: str) -> str:
    return "labels scaled by task" if way == "a unit a task" else "labels in one unit"
