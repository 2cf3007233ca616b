"""Where zero weights are optimal under several norms of one matrix: by the prox of their sum where it is exact, else from both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mtldsl.analysis.split_norms import dual_norm_of_sum
from mtldsl.atoms.calculus.prox_of_sum import prox_of_sum, why_not
from mtldsl.compile.function_term import FunctionTerm

__all__ = ["critical_of_sum"]

#: Halvings of the interval: to rounding.
_HALVINGS = 60

#: Directions along which the losses may fall faster than the norms rise: proximal steps this part below where one norm alone gives zero.
_BELOW = (0.02, 0.2, 0.5)


def critical_of_sum(
    pull: np.ndarray, scaled: Sequence[FunctionTerm], fixed: Sequence[FunctionTerm]
) -> tuple[float, float, str]:
    """(low, high, why they differ): below low, zero does not minimise t sum of scaled + sum of fixed - <pull, W>; from high on, it does.

    Zero minimises it iff it is the proximal step from `pull`, and is so for all larger t then.
    """
    high = min((norm.dual_gauge(pull) for norm in scaled), default=np.inf)
    terms = [(norm.coefficient, norm.atom) for norm in fixed]
    reason = why_not([*terms, *((norm.coefficient, norm.atom) for norm in scaled)])
    if reason and not fixed and all(norm.atom.exact_prox for norm in scaled):
        low, high = dual_norm_of_sum(pull, scaled)
        return low, high, reason.rstrip(".")
    if reason:
        return min(_lowest(pull, scaled, fixed, high), high), high, reason.rstrip(".")

    def is_zero(t: float) -> bool:
        prox = prox_of_sum([*terms, *((t * norm.coefficient, norm.atom) for norm in scaled)] if t else terms)
        assert prox is not None
        return not np.any(prox.prox(pull, 1.0))

    if terms and is_zero(0.0):
        return 0.0, 0.0, ""
    if high == np.inf:  # none of them holds all that pulls by itself; together they may
        high = float(np.linalg.norm(pull))
        while not is_zero(high):
            high *= 4.0
            if high > 1e30:
                return np.inf, np.inf, ""
    low, top = 0.0, high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + top)
        low, top = (low, middle) if is_zero(middle) else (middle, top)
    return top, top, ""


def _lowest(pull: np.ndarray, scaled, fixed, high: float) -> float:
    found = 0.0
    for norm in (*scaled, *fixed):
        gauge = norm.dual_gauge(pull)
        for below in _BELOW:
            step = (1.0 - below) * (gauge if np.isfinite(gauge) else high)
            D = norm.prox(pull, step) if norm.atom.exact_prox else pull
            rise = sum(one.coefficient * one.atom.value(D) for one in scaled)
            if 0.0 < rise < np.inf:
                held = sum(one.coefficient * one.atom.value(D) for one in fixed)
                found = max(found, (float(np.vdot(pull, D)) - held) / rise)
    return found
