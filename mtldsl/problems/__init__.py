"""`Problem`, and a file for each of its methods: paths, cross-validation, critical parameters, resampling, bounds of a user, the cross-check, models of papers."""

from mtldsl.problems.named_model import NamedModel
from mtldsl.problems.named_models import MODELS, find, model, models

__all__ = [
    "MODELS",
    "NamedModel",
    "find",
    "model",
    "models",
]
