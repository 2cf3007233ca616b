"""What a run learned of the graph over the labels: its edges, how strong they are, and what they decide."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mtldsl.problem import Problem
from mtldsl.solution.solution import Solution

__all__ = ["describe_label_graph"]

#: Edges that are listed, and edges up to which it is looked up how many labellings each decides: an inference a row each.
EDGES, USED = 12, 40


def describe_label_graph(problem: Problem, solution: Solution) -> dict | None:
    """What `solution.graph` says of a loss over a graph of labels, the inference, and how many maxima are exact; None for other losses."""
    graph = solution.label_graph
    if graph is None:
        return None
    method, treewidth, exact = graph.inference
    usage = solution.edge_usage(problem.first_loss.data) if 0 < len(graph.used) <= USED else {}
    at = {tuple(pair): k for k, pair in enumerate(graph.pairs.tolist())}
    edges = []
    for c in graph.used[:EDGES].tolist():
        pulls = [at[pair] for pair in combinations(graph.cliques.members[c], 2)]
        found = graph.facts_of(c) | {"usage": usage.get(graph.labels_of(c))}
        if len(pulls) == 1:
            found["coupling"] = float(graph.coupling[pulls[0]])
            found["attraction"] = float(graph.attraction[pulls[0]])
        edges.append(found)
    certified = solution.certified
    return {
        "labels": len(graph.names),
        "candidates": graph.cliques.n_cliques,
        "larger": int(np.sum(graph.cliques.sizes > 2)),
        "edges": len(graph.used),
        "listed": edges,
        "inference": {"method": method, "treewidth": treewidth, "exact": exact},
        "certified": None
        if certified is None
        else {"exact": int(certified.sum()), "rows": int(certified.size)},
    }
