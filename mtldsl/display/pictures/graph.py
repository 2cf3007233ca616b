"""A picture of the graph over the labels: which edges there are, how strong, and whether labels attract or repel one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.display.pictures.axes import (
    FAINT_COLOUR,
    TEXT_COLOUR,
    bar_below,
    box_of,
    inches_of,
    new_axes,
    pyplot,
    short,
    trim,
)
from mtldsl.display.pictures.heatmap import clustered_order
from mtldsl.errors import DataError, ModelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------------------
# Where the labels of a graph stand in a picture.


def graph_of(solution, typed: str) -> Any:
    """The graph of a solution, or itself."""
    graph = getattr(solution, "label_graph", solution)
    if graph is None:
        raise ModelError(
            f"{typed}(solution): {solution.loss['word']} is not a loss over a graph of labels; clique_hinge(U, V, tasks) and "
            "pairwise_log_loss(U, V, tasks) are"
        )
    if not hasattr(graph, "cliques"):
        raise DataError(f"{typed}({type(solution).__name__}): write {typed}(solution)")
    return graph


def label_order(solution) -> np.ndarray:
    """A permutation of the labels (K,) that puts those with strong edges side by side: for several pictures in one order.

    >>> import mtldsl as mtl
    >>> X, Y = np.array([[1.0], [0.0], [2.0], [1.0]]), np.array([[1, 1.0], [-1, -1], [1, 1], [-1, -1]])
    >>> label_order(mtl.model("Structured SVM", mtl.Tasks.shared(X, Y), lam=0.1).solve(tol=1e-3)).tolist()
    [0, 1]
    """
    graph = graph_of(solution, "label_order")
    n = len(graph.names)
    alike, largest = np.eye(n), graph.weights.max(initial=0.0)
    for c in graph.used[::-1].tolist():  # the strongest clique of a pair last
        clique = list(graph.cliques.members[c])
        # below 1 also for the strongest: a diagonal of its own
        alike[np.ix_(clique, clique)] = 0.99 * graph.weights[c] / largest
    np.fill_diagonal(alike, 1.0)
    return clustered_order(alike)


def places_of(graph: Any, layout, order) -> np.ndarray:
    """(K, 2) in [-1, 1]."""
    names = list(graph.names)
    if isinstance(layout, Mapping):
        missing = [name for name in names if name not in layout]
        if missing:
            raise DataError(
                f"layout: {missing[0]!r} has no place", write_instead="give every label an (x, y)"
            )
        return _scaled(np.array([layout[name] for name in names], float))
    if layout == "spring":
        return _scaled(_springs(graph))
    if layout != "circle":
        raise DataError(f'layout={layout!r}: write "circle", "spring", or {{label: (x, y)}} for every label')
    around = label_order(graph) if order is None else positions_in(order, names)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    places = np.empty((len(names), 2))
    places[around] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return places


def positions_in(order, names: list[str]) -> np.ndarray:
    at = [names.index(one) if one in names else one for one in order]
    if sorted(map(str, at)) != sorted(map(str, range(len(names)))):
        raise DataError(f"order: write every one of {len(names)} labels once, by name or by position")
    return np.array([int(one) for one in at])


def _scaled(places: np.ndarray) -> np.ndarray:
    if places.ndim != 2 or places.shape[1] != 2 or not np.isfinite(places).all():
        raise DataError("layout: a place is two finite numbers (x, y)")
    low, high = places.min(axis=0), places.max(axis=0)
    half = max(float((high - low).max()) / 2, 1e-300)
    return (places - (low + high) / 2) / half


def _springs(graph: Any) -> np.ndarray:
    """(K, 2) whose distances are near those along the edges, which are the shorter the stronger they are."""
    import networkx

    found, lengths = networkx.empty_graph(len(graph.names)), strengths_of(graph, graph.used)
    largest = max(lengths.values(), default=1.0)
    for pair, strength in lengths.items():
        found.add_edge(*pair, length=1.0 / (0.2 + (strength / largest) ** 0.5))
    along = dict(networkx.all_pairs_dijkstra_path_length(found, weight="length"))
    apart = 0.8 * max((most for one in along.values() for most in one.values()), default=1.0) or 1.0
    distances = {i: {j: along[i].get(j, apart) for j in found} for i in found}
    at = networkx.kamada_kawai_layout(found, dist=distances)
    return np.array([at[k] for k in found])


def strengths_of(graph: Any, cliques) -> dict[tuple[int, int], float]:
    """Pair -> the root of the sum of the squared weights of the cliques that hold it."""
    squares: dict[tuple[int, int], float] = {}
    for c in (int(one) for one in cliques):
        if graph.weights[c] > 0.0:
            for pair in combinations(graph.cliques.members[c], 2):
                squares[pair] = squares.get(pair, 0.0) + float(graph.weights[c]) ** 2
    return {pair: square**0.5 for pair, square in squares.items()}


@dataclass(frozen=True)
class GraphSettings:
    """Sizes of pictures of graphs."""

    max_line_points: float = 7.0  # thickest line
    min_line_points: float = 0.5  # thinnest line
    min_side_inches: float = 3.2  # side of the picture of a few labels
    max_side_inches: float = 8.0  # side of the picture of many
    cell_inches: float = 1.7  # a graph of a strip
    margin_inches: float = 0.5  # room around it
    heading_inches: float = 0.5  # its heading
    legend_inches: float = 0.35  # what explains the strip
    named_edges: int = 3  # new edges that are named above a graph
    heading_characters: int = 30  # characters of a line there


SETTINGS = GraphSettings()

#: Colour of labels that repel each other in all rows.
REPEL_COLOUR = "#1f5fa8"
#: Colour of those that do either in half of them.
EITHER_COLOUR = "#7d5a91"
#: Colour of those that attract each other in all.
ATTRACT_COLOUR = "#b3202c"
#: Colour of a label.
NODE_COLOUR = "#3b424b"


def graph_plot(
    solution,
    *,
    layout: str | Mapping[str, tuple[float, float]] = "circle",
    order=None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The labels of a model over a graph of labels, joined by its edges: the stronger an edge, the thicker and the darker.

    Red: the two labels attract each other in all training rows (the edge scores higher where they agree), blue: they repel each other in
    all, purple: the one in some rows and the other in others, as the inputs say.

    Parameters
    ----------
    solution : Solution or LearnedGraph
        A solution of `clique_hinge` or `pairwise_log_loss`. Cliques of three and more labels are drawn as the edges among them.
    layout : "circle" (default), "spring", or {label: (x, y)}
        "circle": labels that go together are neighbours. "spring": networkx's Kamada-Kawai layout, strong edges short; the same
        every time.
    order : names or positions of all labels, optional
        Around the circle, from the top on, clockwise; default `label_order(solution)`.
    title : str, optional
    ax : matplotlib Axes, optional
        Where to draw; default: in a new figure whose size follows the number of labels and the length of their names.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModelError
        Where the solution is of a model without a graph of labels.
    DataError
        Where layout or order do not fit.
    MissingExtraError
        Where matplotlib, or for layout="spring" networkx, is not installed.

    Examples
    --------
    >>> import mtldsl as mtl
    >>> X, Y = np.array([[1.0], [0.0], [2.0], [1.0]]), np.array([[1, 1.0], [-1, -1], [1, 1], [-1, -1]])
    >>> tasks = mtl.Tasks.shared(X, Y, task_names=["sea", "beach"])
    >>> solution = mtl.model("Structured SVM", tasks, lam=0.1).solve(tol=1e-3)
    >>> ax = graph_plot(solution)
    >>> [text.get_text() for text in ax.texts]
    ['sea', 'beach']
    """
    graph = graph_of(solution, "graph_plot")
    places = places_of(graph, layout, order)
    own, n = ax is None, len(graph.names)
    side = float(
        np.clip(SETTINGS.min_side_inches + 0.12 * (n - 6), SETTINGS.min_side_inches, SETTINGS.max_side_inches)
    )
    ax = new_axes(side, side) if ax is None else ax
    draw_graph(ax, graph, places, outside=layout == "circle")
    _explain(ax, graph, side if own else None)
    if title is not None:
        box, cells = box_of(ax), ax.get_window_extent()
        above = (box.y1 - cells.y1) * 72 / ax.figure.dpi  # points of the names above the circle
        ax.set_title(title, loc="left", fontsize=11, pad=max(above, 0.0) + 6)
    if own:
        trim(ax, side, side)
    return ax


# ---------------------------------------------------------------------------------------------- how it is drawn


def colours_of_pulls():
    """The colours of the share of rows in which two labels attract each other."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    ramp = LinearSegmentedColormap.from_list("pulls", [REPEL_COLOUR, EITHER_COLOUR, ATTRACT_COLOUR])
    return ScalarMappable(Normalize(0.0, 1.0), ramp)


def draw_graph(
    ax: Axes, graph: Any, places: np.ndarray, *, outside: bool, only=None, fresh=(), size: float | None = None,
    thick: float = SETTINGS.max_line_points, named: bool = True,
) -> None:  # fmt: skip
    """Edges, labels and names into axes. only: the cliques that are drawn; fresh: those that are drawn in full, all others faint."""
    strengths = strengths_of(graph, graph.used if only is None else only)
    young = set(strengths_of(graph, fresh)) if len(fresh) else None
    pulls = {tuple(pair): share for pair, share in zip(graph.pairs.tolist(), graph.attraction, strict=True)}
    largest, shades = graph.weights.max(initial=0.0), colours_of_pulls()
    for pair in sorted(strengths, key=strengths.__getitem__):  # the strongest on top
        share = min(strengths[pair] / largest, 1.0)
        faint = young is not None and pair not in young
        ax.plot(
            *places[list(pair)].T, solid_capstyle="round", zorder=1 + share, clip_on=False,
            color=FAINT_COLOUR if faint else shades.to_rgba(pulls[pair]),
            alpha=0.4 if faint else (0.25 if young is None else 0.75) + (0.75 if young is None else 0.25) * share**0.5,
            linewidth=max(SETTINGS.min_line_points if young is None or faint else 2 * SETTINGS.min_line_points, thick * share),
        )  # fmt: skip
    joined = {k for pair in strengths for k in pair}
    bare = np.array([k not in joined for k in range(len(places))])
    dots = {"zorder": 3, "clip_on": False}
    spot = 34.0 if named else 12.0
    ax.scatter(*places[~bare].T, s=spot, color=NODE_COLOUR, linewidths=0, **dots)
    ax.scatter(*places[bare].T, s=spot, facecolor="white", edgecolor=FAINT_COLOUR, linewidths=0.9, **dots)
    if named:
        size = size or float(np.interp(len(places), [12, 40], [10, 7.5]))
        ways = places if outside else _outward_directions(places, strengths)
        _write(ax, graph.names, places, bare, ways, size, outside)
    ax.set_xlim(-1.05, 1.05)
    ax.set_ylim(-1.05, 1.05)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _outward_directions(places, strengths) -> np.ndarray:
    """(K, 2) unit vectors: from the middle of a label's neighbours to the label, where its name covers no edge; else upwards."""
    ways = np.tile([0.0, 1.0], (len(places), 1))
    pull, total = np.zeros_like(places), np.zeros(len(places))
    for (i, j), strength in strengths.items():
        for k, other in ((i, j), (j, i)):
            way = places[other] - places[k]
            pull[k] += strength * way / max(float(np.hypot(*way)), 1e-9)
            total[k] += strength
    length = np.hypot(*pull.T)
    clear = length > 0.2 * np.maximum(total, 1e-300)  # of a hub the neighbours are all around
    ways[clear] = -pull[clear] / length[clear, None]
    return ways


def _write(ax: Axes, names, places, bare, ways, size: float, outside: bool) -> None:
    """Names beside the dots, away from the edges: around a circle outside of it, many of them along the rays."""
    many = outside and len(places) > 16
    for name, place, (x, y), alone in zip(names, places, ways, bare, strict=True):
        colour = FAINT_COLOUR if alone else TEXT_COLOUR
        style: dict[str, Any] = {"fontsize": size, "color": colour, "zorder": 4, "annotation_clip": False}
        if not outside:
            box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7}
            style["bbox"] = {"boxstyle": "round,pad=0.1", **box}
        if many:  # names need no room beside one another
            angle = float(np.degrees(np.arctan2(y, x)))
            left = abs(angle) > 90.0
            style |= {"rotation": angle + 180.0 if left else angle, "rotation_mode": "anchor"}
            ha, va = ("right" if left else "left"), "center"
        else:
            ha = "center" if abs(x) < 0.15 else "left" if x > 0 else "right"
            va = "center" if abs(x) >= 0.15 else "bottom" if y > 0 else "top"
        ax.annotate(short(name), place, (9 * x, 9 * y), textcoords="offset points", ha=ha, va=va, **style)


def _explain(ax: Axes, graph: Any, side: float | None) -> None:
    """The colour scale below the graph, and how many edges there are."""
    if not len(graph.used):
        ax.text(
            0.5,
            0.5,
            "no edge",
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=9,
            color=FAINT_COLOUR,
        )
        return
    place = None
    if side is not None:
        below = inches_of(ax).y0 - inches_of(ax, box_of(ax)).y0  # of the names
        place = (0.5 - 1.0 / side, -(below + 0.3) / side, 2.0 / side, 0.08 / side)
    bar = bar_below(colours_of_pulls(), ax, place, shrink=0.5, pad=0.08)
    bar.set_ticks([0.0, 0.5, 1.0], labels=["repel", "either, as inputs say", "attract"])
    q = graph.cliques.n_cliques
    counted = f"{len(graph.used):,} of {q:,} edges" if len(graph.used) < q else f"{q:,} edges"
    bar.set_label(f"{counted}; width: weight, {graph.weights.max():.3g} at most", fontsize=8)


# --------------------------------------------------------------------------------------------------------------
# A strip of small graphs: which edge came when, over the rounds of clique generation or over a path of solutions.


def graph_strip(
    solutions, *, titles: Sequence[str] | None = None, layout="circle", order=None, per_row: int = 5
) -> Figure:
    """Small graphs side by side, all with the same places: what is new in a graph has its colour, what was there before is grey.

    Parameters
    ----------
    solutions : Solution, or a list or {title: Solution} of them
        One solution of clique generation: a graph a round, with the edges that joined until then, as thick as they are in the end. Several, such as those
        of `problem.path(lam, values)`: a graph each.
    titles : list of str, optional
        One a solution.
    layout, order : as in `graph_plot`
        Default: those of the last solution.
    per_row : int
        Graphs in a row.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ModelError
        Where a solution is of a model without a graph of labels, or one solution does not tell in which round its edges came.
    DataError
        Where the solutions are of other labels, or there is not one title each.

    Examples
    --------
    >>> import mtldsl as mtl
    >>> X, Y = np.array([[1.0], [0.0], [2.0], [1.0]]), np.array([[1, 1.0], [-1, -1], [1, 1], [-1, -1]])
    >>> problem = mtl.model("CGM", mtl.Tasks.shared(X, Y), lam=1.0, r=1)
    >>> figure = graph_strip({f"lam = {s.parameters['lam']:g}": s for s in problem.path(problem.parameters[0], [1.0, 0.1], tol=1e-2)})
    >>> [ax.get_title(loc="left").split(chr(10))[0] for ax in figure.axes]
    ['lam = 1', 'lam = 0.1']
    """
    if isinstance(per_row, bool) or not isinstance(per_row, int | np.integer) or per_row < 1:
        raise DataError(term=f"graph_strip(per_row={per_row!r})", write_instead="write a whole number >= 1")
    panels = _panels(solutions, titles)
    places = places_of(panels[-1][1], layout, order)
    plt = pyplot()
    columns = min(len(panels), per_row)
    rows = -(-len(panels) // columns)
    cell, margin, heading = SETTINGS.cell_inches, SETTINGS.margin_inches, SETTINGS.heading_inches
    wide, high = cell + 2 * margin, cell + margin + heading
    figure = plt.figure(figsize=(columns * wide, rows * high + SETTINGS.legend_inches))
    width, height = figure.get_size_inches()
    for k, (title, graph, shown, fresh) in enumerate(panels):
        row, column = divmod(k, columns)
        left, below = column * wide + margin, height - row * high - heading - cell
        ax = figure.add_axes((left / width, below / height, cell / width, cell / height))
        draw_graph(
            ax, graph, places, outside=layout == "circle", only=shown, fresh=fresh, size=6.5, thick=4.0,
            named=len(graph.names) <= 16,
        )  # fmt: skip
        ax.set_title(f"{title}\n{_joined(graph, fresh)}", loc="left", fontsize=7.5, x=-0.22, y=1.07)
    figure.text(
        0.02, 0.06 / height, "red: attract, blue: repel, in between: as inputs say; grey: there before", fontsize=7.5,
        color="#555555", va="bottom",
    )  # fmt: skip
    return figure


def _panels(solutions, titles) -> list[tuple[str, Any, list[int], list[int]]]:
    """(title, graph, cliques shown, those of them that are new) of every small graph."""
    if isinstance(solutions, Mapping):
        titles, solutions = list(map(str, solutions)), list(solutions.values())
    if not isinstance(solutions, Sequence) or isinstance(solutions, str):
        return _rounds(solutions)
    if not len(solutions):
        raise DataError("there is no solution to draw", term="graph_strip([])")
    graphs = [graph_of(one, "graph_strip") for one in solutions]
    titles = [str(k + 1) for k in range(len(graphs))] if titles is None else list(titles)
    if len(titles) != len(graphs):
        raise DataError(
            f"graph_strip: {len(titles)} titles for {len(graphs)} solutions", write_instead="give one each"
        )
    if any(one.names != graphs[-1].names for one in graphs):
        raise DataError("graph_strip: the solutions are over different labels, and cannot stand in one strip")
    panels, before = [], set()
    for title, graph in zip(titles, graphs, strict=True):
        used = graph.used.tolist()
        panels.append((title, graph, used, [c for c in used if graph.cliques.members[c] not in before]))
        before = {graph.cliques.members[c] for c in used}
    return panels


def _rounds(solution) -> list[tuple[str, Any, list[int], list[int]]]:
    graph = graph_of(solution, "graph_strip")
    if graph.added is None:
        raise ModelError(
            "this solution does not tell in which round an edge came; solve it with "
            'solver="clique_generation", or give several solutions, such as those of problem.path(lam, values)',
            term="graph_strip(solution)",
        )
    used = graph.used.tolist()
    panels = []
    for number in sorted({int(graph.added[c]) for c in used} - {-1}):
        shown = [c for c in used if 0 <= graph.added[c] <= number]
        title = f"round {number}" if number else "at the start"
        panels.append((title, graph, shown, [c for c in shown if graph.added[c] == number]))
    return panels or [("no edge", graph, [], [])]


def _joined(graph: Any, fresh: list[int]) -> str:
    """The new edges by name, where there is room for them."""
    if not fresh:
        return "no new edge"
    named = ["–".join(short(name, 12) for name in graph.labels_of(c)) for c in fresh[: SETTINGS.named_edges]]
    line = f"+ {', '.join(named)}"
    if len(fresh) <= SETTINGS.named_edges and len(line) <= SETTINGS.heading_characters:
        return line
    return f"+ {len(fresh)} edge{'s' * (len(fresh) > 1)}"
