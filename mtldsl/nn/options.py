"""How networks are built and trained: the options that all of them share, checked when they are typed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtldsl.atoms.parameters import checked_number
from mtldsl.errors import ModelError
from mtldsl.nn.layers import ACTIVATIONS

__all__ = ["NetworkOptions"]


@dataclass(kw_only=True, eq=False)
class NetworkOptions:
    """The options of `MultiTaskNetwork` but for its structure; described there."""

    hidden: tuple[int, ...] = (256, 100)
    weight_decay: float = 0.0
    activation: str = "relu"
    intercept: bool = True
    standardize: bool = True
    epochs: int = 100
    batch_size: int | None = 64
    learning_rate: float = 1e-3
    patience: int | None = None
    threads: int | None = 1
    random_state: int | np.random.Generator | np.random.SeedSequence | None = None

    def __post_init__(self):
        word = type(self).__name__

        def whole(name, value):
            return int(
                checked_number(
                    word, name, value, lambda v: v >= 1 and v == int(v), "a whole number of at least 1"
                )
            )

        try:
            sizes = tuple(self.hidden)
        except TypeError:
            raise ModelError(
                f"{word}(hidden={self.hidden!r}): write the sizes of the layers, hidden=(256, 100)"
            ) from None
        self.hidden = tuple(whole("hidden", size) for size in sizes)
        self.epochs = whole("epochs", self.epochs)
        for name in ("batch_size", "patience", "threads"):
            value = getattr(self, name)
            setattr(self, name, None if value is None else whole(name, value))
        self.weight_decay = checked_number(
            word, "weight_decay", self.weight_decay, lambda v: v >= 0, "a number >= 0"
        )
        self.learning_rate = checked_number(
            word, "learning_rate", self.learning_rate, lambda v: v > 0, "a number > 0", largest=np.inf
        )
        if self.activation not in ACTIVATIONS:
            raise ModelError(
                f"{word}(activation={self.activation!r}): write one of {', '.join(map(repr, ACTIVATIONS))}"
            )
        try:
            np.random.default_rng(self.random_state)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"{word}(random_state={self.random_state!r}): {error}",
                write_instead="write a whole number >= 0",
            ) from None
