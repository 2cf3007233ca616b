"""A strip of small graphs: which edge came when, over the rounds of clique generation or over a path of solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtldsl.errors import DataError, ModelError
from mtldsl.pictures.figure import short
from mtldsl.pictures.graph import draw_graph
from mtldsl.pictures.graph_places import graph_of, places_of
from mtldsl.system.pyplot import pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["graph_strip"]

#: Inches: a graph and the room around it, its heading, what explains the strip.
_GRAPH, _AROUND, _HEADING, _BELOW = 1.7, 0.5, 0.5, 0.35
#: New edges that are named above a graph; letters in a line there.
_NAMED, _LINE = 3, 30


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
    wide, high = _GRAPH + 2 * _AROUND, _GRAPH + _AROUND + _HEADING
    figure = plt.figure(figsize=(columns * wide, rows * high + _BELOW))
    width, height = figure.get_size_inches()
    for k, (title, graph, shown, fresh) in enumerate(panels):
        row, column = divmod(k, columns)
        left, below = column * wide + _AROUND, height - row * high - _HEADING - _GRAPH
        ax = figure.add_axes((left / width, below / height, _GRAPH / width, _GRAPH / height))
        draw_graph(
            ax, graph, places, outside=layout == "circle", inches=_GRAPH, only=shown, fresh=fresh,
            size=6.5, thick=4.0, named=len(graph.names) <= 16,
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
    named = ["–".join(short(name, 12) for name in graph.labels_of(c)) for c in fresh[:_NAMED]]
    line = f"+ {', '.join(named)}"
    if len(fresh) <= _NAMED and len(line) <= _LINE:
        return line
    return f"+ {len(fresh)} edge{'s' * (len(fresh) > 1)}"
