"""Models of papers by name: each is its statement in the language, as text, so that what is documented is what is solved."""

from mtldsl.named_models.lookup import find, model, models
from mtldsl.named_models.named_model import NamedModel
from mtldsl.named_models.papers import MODELS

__all__ = ["MODELS", "NamedModel", "find", "model", "models"]
