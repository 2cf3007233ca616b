"""What a solution over a graph of labels has besides: the graph, what every edge decides, and labellings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtldsl.errors import DataError, ModelError
from mtldsl.solution.label_graph import LearnedGraph
from mtldsl.solution.label_predictions import LabelPredictions

if TYPE_CHECKING:
    import networkx

__all__ = ["OverLabels", "is_list_of_matrices"]


class OverLabels:
    """Part of `Solution`, which has `label_graph` (None for other losses), `coef` and `loss`."""

    @property
    def graph(self) -> networkx.Graph:
        """The labels, joined by the edges whose weights are not zero.

        Attributes of an edge: `weight` ||V_c||_F; `coupling`, the mean over the training rows of the score where the two labels agree
        minus that where they differ (> 0: they attract, < 0: they repel); `attraction`, the share of rows where that is positive;
        `share`, its eta in [0, 1], where a k-support norm or group norm is on the edges; `added`, the round in which clique generation
        took it. Where labels stand in cliques of three and more, `cliques` lists those that hold the pair, `weight` is the root of the
        sum of their squares, and `graph.graph["cliques"]` lists all of them, the strongest first. A node's `weight` is ||U_k||_F.

        ModelError for models without a graph of labels; MissingExtraError where networkx is not installed.
        """
        return self._label_graph("solution.graph").to_networkx()

    def edge_usage(self, X) -> dict[tuple[str, ...], float]:
        """{labels of an edge: the share of the rows of X, a matrix or Tasks, whose predicted labelling is another one without that edge}.

        Every edge (and clique) with weights is there, the one that is used most first: weights alone do not tell how often an edge decides.
        """
        graph = self._label_graph("edge_usage(X)")
        of = self._labellings()
        is_tasks = hasattr(X, "task_names")
        shares = of.usage(
            self._as_in_training(X, "edge_usage").X if is_tasks else self._matrix(X, "edge_usage")
        )
        order = np.argsort(-shares, kind="stable").tolist()
        return {graph.labels_of(of.kept[c]): float(shares[c]) for c in order}

    def _label_graph(self, typed: str) -> LearnedGraph:
        if self.label_graph is None:
            raise ModelError(
                f"{typed}: {self.loss['word']} is not a loss over a graph of labels; clique_hinge(U, V, tasks) and "
                "pairwise_log_loss(U, V, tasks) are"
            )
        return self.label_graph

    def _labellings(self) -> LabelPredictions:
        return LabelPredictions(self.label_graph.cliques, self.coef)

    def _matrix(self, X, method: str):
        """Inputs (n, d) for a labelling; DataError for a list of them."""
        if is_list_of_matrices(X):
            raise DataError(
                f"{method}: {len(X)} input matrices, but a labelling is of all labels at once; give one matrix (n, d)"
            )
        return self._inputs(X)


def is_list_of_matrices(X) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and _is_matrix(X[0])


def _is_matrix(X) -> bool:
    """Whether this is what one task is given to predict: a matrix, or those of several kernels."""
    shape = getattr(X, "shape", None)
    if isinstance(X, list | tuple):
        return bool(X) and isinstance(X[0], list | tuple | np.ndarray) and np.shape(X[0]) != ()
    return isinstance(X, dict) or (isinstance(shape, tuple) and len(shape) == 2)
