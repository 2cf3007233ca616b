"""A picture of a tree of tasks with the weight that was learned for every node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.display.math import matrix_latex
from mtldsl.display.pictures.axes import (
    FAINT_COLOUR,
    TEXT_COLOUR,
    bar_below,
    inches_of,
    new_axes,
    ordinal,
    short,
    trim,
)
from mtldsl.display.pictures.axes import SETTINGS as AXES
from mtldsl.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --------------------------------------------------------------------------------------------------------------
# The tree that groups of tasks form, where of any two groups one holds the other or they have no task in common.


@dataclass
class TreeNode:
    """One group of tasks; `kernel` is the position of its weight, None for a task that has none of its own."""

    name: str
    tasks: np.ndarray  # positions, ascending
    kernel: int | None
    parent: TreeNode | None = None
    children: list[TreeNode] = field(default_factory=list)
    depth: int = 0  # how many nodes are above it

    @property
    def is_task(self) -> bool:
        return len(self.tasks) == 1 and not self.children


def nodes_of(weights: Any, view: str | None = None) -> list[TreeNode]:
    """The nodes, every parent before its children; tasks without a weight of their own are leaves below their smallest group.

    view : the view that the groups are about; needed where the weights are about several

    DataError where a similarity is not a group of tasks (an indicator, as of `tree`, `clusters`, `union` or `individual`), and where
    two groups share some tasks only.
    """
    chosen = _of_view(weights, view)
    members = {m: _group(weights, m) for m in chosen}
    order = sorted(
        chosen, key=lambda m: -len(members[m])
    )  # stable: of equal groups the one named first is above
    smallest: list[TreeNode | None] = [None] * len(
        weights.task_names
    )  # of every task, its smallest group so far
    nodes = []
    for m in order:
        holding = {id(smallest[t]): smallest[t] for t in members[m]}
        if len(holding) > 1:
            other = max((node for node in holding.values() if node is not None), key=lambda node: node.depth)
            raise DataError(
                f"{weights.names[m]!r} and {other.name!r} have some tasks in common, and neither holds the other: these groups form "
                "no tree"
            )
        node = TreeNode(weights.names[m], members[m], m)
        _attach(node, next(iter(holding.values())), nodes)
        for t in members[m]:
            smallest[t] = node
    for t, name in enumerate(weights.task_names):
        above = smallest[t]
        if above is None or not above.is_task:
            _attach(TreeNode(name, np.array([t]), None), above, nodes)
    for node in nodes:
        node.children.sort(key=lambda child: (int(child.tasks[0]), -len(child.tasks)))
    return nodes


def _attach(node: TreeNode, parent: TreeNode | None, nodes: list[TreeNode]) -> None:
    node.parent = parent
    if parent is not None:
        parent.children.append(node)
        node.depth = parent.depth + 1
    nodes.append(node)


def _of_view(weights: Any, view: str | None) -> list[int]:
    known = list(dict.fromkeys(weights.views))
    if view is None and len(known) > 1:
        raise DataError(
            "these weights are about several views",
            write_instead=f"write view=..., one of {', '.join(map(repr, known))}",
        )
    view = known[0] if view is None else view
    if view not in known:
        raise DataError(
            f"view={view!r}: there is no such view",
            write_instead=f"write one of {', '.join(map(repr, known))}",
        )
    return [m for m, own in enumerate(weights.views) if own == view]


def _group(weights: Any, m: int) -> np.ndarray:
    """The tasks whose indicator the m-th similarity is."""
    factor = weights.factors[m]
    column = factor.toarray()[:, 0] if factor.shape[1] == 1 else np.zeros(0)
    tasks = np.flatnonzero(column)
    if not tasks.size or np.ptp(column[tasks]):
        raise DataError(
            f"the similarity {weights.names[m]!r} is not a group of tasks, and so not a node of a tree; a picture of the similarity of tasks "
            "is heatmap(solution.kernel_weights)"
        )
    return tasks


@dataclass(frozen=True)
class TreeSettings:
    """Sizes of pictures of trees."""

    # weight over the largest below which it is drawn as zero: with p = 1 the best ones only tend to it
    zero_weight_share: float = 1e-6
    row_inches: float = 0.25  # row of a task
    max_height_inches: float = 15.0  # all rows
    legible_inches: float = 0.125  # least row whose name is written
    min_level_inches: float = 0.75  # least width of a level
    max_level_inches: float = 2.6  # greatest
    max_width_inches: float = 14.0  # all levels
    # part of the way to a child at which its line leaves the parent's level; its name stands on the rest
    elbow_share: float = 0.15


SETTINGS = TreeSettings()

#: Colour of the lines to children.
LINE_COLOUR = "#b4bac3"


def tree_plot(
    weights: Any, *, view: str | None = None, title: str | None = None, ax: Axes | None = None
) -> Axes:
    """The tree of tasks, the root at the left: the area and the colour of a node are its weight theta.

    Parameters
    ----------
    weights : LearnedWeights
        `solution.kernel_weights`, of similarities that are groups of tasks: those of `tree`, `clusters`, `union`, `individual`, also
        several of them. The tree is read from the groups: below a node are the largest groups within its own.
    view : str, optional
        The view whose groups are drawn, where the similarities are about several.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw; default: in a new figure whose size follows the number of tasks and the length of the names.

    Returns
    -------
    matplotlib Axes
        Every node is labelled with its name and weight, a hollow one has the weight zero, and a grey dot is a task without a weight
        of its own. Where the rows are too close for names, every second, third, ... is written, which the picture says.

    Raises
    ------
    DataError
        Where `weights` are none, a similarity is not a group of tasks, or two groups share some tasks only, so that they form no tree.
    MissingExtraError
        Where matplotlib is not installed.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mtldsl.solution.learned import LearnedWeights
    >>> groups = [[1, 1, 1], [1, 1, 0], [0, 0, 1]]
    >>> factors = tuple(sparse.csr_array(np.array([group], float).T) for group in groups)
    >>> theta = LearnedWeights("theta", np.array([0.5, 0.2, 0.1]), ("all", "north", "c"), ("a", "b", "c"), factors, ("",) * 3)
    >>> ax = tree_plot(theta)
    >>> [text.get_text() for text in ax.texts]
    ['all  0.50', 'north  0.20', 'a', 'b', 'c  0.10']
    """
    if not hasattr(weights, "factors"):
        raise DataError(
            term=f"tree_plot({type(weights).__name__})",
            write_instead="write tree_plot(solution.kernel_weights)",
        )
    nodes = nodes_of(weights, view)
    theta = np.array([0.0 if node.kernel is None else weights.values[node.kernel] for node in nodes])
    theta[theta <= SETTINGS.zero_weight_share * theta.max(initial=0.0)] = 0.0
    x, y = _places(nodes)
    n, levels = round(float(y.max())) + 1, float(x.max())
    labels = [
        short(node.name, 24) + ("" if node.kernel is None else f"  {_number(value)}")
        for node, value in zip(nodes, theta, strict=True)
    ]
    own = ax is None
    if ax is None:
        row = min(SETTINGS.row_inches, SETTINGS.max_height_inches / n)
        size = float(np.interp(n, [40, 120], [8.5, 6.5]))
        between = [text for text, at in zip(labels, x, strict=True) if 0 < at < levels]
        width, height = max(levels * _level(between, levels, size), 0.2), max(n * row, 0.6)
        ax = new_axes(width, height)
    else:
        width, height, size = *inches_of(ax).size, 7.5
        row = height / n
    ax.set_xlim(0.0, max(levels, 1.0))
    ax.set_ylim(n - 0.5, -0.5)  # the first task on top
    ax.set_axis_off()

    _draw_lines(ax, nodes, x, y, min(1.0, 30 * row))
    shades = _draw_nodes(ax, nodes, theta, x, y, min(max(0.8 * 72 * row, 6.0), 15.0))
    left_out = _write(ax, nodes, labels, theta, x, y, row, width / max(levels, 1.0), size)
    _explain(ax, shades, weights.name, left_out, (width, height) if own else None)
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    if own:
        trim(ax, width, height)
    return ax


# ----------------------------------------------------------------------------------------------------------- the places


def _places(nodes: list[TreeNode]) -> tuple[np.ndarray, np.ndarray]:
    """(level, row) of every node: tasks in rows of their own at the last level, groups half-way between their children."""
    last = max(node.depth for node in nodes)
    at = {id(node): k for k, node in enumerate(nodes)}
    x = np.array([last if node.is_task else node.depth for node in nodes], float)
    y, row = np.zeros(len(nodes)), 0
    open_nodes = [node for node in reversed(nodes) if node.parent is None]
    open_nodes.sort(key=lambda node: -int(node.tasks[0]))
    while open_nodes:
        node = open_nodes.pop()
        if not node.children:
            y[at[id(node)]], row = row, row + 1
        open_nodes += reversed(node.children)
    for node in reversed(nodes):  # children before their parents
        if node.children:
            y[at[id(node)]] = 0.5 * sum(y[at[id(node.children[end])]] for end in (0, -1))
    return x, y


def _level(labels: list[str], levels: float, size: float) -> float:
    """Inches from one level to the next: room for the names on the way, where the picture does not become too wide."""
    longest = max(map(len, labels), default=0)
    wanted = (longest * AXES.letter_inches * size + 0.2) / (1 - SETTINGS.elbow_share)
    wanted = float(np.clip(wanted, SETTINGS.min_level_inches, SETTINGS.max_level_inches))
    return min(wanted, SETTINGS.max_width_inches / max(levels, 1.0))


# ------------------------------------------------------------------------------------------------------ how it is drawn


def _draw_lines(ax: Axes, nodes: list[TreeNode], x, y, thick: float) -> None:
    from matplotlib.collections import LineCollection

    at = {id(node): k for k, node in enumerate(nodes)}
    lines = []
    for k, node in enumerate(nodes):
        if node.parent is not None:
            above = at[id(node.parent)]
            elbow = x[above] + SETTINGS.elbow_share
            lines.append([(x[above], y[above]), (elbow, y[above]), (elbow, y[k]), (x[k], y[k])])
    ax.add_collection(
        LineCollection(lines, colors=LINE_COLOUR, linewidths=thick, zorder=1, clip_on=False), autolim=False
    )


def _draw_nodes(ax: Axes, nodes: list[TreeNode], theta, x, y, diameter: float):
    """Discs whose area and colour are the weight; what gives numbers their colours, None where no weight is above zero."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    bare = np.array([node.kernel is None for node in nodes])
    zero, held = ~bare & (theta == 0.0), theta > 0.0
    over = {"zorder": 3, "clip_on": False}
    ax.scatter(x[bare], y[bare], s=min(6.0, diameter / 2), color=FAINT_COLOUR, linewidths=0, **over)
    hollow = {"facecolor": "white", "edgecolor": FAINT_COLOUR, "linewidths": 0.9 if diameter > 8.0 else 0.4}
    ax.scatter(x[zero], y[zero], s=12.0 if diameter > 8.0 else 3.0, **hollow, **over)
    if not held.any():
        return None
    ramp = LinearSegmentedColormap.from_list("weights", ["#cfe1f2", "#6aaed6", "#2171b5", "#08306b"])
    shades = ScalarMappable(Normalize(0.0, float(theta.max())), ramp)
    sizes = np.maximum(diameter**2 * theta[held] / theta.max(), 8.0 if diameter > 8.0 else 3.0)
    ax.scatter(
        x[held], y[held], s=sizes, c=shades.to_rgba(theta[held]), edgecolor="#1d3f63", linewidths=0.6, **over
    )
    return shades


def _number(value: float) -> str:
    """Two digits, also where the last is a zero.

    >>> [_number(value) for value in (0.0604, 0.5, 3, 12, 1.2e-7, 0)]
    ['0.060', '0.50', '3.0', '12', '1.2e-07', '0']
    """
    return f"{value:#.2g}".rstrip(".") if value else "0"


def _write(ax: Axes, nodes, labels, theta, x, y, row: float, level: float, size: float) -> str:
    """Names and weights, tasks at the right, groups on the line to them; and in words, what had no room."""
    space = level * (1 - SETTINGS.elbow_share) - 0.15
    step = max(1, int(np.ceil(SETTINGS.legible_inches / row - 1e-9)))
    written: dict[float, float] = {}  # level -> the row last written in
    missing = 0
    for k in np.lexsort((y, x)):
        colour = FAINT_COLOUR if theta[k] == 0.0 else TEXT_COLOUR
        style: dict[str, Any] = {
            "fontsize": size,
            "color": colour,
            "textcoords": "offset points",
            "zorder": 4,
        }
        style["annotation_clip"] = False
        if not nodes[k].children:
            if round(y[k]) % step == 0:
                ax.annotate(labels[k], (x[k], y[k]), (11, 0), ha="left", va="center", **style)
            continue
        text = labels[k]
        if x[k] > 0 and len(text) * AXES.letter_inches * size > space:
            text = text.rsplit("  ", 1)[-1] if nodes[k].kernel is not None else ""
        fits = x[k] == 0 or len(text) * AXES.letter_inches * size <= space
        if not fits or (y[k] - written.get(x[k], -np.inf)) * row < SETTINGS.legible_inches:
            missing += 1
            continue
        written[x[k]] = y[k]
        offset = (-10, 0) if x[k] == 0 else (-9, 1.5)
        ax.annotate(text, (x[k], y[k]), offset, ha="right", va="center" if x[k] == 0 else "bottom", **style)
    words = [f"{int(y.max()) + 1:,} tasks, every {ordinal(step)} named"] if step > 1 else []
    return ", ".join([*words, *([f"{missing:,} groups without their names"] if missing else [])])


def _explain(ax: Axes, shades, name: str, left_out: str, size: tuple[float, float] | None) -> None:
    """The colour scale below the tree, and what was not written."""
    if shades is None:
        return
    place = None
    if size is not None:
        width, height = size
        place = (0.0, -0.42 / height, min(2.0, max(width, 1.2)) / max(width, 1e-9), 0.1 / height)
    bar = bar_below(shades, ax, place, shrink=0.4, pad=0.02)
    bar.ax.locator_params(nbins=5)
    label = f"weight ${matrix_latex(name)}$" + (f"; {left_out}" if left_out else "")
    bar.set_label(label, fontsize=8, loc="left")
