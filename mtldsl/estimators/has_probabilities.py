"""What the words of a classifier's model say of it: whether it has `predict_proba`, and whether its loss is of all classes of a row."""

from __future__ import annotations

from mtldsl.atoms.function import REGISTRY
from mtldsl.errors import MTLError

__all__ = ["compares_classes", "models_probabilities"]


def compares_classes(self) -> bool:
    """Whether a loss of the model is of all classes of a row together. A function does not say so before it is on data."""
    words = self._stated().words or ()
    return any(getattr(REGISTRY.get(word), "labels", "") == "classes" for word in words)


def models_probabilities(self) -> bool:
    """Whether predict_proba is there: it is calibrated, or a loss of the model is a likelihood. Asked before fitting, of a statement's words."""
    if getattr(self, "calibration", None) is not None:
        return True
    facts = getattr(getattr(self, "solution_", None), "loss", None)
    if facts:
        words = {facts["word"]}
    else:
        try:
            words = self._stated().words
        except MTLError:
            return False
    if words is None or any(hasattr(REGISTRY.get(word), "probability") for word in words):
        return True
    raise AttributeError(
        f"{type(self).__name__} has no predict_proba here: {' and '.join(sorted(words & set(REGISTRY)))} model no "
        "probabilities; write logistic_loss in the model, or calibration='sigmoid', or call decision_function"
    )
