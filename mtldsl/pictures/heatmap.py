"""A picture of what was learned: a correlation matrix as a labelled heatmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError
from mtldsl.pictures.clustered_order import checked_correlation, clustered_order
from mtldsl.pictures.figure import ANNOTATED, bar_beside, trim, write_names, write_numbers
from mtldsl.system.pyplot import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["heatmap"]

#: Ends of the colour scale that are chosen for small correlations.
_LIMITS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0])
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
    plt = pyplot()

    R, names = R[np.ix_(at, at)], [names[i] for i in at]
    own = ax is None
    if own:
        side = float(np.clip(0.3 * n + 1.4, 2.4, 9.0))
        ax = plt.figure(figsize=(2 * side, 2 * side)).add_axes((0.25, 0.25, 0.5, 0.5))
    colours = plt.get_cmap("RdBu_r").with_extremes(bad=_GREY)
    image = ax.imshow(
        np.ma.array(R, mask=np.eye(n, dtype=bool)),
        cmap=colours,
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
    )
    bar_beside(image, ax, own, "correlation", _extend(R, limit))
    write_names(ax, names)
    if n <= ANNOTATED:
        write_numbers(ax, np.where(np.eye(n, dtype=bool), np.nan, R), image.to_rgba(R), "{:.2f}")
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
    return float(_LIMITS[min(np.searchsorted(_LIMITS, largest), len(_LIMITS) - 1)])


# -------------------------------------------------------------------------------------------------------- how it is drawn


def _extend(R, limit: float) -> str:
    """Which ends of the colour bar stand for more than they say."""
    off = R[~np.eye(len(R), dtype=bool)]
    below, beyond = (off < -limit).any(), (off > limit).any()
    return "both" if below and beyond else "min" if below else "max" if beyond else "neither"
