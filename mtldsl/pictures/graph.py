"""A picture of the graph over the labels: which edges there are, how strong, and whether labels attract or repel one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.pictures.figure import box_of, short, trim
from mtldsl.pictures.graph_places import graph_of, places_of, strengths_of
from mtldsl.system.pyplot import pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_graph", "graph_plot"]

#: Points: the thickest line and the thinnest.
_THICK, _THIN = 7.0, 0.5
#: Inches: side of the picture of a few labels and of many; a letter at a size of one point.
_SIDE, _WIDEST, _LETTER = 3.2, 8.0, 0.0079
#: Repel in all rows, do either in half of them, attract in all.
_REPEL, _EITHER, _ATTRACT = "#1f5fa8", "#7d5a91", "#b3202c"
_TEXT, _FAINT, _NODE = "#22262b", "#7d858f", "#3b424b"


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
    plt = pyplot()
    own, n = ax is None, len(graph.names)
    side = float(np.clip(_SIDE + 0.12 * (n - 6), _SIDE, _WIDEST))
    if ax is None:
        margin = 2.2 + max(len(short(name)) for name in graph.names) * _LETTER * 10
        whole = side + 2 * margin
        ax = plt.figure(figsize=(whole, whole)).add_axes(
            (margin / whole, margin / whole, side / whole, side / whole)
        )
    draw_graph(ax, graph, places, outside=layout == "circle", inches=side if own else None)
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

    ramp = LinearSegmentedColormap.from_list("pulls", [_REPEL, _EITHER, _ATTRACT])
    return ScalarMappable(Normalize(0.0, 1.0), ramp)


def draw_graph(
    ax: Axes, graph: Any, places: np.ndarray, *, outside: bool, inches: float | None,
    only=None, fresh=(), size: float | None = None, thick: float = _THICK, named: bool = True,
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
            color=_FAINT if faint else shades.to_rgba(pulls[pair]),
            alpha=0.4 if faint else (0.25 if young is None else 0.75) + (0.75 if young is None else 0.25) * share**0.5,
            linewidth=max(_THIN if young is None or faint else 2 * _THIN, thick * share),
        )  # fmt: skip
    joined = {k for pair in strengths for k in pair}
    bare = np.array([k not in joined for k in range(len(places))])
    dots = {"zorder": 3, "clip_on": False}
    spot = 34.0 if named else 12.0
    ax.scatter(*places[~bare].T, s=spot, color=_NODE, linewidths=0, **dots)
    ax.scatter(*places[bare].T, s=spot, facecolor="white", edgecolor=_FAINT, linewidths=0.9, **dots)
    if named:
        size = size or float(np.interp(len(places), [12, 40], [10, 7.5]))
        _write(ax, graph.names, places, bare, places if outside else _away(places, strengths), size, outside)
    ax.set_xlim(-1.05, 1.05)
    ax.set_ylim(-1.05, 1.05)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _away(places, strengths) -> np.ndarray:
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
        style: dict[str, Any] = {
            "fontsize": size,
            "color": _FAINT if alone else _TEXT,
            "zorder": 4,
            "annotation_clip": False,
        }
        if not outside:
            style["bbox"] = {
                "boxstyle": "round,pad=0.1",
                "facecolor": "white",
                "edgecolor": "none",
                "alpha": 0.7,
            }
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
        ax.annotate(
            "no edge",
            (0.5, 0.5),
            xycoords="axes fraction",
            ha="center",
            va="center",
            fontsize=9,
            color=_FAINT,
        )
        return
    if side is not None:
        box = box_of(ax).transformed(ax.figure.dpi_scale_trans.inverted())
        below = (
            ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted()).y0 - box.y0
        )  # of the names
        place: dict[str, Any] = {
            "cax": ax.inset_axes((0.5 - 1.0 / side, -(below + 0.3) / side, 2.0 / side, 0.08 / side))
        }
    else:
        place = {"ax": ax, "shrink": 0.5, "pad": 0.08, "aspect": 25}
    bar = ax.figure.colorbar(colours_of_pulls(), orientation="horizontal", **place)
    bar.outline.set_visible(False)
    bar.set_ticks([0.0, 0.5, 1.0], labels=["repel", "either, as inputs say", "attract"], fontsize=7.5)
    bar.ax.tick_params(length=2)
    q = graph.cliques.n_cliques
    counted = f"{len(graph.used):,} of {q:,} edges" if len(graph.used) < q else f"{q:,} edges"
    bar.set_label(f"{counted}; width: weight, {graph.weights.max():.3g} at most", fontsize=8)
