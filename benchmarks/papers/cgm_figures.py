"""The paper's Figures 2 and 3 from what was measured: objective against epochs, and Scene's measures against the number of edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.cgm_data import MEASURES

__all__ = ["NAMES", "draw_convergence", "draw_growth"]

NAMES = dict(
    zip(
        MEASURES,
        ("Hamming loss", "macro-F1", "micro-F1", "micro-precision", "micro-recall"),
        strict=True,
    )
)
_COLOURS = ("#1f5fa8", "#3d9a8b", "#b0413e", "#d9742b", "#6b7280", "#7a5195")


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw_convergence(history: list[dict], path: Path) -> None:
    """Left the objective, right its relative distance to the dual bound, both against epochs."""
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
    for colour, name in zip(_COLOURS, dict.fromkeys(row["method"] for row in history), strict=False):
        rows = [row for row in history if row["method"] == name]
        epochs, objective, bound = (
            np.array([float(row[column]) for row in rows]) for column in ("epoch", "objective", "dual_bound")
        )
        left.plot(epochs, objective, color=colour, lw=1.6, label=name)
        if name.startswith("CGM"):
            edges = np.array([float(row["edges"] or 0) for row in rows])
            new = np.flatnonzero(np.diff(edges) > 0) + 1
            left.plot(epochs[new], objective[new], "o", ms=4, color=colour)
        right.plot(epochs, (objective - bound) / np.abs(objective), color=colour, lw=1.6, label=name)
    left.set(xscale="log", yscale="log", xlabel="epochs", ylabel="objective", title="a dot: edges were added")
    right.set(
        xscale="log",
        yscale="log",
        xlabel="epochs",
        ylabel="relative gap",
        title="certified, all candidates counted",
    )
    for axis in (left, right):
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_growth(rows: list[dict], sizes, references: dict[str, float], path: Path) -> None:
    """rows: of the study "growth"; references: the paper's CGM by measure, as dotted lines."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(3.4 * len(MEASURES), 3.4), layout="constrained")
    for axis, measure in zip(axes, MEASURES, strict=True):
        values = [[float(row[measure]) for row in rows if row["method"] == f"{size} edges"] for size in sizes]
        kept = [(size, np.array(value)) for size, value in zip(sizes, values, strict=True) if value]
        at, means = [size for size, _ in kept], np.array([value.mean() for _, value in kept])
        spread = np.array([value.std(ddof=1) if value.size > 1 else 0.0 for _, value in kept])
        axis.fill_between(at, means - spread, means + spread, color="#1f5fa8", alpha=0.15, lw=0)
        axis.plot(at, means, "o-", ms=3.5, color="#1f5fa8")
        if measure in references:
            axis.axhline(references[measure], ls=":", color="#b0413e", lw=1.2, label="the paper's CGM")
            axis.legend(fontsize=8)
        axis.set(xlabel="edges at most", title=NAMES[measure])
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
