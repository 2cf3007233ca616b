"""Where the labels of a graph stand in a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mtldsl.errors import DataError, ModelError
from mtldsl.pictures.clustered_order import clustered_order

__all__ = ["graph_of", "label_order", "places_of", "positions_in", "strengths_of"]


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
            members = graph.cliques.members[c]
            for a, first in enumerate(members):
                for second in members[a + 1 :]:
                    pair = first, second
                    squares[pair] = squares.get(pair, 0.0) + float(graph.weights[c]) ** 2
    return {pair: square**0.5 for pair, square in squares.items()}
