"""What is asked of a model beside its solution: the parameter value at which weights vanish, the refit on a graph, cross-validation, confidence."""

from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import MODELS, find, model, models

__all__ = [
    "MODELS",
    "NamedModel",
    "find",
    "model",
    "models",
]
