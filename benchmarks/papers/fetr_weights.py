"""The weights' step by every method against the number of features and of tasks: the paper's Figure 2(a).

K = X^T X of 10,000 rows uniform on [0, 1]^d; Sigma1 and Sigma2 with random eigenvectors and eigenvalues uniform in the logarithm
over the box, both ends among them; eta = 1. K is made beforehand, for all methods alike.
Gradient methods start at zero. Seconds are the processor's, one thread.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path

import numpy as np

from benchmarks.papers.fetr_methods import BOX
from mtldsl.atoms.prox.spectral_matrix import SpectralMatrix
from mtldsl.solvers.design.sufficient_statistics import QuadraticData
from mtldsl.solvers.linear_systems.sylvester import METHODS, SylvesterPenalty, solve_weights

__all__ = ["ACCURACY", "ROWS", "SIZES", "random_precision", "run_weights", "step_of"]

ROWS = 10_000
#: The relative residual at which gradient methods stop; the others have none.
ACCURACY = 1e-8
SIZES = {
    "features, 20 tasks": [(d, 20) for d in (10, 20, 50, 100, 200, 500, 1000)],
    "tasks, 50 features": [(50, m) for m in (5, 10, 20, 50, 100, 200, 500)],
}
#: Unknowns above which the Kronecker system is not tried: 8 (d m)^2 bytes, three times.
_MOST_UNKNOWNS = 5_000
#: Features above which gradient descent is not tried: its condition number grows with them, to thousands of long steps.
_MOST_FEATURES = 500
_REPEATS, _MOST_SECONDS = 10, 8.0


def random_precision(n: int, rng) -> SpectralMatrix:
    """(n, n) with eigenvalues from l to u."""
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    exponents = rng.uniform(*np.log(BOX), size=n)
    exponents[[0, -1]] = np.log(BOX)
    return SpectralMatrix.of((basis * np.exp(exponents)) @ basis.T)


def step_of(d: int, m: int, rng, rows: int = ROWS) -> tuple[QuadraticData, list[SylvesterPenalty]]:
    """1/2 <W, K W> - <C, W> + 1/2 tr(Sigma1 W Sigma2 W^T) for Y = X W0 + noise."""
    X = rng.uniform(size=(rows, d))
    C = X.T @ (X @ rng.normal(size=(d, m)) + rng.normal(size=(rows, m)))
    data = QuadraticData("W", X.T @ X, C, 0.0)
    return data, [SylvesterPenalty(random_precision(d, rng), random_precision(m, rng))]


def _residual(data, penalties, W) -> float:
    rest = data.product(W) + sum(p.product(W) for p in penalties) - data.cross
    return float(np.linalg.norm(rest) / np.linalg.norm(data.cross))


def run_weights(results: Path, *, quick: bool = False, log=print) -> None:
    """Seconds and residuals of each method at each size, to results/fetr_weights.csv; ten draws, fewer where they take long."""
    with (results / "fetr_weights.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("against", "d", "m", "method", "draw", "seconds", "residual"))
        for against, sizes in SIZES.items():
            for d, m in sizes[:4] if quick else sizes:
                spent = dict.fromkeys(METHODS, 0.0)
                for draw in range(3 if quick else _REPEATS):
                    data, penalties = step_of(d, m, np.random.default_rng(draw))
                    for method in METHODS:
                        if method == "closed_form" and d * m > (1000 if quick else _MOST_UNKNOWNS):
                            continue
                        if method == "gradient_descent" and d > _MOST_FEATURES:
                            continue
                        if draw and spent[method] > _MOST_SECONDS * draw / (draw + 1):
                            continue
                        began = time.process_time()
                        W = solve_weights(method, data, penalties, np.zeros((d, m)), ACCURACY)
                        seconds = time.process_time() - began
                        spent[method] += seconds
                        writer.writerow(
                            (
                                against,
                                d,
                                m,
                                method,
                                draw,
                                f"{seconds:.6f}",
                                f"{_residual(data, penalties, W):.2e}",
                            )
                        )
                file.flush()
                log(f"d = {d}, m = {m}: " + ", ".join(f"{k} {v:.3f} s" for k, v in spent.items()), flush=True)
