"""Groups that overlap: a sum of norms, each of groups that do not, or of which one holds the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mtldsl.atoms.regularizers.families import checked_family, levels, nested_families
from mtldsl.errors import ModelError
from mtldsl.language.expressions.objective import Objective, Term

__all__ = ["families_of", "sum_of_families"]


def families_of(word: str, groups: Any) -> list[tuple[list[int], bool]]:
    """(positions of its groups, whether some of them are nested) of every family; [] where no two groups overlap, or where they are not
    groups at all, which the word refuses itself.

    >>> families_of("group_norm", [[0, 1], [1, 2], [0, 1, 2], [3]])
    [([0, 2, 3], True), ([1], False)]
    """
    try:
        checked = checked_family(groups, word, "groups")
    except ModelError:
        return []
    families = nested_families(checked)
    found = [(family, len(levels(tuple(checked[g] for g in family)) or []) > 1) for family in families]
    return [] if len(found) == 1 and not found[0][1] else found


def sum_of_families(
    word: Callable[..., Objective], nested: Callable[..., Objective], W: Any, given: Mapping, families
) -> Objective:
    """`word` of every family whose groups are apart, and `nested` of the others; `given` are the word's groups and weights as typed."""
    weights = given.get("weights")
    n = sum(len(family) for family, _ in families)
    if weights is not None and np.ndim(weights) and np.shape(weights) != (n,):
        raise ModelError(f"{word.__name__}: there are {np.size(weights)} weights for {n} groups")
    terms: list[Term] = []
    for family, holds in families:
        groups, costs = _picked(given["groups"], weights, family)
        options = {} if costs is None else {"weights": costs}
        one = nested(W, rows=groups, **options) if holds else word(W, groups, **options)
        terms += one.terms
    return Objective(terms)


def _picked(groups: Any, weights: Any, family: list[int]) -> tuple[Any, Any]:
    """The groups of a family as they were typed, and their weights."""
    if isinstance(groups, Mapping):
        names = list(groups)
        some: Any = {names[g]: groups[names[g]] for g in family}
    else:
        some = [groups[g] for g in family]
    return some, weights if weights is None or np.ndim(weights) == 0 else np.asarray(weights)[family]
