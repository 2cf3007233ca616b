"""Predictions of losses over a graph of labels: all labels of a sample at once, and what its edges decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mtldsl.atoms.function import REGISTRY
from mtldsl.errors import DataError, ModelError
from mtldsl.scoring.measure import Needs
from mtldsl.solution.label_graph import LearnedGraph
from mtldsl.solution.label_predictions import LabelPredictions
from mtldsl.solution.scoring import checked_metrics, score_of
from mtldsl.tasks import Tasks
from mtldsl.tasks.schema import Schema, is_list_of_matrices

if TYPE_CHECKING:
    import networkx

__all__ = ["Labellings", "OverLabels", "not_over_labels"]


class FittedGraph(Protocol):
    """What is asked of a Solution."""

    coef: np.ndarray
    intercept: np.ndarray | None
    loss: dict
    label_graph: LearnedGraph | None

    @property
    def schema(self) -> Schema: ...


@dataclass(frozen=True)
class Labellings:
    """The labelling with the highest score of every sample, over the edges whose weights are not zero."""

    of: FittedGraph

    def decision_function(self, X) -> np.ndarray:
        return self._inference().margins(self._matrix(X, "decision_function"))

    def predict(self, X, return_certified: bool):
        found = self._inference().decode(self._matrix(X, "predict"))
        labels = 2.0 * found.labels - 1.0
        return (labels, found.certified) if return_certified else labels

    def predict_proba(self, X) -> np.ndarray:
        word = self.of.loss["word"]
        if not hasattr(REGISTRY[word], "probability"):
            raise ModelError(
                f"predict_proba: {word} models no probabilities",
                write_instead="use pairwise_log_loss, or decision_function",
            )
        return self._inference().probabilities(self._matrix(X, "predict_proba"))

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        """(K,) the share of right labels in the best labellings, or 1 - Delta of a metric; missing labels of the tasks are left out.

        Metrics of labels see the best labelling; `ROCArea`, `PrecisionAt` and `RecallAt`, which rank, see the margins of the labels.
        DataError for inputs that are not shared: a labelling is of all labels of a sample.
        """
        of, typed = self._inference(), f"{method}(tasks)"
        tasks = self.of.schema.alike(tasks, method)
        if not tasks.is_shared:
            raise DataError(
                "these tasks have separate inputs, and a labelling is of all labels of one sample",
                term=typed,
                write_instead="give Tasks.shared(X, Y)",
            )
        tasks.require_labels("sign", typed)
        metrics = None if metric is None else checked_metrics(metric, tasks, typed)
        margins = of.margins(tasks.X) if metrics and any(one.scored_by_order for one in metrics) else None
        labels = 2.0 * of.decode(tasks.X).labels - 1.0
        found = np.empty(tasks.n_tasks)
        for k, y in enumerate(tasks.per_task(tasks.targets)):
            rows = slice(None) if tasks.mask is None else tasks.mask[:, k]
            if metrics is None:
                found[k] = np.mean(labels[rows, k] == y)
            else:
                z = margins if margins is not None and metrics[k].scored_by_order else labels
                found[k] = score_of(metrics[k], z[rows, k], y, typed=typed)
        return found

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        raise ModelError(
            f"{self.of.loss['word']} decides a labelling as a whole, so that no label has a threshold of its own; to make "
            "some mistakes dearer, write clique_hinge(U, V, tasks, loss=[...]) with the cost of each label",
            term=typed,
        )

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        """Labels of the best labellings, margins as scores, marginals as probabilities."""
        if isinstance(inputs, list):
            raise DataError(
                "these tasks have separate inputs, and a labelling is of all labels of one sample",
                term=typed,
                write_instead="give Tasks.shared(X, Y)",
            )
        of = self._inference()
        if needs == "scores":
            return list(of.margins(inputs).T)
        if needs == "labels":
            return list(2.0 * of.decode(inputs).labels.T - 1.0)
        word = self.of.loss["word"]
        if needs == "values" or not hasattr(REGISTRY[word], "probability"):
            what = "numbers" if needs == "values" else "probabilities"
            raise ModelError(
                f"{word} predicts labellings, and this measure is of {what}",
                term=typed,
                write_instead="write a measure of labels, such as metric='accuracy'",
            )
        return list(of.probabilities(inputs).T)

    def edge_usage(self, X) -> dict[tuple[str, ...], float]:
        """See `Solution.edge_usage`."""
        of, graph = self._inference(), self._graph()
        is_tasks = hasattr(X, "task_names")
        shares = of.usage(
            self.of.schema.alike(X, "edge_usage").X if is_tasks else self._matrix(X, "edge_usage")
        )
        order = np.argsort(-shares, kind="stable").tolist()
        return {graph.labels_of(int(of.kept[c])): float(shares[c]) for c in order}

    @staticmethod
    def check(fields: dict) -> None:
        if fields["label_graph"] is None:
            raise ValueError(f"its loss is {fields['loss']['word']!r}, and it has no graph of labels")

    def _graph(self) -> LearnedGraph:
        assert self.of.label_graph is not None  # of every loss over a graph of labels
        return self.of.label_graph

    def _inference(self) -> LabelPredictions:
        return LabelPredictions(self._graph().cliques, self.of.coef, self.of.intercept)

    def _matrix(self, X, method: str):
        """Inputs (n, d) for a labelling; DataError for a list of them."""
        if is_list_of_matrices(X):
            raise DataError(
                f"{len(X)} input matrices, but a labelling is of all labels at once",
                term=method,
                write_instead="give one matrix (n, d)",
            )
        return self.of.schema.inputs(X)


class OverLabels:
    """Part of `Solution`, which has `label_graph` (None for other losses), `coef` and `loss`."""

    coef: np.ndarray
    intercept: np.ndarray | None
    loss: dict
    label_graph: LearnedGraph | None

    if TYPE_CHECKING:

        @property
        def schema(self) -> Schema: ...

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
        self._label_graph("edge_usage(X)")
        return Labellings(self).edge_usage(X)

    def _label_graph(self, typed: str) -> LearnedGraph:
        if self.label_graph is None:
            raise not_over_labels(typed, self.loss)
        return self.label_graph


def not_over_labels(typed: str, loss: dict) -> ModelError:
    """What is asked for exists only over a graph of labels."""
    return ModelError(
        f"{loss['word']} is not a loss over a graph of labels; clique_hinge(U, V, tasks) and "
        "pairwise_log_loss(U, V, tasks) are",
        term=typed,
    )
