"""A picture of which labels stand together in the data, whatever the inputs: to be seen beside the graph that was learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtldsl.datasets.label_dependence import co_occurrence
from mtldsl.pictures.clustered_order import clustered_order
from mtldsl.pictures.figure import bar_beside, trim, write_names
from mtldsl.pictures.graph_places import positions_in
from mtldsl.system.pyplot import pyplot
from mtldsl.tasks import Tasks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["co_occurrence_plot"]

#: Up to so many labels, each cell shows its number.
_ANNOTATED = 12
_GREY = "#d9dce1"


def co_occurrence_plot(tasks: Tasks, *, order=None, title: str | None = None, ax: Axes | None = None) -> Axes:
    """The share of the samples with a row's label that also have the column's label; on the diagonal the share of all with it.

    Parameters
    ----------
    tasks : Tasks with a shared X and labels -1 and +1 in every row
    order : names or positions of all labels, optional
        Such as `label_order(solution)`, that of `graph_plot`; default: labels that go together side by side.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw, best in a figure with layout="constrained"; default: in a new figure.

    Returns
    -------
    matplotlib Axes
        Up to 12 labels, each cell shows its number in hundredths.

    Raises
    ------
    DataError
        For tasks with separate inputs or missing labels, and where order does not fit.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> Y = [[1, 1, -1], [1, 1, -1], [1, -1, -1], [-1, -1, 1]]
    >>> ax = co_occurrence_plot(Tasks.shared([[1.0]] * 4, Y, task_names=["sea", "beach", "city"]), order=[0, 1, 2])
    >>> [text.get_text() for text in ax.texts]
    ['75', '67', '0', '100', '50', '0', '0', '0', '25']
    """
    together = co_occurrence(tasks)
    shares, names = np.diag(together), list(tasks.task_names)
    at = clustered_order(_correlation(together, shares)) if order is None else positions_in(order, names)
    given = (together / shares[:, None])[np.ix_(at, at)]
    shares, names, n = shares[at], [names[k] for k in at], len(at)
    plt = pyplot()
    own = ax is None
    if own:
        side = float(np.clip(0.3 * n + 1.4, 2.4, 9.0))
        ax = plt.figure(figsize=(2 * side, 2 * side)).add_axes((0.25, 0.25, 0.5, 0.5))
    colours = plt.get_cmap("YlGnBu").with_extremes(bad=_GREY)
    image = ax.imshow(
        np.ma.array(given, mask=np.eye(n, dtype=bool)),
        cmap=colours,
        vmin=0.0,
        vmax=1.0,
        interpolation="nearest",
    )
    bar_beside(image, ax, own, "share of the row's samples that\nhave the column's label too", fontsize=8)
    write_names(ax, names, "labels")
    _write_numbers(ax, given, shares, image.to_rgba(given))
    ax.spines[:].set_visible(False)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    if own:
        trim(ax, side, side)
    return ax


def _correlation(together, shares) -> np.ndarray:
    """The correlation of the labels as numbers 0 and 1."""
    spread = np.sqrt(shares * (1.0 - shares))
    found = (together - np.outer(shares, shares)) / np.outer(spread, spread)
    found = np.clip((found + found.T) / 2.0, -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def _write_numbers(ax: Axes, given, shares, colours) -> None:
    n = len(given)
    if n > _ANNOTATED:
        return
    cell = min(ax.get_window_extent().width, ax.get_window_extent().height) / ax.figure.dpi / n
    dark = colours[..., :3] @ [0.299, 0.587, 0.114] < 0.58
    for i in range(n):
        for j in range(n):
            own = i == j
            ax.text(
                j, i, f"{100 * (shares[i] if own else given[i, j]):.0f}", ha="center", va="center",
                fontsize=min(9.0, 20.0 * cell), color="white" if dark[i, j] and not own else "#333333",
                fontstyle="italic" if own else "normal",
            )  # fmt: skip
    ax.set_xticks(np.arange(n - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(n - 1) + 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="minor", length=0)
