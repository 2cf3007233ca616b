"""Families of groups of rows or columns: read, told apart where they are nested, and split into families that are."""

from __future__ import annotations

import numpy as np

from mtldsl.errors import ModelError
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_whole, quoted

__all__ = ["Groups", "checked_family", "crossing", "levels", "nested_families"]

Groups = tuple[tuple[int, ...], ...]


def checked_family(groups, word: str, parameter: str) -> Groups:
    """Groups that may overlap, as tuples of positions; ModelError for what is not a list of lists of whole numbers from 0.

    >>> checked_family([[0, 1], [1, 2]], "tree_norm", "rows")
    ((0, 1), (1, 2))
    """
    kind = "row" if parameter in ("rows", "groups") else "column"
    listed = as_list(groups)
    if listed is None:
        names = "features" if kind == "row" else "tasks"
        raise ModelError(
            f"{parameter} is a list of lists of {kind}s, such as [[0, 1], [0, 1, 2]], or of names of {names}",
            term=f"{word}(..., {parameter}={quoted(groups)})",
        )
    checked = []
    for g, group in enumerate(listed):
        lines = as_list(group)
        if lines is None:
            raise ModelError(
                f"{word}: group {g} is {quoted(group)}",
                write_instead="write a list a group, such as [[0, 1], [0, 1, 2]]",
            )
        if not lines:
            raise ModelError(f"{word}: group {g} is empty")
        wholes: dict[int, None] = {}  # in their order, each once
        for line in lines:
            whole = as_whole(line)
            if whole is None or whole < 0:
                raise ModelError(
                    f"{word}: group {g} holds {quoted(line)}; {kind}s are names, or whole numbers from 0"
                )
            if whole in wholes:
                raise ModelError(f"{word}: {kind} {whole} is twice in group {g}")
            wholes[whole] = None
        checked.append(tuple(wholes))
    if not checked:
        raise ModelError(f"{word}: there are no groups")
    return tuple(checked)


def levels(groups: Groups) -> list[list[int]] | None:
    """Positions of groups, level by level from the leaves to the roots: those of a level are disjoint, and a group comes after all that
    it holds. None where two groups overlap and neither holds the other.

    >>> levels(((0, 1, 2, 3), (0, 1), (2, 3), (2,)))
    [[1, 3], [2], [0]]
    >>> levels(((0, 1), (1, 2))) is None
    True
    """
    return None if crossing(groups) else _levels(groups)


def crossing(groups: Groups) -> tuple[int, int] | None:
    """Two groups that overlap while neither holds the other, by position; None where the family is nested."""
    top: dict[int, int] = {}  # line -> the largest group so far that holds it
    for g in _by_size(groups):
        held: dict[int, int] = {}
        for line in groups[g]:
            if line in top:
                held[top[line]] = held.get(top[line], 0) + 1
        for other, count in held.items():
            if count < len(groups[other]):
                return min(g, other), max(g, other)
        for line in groups[g]:
            top[line] = g
    return None


def nested_families(groups: Groups) -> list[list[int]]:
    """Positions of groups in as few nested families as a greedy choice finds: each group joins the first family that it fits.

    >>> nested_families(((0, 1), (1, 2), (2, 3), (0, 1, 2, 3)))
    [[0, 2, 3], [1]]
    """
    families: list[list[int]] = []
    tops: list[dict[int, int]] = []
    for g in _by_size(groups):
        place = next((k for k, top in enumerate(tops) if _fits(g, top, groups)), len(tops))
        if place == len(tops):
            families.append([])
            tops.append({})
        families[place].append(g)
        tops[place].update(dict.fromkeys(groups[g], g))
    return sorted(sorted(family) for family in families)


def _fits(g: int, top: dict[int, int], groups: Groups) -> bool:
    """Whether the group holds all of every group of a family that it touches."""
    held = [top[line] for line in groups[g] if line in top]
    return all(held.count(other) == len(groups[other]) for other in set(held))


def _by_size(groups: Groups) -> list[int]:
    """Smallest first; as they stand among equals."""
    return sorted(range(len(groups)), key=lambda g: len(groups[g]))


def _levels(groups: Groups) -> list[list[int]]:
    height: dict[int, int] = {}  # line -> how many levels hold it so far
    found: list[list[int]] = []
    for g in _by_size(groups):
        level = max(height.get(line, 0) for line in groups[g])
        if level == len(found):
            found.append([])
        found[level].append(g)
        height.update(dict.fromkeys(groups[g], level + 1))
    return [sorted(level) for level in found]


def indices(groups: Groups, which: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lines, starts, sizes) of these groups one after the other, as `np.add.reduceat` and `np.repeat` want them."""
    lines = np.concatenate([groups[g] for g in which]).astype(np.intp)
    sizes = np.array([len(groups[g]) for g in which])
    return lines, np.cumsum(sizes) - sizes, sizes
