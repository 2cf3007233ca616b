"""How well a solution predicts rows whose labels are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from mtldsl.scoring.intervals import ScoreIntervals
from mtldsl.scoring.score import Score, mean_score
from mtldsl.solution.bootstrap import bootstrap_scores
from mtldsl.solution.named_scores import named_score, named_scores
from mtldsl.solution.predictors import predictor_of
from mtldsl.tasks import Tasks, require_tasks
from mtldsl.values.arguments import complete

__all__ = ["Scored"]


class Scored:
    """The scores of a `Solution`."""

    def scores(self, tasks, metric=None) -> np.ndarray:
        """One score per task on a Tasks object: accuracy for labels in {-1, +1}, else the coefficient of determination R^2.

        metric : score by this instead, by 1 - Delta: one metric, a list with one a task, or a dict {task name: metric}.
            `FScore(beta)`: the F-score of the predicted labels; `AUC()`: 1 - b c / (Pos Neg) on labels; `ErrorRate()`: the
            accuracy, 1 - Delta / (2 n); `ROCArea()`, `PartialAUC(max_fpr)`: the area under the ROC curve of `decision_function`,
            or a part of it; `AveragePrecision()`, `NDCG()`: of its order; `PrecisionAt(k)` and
            `RecallAt(k)`: of the k samples with the highest `decision_function`; your own metric: 1 - Delta. With a metric, the
            predictions of losses for real numbers are labels too, +1 where they are at least 0.

            Or a measure by name, NaN for a task for which it is not defined: "mse", "nmse", "mae", "r2", "explained_variance" of
            numbers; "accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision", "log_loss", "brier" of labels -1 and +1
            (`mtldsl.scoring.measures`). They are scikit-learn's, losses as they are, lower for better; sample weights count in them.

        For a loss over a graph of labels the scores are of the labels of the best labellings, and of `decision_function` for metrics of
        rankings. Raw tasks are scaled by the statistics learned in training; tasks that are standardised already are not scaled twice.
        DataError for tasks of another size, with other statistics, or with a task or feature at another position; with a
        metric that is not named, for labels other than -1 and +1, a task of one class, and sample weights. ModelError for something that is not a
        metric of these tasks.
        """
        return self._scores(tasks, metric, "scores")

    def _scores(self, tasks, metric, method: str) -> np.ndarray:
        require_tasks(tasks, f"{method}(tasks)")
        if isinstance(metric, str):
            return named_scores(cast(Any, self), tasks, metric, method)
        return tasks.apply_scoring(_scores, self, metric, method)

    def tune_threshold(self, tasks, metric=None) -> Self:
        """A copy whose `thresholds` (m,) are, for every task, the best of all under the metric on these tasks.

        Give validation data, not those of training. `predict` and `scores` of the copy label +1 where `decision_function`,
        which stays as it is, is at least the threshold; see `mtldsl.solution.thresholds.best_threshold` for where it is placed.

        metric : `FScore(beta)`, `ErrorRate()`, `PrecisionAt(k)` or `RecallAt(k)` (exactly k of these samples labelled +1), or
            your own metric; a list with one a task, or a dict {task name: metric}. None: the metric of the loss that the
            weights were learned with, else FScore().

        ModelError for losses over a graph of labels, for `ROCArea`, which no threshold changes, for metrics that are best where all
        samples have one label, such as `AUC` (b c = 0), and for losses that predict counts; DataError as in `scores`.
        """
        typed = "tune_threshold(tasks)"
        require_tasks(tasks, typed)
        return replace(cast(Any, self), thresholds=tasks.apply_tuning(_thresholds, self, metric, typed))

    @complete("write solution.score(tasks), or solution.score(tasks, metric='f1')")
    def score(self, tasks, metric=None) -> Score:
        """The mean over tasks of `scores`; of measures by name also those of whole rows, and pooled or weighted ones (`f1_micro`).

        It is a float with `by_task`, `left_out` (tasks without a number, such as ROC areas of one class) and `note`, which says so.
        """
        require_tasks(tasks, "score(tasks)")
        if isinstance(metric, str):
            return named_score(cast(Any, self), tasks, metric, "score")
        return mean_score(self._scores(tasks, metric, "score"), tasks.task_names)

    def bootstrap(
        self,
        tasks,
        metric: str | None = None,
        n: int = 500,
        *,
        level: float = 0.95,
        groups=None,
        random_state=0,
    ) -> ScoreIntervals:
        """Percentile intervals of a score, by task and over all: the same predictions on n samples of the rows, drawn with replacement.

        metric : the name of a measure, as in `score`, or a metric such as `FScore(beta=2)`; None: "accuracy" for labels, else "r2"
        groups : (n,) as in `Tasks.folds`; they are drawn whole, where rows of one patient or user are alike
        Give rows that were not learned on. The weights stay as they are: how much these depend on the rows, `problem.bootstrap` tells.

        Source: Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 13.
        """
        require_tasks(tasks, "bootstrap(tasks)")
        return bootstrap_scores(cast(Any, self), tasks, metric, n, level, groups, random_state)


def _scores(tasks: Tasks, fitted: Any, metric, method: str) -> np.ndarray:
    return predictor_of(fitted).scores(tasks, metric, method)


def _thresholds(tasks: Tasks, fitted: Any, metric, typed: str) -> np.ndarray:
    return predictor_of(fitted).tuned_thresholds(tasks, metric, typed)
