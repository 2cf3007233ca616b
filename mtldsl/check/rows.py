"""Losses of many rows in the second evaluation: a share of them stands for all, at a twentieth of the price of a look."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.loss_term import LossTerm
from mtldsl.compile.normal_form import NormalForm
from mtldsl.definitions.elsewhere import LossElsewhere
from mtldsl.definitions.formula import DEFINITIONS
from mtldsl.definitions.predictions import matrix_of, some_predictions, some_samples
from mtldsl.definitions.typed_values import TypedPoint, totals_of

__all__ = ["CheckSettings", "PartsCheck", "ShareCheck"]


@dataclass(frozen=True)
class CheckSettings:
    """Limits of what is read once more."""

    whole_samples: int = 1 << 14  # labelled rows in memory up to which all are; they take .1 ms
    whole_entries: float = 4e6  # inputs elsewhere up to which all rows are; a product takes milliseconds
    share: float = 0.05  # of more rows, so many of them or of their parts: the price of the check


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


class PartsCheck:
    """A loss as typed, and in the normal form, over the parts that are looked at.

    Over some of many parts both are made of the same rows, so that the loss as typed is the claim and what the two are apart.
    """

    settings = CheckSettings()

    def __init__(self, form: NormalForm, term: Any, point: TypedPoint):
        self.typed, self.x = LossElsewhere(point, term), point.blocks
        self.losses: list[Any] = [loss for loss in form.losses if loss.typed == term.text]
        parts, tasks = term.tasks.parts, term.tasks
        self.is_whole = self.are_few(tasks) or not self.typed.is_of_samples or len(self.losses) != 1
        number = parts.n_parts if self.is_whole else math.ceil(self.settings.share * parts.n_parts)
        # other parts at other solves of the same rows
        chosen = np.random.default_rng(parts.passes).permutation(parts.n_parts)[:number]
        self.parts = parts.some(sorted(chosen.tolist()))

    @classmethod
    def are_few(cls, tasks: Any) -> bool:
        """Tell whether all of these rows are looked at."""
        return tasks.n_samples * tasks.n_features <= cls.settings.whole_entries

    def value(self) -> float | None:
        """Return the term as typed over all rows; None where its word has no plain formula."""
        typed = self.typed_value()
        if typed is None or self.is_whole:
            return typed
        return self.losses[0].claim(self.x) + (typed - self.own())

    def typed_value(self) -> float | None:
        """Return the term as typed over the parts that are looked at; None where its word has no plain formula."""
        return self.typed.value(self.parts)

    def own(self) -> float:
        """Return the term as the normal form has it, over the parts that are looked at."""
        return sum(loss.claim_of(self.parts, self.x)[0] for loss in self.losses)

    def rounding(self) -> float:
        """Bound how far rounding may have moved typed and own value."""
        own = sum(loss.claim_of(self.parts, self.x)[1] for loss in self.losses)
        return self.typed.rounding(self.parts) + own
