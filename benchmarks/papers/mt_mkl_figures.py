"""The paper's Figure 1 from mt_mkl_runs.csv: ROC curves with the AUC against C, and the true similarity beside the learned ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.mt_mkl_data import FALSE_POSITIVES
from benchmarks.papers.mt_mkl_methods import EXTRAS, METHODS, USES_HIERARCHY
from benchmarks.papers.mt_mkl_paper import PAPER_AUC

__all__ = ["draw_roc", "draw_similarity"]

_COLOURS = dict(
    zip(METHODS, ("#7a5195", "#1f5fa8", "#3d9a8b", "#d9742b", "#6b7280", "#b0413e"), strict=True)
) | {"True similarity": "#222222"}


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def draw_roc(runs, path: Path) -> None:
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.2), layout="constrained")
    for method in (*METHODS, *EXTRAS):
        units = runs.units(method, "true")
        if not units:
            continue
        style = {"color": _COLOURS[method], "ls": "--" if method in EXTRAS else "-", "lw": 1.6}
        mean = np.mean([float(unit.chosen["auc"]) for unit in units])
        paper = f" (paper {PAPER_AUC[method]:.3f})" if method in PAPER_AUC else ""
        left.plot(
            FALSE_POSITIVES,
            np.mean([unit.tpr for unit in units], axis=0),
            label=f"{method}  {mean:.3f}{paper}",
            **style,
        )
        grid = [C for C in runs.grid if not runs.uncertified(method, "true", C)]
        means = [np.mean(runs.at(method, "true", C)) for C in grid]
        right.plot(grid, means, marker="o", ms=3, label=method, **style)
    _finish_roc(left, runs)
    right.set(
        xscale="log",
        xlabel="C",
        ylabel="AUC on the test rows, mean over tasks and draws",
        title="AUC against C (where all fits are certified)",
    )
    right.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _finish_roc(axis, runs) -> None:
    from scipy.special import ndtr, ndtri

    bayes = runs.part(runs.seeds[0]).bayes_auc
    # two normal distributions of equal variance: the AUC tells their distance, and that the curve
    ends = np.clip(FALSE_POSITIVES, 1e-9, 1 - 1e-9)
    axis.plot(
        FALSE_POSITIVES, ndtr(ndtri(ends) + np.sqrt(2) * ndtri(bayes)), ":", color="black", lw=1,
        label=f"Bayes  {bayes:.3f}",
    )  # fmt: skip
    axis.plot([0, 1], [0, 1], color="#d3d7dc", lw=1, zorder=0)
    axis.set(
        xlim=(0, 1),
        ylim=(0, 1.005),
        aspect="equal",
        xlabel="false positive rate",
        ylabel="true positive rate, mean over tasks and draws",
        title=f"C chosen on held-out rows, {runs.count} draw{'s' * (runs.count > 1)}; AUC",
    )
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8, loc="lower right")


def draw_similarity(runs, path: Path) -> None:
    """The similarities of the first draw; every matrix is divided by the mean of its diagonal."""
    plt = _pyplot()
    seed = runs.seeds[0]
    part = runs.part(seed)
    rows = [name for name in _ROWS if any(runs.units(method, name) for method in USES_HIERARCHY)]
    columns = 1 + len(USES_HIERARCHY)
    figure, axes = plt.subplots(
        len(rows),
        columns,
        figsize=(2.9 * columns + 0.8, 3.1 * len(rows) + 0.3),
        layout="constrained",
        squeeze=False,
    )
    for axis in axes.ravel():
        axis.set_axis_off()
    image = _cells(axes[0][0], part.similarity, "true similarity")
    for row, hierarchy in enumerate(rows):
        for axis, method in zip(axes[row][1:], USES_HIERARCHY, strict=True):
            for unit in runs.units(method, hierarchy):
                if unit.seed == seed:
                    K = unit.similarity(part.hierarchies["true"], part.train.task_names)
                    _cells(axis, K, f"{method}, {_ROWS[hierarchy]}\nC = {float(unit.chosen['C']):.2g}")
    bar = figure.colorbar(image, ax=axes, fraction=0.02)
    bar.set_label("share of the mean diagonal entry")
    figure.savefig(path, dpi=110)
    plt.close(figure)


#: How the kernels of the tree given are scaled in the picture.
_ROWS = {"true": "indicators", "unit trace": "trace 1"}


def _cells(axis, K, title):
    axis.set_axis_on()
    axis.set(xticks=[], yticks=[])
    axis.set_title(title, fontsize=10)
    return axis.imshow(K / np.diag(K).mean(), vmin=0, vmax=1, cmap="viridis", interpolation="nearest")
