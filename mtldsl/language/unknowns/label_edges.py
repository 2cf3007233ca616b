"""What a user may give as the edges of a graph of labels, as sorted positions."""

from __future__ import annotations

from itertools import combinations

from mtldsl.errors import ModelError
from mtldsl.inference.cliques import LARGEST_CLIQUE
from mtldsl.system.memory import require_memory
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_whole, quoted

__all__ = ["checked_edges", "edges_text"]


def edges_text(edges) -> str:
    """As it is quoted in messages."""
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        return "<graph>"
    return quoted(edges, 60)


def checked_edges(edges, names: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    """Cliques of label positions, each in increasing order; ModelError where one does not make sense."""
    if isinstance(edges, str):
        if edges != "all":
            raise ModelError(
                'write edges="all", a list of pairs such as [(0, 1), (1, 2)], a networkx graph, or [] for no edges'
            )
        n = len(names)
        require_memory(
            100.0 * n * (n - 1) / 2, f"so many as {n * (n - 1) // 2:,} pairs of {n:,} labels (the list alone)",
            "give a list of the pairs that may matter, or a networkx graph", ModelError,
        )  # fmt: skip
        return tuple(combinations(range(len(names)), 2))
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):
        strangers = [node for node in edges.nodes if _position(node, names) is None]
        if strangers:
            raise ModelError(f"the graph has a node {strangers[0]!r}, which is not a label; {_known(names)}")
        if edges.is_directed():
            raise ModelError(
                "the graph is directed, and labels depend on each other both ways",
                write_instead="give graph.to_undirected()",
            )
        edges = list(edges.edges())
    listed = as_list(edges)
    if listed is None:
        raise ModelError('edges must be a list of pairs, a networkx graph, or "all"')
    found: dict[tuple[int, ...], object] = {}
    for edge in listed:
        clique = _checked(edge, names)
        if clique in found:
            raise ModelError(
                f"the edge {edge!r} stands twice (also as {found[clique]!r})", write_instead="give it once"
            )
        found[clique] = edge
    return tuple(found)


def _checked(edge, names) -> tuple[int, ...]:
    listed = None if isinstance(edge, str) else as_list(edge)
    if listed is None:
        raise ModelError(
            f"{quoted(edge)} is not an edge", write_instead="write a pair of labels, such as (0, 1)"
        )
    labels = tuple(listed)
    if not 2 <= len(labels) <= LARGEST_CLIQUE:
        raise ModelError(
            f"{edge!r} has {len(labels)} labels; an edge has two, and a clique at most {LARGEST_CLIQUE}, with 2^size columns"
        )
    positions = []
    for label in labels:
        position = _position(label, names)
        if position is None:
            raise ModelError(f"{label!r} in {edge!r} is not a label; {_known(names)}")
        positions.append(position)
    if len(set(positions)) < len(positions):
        raise ModelError(f"{edge!r} holds a label twice; an edge joins different labels")
    return tuple(sorted(positions))


def _position(label, names) -> int | None:
    if isinstance(label, str):
        return names.index(label) if label in names else None
    whole = as_whole(label)
    return whole if whole is not None and 0 <= whole < len(names) else None


def _known(names) -> str:
    shown = ", ".join(map(repr, names[:6])) + (", ..." if len(names) > 6 else "")
    return f"there are {shown}, or positions 0 to {len(names) - 1}"
