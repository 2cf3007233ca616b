"""How weights answer new inputs: task by task, in whole labellings, or kind by kind. The loss says which.

A loss that predicts in a way of its own adds a file with a `Predictor`, and a line to `PREDICTORS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np

from mtldsl.scoring.measure import Needs
from mtldsl.scoring.measures import OF_KINDS
from mtldsl.solution.by_kind import ByKind
from mtldsl.solution.by_task import Fitted, TaskByTask, decided, loss_kind, loss_of, probabilities
from mtldsl.solution.labellings import Labellings
from mtldsl.solution.one_class import OneClass
from mtldsl.tasks import Tasks
from mtldsl.tasks.labels import require_kind

__all__ = [
    "LAZY_INPUTS",
    "PREDICTORS",
    "Fitted",
    "Predictor",
    "TaskByTask",
    "decided",
    "default_measure",
    "loss_of",
    "predictor_class",
    "predictor_for",
    "predictor_of",
    "probabilities",
    "require_signs",
    "sign_tasks",
]


class Predictor(Protocol):
    """The methods of a Solution that look at inputs; documented there."""

    def __init__(self, of: Any): ...

    def decision_function(self, X) -> Any: ...

    def predict(self, X, return_certified: bool) -> Any: ...

    def predict_proba(self, X) -> Any: ...

    def scores(self, tasks: Tasks, metric, method: str) -> np.ndarray: ...

    def tuned_thresholds(self, tasks: Tasks, metric, typed: str) -> np.ndarray: ...

    def outputs(self, inputs, needs: Needs, typed: str) -> list[np.ndarray]:
        """What a measure needs, one vector a task: of inputs in the features that were learned on, one matrix or one a task."""
        ...

    @staticmethod
    def check(fields: dict) -> None:
        """ValueError where the fields of a file are not a Solution that predicts in this way."""
        ...


#: By the package of a type of inputs, which is not imported for the question.
LAZY_INPUTS = dict.fromkeys(("dask", "dask_expr"), "mtldsl.solution.on_workers")

#: By the kind of labels that a loss takes; every other loss predicts task by task.
PREDICTORS: dict[str, type[Predictor]] = {"indicators": Labellings, "classes": OneClass}


def predictor_class(loss: dict) -> type[Predictor]:
    """Who answers for weights that were learned with this loss, {"word": ..., ...}."""
    if "kinds" in loss:
        return ByKind
    return PREDICTORS.get(loss_kind(loss).labels, TaskByTask)


def predictor_of(fitted: Fitted) -> Predictor:
    return predictor_class(fitted.loss)(fitted)


def predictor_for(fitted: Fitted, X) -> Any:
    """Who predicts for these inputs: the package of their type may have predictors that leave them where they are."""
    module = LAZY_INPUTS.get(type(X).__module__.partition(".")[0])
    return predictor_of(fitted) if module is None else import_module(module).predictor_for(fitted, X)


def default_measure(loss: dict) -> str:
    """What scores the answers where nothing else is asked for: accuracy of labels, R^2 of numbers."""
    if loss["labels"] == "mixed":
        return OF_KINDS.name
    return "accuracy" if loss["labels"] in ("sign", "indicators") else "r2"


def sign_tasks(loss: dict, n_tasks: int) -> np.ndarray:
    """(m,) which tasks have labels -1 and +1."""
    if "kinds" not in loss:
        return np.full(n_tasks, loss.get("labels") in ("sign", "indicators"))
    found = np.zeros(n_tasks, dtype=bool)
    for kind in loss["kinds"]:
        found[kind["columns"]] = kind["labels"] == "sign"
    return found


def require_signs(fitted: Fitted, tasks: Tasks, typed: str, needs: Needs) -> None:
    """DataError unless all labels are -1 or +1, of the tasks that a measure with these needs takes for labels and not for numbers."""
    if needs == "values":
        return
    known = needs == "answers" or "kinds" in fitted.loss
    of_labels = sign_tasks(fitted.loss, tasks.n_tasks) if known else np.ones(tasks.n_tasks, bool)
    if of_labels.any():
        require_kind(tasks if of_labels.all() else tasks.select(of_labels), "sign", typed)
