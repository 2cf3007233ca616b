"""Who answers for weights is chosen by the labels of their loss, and needs of a Solution only what it names."""

from dataclasses import dataclass

import numpy as np
import pytest

import mtldsl as mtl
from mtldsl.atoms.function import REGISTRY, Loss
from mtldsl.solution.labellings import Labellings
from mtldsl.solution.one_class import OneClass
from mtldsl.solution.predictors import PREDICTORS, TaskByTask, predictor_class
from mtldsl.solution.scoring import score_of
from mtldsl.tasks.schema import Schema
from tests.loops import for_each
from tests.models import shared


@for_each("word", [name for name, atom in REGISTRY.items() if issubclass(atom, Loss)])
def test_whole_labellings_are_predicted_where_a_loss_is_of_them(word):
    expected = {"indicators": Labellings, "classes": OneClass}.get(REGISTRY[word].labels, TaskByTask)
    assert predictor_class({"word": word}) is expected


@dataclass
class Fitted:
    coef: np.ndarray
    intercept: np.ndarray | None
    thresholds: np.ndarray | None
    loss: dict
    schema: Schema


def test_a_predictor_needs_no_solution():
    tasks = shared(2, n=12)
    W, b = np.random.default_rng(0).normal(size=(tasks.n_features, tasks.n_tasks)), np.arange(tasks.n_tasks)
    loss = {"word": "logistic_loss", "parameters": {}, "labels": "sign"}
    plain = TaskByTask(Fitted(W, b, None, loss, Schema.of(tasks)))
    z = tasks.X @ W + b
    np.testing.assert_allclose(plain.decision_function(tasks.X), z)
    np.testing.assert_allclose(plain.predict_proba(tasks.X), 1 / (1 + np.exp(-z)))
    cut = TaskByTask(Fitted(W, b, np.full(tasks.n_tasks, 0.5), loss, Schema.of(tasks)))
    np.testing.assert_array_equal(cut.predict(tasks.X, False), np.where(z >= 0.5, 1.0, -1.0))


class Nearest(TaskByTask):
    """A way of predicting of one's own: whole numbers."""

    def predict(self, X, return_certified):
        return np.rint(self.decision_function(X))


def test_another_way_to_predict_is_one_line_of_the_list(monkeypatch, tmp_path):
    tasks = shared(2, n=12)
    W = mtl.Weights(tasks)
    solution = mtl.minimize(mtl.squared_loss(W, tasks) + mtl.ridge(W)).solve()
    monkeypatch.setitem(PREDICTORS, "real", Nearest)
    loaded = mtl.Solution.load(solution.save(tmp_path / "nearest"))
    for one in (solution, loaded):
        np.testing.assert_array_equal(one.predict(tasks.X), np.rint(tasks.X @ solution.W))


def test_a_ranking_of_ones_own_scores_itself(monkeypatch):
    """What a metric says of the order of predictions is asked of the metric, not of its class."""
    monkeypatch.setattr(mtl.Metric, "known", dict(mtl.Metric.known))

    class FirstIsPositive(mtl.Metric):
        labellings, scored_by_order = False, True

        def score(self, z, positive, threshold):
            return float(positive[np.argmax(z)])

    z, y = np.array([0.1, 0.9, 0.5]), np.array([1.0, -1.0, 1.0])
    assert score_of(FirstIsPositive(), z, y) == 0.0 and score_of(FirstIsPositive(), -z, y) == 1.0
    FirstIsPositive.scored_by_order = False
    with pytest.raises(mtl.ModelError, match="measures rankings, and has no score"):
        score_of(FirstIsPositive(), z, y)


def test_another_delta_is_scored_by_it(monkeypatch):
    """A subclass of a metric that scores itself is scored by its own table."""
    monkeypatch.setattr(mtl.Metric, "known", dict(mtl.Metric.known))

    class MissedAlone(mtl.ErrorRate):
        def delta(self, b, c, positives, negatives):
            return c / positives + 0.0 * b

    z, y = np.array([0.1, 0.9, -0.5]), np.array([1.0, -1.0, 1.0])
    assert score_of(MissedAlone(), z, y) == 0.5 and score_of(mtl.ErrorRate(), z, y) == pytest.approx(1 / 3)
