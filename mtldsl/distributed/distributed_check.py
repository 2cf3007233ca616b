"""Losses of rows that are elsewhere, as typed: the plain formulas where the rows are, and sums of them here."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from mtldsl.certificates.plain.plain_formula import DEFINITIONS
from mtldsl.certificates.plain.plain_values import (
    EPS,
    TypedPoint,
    matrix_of,
    over_tasks,
    pointwise,
    predictions,
    rounding_of_samples,
    rounding_seen,
    sums_of_tasks,
    totals_of,
)
from mtldsl.distributed.partitions import ByTask, PartitionTasks, RowParts, TaskSum, cut_by_task

_NOTHING = TaskSum(np.zeros(0, int), np.zeros((0, 3)))


@dataclass(frozen=True)
class PartsCheckSettings:
    """Limits of what is read once more.

    whole_entries   : inputs up to which all rows are read; a product takes milliseconds
    checked_share   : of the parts of more rows: the price of the check
    sign_directions : random signs of rounding errors that losses of whole tasks are tried with
    """

    whole_entries: float = 4e6
    checked_share: float = 0.05
    sign_directions: int = 5


SETTINGS = PartsCheckSettings()


def _sums_of_part(part: PartitionTasks, atom: Any, function, size, W, b, W_sizes, b_sizes) -> TaskSum:
    """Add up losses, bounds of their rounding, and weights (k, 3)."""
    one, tasks, own = SimpleNamespace(atom=atom, tasks=part.tasks), part.tasks, part.which
    with np.errstate(all="ignore"):
        z = predictions(tasks, part.columns(W), None if b is None else b[own])
        sizes = predictions(tasks, part.columns(W_sizes), None if b is None else b_sizes[own], sizes=True)
        rounding = sums_of_tasks(one, rounding_of_samples(one, function, size, z, sizes))
        sums = sums_of_tasks(one, pointwise(function, one, z))
    return TaskSum(own, np.stack([sums, rounding, totals_of(tasks)], axis=1))


def _columns(part: PartitionTasks, _, W, b, sizes, direction: int | None) -> tuple[ByTask, None]:
    """Give the predictions of a part's rows, their labels, and sample weights where there are any. direction: of random signs, in which
    rounding has moved them.
    """
    tasks, own = part.tasks, part.which
    z = predictions(tasks, part.columns(W), None if b is None else b[own])
    if direction is not None:
        reach = predictions(tasks, part.columns(sizes[0]), None if b is None else sizes[1][own], sizes=True)
        signs = np.random.default_rng([direction, part.index]).choice([-1.0, 1.0], z.size)
        z = z + EPS * (8.0 + np.sqrt(tasks.n_features)) * (reach + np.abs(tasks.targets)) * signs
    weights = () if tasks.sample_weights is None else (tasks.sample_weights,)
    return cut_by_task(part.which, tasks.offsets, (z, tasks.targets, *weights)), None


def _of_tasks(columns: ByTask, atom: Any, function: Callable) -> tuple[ByTask, TaskSum]:
    """Give loss and weight (k, 2) of every whole task."""
    found = []
    for i, (z, y, *s) in columns.items():
        with np.errstate(all="ignore"):
            loss = function(z, y, s[0] if s else None, atom.of_task(i))
        found.append((loss, np.sum(s[0]) if s else len(z)))
    return {}, TaskSum(np.array([*columns]), np.array(found, float))


class PartsCheck:
    """A loss as typed at a point, and in the normal form, over the parts that are looked at.

    Over some of many parts both are made of the same rows, so that the loss as typed is the claim and what the two are apart. Rows of a
    task lie in several parts: what is a function of a whole task gathers its predictions where one worker has all of them.
    """

    def __init__(self, form: Any, term: Any, point: TypedPoint):
        self.term, self.x, self.definition = term, point.blocks, DEFINITIONS.get(term.atom.name)
        self.W, self.b = matrix_of(term.argument.tree, point.blocks), point.intercept(term)
        self.sizes = lambda: (
            matrix_of(term.argument.tree, point.blocks, sizes=True),
            point.intercept(term, sizes=True),
        )
        self.losses: list[Any] = [loss for loss in form.losses if loss.typed == term.text]
        parts, tasks = term.tasks.parts, term.tasks
        # known by sums over any rows; else over whole tasks
        self.is_of_samples = self.definition is not None and self.definition.kind == "samples"
        self.is_few = tasks.n_samples * tasks.n_features <= SETTINGS.whole_entries
        self.is_whole = self.is_few or not self.is_of_samples or len(self.losses) != 1
        number = parts.n_parts if self.is_whole else math.ceil(SETTINGS.checked_share * parts.n_parts)
        # other parts at other solves of the same rows
        chosen = np.random.default_rng(parts.passes).permutation(parts.n_parts)[:number]
        self.parts: RowParts = parts.some(sorted(chosen.tolist()))

    def value(self) -> float | None:
        """Return the term as typed over all rows; None where its word has no plain formula."""
        typed = self.typed_value()
        if typed is None or self.is_whole:
            return typed
        return self.losses[0].claim(self.x) + (typed - self.own())

    def typed_value(self) -> float | None:
        """Return coefficient * word(argument), over the parts that are looked at; None where the word has no plain formula."""
        if self.definition is None:
            return None
        if not self.is_of_samples:
            return self._of_whole_tasks()
        sums, _, totals = self._sums
        return self._together(sums, totals)

    def own(self) -> float:
        """Return the term as the normal form has it, over the parts that are looked at."""
        return sum(loss.claim_of(self.parts, self.x)[0] for loss in self.losses)

    def rounding(self) -> float:
        """Bound how far rounding, here or there, may have moved typed and own value."""
        return self._typed_rounding() + sum(loss.claim_of(self.parts, self.x)[1] for loss in self.losses)

    def _typed_rounding(self) -> float:
        if self.definition is None:
            return 0.0
        if not self.is_of_samples:
            plain = self._of_whole_tasks()
            moved = [self._of_whole_tasks(direction) for direction in range(SETTINGS.sign_directions)]
            return rounding_seen(plain, moved)
        sums, rounding, totals = self._sums
        if self.definition.of_sum is None:
            return abs(self._together(rounding, totals))
        low, high = np.maximum(sums - rounding, 0.0), sums + rounding
        return abs(self._together(high, totals) - self._together(low, totals))

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(losses, bounds of their rounding, weights of the samples) of every task, (m,) each, added up over the parts."""
        definition, tasks = self.definition, self.term.tasks
        assert definition is not None
        sent = definition.function, definition.size, self.W, self.b, *self.sizes()
        found = self.parts.run(_sums_of_part, self.term.atom, *sent)
        found = _NOTHING if found is None else found  # of parts without a labelled row
        sums, rounding, totals = found.of_all(tasks.n_tasks).T
        if self.parts.n_parts < tasks.parts.n_parts:
            totals = tasks.label_facts.weights if tasks.is_weighted else tasks.counts
        return sums, rounding, totals

    def _of_whole_tasks(self, direction: int | None = None) -> float:
        assert self.definition is not None
        n_tasks, given = self.term.tasks.n_tasks, (self.term.atom, self.definition.function)
        columns, _ = self.parts.run(_columns, self.W, self.b, self.sizes(), direction, stateful=True)
        sums = self.parts.exchanged(columns, n_tasks, _of_tasks, *given)[1].of_all(n_tasks)
        return self._together(sums[:, 0], sums[:, 1])

    def _together(self, sums: np.ndarray, totals: np.ndarray) -> float:
        """Return what a term is whose tasks' losses add up to these sums (m,)."""
        of_sum = None if self.definition is None else self.definition.of_sum
        with np.errstate(all="ignore"):
            return float(self.term.coefficient.value * over_tasks(self.term, sums, of_sum, totals))
