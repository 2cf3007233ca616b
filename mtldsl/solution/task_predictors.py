"""Predictions of one task's weights, and of weights over a graph of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from mtldsl.atoms.atom import REGISTRY
from mtldsl.atoms.loss import Loss
from mtldsl.atoms.metrics.contingency import FScore
from mtldsl.atoms.metrics.metric import Metric
from mtldsl.data.schema import Schema, is_list_of_matrices
from mtldsl.data.tasks import Tasks
from mtldsl.errors import DataError, ModelError
from mtldsl.solution.learned_label_graph import LabelPredictions, LearnedGraph
from mtldsl.solution.measures import Needs, concordance_index
from mtldsl.solution.score import checked_metrics, r_squared, score_of
from mtldsl.solution.thresholds import best_threshold
from mtldsl.utils.memory import require_memory

if TYPE_CHECKING:
    import networkx

# --------------------------------------------------------------------------------------------------------------
# How weights answer new inputs task by task: every task has a score of its own.


class FittedSolution(Protocol):
    """Solution, as a predictor sees it."""

    coef: np.ndarray
    intercept: np.ndarray | None
    thresholds: np.ndarray | None
    loss: dict

    @property
    def schema(self) -> Schema: ...


@dataclass(eq=False)
class FittedColumns:
    """Some tasks of a solution, as a predictor sees them: nothing that is as long as the data it was learned on."""

    coef: np.ndarray
    intercept: np.ndarray | None
    thresholds: np.ndarray | None
    loss: dict
    schema: Schema

    @classmethod
    def of(cls, fitted: FittedSolution, columns: Any = slice(None)) -> FittedColumns:
        b, cuts = (None if one is None else one[columns] for one in (fitted.intercept, fitted.thresholds))
        return cls(fitted.coef[:, columns], b, cuts, fitted.loss, fitted.schema)


@dataclass(frozen=True)
class PerTaskPredictor:
    """Every task has a score of its own, X w + b, of which the loss makes a label, a count or a number."""

    of: FittedSolution
    with_probabilities: ClassVar = "logistic_loss"

    def decision_function(self, X):
        schema, W, b = self.of.schema, self.of.coef, self.of.intercept
        if is_list_of_matrices(X):
            schema.require_one_each(X)
            shift = np.zeros(len(X)) if b is None else b
            return [schema.inputs(Xi) @ W[:, i] + shift[i] for i, Xi in enumerate(X)]
        inputs = schema.inputs(X)
        n, m = inputs.shape[0], W.shape[1]
        require_memory(
            16.0 * n * m,
            f"predict: {n:,} rows for {m:,} tasks",
            "predict part by part, such as predict(X[:100_000])",
            DataError,
        )
        z = inputs @ W
        return z if b is None else z + b

    def predict(self, X, return_certified: bool):
        if return_certified:
            raise not_over_labels("predict(X, return_certified=True)", self.of.loss)
        return self._shaped_like(self.decision_function(X), "answers", "predict")

    def predict_proba(self, X):
        require_probabilities(
            self.of.loss, "predict_proba", self.with_probabilities
        )  # before the inputs are looked at
        return self._shaped_like(self.decision_function(X), "probabilities", "predict_proba")

    def _shaped_like(self, z, needs: Needs, typed: str):
        """Answers in the shape of the scores: one vector a task, or a matrix."""
        if isinstance(z, list):
            return self.answers(z, needs, typed)
        return np.column_stack(self.answers(list(z.T), needs, typed))

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        typed, cuts = f"{method}(tasks)", self.of.thresholds
        scores, truth = self._scores_and_labels(tasks, method)
        if metric is not None:
            self.require_labels_predicted(typed)
            metrics = checked_metrics(metric, tasks, typed)
            cuts = np.zeros(tasks.n_tasks) if cuts is None else cuts
            each = zip(metrics, self.seen_by(metrics, scores), truth, cuts, strict=True)
            return np.array([score_of(*one, typed=typed) for one in each])
        pairs = zip(self.answers(scores, "answers", typed), truth, strict=True)
        if self.of.loss["labels"] == "sign" or cuts is not None:
            tasks.require_kind("sign", typed)
            return np.array([np.mean(p == y) for p, y in pairs])
        if self.of.loss["labels"] == "time":
            tasks.require_kind("time", typed)
            return np.array([concordance_index(y, p) for p, y in pairs])
        return np.array([r_squared(p, y) for p, y in pairs])

    def seen_by(self, metrics: list[Metric], scores: list[np.ndarray]) -> list[np.ndarray]:
        """Return what each metric compares with its threshold."""
        return scores

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray:
        self.require_labels_predicted(typed)
        parts = self._scores_and_labels(tasks, "tune_threshold")
        if metric is None:
            metric = self.of.loss["parameters"].get("metric", FScore())
        metrics = checked_metrics(metric, tasks, typed)
        return np.array(
            [
                best_threshold(z, y, of_task, typed, name)
                for z, y, of_task, name in zip(*parts, metrics, tasks.task_names, strict=True)
            ]
        )

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        """Return what a measure needs, one vector a task: of inputs in the features that were learned on, one matrix or one a task."""
        W, b = self.of.coef, self.of.intercept
        b = np.zeros(W.shape[1]) if b is None else b
        if isinstance(inputs, list):
            z = [X @ w + shift for X, w, shift in zip(inputs, W.T, b, strict=True)]
        else:
            z = list((inputs @ W + b).T)
        return self.answers(z, needs, typed)

    def answers(self, z: list[np.ndarray], needs: Needs, typed: str) -> list[np.ndarray]:
        """Return what a measure needs of scores, one vector a task."""
        loss, cuts = self.of.loss, self.of.thresholds
        if needs == "values" and loss["labels"] == "sign":
            raise ModelError(
                f"{loss['word']} predicts labels, and this measure is of numbers",
                term=typed,
                write_instead="write a measure of labels, such as metric='accuracy'",
            )
        if needs not in ("values", "answers"):
            self.require_labels_predicted(typed)
        if needs == "scores":
            return z
        if needs == "probabilities":
            return [probabilities(loss, one) for one in z]
        if needs == "labels" or (needs == "answers" and cuts is not None):
            cuts = np.zeros(len(z)) if cuts is None else cuts
            return [np.where(one >= cut, 1.0, -1.0) for one, cut in zip(z, cuts, strict=True)]
        atom = loss_of(loss)
        return [atom.decide(one) for one in z]

    def _scores_and_labels(self, tasks: Tasks, method: str) -> tuple[list, list]:
        """(the decision function, the labels), one vector a task; DataError where the tasks are not those of training."""
        like = self.of.schema.alike(tasks, method)
        z = like.forward(self.of.coef)
        z = z if self.of.intercept is None else z + np.repeat(self.of.intercept, tasks.counts)
        return tasks.per_task(z), tasks.per_task(tasks.targets)

    @staticmethod
    def check(fields: dict) -> None:
        """ValueError where the fields of a file are not a Solution that predicts in this way."""
        loss_of(fields["loss"])
        d, m = fields["coef"].shape
        features, tasks = fields["feature_names"], fields["task_names"]
        if features or tasks:
            if len(tasks) != m:
                raise ValueError(f"task_names is {tasks!r:.60}, which no solution has")
            if len(features) != d and fields.get("kernel_map") is None:
                raise ValueError(f"feature_names is {features!r:.60}, which no solution has")

    def require_labels_predicted(self, typed: str) -> None:
        predicted = {"count": "counts", "positive": "amounts", "time": "risks"}.get(self.of.loss["labels"])
        if predicted:
            raise ModelError(
                f"{self.of.loss['word']} predicts {predicted}, and a metric is of labels -1 and +1",
                term=typed,
            )


def loss_of(facts: dict) -> Loss:
    # a metric says how weights were found, not how they predict; its class need not be known here
    parameters = {name: value for name, value in facts["parameters"].items() if name != "metric"}
    return loss_kind(facts)(**parameters)


def loss_kind(facts: dict) -> type[Loss]:
    kind = REGISTRY[facts["word"]]
    if not issubclass(kind, Loss):
        raise ValueError(f"its loss is {facts['word']!r}, which is not a loss")
    return kind


def probabilities(loss: dict, z, typed: str = "predict_proba", instead: str = "logistic_loss"):
    """P(label = +1) at scores z; ModelError for a loss that models none."""
    require_probabilities(loss, typed, instead)
    atom: Any = loss_of(loss)
    return atom.probability(z)


def require_probabilities(loss: dict, typed: str, instead: str) -> None:
    """ModelError for a loss that models none; `instead`: one that does."""
    if not hasattr(loss_kind(loss), "probability"):
        raise ModelError(
            f"{typed}: {loss['word']} models no probabilities",
            write_instead=f"use {instead}, or decision_function",
        )


# --------------------------------------------------------------------------------------------------------------
# Predictions of losses over a graph of labels: all labels of a sample at once, and what its edges decide.


class LabelGraphPredictor(PerTaskPredictor):
    """The labelling with the highest score of every sample, over the edges whose weights are not zero."""

    of: Any  # a Solution, with its graph
    with_probabilities: ClassVar = "pairwise_log_loss"

    def decision_function(self, X):
        return self.inference().margins(self.matrix(X, "decision_function"))

    def predict(self, X, return_certified: bool):
        found = self.inference().decode(self.matrix(X, "predict"))
        labels = 2.0 * found.labels - 1.0
        return (labels, found.certified) if return_certified else labels

    def predict_proba(self, X):
        require_probabilities(self.of.loss, "predict_proba", self.with_probabilities)
        return self.inference().probabilities(self.matrix(X, "predict_proba"))

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray:
        """(K,) the share of right labels in the best labellings, or 1 - Delta of a metric; missing labels of the tasks are left out.

        Metrics of labels see the best labelling; `ROCArea`, `PrecisionAt` and `RecallAt`, which rank, see the margins of the labels.
        DataError for inputs that are not shared: a labelling is of all labels of a sample.
        """
        typed, tasks = f"{method}(tasks)", self.of.schema.alike(tasks, method)
        inputs = tasks.X if tasks.is_shared else tasks.inputs
        labels = self.outputs(inputs, "labels", typed)
        tasks.require_labels("sign", typed)
        metrics = [None] * tasks.n_tasks if metric is None else checked_metrics(metric, tasks, typed)
        by_order = [one is not None and one.scored_by_order for one in metrics]
        margins = self.outputs(inputs, "scores", typed) if any(by_order) else labels
        found = []
        for k, (of, y) in enumerate(zip(metrics, tasks.per_task(tasks.targets), strict=True)):
            z = margins[k] if by_order[k] else labels[k]
            z = z if tasks.mask is None else z[tasks.mask[:, k]]
            found.append(np.mean(z == y) if of is None else score_of(of, z, y, typed=typed))
        return np.array(found)

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
        of = self.inference()
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

    @staticmethod
    def check(fields: dict) -> None:
        if fields["label_graph"] is None:
            raise ValueError(f"its loss is {fields['loss']['word']!r}, and it has no graph of labels")

    def inference(self) -> LabelPredictions:
        """Labellings under the weights, of the graph that every such loss has."""
        return LabelPredictions(self.of.label_graph.cliques, self.of.coef, self.of.intercept)

    def matrix(self, X, method: str):
        """Inputs (n, d) for a labelling; DataError for a list of them."""
        if is_list_of_matrices(X):
            raise DataError(
                f"{len(X)} input matrices, but a labelling is of all labels at once",
                term=method,
                write_instead="give one matrix (n, d)",
            )
        return self.of.schema.inputs(X)


def graph(solution: Any) -> networkx.Graph:
    """Return the labels, joined by the edges whose weights are not zero.

    Attributes of an edge: `weight` ||V_c||_F; `coupling`, the mean over the training rows of the score where the two labels agree
    minus that where they differ (> 0: they attract, < 0: they repel); `attraction`, the share of rows where that is positive;
    `share`, its eta in [0, 1], where a k-support norm or group norm is on the edges; `added`, the round in which clique generation
    took it. Where labels stand in cliques of three and more, `cliques` lists those that hold the pair, `weight` is the root of the
    sum of their squares, and `graph.graph["cliques"]` lists all of them, the strongest first. A node's `weight` is ||U_k||_F.

    ModelError for models without a graph of labels.
    """
    return _label_graph(solution, "solution.graph").to_networkx()


def edge_usage(solution: Any, X) -> dict[tuple[str, ...], float]:
    """{labels of an edge: the share of the rows of X, a matrix or Tasks, whose predicted labelling is another one without that edge}.

    Every edge (and clique) with weights is there, the one that is used most first: weights alone do not tell how often an edge decides.
    """
    graph, predictor = _label_graph(solution, "edge_usage(X)"), LabelGraphPredictor(solution)
    is_tasks, of = hasattr(X, "task_names"), predictor.inference()
    shares = of.usage(
        solution.schema.alike(X, "edge_usage").X if is_tasks else predictor.matrix(X, "edge_usage")
    )
    order = np.argsort(-shares, kind="stable").tolist()
    return {graph.labels_of(int(of.kept[c])): float(shares[c]) for c in order}


def _label_graph(solution: Any, typed: str) -> LearnedGraph:
    if solution.label_graph is None:
        raise not_over_labels(typed, solution.loss)
    return solution.label_graph


def not_over_labels(typed: str, loss: dict) -> ModelError:
    """Return what is asked for exists only over a graph of labels."""
    return ModelError(
        f"{loss['word']} is not a loss over a graph of labels; clique_hinge(U, V, tasks) and "
        "pairwise_log_loss(U, V, tasks) are",
        term=typed,
    )
