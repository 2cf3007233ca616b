"""How rows are dealt to parts so that what they carry is spread evenly: iterative stratification, whole groups at a time."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import DataError
from mtldsl.values.listing import as_list
from mtldsl.values.number import is_missing

__all__ = ["deal", "deal_table", "traits_of", "units_of"]


def deal_table(labels: np.ndarray, k: int, stratify: bool, units: np.ndarray | None, rng) -> np.ndarray:
    """The fold, 0 to k - 1, of every row of a table of labels (n, m), NaN where one is missing.

    stratify : by iterative stratification over what can be there: a task's label, and where labels are -1 and +1 either of them
    units    : (n,) the unit of every row, 0, 1, ...; the rows of a unit stay together

    >>> deal_table(np.array([[1.0], [1.0], [-1.0], [-1.0]]), 2, True, None, np.random.default_rng(0)).tolist()
    [0, 1, 0, 1]
    """
    n = len(labels)
    units = np.arange(n) if units is None else units
    traits = traits_of(labels) if stratify else np.empty((n, 0))
    return deal(traits, units, np.full(k, 1.0 / k), rng)


def traits_of(labels: np.ndarray) -> np.ndarray:
    """(n, traits) of 0 and 1: of every task whether the label is there, by class where these are -1 and +1."""
    columns = []
    for y in labels.T:
        there = ~np.isnan(y)
        if np.isin(y[there], (-1.0, 1.0)).all():
            columns += [y == 1.0, y == -1.0]
        else:
            columns.append(there)
    kept = [column for column in columns if column.any()]
    return np.stack(kept, axis=1).astype(float) if kept else np.empty((len(labels), 0))


def deal(traits: np.ndarray, units: np.ndarray, shares: np.ndarray, rng, at_least: float = 0.0) -> np.ndarray:
    """The part of every row, 0 to len(shares) - 1; the rows of a unit get the same.

    traits   : (n, traits) what every row carries, as numbers >= 0
    shares   : (parts,) how much of everything each part is to have; they sum to one
    at_least : how much of every trait each part is to have in any case, as far as there is enough of it

    The trait that is rarest among the rows not dealt yet is dealt first, each of its units to the part that still wants most of that
    trait, then to the part that wants most of all that the unit carries, rare traits weighing more, then to the part that wants most
    rows; ties are broken at random. Large units go first, while there is room.
    Source: Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD 2011, algorithm 1; the second question is ours.
    """
    n_units = int(units.max()) + 1 if units.size else 0
    sizes = np.bincount(units, minlength=n_units).astype(float)
    counts = np.zeros((n_units, traits.shape[1]))
    np.add.at(counts, units, traits)
    total = counts.sum(axis=0)
    part = np.full(n_units, -1)
    wanted_rows = shares * sizes.sum()
    wanted = shares[:, None] * total
    if at_least:
        lowest = np.minimum(at_least, total / len(shares))
        wanted = np.maximum(wanted, lowest)
        wanted *= total / wanted.sum(axis=0)
    shuffled = rng.permutation(n_units)
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    left = total.copy()
    rarity = 1.0 / np.maximum(total, 1.0)

    def place(unit, want) -> None:
        best = np.flatnonzero(want >= want.max() - 1e-9)
        for want_next in (wanted @ (counts[unit] * rarity), wanted_rows):
            if len(best) > 1:
                best = best[want_next[best] >= want_next[best].max() - 1e-9]
        chosen = best[0] if len(best) == 1 else rng.choice(best)
        part[unit] = chosen
        wanted_rows[chosen] -= sizes[unit]
        wanted[chosen] -= counts[unit]
        left[:] -= counts[unit]

    while (left > 0).any():
        trait = int(np.argmin(np.where(left > 0, left, np.inf)))
        for unit in order[(part[order] < 0) & (counts[order, trait] > 0)]:
            place(unit, wanted[:, trait])
    for unit in order[part[order] < 0]:
        place(unit, wanted_rows)
    return part[units]


def units_of(groups, n: int, typed: str) -> np.ndarray | None:
    """(n,) a number for the group of every row, 0, 1, ...; None for None. DataError for another length and missing groups."""
    if groups is None:
        return None
    ids = groups.tolist() if isinstance(groups, np.ndarray) and groups.ndim == 1 else as_list(groups)
    if ids is None or len(ids) != n:
        said = "groups are not a list" if ids is None else f"there are {len(ids)} groups"
        raise DataError(
            f"{said}, and there are {n} rows", term=typed, argument="groups",
            write_instead=f"give ({n},), the group of every row",
        )  # fmt: skip
    numbers: dict = {}
    for row, one in enumerate(ids):
        if is_missing(one):
            raise DataError(
                f"the group of row {row} is missing", term=typed, argument="groups", write_instead="give every row a group"
            )  # fmt: skip
        numbers.setdefault(one, len(numbers))
    return np.array([numbers[one] for one in ids], dtype=int)
