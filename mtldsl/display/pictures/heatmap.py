"""A picture of what was learned: a correlation matrix as a labelled heatmap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.display.pictures.axes import (
    COLOURS,
    axes_for,
    bar_beside,
    new_axes,
    plain,
    pyplot,
    short,
    trim,
    write_names,
    write_numbers,
)
from mtldsl.display.pictures.axes import SETTINGS as AXES
from mtldsl.errors import DataError
from mtldsl.utils.arrays import CORRELATION_ROUNDING
from mtldsl.utils.validation import as_whole, quoted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------------------
# The order of rows and columns in which a correlation matrix shows its groups.


@dataclass(frozen=True)
class HeatmapSettings:
    """Limit of the order of leaves: the best is sought of at most `ordered_rows`: n^3 steps, 0.7 s for 1000."""

    ordered_rows: int = 1000


SETTINGS = HeatmapSettings()


def clustered_order(correlation) -> np.ndarray:
    """The order of rows and columns, a permutation (n,), that puts what goes together side by side.

    Average linkage on the distance 1 - r; then, of the 2^(n - 1) orders that the tree allows, the one with the smallest sum of
    distances between neighbours. The distance is 1 - r and not 1 - |r|, because sign is what the colours show: groups become
    red squares on the diagonal and two groups that oppose each other a blue rectangle off it, where 1 - |r| would mix the two
    into a chequerboard. 2 (1 - r) is also a squared Euclidean distance, between unit vectors whose cosines are r; no such vectors
    belong to 1 - |r|.

    correlation : (n, n), symmetric with diagonal 1. For n > 1000, where the best order takes long, the tree's own is taken.

    Raises DataError where it is not a correlation matrix.

    Source: Bar-Joseph, Gifford and Jaakkola, "Fast optimal leaf ordering for hierarchical clustering", Bioinformatics 17 (2001).

    >>> clustered_order([[1, -0.1, 0.8, 0.2], [-0.1, 1, 0, 0.7], [0.8, 0, 1, 0.3], [0.2, 0.7, 0.3, 1]]).tolist()
    [0, 2, 3, 1]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    R = checked_correlation(correlation)
    n = len(R)
    if n < 3:
        return np.arange(n)
    distances = np.maximum(1.0 - R, 0.0)
    np.fill_diagonal(distances, 0.0)
    tree = linkage(squareform(distances, checks=False), method="average")
    order = best_leaves(tree, distances) if n <= SETTINGS.ordered_rows else leaves_list(tree).astype(int)
    return (
        order if order[0] < order[-1] else order[::-1]
    )  # an order and its reverse are equally good: one of them


def best_leaves(tree, distances) -> np.ndarray:
    """An order, among all that a linkage (n - 1, 4) allows, with the smallest sum of distances (n, n) between neighbours.

    `ends[v - n][i, j]` is the smallest sum within v where leaf i of its first child is at one end and leaf j of its second child at
    the other; those of v follow from those of its children. (scipy's `optimal_leaf_ordering` misses the minimum for every
    third random matrix of 7 rows: its issue 11227. So it is computed here.)
    """
    n = len(distances)
    leaves, ends, children = [np.array([i]) for i in range(n)], [], tree[:, :2].astype(int).tolist()

    def sums(v) -> np.ndarray:
        """The smallest sums within v from any leaf at one end to any at the other; infinite where both are of one child."""
        if v < n:
            return np.zeros((1, 1))
        a, b = (np.full((size, size), np.inf) for size in ends[v - n].shape)
        return np.block([[a, ends[v - n]], [ends[v - n].T, b]])

    for first, second in children:
        between = distances[np.ix_(leaves[first], leaves[second])]
        ends.append(_shortest(_shortest(sums(first), between), sums(second)))
        leaves.append(np.concatenate([leaves[first], leaves[second]]))
    whole = sums(2 * n - 2)
    order, open_parts = [], [(2 * n - 2, *np.unravel_index(whole.argmin(), whole.shape))]
    while open_parts:  # a stack, and no recursion: a tree may be as deep as it has leaves
        v, start, stop = open_parts.pop()
        if v < n:
            order.append(v)
            continue
        (first, second), size = children[v - n], len(ends[v - n])
        if start >= size:
            first, second, start, stop = second, first, start - size, stop + size
        between = distances[np.ix_(leaves[first], leaves[second])]
        through = sums(first)[start][:, None] + between + sums(second)[:, stop - size]
        i, j = np.unravel_index(through.argmin(), through.shape)
        open_parts += [(second, j, stop - size), (first, start, i)]
    return np.array(order)


def _shortest(A, B) -> np.ndarray:
    """(p, r) with the minimum over k of A[i, k] + B[k, j], for A (p, q) and B (q, r)."""
    return np.stack([(row[:, None] + B).min(axis=0) for row in A])


def checked_correlation(matrix) -> np.ndarray:
    """As a float64 array, symmetric to the last bit; DataError where it is not a correlation matrix."""
    try:
        R = np.asarray(matrix, dtype=float)
    except (TypeError, ValueError):
        raise DataError(
            "a correlation matrix is an (n, n) array of numbers", term=type(matrix).__name__
        ) from None
    if R.ndim != 2 or R.shape[0] != R.shape[1] or not R.size:
        raise DataError(f"a correlation matrix is square; this one has the shape {R.shape}")
    if not np.isfinite(R).all():
        i, j = np.argwhere(~np.isfinite(R))[0]
        raise DataError(f"the correlation in row {i}, column {j} is {R[i, j]}; all must be finite")
    of_covariance = "of a covariance C write C / np.sqrt(np.outer(v, v)) with v = np.diag(C)"
    if (off := np.abs(np.diag(R) - 1)).max() > CORRELATION_ROUNDING:
        i = int(off.argmax())
        raise DataError(
            f"the diagonal of a correlation matrix is 1, but here row {i} has {R[i, i]:.6g}; {of_covariance}"
        )
    if (apart := np.abs(R - R.T)).max() > CORRELATION_ROUNDING:
        i, j = np.unravel_index(apart.argmax(), R.shape)
        raise DataError(
            f"a correlation matrix is symmetric, but row {i}, column {j} has {R[i, j]:.6g} and row {j}, column {i} {R[j, i]:.6g}"
        )
    if np.abs(R).max() > 1 + CORRELATION_ROUNDING:
        i, j = np.unravel_index(np.abs(R).argmax(), R.shape)
        raise DataError(
            f"correlations are between -1 and 1, but row {i}, column {j} has {R[i, j]:.6g}; {of_covariance}"
        )
    return np.clip(0.5 * (R + R.T), -1.0, 1.0)


#: Ends of the colour scale that are chosen for small correlations.
_COLOUR_LIMITS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0])
_GREY = "#d3d7dc"


def heatmap(
    matrix,
    names: Sequence[str] | None = None,
    *,
    title: str | None = None,
    order: str | Sequence[int] | None = "clustered",
    ax: Axes | None = None,
    limit: float | None = None,
) -> Axes:
    """A correlation matrix as coloured cells: red where two go together, blue where they oppose each other, white for 0.

    Parameters
    ----------
    matrix : (n, n) correlation matrix, or anything with `.correlation` and `.task_names` or `.names`
        Such as `solution.Sigma2`, or `solution.kernel_weights`: how alike tasks are. For a covariance C, pass C / np.sqrt(np.outer(v, v)), v = np.diag(C).
    names : n strings, optional
        The names of rows and columns; default: those of `matrix`, else 1, 2, ..., n.
    title : str, optional
    order : "clustered" (default), None, or a permutation of 0, ..., n - 1
        "clustered": as `clustered_order` says; None: as given. For two pictures in one order, pass `clustered_order` of one.
    ax : matplotlib Axes, optional
        Where to draw, best in a figure with layout="constrained"; default: in a new figure whose size follows n and the names.
    limit : number in (0, 1], optional
        The correlation with the full colour. Default: the smallest of 0.05, 0.1, 0.2, 0.3, 0.5, 0.75 and 1 that no entry
        outside the diagonal exceeds, so that weak correlations can be seen: look at the colour bar before comparing.

    Returns
    -------
    matplotlib Axes
        Up to 12 names, each cell shows its number; of more than 40, every second, third, ... name is written, which the
        picture says. The diagonal is grey: it is 1 for every matrix.

    Raises
    ------
    DataError
        Where `matrix` is not a correlation matrix (not square, not symmetric, not finite, another diagonal than 1), or names,
        order or limit do not fit.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> ax = heatmap([[1, 0.1, 0.8], [0.1, 1, -0.4], [0.8, -0.4, 1]], ["maths", "sport", "physics"], order=None)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['maths', 'sport', 'physics']
    """
    if hasattr(matrix, "correlation"):
        if names is None:  # of kernel weights, `names` are those of the similarities
            names = getattr(matrix, "task_names", getattr(matrix, "names", None))
        matrix = matrix.correlation
    R = checked_correlation(matrix)
    n = len(R)
    names = [str(i + 1) for i in range(n)] if names is None else [str(name) for name in names]
    if len(names) != n:
        raise DataError(
            f"names: there are {len(names)}, but the matrix is {n} x {n}",
            write_instead="give one for each row, or none",
        )
    at = _permutation(order, R)
    limit = _limit(limit, R)
    R, names = R[np.ix_(at, at)], [names[i] for i in at]
    return draw_cells(R, names, "RdBu_r", (-limit, limit), ("correlation", _extend(R, limit)), ax, title)


def draw_cells(
    values: np.ndarray, names: list[str], colours: str, ends: tuple[float, float], bar: tuple, ax: Axes | None, title: str | None,
    *, numbers: np.ndarray | None = None, form: str = "{:.2f}", what: str = "names", fontsize: float | None = None,
) -> Axes:  # fmt: skip
    """A square matrix as coloured cells, grey on the diagonal, with their numbers where there is room.

    ends : the values with the first and the last colour;  bar : (what the colour bar says, its ends that stand for more)
    numbers : what is written, where it is not the values outside the diagonal
    """
    plt, n, own, side = pyplot(), len(values), ax is None, 0.0
    if ax is None:
        side = float(np.clip(0.3 * n + 1.4, 2.4, 9.0))
        ax = new_axes(side, side)
    shown = np.where(np.eye(n, dtype=bool), np.nan, values)
    scale = plt.get_cmap(colours).with_extremes(bad=_GREY)
    image = ax.imshow(shown, cmap=scale, vmin=ends[0], vmax=ends[1], interpolation="nearest")
    bar_beside(image, ax, own, *bar, fontsize=fontsize)
    write_names(ax, names, what)
    if n <= AXES.annotated_columns:
        write_numbers(ax, shown if numbers is None else numbers, image.to_rgba(shown), form)
        ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.2)
        ax.tick_params(which="minor", length=0)
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    if own:
        trim(ax, side, side)
    return ax


# ---------------------------------------------------------------------------------------------- what was handed over


def _permutation(order, R) -> np.ndarray:
    n = len(R)
    if order is None:
        return np.arange(n)
    if isinstance(order, str):
        if order == "clustered":
            return clustered_order(R)
        raise DataError(
            f'order={order!r}: write order="clustered", order=None, or a permutation of 0 to {n - 1}'
        )
    at = np.asarray(order)
    if at.shape != (n,) or at.dtype.kind not in "iu" or not np.array_equal(np.sort(at), np.arange(n)):
        raise DataError(f"order={order!r} is not a permutation of 0 to {n - 1}")
    return at


def _limit(limit, R) -> float:
    if limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, int | float | np.number) or not 0 < limit <= 1:
            raise DataError(f"limit={limit!r}: write a number above 0 and up to 1, or leave it out")
        return float(limit)
    largest = np.abs(R[~np.eye(len(R), dtype=bool)]).max(initial=0.0)
    return float(_COLOUR_LIMITS[min(np.searchsorted(_COLOUR_LIMITS, largest), len(_COLOUR_LIMITS) - 1)])


# -------------------------------------------------------------------------------------------------------- how it is drawn


def _extend(R, limit: float) -> str:
    """Which ends of the colour bar stand for more than they say."""
    off = R[~np.eye(len(R), dtype=bool)]
    below, beyond = (off < -limit).any(), (off > limit).any()
    return "both" if below and beyond else "min" if below else "max" if beyond else "neither"


# --------------------------------------------------------------------------------------------------------------
# A picture of weights: a map of all tasks in an order that shows groups, or bars of one task.


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
    kind = "without weights" if len(kept) == np.count_nonzero(norms) else "with smaller weights"
    ax = _map(W[kept], [features[j] for j in kept], tasks, order, ax)
    left_out = len(W) - len(kept)
    if left_out:
        more, are = ("feature", "is") if left_out == 1 else ("features", "are")
        ax.set_xlabel(f"{left_out:,} more {more}, {kind}, {are} not drawn", fontsize=9)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=12)
    return ax


def _map(W, features, tasks, order, ax) -> Axes:
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
    if m <= AXES.annotated_columns:
        decimals = max(0, 1 - int(np.floor(np.log10(largest))))
        write_numbers(ax, W, image.to_rgba(W), f"{{:.{decimals}f}}")
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
