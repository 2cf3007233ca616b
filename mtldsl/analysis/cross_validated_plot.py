"""Cross-validation as a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtldsl.system.pyplot import pyplot

__all__ = ["plot"]


def plot(found: Any, ax=None):
    """See `CrossValidation.plot`."""
    ax = pyplot().subplots(figsize=(6.4, 4.0), layout="constrained")[1] if ax is None else ax
    _curve(found, ax) if len(found.names) == 1 else _map(found, ax)
    return ax


def _curve(found: Any, ax) -> None:
    values = np.array([value for (value,) in found.points])
    order = np.argsort(values)
    values, mean, se = values[order], found.mean[order], found.se[order]
    ax.plot(values, found.scores[:, order].T, color="0.8", linewidth=0.8, zorder=1)
    ax.fill_between(values, mean - se, mean + se, color="C0", alpha=0.2, linewidth=0, zorder=2)
    ax.plot(values, mean, color="C0", marker="o", markersize=3.5, zorder=3, label="mean ± standard error")
    ax.plot([], [], color="0.8", linewidth=0.8, label="folds")
    if found._best is not None:
        ax.axvline(
            found.best_value, color="C1", linewidth=1.2, zorder=2, label=f"best, {found.best_value:.3g}"
        )
        ax.axvline(
            found.one_se_value,
            color="C1",
            linewidth=1.2,
            linestyle="--",
            zorder=2,
            label=f"one standard error, {found.one_se_value:.3g}",
        )
    positive = values[values > 0]
    if positive.size and positive.max() / positive.min() > 10:
        if (values > 0).all():
            ax.set_xscale("log")
        else:
            ax.set_xscale("symlog", linthresh=positive.min())
    ax.set_xlabel(found.names[0])
    ax.set_ylabel(found.metric)
    # above the picture, where no curve runs through it
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _map(found: Any, ax) -> None:
    *outer, inner = ([*dict.fromkeys(column)] for column in zip(*found.points, strict=True))
    rows = list(dict.fromkeys(point[:-1] for point in found.points))
    table = found.mean.reshape(len(rows), len(inner))
    shown = ax.imshow(table, aspect="auto", cmap="viridis" if found.higher_is_better else "viridis_r")
    ax.figure.colorbar(shown, ax=ax, label=found.metric)
    ax.set_xticks(
        range(len(inner)), [f"{value:.3g}" for value in inner], rotation=45 if len(inner) > 8 else 0
    )
    ax.set_yticks(range(len(rows)), [", ".join(f"{value:.3g}" for value in row) for row in rows])
    ax.set_xlabel(found.names[-1])
    ax.set_ylabel(", ".join(found.names[:-1]))
    if found._best is not None:
        row, column = divmod(found._best, len(inner))
        ax.plot(
            column,
            row,
            marker="o",
            markersize=12,
            markerfacecolor="none",
            markeredgecolor="C1",
            markeredgewidth=2,
            linestyle="none",
        )
        ax.set_title(
            "best: "
            + ", ".join(f"{name} = {value:.3g}" for name, value in zip(found.names, found.best, strict=True)),
            fontsize="medium",
        )
