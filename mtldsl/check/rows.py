"""Losses of many rows in the second evaluation: a share of them stands for all, at a twentieth of the price of a look."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.loss_term import LossTerm
from mtldsl.compile.normal_form import NormalForm
from mtldsl.definitions.formula import DEFINITIONS
from mtldsl.definitions.predictions import matrix_of, some_predictions, some_samples
from mtldsl.definitions.typed_values import TypedPoint, totals_of

__all__ = ["CheckSettings", "ShareCheck"]


@dataclass(frozen=True)
class CheckSettings:
    """Limits of what is read once more."""

    whole_samples: int = 1 << 14  # labelled rows in memory up to which all are; they take .1 ms
    share: float = 0.05  # of more rows, so many of them: the price of the check


class ShareCheck:
    """A loss of samples as typed, and in the normal form, over a share of the samples, another at another point."""

    settings = CheckSettings()

    def __init__(self, form: NormalForm, term: Any, point: TypedPoint):
        self.term, self.x = term, point.blocks
        self.W, self.b = matrix_of(term.argument.tree, point.blocks), point.intercept(term)
        self.loss: Any = next(loss for loss in form.losses if loss.typed == term.text)
        tasks = term.tasks
        step = min(round(1.0 / self.settings.share), tasks.n_samples // tasks.n_tasks)
        self.some = slice(zlib.crc32(self.W.tobytes()) % step, None, step)

    @classmethod
    def is_for(cls, form: NormalForm, term: Any) -> bool:
        """Tell whether the samples of a loss are many, and its value is a sum over them."""
        definition, losses = DEFINITIONS.get(term.atom.name), [f for f in form.losses if f.typed == term.text]
        is_sum = definition is not None and definition.kind == "samples" and definition.of_sum is None
        return (
            is_sum
            and not term.worst
            and term.tasks.n_samples > cls.settings.whole_samples
            and len(losses) == 1
            and type(losses[0]) is LossTerm
            and losses[0].tasks is term.tasks
        )

    def value(self) -> float:
        """Return the term as typed over all samples: what the normal form, which remembers it, says of them all, and how far it is off."""
        own = self.loss.value_at(self.x)
        predicted = self._some(self.loss.known_predictions(self.x))
        apart = self.typed_value() - self._own(predicted)
        return own + apart * self.term.tasks.n_samples / predicted.size

    def typed_value(self) -> float:
        """Return the term as typed over the samples that are looked at."""
        tasks, weights = self.term.tasks, self.term.tasks.sample_weights
        task, z = some_predictions(tasks, self.W, self.b, self.some)
        with np.errstate(all="ignore"):
            l = DEFINITIONS[self.term.atom.name].function(z, self._some(tasks.targets), self.term.atom)
            l = l if weights is None else self._some(weights) * l
            l = l / totals_of(tasks)[task] if self.term.mean else l
            return float(self.term.coefficient.value * np.sum(l))

    def _own(self, predicted: np.ndarray) -> float:
        scale = None if self.loss.scale is None else self._some(self.loss.scale)
        with np.errstate(all="ignore"):
            return self.loss.atom.value(predicted, self._some(self.loss.tasks.targets), scale)

    def _some(self, values: np.ndarray) -> np.ndarray:
        return some_samples(self.term.tasks, values, self.some)
