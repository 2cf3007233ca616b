r"""The prox of a sum of functions of one matrix, wherever it is *exactly* a composition of their proxes.

Write P_f(W) = argmin over V of f(V) + 1/2 ||V - W||_F^2. Everything here rests on one fact (Yu, "On
decomposing the proximal map", NIPS 2013, Theorem 1): if the subgradients of f at any Y remain subgradients at
P_g(Y), then P_{f+g} = P_g P_f. Proof: let Y = P_f(W) and V = P_g(Y). Then W - Y is in df(Y), hence in df(V),
and Y - V is in dg(V); their sum W - V is in d(f + g)(V), which is the optimality condition. Applied stage
after stage it needs to hold for every pair (inner, outer) only.

The pairs that are used, inner first:

* l1_norm, or one-sided bounds at 0 (W >= 0, W <= 0), then any norm that depends on absolute values and grows
  with them (l1_inf_norm, l21_norm, l12_norm, group_norm, frobenius_norm): such a prox keeps zeros and signs,
  which is all that these subgradients depend on (Jenatton, Mairal, Obozinski and Bach, "Proximal methods for
  hierarchical sparse coding", JMLR 2011).
* a positively homogeneous f, then the Euclidean norm (frobenius_norm, frobenius_ball) of all it acts on: that
  prox multiplies by one number c >= 0, and df(cY) contains df(Y) (Yu 2013, Theorem 4). So l1_inf_norm, then
  l21_norm, then group_norm, then frobenius_norm, each cell of an inner one lying within one cell of the outer
  one; also trace_norm, then frobenius_norm.
* total_variation, then whatever maps the entries of a row by one and the same nondecreasing function (l1_norm
  and bounds that are uniform along rows, l1_inf_norm, l21_norm, group_norm, frobenius_norm): neighbours keep
  their order, and the subgradients depend on that order only (Friedman et al., "Pathwise coordinate
  optimization", Ann. Appl. Stat. 2007).

Three sums are proxes outright: an l1 norm and bounds, entry by entry a convex function on an interval (soft
threshold, then clip); norms of the same cells, whose weights add up; and ridges, since completing the square
gives P_{s(f + r/2 ||.||^2)}(W) = P_{s' f}(W / (1 + s r)) with s' = s / (1 + s r), for every f, and entrywise
r where f is separable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.atoms.calculus.prox_stages import RANK, build_stages, folds, interval, is_bound, rank, weight_of
from mtldsl.atoms.function import MatrixFunction

__all__ = ["ProxOfSum", "prox_of_sum", "why_not"]

Terms = Sequence[tuple[float, MatrixFunction]]

_WHOLE = ("frobenius_norm", "frobenius_ball")
_CELLS = ("l1_inf_norm", "l21_norm", "l12_norm", "group_norm")


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
            return f"{atom.name} has no exact prox."
    others = [atom for _, atom in terms if atom.name != "ridge"]
    if np.ndim(_ridge_weight(terms)):
        for atom in others:
            if atom.name != "l1_norm" and not is_bound(atom):
                return f"ridge with unequal weights and {atom.name} have no common closed-form prox."
    for i, first in enumerate(others):
        for second in others[i + 1 :]:
            reason = _conflict(*sorted([first, second], key=rank))
            if reason:
                return f"{first.name} and {second.name} have no common closed-form prox: {reason}."
    return ""


class ProxOfSum:
    """What `prox_of_sum` returns: ridges folded into a scaling, then one stage after another."""

    def __init__(self, terms: Terms):
        self._n_terms = len(terms)
        self._ridge = _ridge_weight(terms)
        self._ridges = [(k, weight_of(c, atom)) for k, (c, atom) in enumerate(terms) if atom.name == "ridge"]
        self._stages = build_stages(
            [(k, c, atom) for k, (c, atom) in enumerate(terms) if atom.name != "ridge"]
        )

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


def _conflict(inner: MatrixFunction, outer: MatrixFunction) -> str | None:
    """None where the pair obeys a rule of this module's docstring, else the reason why it does not."""
    names = (inner.name, outer.name)
    if folds(inner, outer):
        return None
    for atom in (inner, outer):
        if atom.name not in RANK:
            return f"{atom.name} combines with ridges only"
    if outer.name in _WHOLE:
        return None if _homogeneous(inner) else f"{inner.name} is not positively homogeneous"
    if "trace_norm" in names:
        return "singular values and entries cannot be thresholded together"
    if inner.name == "total_variation":
        if outer.name == "l12_norm":
            return "scaling columns changes the order of neighbours"
        return None if _same_along_rows(outer) else f"{outer.name} treats the entries of a row differently"
    if is_bound(inner) and is_bound(outer):
        lows, highs = zip(interval(inner), interval(outer), strict=True)
        return "no matrix obeys both" if np.any(np.maximum(*lows) > np.minimum(*highs)) else None
    if outer.name in _CELLS and is_bound(inner):
        return None if _homogeneous(inner) else "only bounds at 0 can be applied before a norm"
    if "l12_norm" in names and inner.name in _CELLS:
        return "rows and columns overlap"
    if names == ("group_norm", "group_norm"):
        return None if _nested(inner, outer) else "their groups overlap without one holding the other"
    return None


def _homogeneous(atom) -> bool:
    """Whether g(c V) = c g(V) for all c > 0: norms and cones."""
    if is_bound(atom):
        return all(np.all((np.asarray(bound) == 0) | np.isinf(bound)) for bound in interval(atom))
    return getattr(atom, "norm", False)


def _nested(inner, outer) -> bool:
    """Whether every group of `inner` lies within one group of `outer` or outside all of them."""
    owner = {row: g for g, group in enumerate(outer.groups) for row in group}
    return all(len({owner.get(row) for row in group}) == 1 for group in inner.groups)


def _same_along_rows(atom) -> bool:
    """Whether an entrywise function is the same along each row; the other norms here are by themselves."""
    parameters = interval(atom) if is_bound(atom) else (atom.weights,) if atom.name == "l1_norm" else ()
    arrays = [parameter for parameter in parameters if np.ndim(parameter)]
    return all(np.all(array == array[..., :1]) for array in arrays)


def _ridge_weight(terms: Terms):
    """Entrywise sum of the ridges' weights; a number where it is uniform."""
    total = sum((weight_of(c, atom) for c, atom in terms if atom.name == "ridge"), 0.0)
    return float(np.ravel(total)[0]) if np.all(total == np.ravel(total)[0]) else total
