"""The paper's Figures 1 and 2 from the rows of the imbalance study: AUC, macro- and micro-F1 against the class ratio."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.smtl_tables import MEASURES

__all__ = ["draw_imbalance"]

_COLOURS = ("#1f5fa8", "#3d9a8b", "#d9742b", "#6b7280", "#b0413e", "#7a5195")


def draw_imbalance(runs, folder: Path) -> list[str]:
    """smtl_figure_1.png (AUC) and smtl_figure_2.png (F1), a panel a data set; their names."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sets = list(dict.fromkeys(run.data for run in runs))
    names = []
    for number, measures in ((1, ("auc",)), (2, ("macro_f1", "micro_f1"))):
        figure, axes = plt.subplots(
            len(measures), len(sets), figsize=(4.2 * len(sets) + 1.6, 3.2 * len(measures)), layout="constrained", squeeze=False
        )  # fmt: skip
        for row, measure in zip(axes, measures, strict=True):
            for axis, data in zip(row, sets, strict=True):
                _panel(axis, sorted((r for r in runs if r.data == data), key=lambda r: r.ratio), measure)
                axis.set(title=f"{data}, {MEASURES[measure]}", xlabel="negatives to a positive")
            row[0].set_ylabel("per cent on the test part")
        axes[0, -1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        names.append(f"smtl_figure_{number}.png")
        figure.savefig(folder / names[-1], dpi=110)
        plt.close(figure)
    return names


def _panel(axis, runs, measure) -> None:
    """A line a method: mean over the partitions, with its deviation as a bar."""
    methods = list(dict.fromkeys(method for run in runs for method in run.methods))
    for k, (method, colour) in enumerate(zip(methods, _COLOURS, strict=False)):
        found = [(run.ratio, *run.mean(method, measure)) for run in runs if run.mean(method, measure)[2]]
        at, mean, deviation, _ = map(np.array, zip(*found, strict=True))
        # bars beside each other; one ratio alone has an axis of no length
        shift = 1 + 0.03 * (k - (len(methods) - 1) / 2) * (len(runs) > 1)
        axis.errorbar(
            at * shift, mean, yerr=np.nan_to_num(deviation), marker="o", ms=4, lw=1.5, capsize=2, color=colour, label=method
        )  # fmt: skip
    ratios = sorted({run.ratio for run in runs})
    axis.set_xscale("log")
    axis.set_xticks(ratios, [f"1 : {r}" for r in ratios])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3)
