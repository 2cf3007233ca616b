"""A picture of weights: a map of all tasks in an order that shows groups, or bars of one task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError
from mtldsl.pictures.axes import COLOURS, axes_for, plain
from mtldsl.pictures.clustered_order import clustered_order
from mtldsl.pictures.figure import ANNOTATED, short, write_numbers
from mtldsl.values.number import as_whole, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_weights"]


def plot_weights(
    W,
    features: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    *,
    task: str | int | None = None,
    top: int = 30,
    order: str | None = "clustered",
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The weights (d, m) as a map, features down and tasks along; or the bars of one task.

    Parameters
    ----------
    W : (d, m)
    features, tasks : d and m names; default: positions
    task : the name or the position of one task, whose weights are drawn as bars
    top : how many features are drawn, those with the largest norms (of one task, the largest weights); the picture says how many are left out
    order : "clustered" (default): features, and tasks, whose weights are alike stand side by side; None: in the order given
        Bars always stand in the order of their size.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw; default: in a new figure.

    Returns
    -------
    matplotlib Axes
        Red is above zero, blue below, white is zero; both ends of the scale are the largest absolute weight. Up to 12 tasks, each cell shows its number.

    Raises
    ------
    DataError
        Where W is not a matrix of finite numbers, or names, task, top or order do not fit.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> ax = plot_weights([[1.0, 2.0], [0.0, 0.0], [-3.0, 1.0]], ["a", "b", "c"], task=0)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['c', 'a']
    """
    W = np.asarray(W, dtype=float)
    if W.ndim != 2 or not W.size or not np.isfinite(W).all():
        raise DataError(f"W of shape {W.shape}: weights must be a matrix (features, tasks) of finite numbers")
    features, tasks = _named(features, len(W), "features"), _named(tasks, W.shape[1], "tasks")
    number = as_whole(top)
    if number is None or number < 1:
        raise DataError(f"top={quoted(top)}: write a whole number of at least 1")
    if order not in ("clustered", None):
        raise DataError(f'order={quoted(order)}: write order="clustered" or order=None')
    if task is not None:
        return _bars(W[:, _position(task, tasks)], features, number, title, ax)
    norms = np.sqrt(np.einsum("jt,jt->j", W, W))
    kept = np.sort(np.argsort(-norms, kind="stable")[: min(number, max(np.count_nonzero(norms), 1))])
    return _map(
        W[kept],
        [features[j] for j in kept],
        tasks,
        len(W) - len(kept),
        len(kept) == np.count_nonzero(norms),
        order,
        title,
        ax,
    )


def _map(W, features, tasks, left_out: int, without: bool, order, title, ax) -> Axes:
    if order is not None:
        rows, columns = clustered_order(_alike(W)), clustered_order(_alike(W.T))
        W, features, tasks = (
            W[np.ix_(rows, columns)],
            [features[j] for j in rows],
            [tasks[i] for i in columns],
        )
    d, m = W.shape
    longest = max(len(short(name)) for name in tasks)
    wide = float(np.clip(0.35 * m + 2.6, 4.0, 10.0))
    beside = 1.2 + 0.09 * max(len(short(name)) for name in features)  # inches that a new figure has no map in
    inches = wide - beside if ax is None else ax.get_window_extent().width / ax.figure.dpi
    turned = (longest + 1) * m > min(40.0, 10.0 * inches)  # letters that fit side by side
    below = 0.09 * longest if turned else 0.2  # inches that names take from the map
    ax = axes_for(ax, wide, float(np.clip(0.24 * d + 1.2 + below, 2.6, 10.0)))
    largest = float(np.abs(W).max()) or 1.0
    image = ax.imshow(W, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="weight").outline.set_visible(False)
    _ticks(ax.set_xticks, tasks, 30, 90 if turned else 0)
    _ticks(ax.set_yticks, features, 60, 0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if m <= ANNOTATED:
        decimals = max(0, 1 - int(np.floor(np.log10(largest))))
        write_numbers(ax, W, image.to_rgba(W), f"{{:.{decimals}f}}")
    if left_out:
        more = "feature" if left_out == 1 else "features"
        kind = "without weights" if without else "with smaller weights"
        ax.set_xlabel(
            f"{left_out:,} more {more}, {kind}, {'is' if left_out == 1 else 'are'} not drawn", fontsize=9
        )
    if title is not None:
        ax.set_title(title, loc="left", fontsize=12)
    return ax


def _bars(w, features, top: int, title, ax) -> Axes:
    order = np.argsort(-np.abs(w), kind="stable")
    drawn = order[: min(top, max(np.count_nonzero(w), 1))]
    ax = axes_for(ax, 6.4, float(np.clip(0.26 * len(drawn) + 1.2, 2.0, 9.0)))
    at = np.arange(len(drawn))
    ax.barh(at, w[drawn], color=[COLOURS[1] if value > 0 else COLOURS[0] for value in w[drawn]])
    ax.set_yticks(at, [short(features[j]) for j in drawn])
    ax.invert_yaxis()
    ax.axvline(0.0, color="black", linewidth=0.8)
    left = int(np.count_nonzero(w)) - len(drawn)
    ax.set_xlabel("weight" + (f" ({left:,} smaller ones are not drawn)" if left > 0 else ""))
    return plain(ax, title)


def _alike(rows: np.ndarray) -> np.ndarray:
    """(n, n) the cosines between rows, 0 beside a row of zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    scaled = rows / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    cosines = np.clip(scaled @ scaled.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return 0.5 * (cosines + cosines.T)


def _named(names, n: int, what: str) -> list[str]:
    names = [str(i) for i in range(n)] if names is None or not len(names) else [str(name) for name in names]
    if len(names) != n:
        raise DataError(f"{what}: there are {len(names)} names for {n}")
    return names


def _position(task, names: list[str]) -> int:
    if isinstance(task, str) and task in names:
        return names.index(task)
    number = as_whole(task)
    if number is None or not -len(names) <= number < len(names):
        listed = ", ".join(map(repr, names[:8]))
        raise DataError(
            f"task={quoted(task)}: there is no such task",
            write_instead=f"write one of {listed}, or a position",
        )
    return number


def _ticks(set_ticks, names: list[str], most: int, rotation: int) -> None:
    """Names along an axis; where there are many, every second, third, ..."""
    at = np.arange(0, len(names), -(-len(names) // most))
    size = float(np.interp(len(names), [15, most], [10, 8]))
    set_ticks(at, [short(names[i]) for i in at], fontsize=size, rotation=rotation)
