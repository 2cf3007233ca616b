"""Weights of a graph of labels (CGM) in the [weights] table of a problem file."""

from __future__ import annotations

from mtldsl.files.rules import SWITCH
from mtldsl.files.weights_kind import WeightsKind
from mtldsl.language.unknowns.label_graph import EdgeWeights, NodeWeights

__all__ = ["EDGES", "NODES"]


NODES = WeightsKind(
    "NodeWeights",
    {"intercept": SWITCH},
    lambda tasks, name, options: NodeWeights(tasks, name, intercept=options.get("intercept", False)),
    lacks={
        "edges": 'edges are those of V = {kind = "EdgeWeights", edges = ...}',
    },
)

EDGES = WeightsKind(
    "EdgeWeights",
    {
        "edges": (
            lambda v: v == "all" or isinstance(v, list),
            '"all", or a list of pairs of labels such as [["sea", "beach"], [0, 2]], [] for none',
        )
    },
    lambda tasks, name, options: EdgeWeights(tasks, options.get("edges", "all"), name),
    implied_by="edges",
    lacks={
        "intercept": "EdgeWeights have no intercept; give the inputs a column of ones, and every label and edge has one"
    },
)
