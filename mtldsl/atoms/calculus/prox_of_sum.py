r"""The prox of a sum of functions of one matrix, wherever it is *exactly* a composition of their proxes.

Write P_f(W) = argmin over V of f(V) + 1/2 ||V - W||_F^2. Everything here rests on one fact (Yu, "On
decomposing the proximal map", NIPS 2013, Theorem 1): if the subgradients of f at any Y remain subgradients at
P_g(Y), then P_{f+g} = P_g P_f. Proof: let Y = P_f(W) and V = P_g(Y). Then W - Y is in df(Y), hence in df(V),
and Y - V is in dg(V); their sum W - V is in d(f + g)(V), which is the optimality condition. Applied stage
after stage it needs to hold for every pair (inner, outer) only.

The pairs that are used, inner first, by the traits that atoms declare (`mtldsl.atoms.function`):

* f positively homogeneous on its `parts` (a sum over parts of W of functions with f(c V) = c f(V)), then a g that
  `scales`: its prox multiplies each of *its* parts by one number c >= 0, and each part of f lies within one part of g.
  For then df(cY) contains df(Y) (Yu 2013, Theorem 4). So l1_norm and bounds at 0, whose parts are entries, then
  any norm that depends on absolute values and grows with them (`monotone`: its prox keeps zeros and signs; Jenatton,
  Mairal, Obozinski and Bach, "Proximal methods for hierarchical sparse coding", JMLR 2011); l1_inf_norm, then l21_norm, then
  group_norm, then frobenius_norm or its ball, each cell of an inner one lying within one cell of the outer one; also
  trace_norm, then frobenius_norm.
* f whose subgradients depend on nothing but the order of the entries in every row (`ordinal`: total_variation), then
  a g that is `order_preserving`: it maps the entries of a row by one and the same nondecreasing function (l1_norm and bounds
  that are uniform along rows, l1_inf_norm; Friedman et al., "Pathwise coordinate optimization", Ann. Appl. Stat. 2007).

Three sums are proxes outright: a function of the entries and bounds, entry by entry a convex function on an interval
(prox, then clip); norms of the same cells, whose weights add up; and ridges, since completing the square
gives P_{s(f + r/2 ||.||^2)}(W) = P_{s' f}(W / (1 + s r)) with s' = s / (1 + s r), for every f, and entrywise
r where f is separable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.atoms.calculus.prox_stages import build_stages, folds
from mtldsl.atoms.function import MatrixFunction
from mtldsl.atoms.parts import COLUMNS, MATRIX

__all__ = ["ProxOfSum", "prox_of_sum", "why_not"]

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
    sum_k v_k = (W - V) / step. Its method `prox(W, step)` returns V alone. None where `why_not(terms)` has
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
    return None if why_not(terms) else ProxOfSum(terms)


def why_not(terms: Terms) -> str:
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
    """What `prox_of_sum` returns: ridges folded into a scaling, then one stage after another."""

    def __init__(self, terms: Terms):
        self._n_terms = len(terms)
        self._ridge = _ridge_weight(terms)
        squares = [(k, c, atom, atom.entry_quadratic) for k, (c, atom) in enumerate(terms)]
        self._ridges = [(k, c * a) for k, c, _, a in squares if a is not None]
        self._stages = build_stages([(k, c, atom) for k, c, atom, a in squares if a is None], _precedes)

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
    """Whether the prox of the sum is that of `inner`, then that of `outer`, or the two are one function: a rule of the docstring."""
    if folds(inner, outer) or _on_an_interval(inner, outer):
        return True
    if inner.homogeneous and outer.scales is not None and inner.parts.within(outer.scales):
        return True
    return inner.ordinal and outer.order_preserving


def _on_an_interval(a: MatrixFunction, b: MatrixFunction) -> bool:
    """Whether they are a convex function of the entries on an interval, one that is not empty."""
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
