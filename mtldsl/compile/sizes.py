"""Coefficients that double precision can take products of."""

from __future__ import annotations

from mtldsl.errors import ModelError
from mtldsl.language.objective import Objective

__all__ = ["check_sizes"]

_SMALLEST, _LARGEST = 1e-100, 1e100


def check_sizes(objective: Objective) -> None:
    """ModelError where a coefficient is neither 0 nor between 1e-100 and 1e100: its products with data would overflow or vanish."""
    for term in objective.terms:
        value = term.coefficient.value
        if value == 0 or _SMALLEST <= value <= _LARGEST:
            continue
        write = "0" if value < _SMALLEST else "a smaller coefficient, or bound the term by a constraint"
        raise ModelError(
            f"{term.text}: the coefficient is {value:g}, and products of numbers beyond 1e-100 and 1e100 leave double precision; "
            f"write {write}"
        )
