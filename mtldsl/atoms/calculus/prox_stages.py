"""The steps of a composed prox: atoms of one kind folded into one, intervals entry by entry, inner functions first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from mtldsl.atoms.function import MatrixFunction

__all__ = ["build_stages", "folds"]


def folds(a: MatrixFunction, b: MatrixFunction) -> bool:
    """Whether c a + c' b is one atom of the same kind."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    names = [field.name for field in fields(a) if not (a.weights_add and field.name == "weights")]
    return all(_same(getattr(a, name), getattr(b, name)) for name in names)


def _same(x, y) -> bool:
    if isinstance(x, MatrixFunction):  # the norm of a ball
        return type(x) is type(y) and all(_same(getattr(x, f.name), getattr(y, f.name)) for f in fields(x))
    arrays = isinstance(x, np.ndarray) or isinstance(y, np.ndarray)
    return x is y or (not arrays and bool(x == y))


@dataclass(frozen=True)
class _Together:
    """coefficient * atom, the sum of the terms at `places`, each with its share of the multiplier."""

    places: tuple[int, ...]
    coefficient: float
    atom: MatrixFunction
    shares: tuple

    @classmethod
    def of(cls, members) -> _Together:
        places, coefficients, atoms = zip(*members, strict=True)
        if len(members) == 1:
            return cls(places, coefficients[0], atoms[0], (1.0,))
        if not atoms[0].weights_add:
            total = sum(coefficients)
            return cls(places, total, atoms[0], tuple(c / total for c in coefficients))
        weights = [c if atom.weights is None else c * atom.weights for _, c, atom in members]
        total = sum(weights)
        safe = np.where(total > 0, total, 1.0)
        return cls(places, 1.0, replace(atoms[0], weights=total), tuple(w / safe for w in weights))

    @property
    def atoms(self) -> tuple[MatrixFunction, ...]:
        return (self.atom,)

    def prox(self, W, step):
        return self.atom.prox(W, step * self.coefficient)

    def multipliers(self, before, after, step):
        return self.shared((before - after) / step)

    def shared(self, multiplier):
        if len(self.places) == 1:
            return [(self.places[0], multiplier)]
        return [
            (k, self.atom.spread(share, multiplier.shape) * multiplier)
            for k, share in zip(self.places, self.shares, strict=True)
        ]


@dataclass(frozen=True)
class _Interval:
    """A function of the entries (or none) and bounds on them: its prox, then clip."""

    inside: _Together | None
    bounds: tuple[tuple[int, MatrixFunction], ...]  # (place, atom)

    @property
    def atoms(self) -> tuple[MatrixFunction, ...]:
        return (*(() if self.inside is None else self.inside.atoms), *(atom for _, atom in self.bounds))

    @cached_property
    def intervals(self) -> list[tuple[int, tuple]]:
        """(place, (low, high)) of every bound."""
        return [(k, interval) for k, atom in self.bounds if (interval := atom.interval) is not None]

    @cached_property
    def low(self):
        return np.maximum.reduce(np.broadcast_arrays(*(low for _, (low, _) in self.intervals)))

    @cached_property
    def high(self):
        return np.minimum.reduce(np.broadcast_arrays(*(high for _, (_, high) in self.intervals)))

    def prox(self, W, step):
        return np.clip(W if self.inside is None else self.inside.prox(W, step), self.low, self.high)

    def multipliers(self, before, after, step):
        left = (before - after) / step
        slope = 0.0
        if self.inside is not None:
            c = self.inside.coefficient
            slope = np.clip(left, *(c * end for end in self.inside.atom.entry_slopes(after)))
        # What the function's subgradient leaves over is the bounds': <= 0 at a lower, >= 0 at an upper one.
        at_low = np.where(after <= self.low, np.minimum(left - slope, 0.0), 0.0)
        at_high = np.where(after >= self.high, np.maximum(left - slope, 0.0), 0.0)
        left = left - at_low - at_high
        for k, (low, high) in self.intervals:
            # The first of several equal bounds takes all.
            mine_low = np.where(low == self.low, at_low, 0.0)
            mine_high = np.where(high == self.high, at_high, 0.0)
            at_low, at_high = at_low - mine_low, at_high - mine_high
            yield k, mine_low + mine_high
        if self.inside is not None:
            yield from self.inside.shared(left)


def build_stages(places, precedes: Callable) -> list:
    """From (place, coefficient, atom): the stages, innermost first, by `precedes(a, b)`: whether a may be inside b."""
    bounds = tuple((k, atom) for k, _, atom in places if atom.interval is not None)
    bundles: list[list] = []
    for place in places:
        if place[2].interval is not None:
            continue
        for bundle in bundles:
            if folds(bundle[0][2], place[2]):
                bundle.append(place)
                break
        else:
            bundles.append([place])
    stages: list = [_Together.of(bundle) for bundle in bundles]
    if bounds:
        inside = next((stage for stage in stages if stage.atom.separable == "entries"), None)
        stages = [stage for stage in stages if stage is not inside] + [_Interval(inside, bounds)]
    return _in_order(stages, precedes)


def _in_order(stages: list, precedes: Callable) -> list:
    """Innermost first: each may be inside all that follow it."""
    ordered: list = []
    while stages:
        first = next(
            one
            for one in stages
            if all(
                precedes(a, b) for other in stages if other is not one for a in one.atoms for b in other.atoms
            )
        )
        ordered.append(first)
        stages = [stage for stage in stages if stage is not first]
    return ordered
