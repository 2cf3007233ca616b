"""The paper's Figure 2 from fetr_weights.csv and fetr_descent.csv: the weights' step against size, objectives against time."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

__all__ = ["Descents", "draw_descent", "draw_weights", "read_descents", "read_weights"]

_NAMES = {
    "simultaneous_diagonalization": "simultaneous diagonalisation",
    "sylvester": "Bartels-Stewart (sylvester)",
    "closed_form": "closed form (Kronecker)",
    "gradient_descent": "gradient descent",
    "conjugate_gradient": "conjugate gradient",
}


class Descents:
    """The descents on one data set: method -> a list of (seconds, objectives, iterations), one a start; `best` is the lowest objective seen."""

    def __init__(self, rows):
        runs = defaultdict(lambda: defaultdict(list))
        for row in rows:
            runs[row["method"]][int(row["start"])].append(
                (float(row["seconds"]), float(row["objective"]), int(row["iteration"]))
            )
        self.runs = {method: [np.array(run).T for run in starts.values()] for method, starts in runs.items()}
        self.best = min(run[1].min() for runs in self.runs.values() for run in runs)

    def above(self, objectives) -> np.ndarray:
        """Relative distance to the best."""
        return (objectives - self.best) / abs(self.best)

    def reached(self, method: str, accuracy: float) -> list[tuple[float, float]]:
        """(seconds, iterations) of every start at its first look within the accuracy; shorter than the starts where some never are."""
        found = []
        for seconds, objectives, iterations in self.runs[method]:
            near = np.flatnonzero(self.above(objectives) <= accuracy)
            if near.size:
                found.append((seconds[near[0]], iterations[near[0]]))
        return found

    def last(self, method: str) -> np.ndarray:
        """Every start's last objective."""
        return np.array([run[1][-1] for run in self.runs[method]])


def read_descents(results: Path) -> dict[str, Descents]:
    with (results / "fetr_descent.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        data: Descents([row for row in rows if row["data"] == data])
        for data in dict.fromkeys(r["data"] for r in rows)
    }


def read_weights(results: Path) -> dict[str, dict]:
    """against -> (d, m) -> method -> (seconds, residuals), each an array over draws."""
    found: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    with (results / "fetr_weights.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            pair = float(row["seconds"]), float(row["residual"])
            found[row["against"]][int(row["d"]), int(row["m"])][row["method"]].append(pair)
    return {
        against: {size: {method: np.array(pairs).T for method, pairs in methods.items()} for size, methods in sizes.items()}
        for against, sizes in found.items()
    }  # fmt: skip


def _axes(columns: int):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt, *plt.subplots(1, columns, figsize=(6 * columns, 4.4), layout="constrained")


def draw_weights(results: Path) -> None:
    plt, figure, axes = _axes(2)
    for axis, (against, sizes) in zip(axes, read_weights(results).items(), strict=True):
        for method, label in _NAMES.items():
            points = [
                (size[0] if "features," in against else size[1], runs[method][0])
                for size, runs in sizes.items()
                if method in runs
            ]
            x, means, deviations = zip(*((n, s.mean(), s.std()) for n, s in points), strict=True)
            axis.errorbar(
                x,
                means,
                np.minimum(deviations, 0.9 * np.array(means)),
                marker="o",
                ms=3,
                capsize=2,
                label=label,
            )
        axis.set(
            xscale="log",
            yscale="log",
            xlabel=f"number of {against.replace(', ', ', with ')}",
            ylabel="seconds",
        )
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.suptitle("One weights' step, X^T X given: mean and deviation over up to ten draws")
    figure.savefig(results / "fetr_weights.png", dpi=110)
    plt.close(figure)


def draw_descent(results: Path, name: str) -> None:
    plt, figure, axes = _axes(2)
    for axis, (data, descents) in zip(axes, read_descents(results).items(), strict=True):
        for method, runs in descents.runs.items():
            end = max(run[0][-1] for run in runs)
            grid = np.geomspace(min(max(run[0][0], 1e-4) for run in runs), end, 300)
            curves = np.array([np.log10(np.maximum(descents.above(_at(grid, run)), 1e-13)) for run in runs])
            mean, deviation = curves.mean(axis=0), curves.std(axis=0)
            (line,) = axis.plot(grid, 10**mean, label=method)
            axis.fill_between(
                grid,
                10 ** (mean - deviation),
                10 ** (mean + deviation),
                color=line.get_color(),
                alpha=0.2,
                lw=0,
            )
        axis.set(
            xscale="log", yscale="log", ylim=(1e-12, None), xlabel="seconds",
            ylabel="(objective - best) / |best|", title=f"labels and inputs {data}",
        )  # fmt: skip
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="outside right center")
    figure.suptitle(f"{name}, eta = rho = 1: random starts, mean and deviation of the logarithm")
    figure.savefig(results / "fetr_descent.png", dpi=110)
    plt.close(figure)


def _at(grid, run) -> np.ndarray:
    """The objective that was known at each time; before the first look, the first."""
    seconds, objectives, _ = run
    return objectives[np.maximum(np.searchsorted(seconds, grid, side="right") - 1, 0)]
