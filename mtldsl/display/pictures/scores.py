"""A picture of scores, a point a task, beside the scores of something simpler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.display.pictures.axes import COLOURS, GREY, axes_for, cycle, plain, short
from mtldsl.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------------------
# A picture of how well probabilities say what happens.


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


_MARKERS = "os^DvP"


def plot_scores(
    scores: Mapping[str, Sequence[float]] | Sequence[float],
    names: Sequence[str] | None = None,
    *,
    measure: str = "score",
    intervals=None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The scores of m tasks, the highest of the first series on top; several series beside each other, the others with open markers.

    Parameters
    ----------
    scores : (m,), or {"name": (m,), ...}; NaN is not drawn
    names : m names of tasks; default: positions
    measure : what the axis is called
    intervals : (m, 2) lower and upper ends around the first series, optional
    title : str, optional
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    DataError
        Where series, names and intervals are not of one length.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> ax = plot_scores({"learned": [0.9, 0.6], "majority": [0.7, 0.5]}, ["a", "b"], measure="accuracy")
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['b', 'a'], 'accuracy')
    """
    series = dict(scores) if isinstance(scores, Mapping) else {"": scores}
    table = {name: np.asarray(values, dtype=float) for name, values in series.items()}
    sizes = {values.shape for values in table.values()}
    if len(sizes) != 1 or len(next(iter(sizes))) != 1:
        raise DataError(
            f"scores: every series must have one number a task; these have shapes {sorted(sizes)}"
        )
    m = len(next(iter(table.values())))
    names = [str(i) for i in range(m)] if names is None else [str(name) for name in names]
    ends = None if intervals is None else np.asarray(intervals, dtype=float)
    if len(names) != m or (ends is not None and ends.shape != (m, 2)):
        raise DataError(f"scores of {m} tasks: there must be {m} names, and intervals (m, 2)")
    first = next(iter(table.values()))
    order = np.argsort(np.where(np.isnan(first), -np.inf, first), kind="stable")
    ax = axes_for(ax, 6.4, float(np.clip(0.28 * m + 1.4, 2.2, 10.0)))
    at = np.arange(m)
    if ends is not None:
        ax.hlines(at, ends[order, 0], ends[order, 1], color=COLOURS[0], linewidth=1.4, alpha=0.6)
    for k, (name, values) in enumerate(table.items()):
        colour = COLOURS[0] if k == 0 else GREY if k == 1 else COLOURS[k % len(COLOURS)]
        ax.plot(
            values[order],
            at,
            linestyle="none",
            marker=_MARKERS[k % len(_MARKERS)],
            color=colour,
            # the first is whole and on top, the others are open around it: equal scores hide none of them
            fillstyle="full" if k == 0 else "none",
            markersize=6 if k == 0 else 9,
            markeredgewidth=1.0 if k == 0 else 1.5,
            zorder=3 if k == 0 else 2.5,
            label=name,
        )
    if m <= 60:
        ax.set_yticks(at, [short(names[i]) for i in order])
    else:
        ax.set_yticks([])
        ax.set_ylabel(f"{m} tasks")
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel(measure + (_near(ax, list(table.values()), ends) if ends is not None else ""))
    if len(table) > 1:
        ax.legend(frameon=False, fontsize=10, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(table))
    return plain(ax, title)


def _near(ax: Axes, series: list[np.ndarray], ends: np.ndarray) -> str:
    """Intervals that are far longer than scores are apart leave the picture, which says so: scores are what it shows."""
    points = np.concatenate([values[np.isfinite(values)] for values in series])
    if not points.size or not np.isfinite(ends).any():
        return ""
    room = 1.5 * float(np.ptp(points)) or 1.0
    low, high = points.min() - room, points.max() + room
    if np.nanmin(ends) >= low and np.nanmax(ends) <= high:
        return ""
    left, right = ax.get_xlim()
    ax.set_xlim(max(left, low), min(right, high))
    return " (some intervals are longer than the picture is wide)"
