"""A picture of how well probabilities say what happens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError
from mtldsl.pictures.axes import GREY, axes_for, cycle, plain
from mtldsl.pictures.figure import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration"]


def plot_calibration(
    curves: Mapping[str, tuple],
    *,
    bins: int = 10,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The share of +1 among samples whose predicted probability is alike, against that probability: on the diagonal they agree.

    Parameters
    ----------
    curves : {"name": (labels in {-1, +1} or {0, 1}, probabilities of +1), ...}
    bins : samples are put into so many groups of equal size, fewer where probabilities are equal
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        Where labels and probabilities differ in length, or a probability lies outside [0, 1].
    MissingExtraError
        Where matplotlib is not installed.

    Source: reliability diagrams; Niculescu-Mizil and Caruana, "Predicting good probabilities with supervised learning", ICML 2005.

    Examples
    --------
    >>> ax = plot_calibration({"a": ([-1, 1, -1, 1], [0.1, 0.9, 0.2, 0.8])}, bins=2)
    >>> ax.lines[1].get_xydata().round(2).tolist()
    [[0.15, 0.0], [0.85, 1.0]]
    """
    ax = axes_for(ax, 4.8, 4.8)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle="--")
    for (name, (labels, probabilities)), colour in zip(curves.items(), cycle(len(curves)), strict=True):
        y, p = np.asarray(labels, dtype=float) > 0, np.asarray(probabilities, dtype=float)
        if y.shape != p.shape or y.ndim != 1 or not len(y):
            raise DataError(f"{name}: {y.shape} labels and {p.shape} probabilities; both must be (n,)")
        if not ((p >= 0) & (p <= 1)).all():
            raise DataError(f"{name}: probabilities must lie in [0, 1]")
        order = np.argsort(p, kind="stable")
        groups = np.array_split(order, min(bins, len(np.unique(p))))
        points = np.array([(p[group].mean(), y[group].mean()) for group in groups])
        ax.plot(*points.T, color=colour, marker="o", markersize=4, linewidth=1.4, label=short(name))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted probability of +1", ylabel="share of +1")
    ax.set_aspect("equal")
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=9)
    return plain(ax, title)
