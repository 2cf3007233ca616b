"""Proximal step of a sum of functions, where it is exactly a composition of their own steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from mtldsl.atoms.atom import COLUMNS, MATRIX
from mtldsl.atoms.matrix_function import MatrixFunction

# --------------------------------------------------------------------------------------------------------------
# The steps of a composed prox: atoms of one kind folded into one, intervals entry by entry, inner functions first.


def folds(a: MatrixFunction, b: MatrixFunction) -> bool:
    """Tell whether c a + c' b is one atom of the same kind."""
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
class _MergedTerm:
    """coefficient * atom, the sum of the terms at `places`, each with its share of the multiplier."""

    places: tuple[int, ...]
    coefficient: float
    atom: MatrixFunction
    shares: tuple

    @classmethod
    def of(cls, members) -> _MergedTerm:
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
class _ClippedEntries:
    """A function of the entries (or none) and bounds on them: its prox, then clip."""

    inside: _MergedTerm | None
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


def _build_stages(places) -> list:
    """From (place, coefficient, atom): the stages, innermost first."""
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
    stages: list = [_MergedTerm.of(bundle) for bundle in bundles]
    if bounds:
        inside = next((stage for stage in stages if stage.atom.separable == "entries"), None)
        stages = [stage for stage in stages if stage is not inside] + [_ClippedEntries(inside, bounds)]
    ordered: list = []
    while stages:
        first = next(
            one
            for one in stages
            if all(
                _precedes(a, b)
                for other in stages
                if other is not one
                for a in one.atoms
                for b in other.atoms
            )
        )
        ordered.append(first)
        stages = [stage for stage in stages if stage is not first]
    return ordered


# --------------------------------------------------------------------------------------------------------------
# The prox of a sum of functions of one matrix, wherever it is *exactly* a composition of their proxes.
#
# Write P_f(W) = argmin over V of f(V) + 1/2 ||V - W||_F^2. Everything here rests on one fact (Yu, "On
# decomposing the proximal map", NIPS 2013, Theorem 1): if the subgradients of f at any Y remain subgradients at
# P_g(Y), then P_{f+g} = P_g P_f. Proof: let Y = P_f(W) and V = P_g(Y). Then W - Y is in df(Y), hence in df(V),
# and Y - V is in dg(V); their sum W - V is in d(f + g)(V), which is the optimality condition. Applied stage
# after stage it needs to hold for every pair (inner, outer) only.
#
# The pairs that are used, inner first, by the traits that atoms declare (`mtldsl.atoms.matrix_function`):
#
# * f positively homogeneous on its `parts` (a sum over parts of W of functions with f(c V) = c f(V)), then a g that
#   `scales`: its prox multiplies each of *its* parts by one number c >= 0, and each part of f lies within one part of g.
#   For then df(cY) contains df(Y) (Yu 2013, Theorem 4). So l1_norm and bounds at 0, whose parts are entries, then
#   any norm that depends on absolute values and grows with them (`monotone`: its prox keeps zeros and signs; Jenatton,
#   Mairal, Obozinski and Bach, "Proximal methods for hierarchical sparse coding", JMLR 2011); l1_inf_norm, then l21_norm, then
#   group_norm, then frobenius_norm or its ball, each cell of an inner one lying within one cell of the outer one; also
#   trace_norm, then frobenius_norm.
# * f whose subgradients depend on nothing but the order of the entries in every row (`ordinal`: total_variation), then
#   a g that is `order_preserving`: it maps the entries of a row by one and the same nondecreasing function (l1_norm and bounds
#   that are uniform along rows, l1_inf_norm; Friedman et al., "Pathwise coordinate optimization", Ann. Appl. Stat. 2007).
#
# Three sums are proxes outright: a function of the entries and bounds, entry by entry a convex function on an interval
# (prox, then clip); norms of the same cells, whose weights add up; and ridges, since completing the square
# gives P_{s(f + r/2 ||.||^2)}(W) = P_{s' f}(W / (1 + s r)) with s' = s / (1 + s r), for every f, and entrywise
# r where f is separable.

Terms = Sequence[tuple[float, MatrixFunction]]


def prox_of_sum(terms: Terms) -> ProxOfSum | None:
    """The prox of sum_k coefficient_k * atom_k on one matrix where it is exactly a composition, else None.

    Parameters
    ----------
    terms : list of (coefficient, atom)
        Regularizers with coefficients > 0 and sets (whose coefficient means nothing).

    Returns
    -------
    A callable (W, step) -> (V, multipliers) with V = argmin of step * sum + 1/2 ||V - W||_F^2 and one
    multiplier per term, in the order of the terms: v_k is a subgradient of coefficient_k * atom_k at V and
    sum_k v_k = (W - V) / step. Its method `prox(W, step)` returns V alone. None where `unsupported_reason(terms)` has
    something to say.

    Examples
    --------
    >>> import numpy as np
    >>> from mtldsl.atoms.regularizers import L1Norm, L12Norm, L21Norm
    >>> W = np.array([[4.0, -5.0], [1.0, 0.5]])
    >>> V, (v_l1, v_l21) = prox_of_sum([(1.0, L1Norm()), (2.5, L21Norm())])(W, 1.0)
    >>> V
    array([[ 1.5, -2. ], [ 0. ,  0. ]])
    >>> v_l21
    array([[ 1.5, -2. ], [ 0. ,  0. ]])
    >>> prox_of_sum([(1.0, L21Norm()), (1.0, L12Norm())]) is None
    True
    """
    return None if unsupported_reason(terms) else ProxOfSum(terms)


def unsupported_reason(terms: Terms) -> str:
    """One sentence that names what cannot be combined exactly; empty where `prox_of_sum` returns a prox."""
    for _, atom in terms:
        if not atom.exact_prox:
            return f"{atom.shown} has no exact prox."
    others = [atom for _, atom in terms if atom.entry_quadratic is None]
    if np.ndim(_ridge_weight(terms)):
        ridge = next(atom for _, atom in terms if (a := atom.entry_quadratic) is not None and np.ndim(a))
        for atom in others:
            if atom.separable != "entries":
                return f"{ridge.name} with unequal weights and {atom.shown} have no common closed-form prox."
    for i, first in enumerate(others):
        for second in others[i + 1 :]:
            if not (_precedes(first, second) or _precedes(second, first)):
                reason = _reason(first, second)
                return f"{first.shown} and {second.shown} have no common closed-form prox: {reason}."
    return ""


class ProxOfSum:
    """Result of `prox_of_sum`: ridges folded into a scaling, then one stage after another."""

    def __init__(self, terms: Terms):
        self._n_terms = len(terms)
        self._ridge = _ridge_weight(terms)
        squares = [(k, c, atom, atom.entry_quadratic) for k, (c, atom) in enumerate(terms)]
        self._ridges = [(k, c * a) for k, c, _, a in squares if a is not None]
        self._stages = _build_stages([(k, c, atom) for k, c, atom, a in squares if a is None])

    def prox(self, W, step) -> np.ndarray:
        """V alone."""
        W, step = self._fold_ridge(W, step)
        for stage in self._stages:
            W = stage.prox(W, step)
        return W

    def __call__(self, W, step) -> tuple[np.ndarray, list[np.ndarray]]:
        """(V, the multiplier of every term)."""
        multipliers: list = [None] * self._n_terms
        V, step = self._fold_ridge(W, step)
        for stage in self._stages:
            before, V = V, stage.prox(V, step)
            for k, multiplier in stage.multipliers(before, V, step):
                multipliers[k] = multiplier
        for k, weight in self._ridges:
            multipliers[k] = weight * V
        return V, multipliers

    def _fold_ridge(self, W, step):
        if not self._ridges:
            return W, step
        shrink = 1.0 / (1.0 + step * self._ridge)
        return shrink * W, shrink * step


# ------------------------------------------------------------------------------------------------- rules


def _precedes(inner: MatrixFunction, outer: MatrixFunction) -> bool:
    """Tell whether the prox of the sum is that of `inner`, then that of `outer`, or the two are one function: a rule of the docstring."""
    if folds(inner, outer) or _on_an_interval(inner, outer):
        return True
    if inner.homogeneous and outer.scales is not None and inner.parts.within(outer.scales):
        return True
    return inner.ordinal and outer.order_preserving


def _on_an_interval(a: MatrixFunction, b: MatrixFunction) -> bool:
    """Tell whether they are a convex function of the entries on an interval, one that is not empty."""
    if a.interval is not None and b.interval is not None:
        lows, highs = zip(a.interval, b.interval, strict=True)
        return not np.any(np.maximum(*lows) > np.minimum(*highs))
    inside = b if b.interval is None else a
    return (
        (a.interval is not None or b.interval is not None) and inside.separable == "entries" and inside.convex
    )


def _reason(a: MatrixFunction, b: MatrixFunction) -> str:
    """Why neither may be inside the other."""
    for atom in (a, b):
        if not (atom.homogeneous or atom.ordinal or atom.scales is not None or atom.interval is not None):
            return f"{atom.shown} combines with ridges only"
    if a.interval is not None and b.interval is not None:
        return "no matrix obeys both"
    whole = next((atom for atom in (b, a) if atom.scales == MATRIX), None)
    if whole is not None:
        return f"{(b if whole is a else a).shown} is not positively homogeneous"
    if "spectrum" in (a.separable, b.separable):
        return "singular values and entries cannot be thresholded together"
    if a.ordinal or b.ordinal:
        other = b if a.ordinal else a
        if other.scales == COLUMNS:
            return "scaling columns changes the order of neighbours"
        return f"{other.shown} treats the entries of a row differently"
    if a.interval is not None or b.interval is not None:
        return "only bounds at 0 can be applied before a norm"
    if all(
        "each" not in (atom.scales.rows, atom.scales.columns) for atom in (a, b) if atom.scales is not None
    ):
        return "their groups overlap without one holding the other"
    return "rows and columns overlap"


def _ridge_weight(terms: Terms):
    """Entrywise sum of the ridges' weights; a number where it is uniform."""
    squares = [(c, atom.entry_quadratic) for c, atom in terms]
    total = sum((c * a for c, a in squares if a is not None), 0.0)
    return float(np.ravel(total)[0]) if np.all(total == np.ravel(total)[0]) else total
