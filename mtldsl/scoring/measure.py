"""What a measure is: which predictions it needs, where it is defined, and how one number is made of those of the tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

__all__ = ["Measure", "Needs"]

Needs = Literal["values", "labels", "scores", "probabilities", "answers"]


@dataclass(frozen=True)
class Measure:
    """One of the measures by name.

    function         : scikit-learn's, by name; imported where it is first called
    needs            : "values" (numbers for labels that are numbers); or, for labels -1 and +1, "labels", "scores" (higher where +1 is
                       more likely) or "probabilities" (of +1); "answers": what `predict` says, labels or numbers
    higher_is_better : False for losses and errors
    defined          : where a task has a number, NaN otherwise: with "any" label, with "two" different ones, with a "positive" one
    average          : "mean" of the tasks' numbers; "support", weighted by their positives; "pooled", one number of all labels together
    rows             : None for measures by task; for one of whole rows the function of (truth, predictions), (n, m) each, NaN where a
                       label is missing
    over             : what a measure of whole rows is the mean over: "rows", or the "labels" that are there
    shown            : what is made of scikit-learn's number
    """

    name: str
    function: str
    needs: Needs
    higher_is_better: bool
    defined: Literal["any", "two", "positive"] = "any"
    average: Literal["mean", "support", "pooled"] = "mean"
    rows: Callable[[np.ndarray, np.ndarray], float] | None = None
    over: Literal["rows", "labels"] = "rows"
    arguments: dict[str, Any] = field(default_factory=dict)
    shown: Callable[[float], float] = float
    of: str = ""

    @property
    def two_classes(self) -> bool:
        """Whether a task whose labels are all the same has no number."""
        return self.defined == "two"

    @property
    def of_rows(self) -> bool:
        """Whether it is of all labels of a row together, so that no task has a number of its own."""
        return self.rows is not None

    @property
    def direction(self) -> float:
        """+1 where higher is better, else -1."""
        return 1.0 if self.higher_is_better else -1.0

    def is_defined(self, y: np.ndarray) -> bool:
        """Whether these labels of a task, none of them missing, are enough for a number."""
        if not y.size:
            return False
        if self.defined == "positive":
            return bool((y > 0).any())
        return self.defined == "any" or bool((y != y[0]).any())

    def of_task(self, y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> float:
        """The number of one task, whose labels are all there: NaN where it is not defined.

        >>> from mtldsl.scoring.measures import measure
        >>> measure("roc_auc").of_task(np.array([-1.0, 1.0, 1.0]), np.array([0.1, 0.3, 0.0]))
        0.5
        """
        if not self.is_defined(y):
            return float("nan")
        import sklearn.metrics

        if self.needs != "values":
            y = (y > 0).astype(int)
        if self.needs == "labels":
            predicted = (predicted > 0).astype(int)
        called = getattr(sklearn.metrics, self.function)
        return self.shown(float(called(y, predicted, sample_weight=weights, **self.arguments)))
