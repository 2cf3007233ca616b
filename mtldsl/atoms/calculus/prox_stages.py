"""The steps of a composed prox: atoms of one kind folded into one, intervals entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from mtldsl.atoms.function import MatrixFunction

__all__ = ["RANK", "build_stages", "folds", "interval", "is_bound", "rank", "weight_of"]

# Inner functions come first. A word that is not here stands alone, but for ridges.
RANK = {
    "total_variation": 0,
    "l1_norm": 1,
    "at_least": 1,
    "at_most": 1,
    "equal_to": 1,
    "trace_norm": 1,
    "l1_inf_norm": 2,
    "l21_norm": 3,
    "l12_norm": 3,
    "group_norm": 4,
    "frobenius_norm": 5,
    "frobenius_ball": 6,
}
_ENTRIES = (1, 0)  # rank of what treats every entry by itself


def rank(atom) -> tuple[int, int]:
    """Sorts inner before outer; group norms by the size of their largest group."""
    size = max(map(len, atom.groups)) if atom.name == "group_norm" else 0
    return RANK.get(atom.name, len(RANK)), size


def folds(a: MatrixFunction, b: MatrixFunction) -> bool:
    """Whether c a + c' b is one atom of the same kind."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    names = {field.name for field in fields(a)}
    return not names or names == {"weights"} or (a.name == "group_norm" and a.groups == b.groups)


def is_bound(atom) -> bool:
    return atom.name in ("at_least", "at_most", "equal_to")


def interval(atom) -> tuple:
    """(low, high) of a bound."""
    low = -np.inf if atom.name == "at_most" else atom.bound
    high = np.inf if atom.name == "at_least" else atom.bound
    return low, high


def weight_of(coefficient: float, atom):
    return coefficient if atom.weights is None else coefficient * atom.weights


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
        if not hasattr(atoms[0], "weights"):
            total = sum(coefficients)
            return cls(places, total, atoms[0], tuple(c / total for c in coefficients))
        weights = [weight_of(c, atom) for _, c, atom in members]
        total = sum(weights)
        safe = np.where(total > 0, total, 1.0)
        return cls(places, 1.0, replace(atoms[0], weights=total), tuple(w / safe for w in weights))

    def prox(self, W, step):
        return self.atom.prox(W, step * self.coefficient)

    def multipliers(self, before, after, step):
        return self.shared((before - after) / step)

    def shared(self, multiplier):
        if len(self.places) == 1:
            return [(self.places[0], multiplier)]
        spread = getattr(self.atom, "spread", lambda share, shape: share)
        return [
            (k, spread(share, multiplier.shape) * multiplier)
            for k, share in zip(self.places, self.shares, strict=True)
        ]


@dataclass(frozen=True)
class _Interval:
    """An l1 norm (or none) and bounds, entry by entry: soft threshold, then clip."""

    l1: _Together | None
    bounds: tuple[tuple[int, object, object], ...]  # (place, low, high)

    @cached_property
    def low(self):
        return np.maximum.reduce(np.broadcast_arrays(*(low for _, low, _ in self.bounds)))

    @cached_property
    def high(self):
        return np.minimum.reduce(np.broadcast_arrays(*(high for _, _, high in self.bounds)))

    def prox(self, W, step):
        return np.clip(W if self.l1 is None else self.l1.prox(W, step), self.low, self.high)

    def multipliers(self, before, after, step):
        left = (before - after) / step
        slope = 0.0
        if self.l1 is not None:
            threshold = self.l1.atom.thresholds(self.l1.coefficient)
            slope = np.where(after == 0, np.clip(left, -threshold, threshold), threshold * np.sign(after))
        # What the l1 norm's subgradient leaves over is the bounds': <= 0 at a lower, >= 0 at an upper one.
        at_low = np.where(after <= self.low, np.minimum(left - slope, 0.0), 0.0)
        at_high = np.where(after >= self.high, np.maximum(left - slope, 0.0), 0.0)
        left = left - at_low - at_high
        for k, low, high in self.bounds:
            # The first of several equal bounds takes all.
            mine_low = np.where(low == self.low, at_low, 0.0)
            mine_high = np.where(high == self.high, at_high, 0.0)
            at_low, at_high = at_low - mine_low, at_high - mine_high
            yield k, mine_low + mine_high
        if self.l1 is not None:
            yield from self.l1.shared(left)


def build_stages(places) -> list:
    """From (place, coefficient, atom): the stages, innermost first."""
    bounds = [(k, *interval(atom)) for k, _, atom in places if is_bound(atom)]
    bundles: list[list] = []
    for place in places:
        if is_bound(place[2]):
            continue
        for bundle in bundles:
            if folds(bundle[0][2], place[2]):
                bundle.append(place)
                break
        else:
            bundles.append([place])
    stages = [_Together.of(bundle) for bundle in sorted(bundles, key=lambda bundle: rank(bundle[0][2]))]
    if not bounds:
        return stages
    l1 = next((stage for stage in stages if stage.atom.name == "l1_norm"), None)
    inner = [stage for stage in stages if rank(stage.atom) < _ENTRIES]
    outer = [stage for stage in stages if rank(stage.atom) > _ENTRIES]
    return [*inner, _Interval(l1, tuple(bounds)), *outer]
