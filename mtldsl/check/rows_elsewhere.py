"""Losses of rows that are elsewhere in the second evaluation: all parts of few rows, some of many, at the price of a look or less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtldsl.compile.normal_form import NormalForm
from mtldsl.definitions.elsewhere import LossElsewhere
from mtldsl.definitions.typed_values import TypedPoint

__all__ = ["CheckSettings", "PartsCheck"]


@dataclass(frozen=True)
class CheckSettings:
    """Limits of what is read once more."""

    whole_entries: float = 4e6  # inputs up to which all rows are; a product with them takes some milliseconds
    parts_share: float = (
        0.05  # of more rows, so many of their parts, and one at least: the price of the check
    )


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
        number = parts.n_parts if self.is_whole else math.ceil(self.settings.parts_share * parts.n_parts)
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
