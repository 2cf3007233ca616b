"""Groups of rows and columns by the names of features and tasks, where an atom wants positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtldsl.atoms.function import Atom
from mtldsl.errors import ModelError
from mtldsl.language.expressions.names import Named, position_of
from mtldsl.language.words.trees import groups_of_tree, is_tree
from mtldsl.values.listing import as_list
from mtldsl.values.number import as_whole, quoted

__all__ = ["by_position", "groups_as_given", "listed_once"]

_AXES = {"rows": 0, "columns": 1}


def by_position(cls: type[Atom], parameters: dict[str, Any], W: Named, typed: str) -> dict[str, Any]:
    """The parameters of a word, with positions in W for names in every field with `metadata={"names": "rows"}`, or "columns".

    Groups may be a dict, {what a group is called: its members}. What is not a list of lists is left to the atom, which refuses it.
    """
    parameters = listed_once(cls, parameters)
    found = {name: _groups(parameters[name], W, axis, typed) for name, axis in _named(cls, parameters)}
    return parameters | found


def listed_once(cls: type[Atom], parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters, with lists in place of iterators of groups, which give what they have only once."""
    trees = {field.name for field in cls.typed_fields() if field.metadata.get("tree")}
    given = {name: parameters[name] for name, _ in _named(cls, parameters)}
    return parameters | {
        name: groups_of_tree(groups, cls.name) if name in trees and is_tree(groups) else _lists(groups)
        for name, groups in given.items()
    }


def _lists(groups: Any) -> Any:
    if isinstance(groups, Mapping):
        return {name: _list(group) for name, group in groups.items()}
    listed = as_list(groups)
    return groups if listed is None else [_list(group) for group in listed]


def _list(group: Any) -> Any:
    listed = as_list(group)
    return group if listed is None else listed


def groups_as_given(cls: type[Atom], parameters: dict[str, Any]) -> dict[str, str]:
    """{parameter: its groups as they are printed}, with the names that were typed, and not the whole of many.

    >>> from mtldsl.atoms.regularizers import GroupNorm
    >>> groups_as_given(GroupNorm, {"groups": [["age", "sex"], [2]]})
    {'groups': "[['age', 'sex'], [2]]"}
    """
    return {name: _printed(parameters[name]) for name, _ in _named(cls, parameters)}


def _printed(groups: Any) -> str:
    if isinstance(groups, Mapping):
        return quoted({name: _plain(group) for name, group in groups.items()}, 80)
    return quoted([_plain(group) for group in groups], 80)


def _plain(group: list) -> list:
    return [member if isinstance(member, str) else as_whole(member) for member in group]


def _named(cls: type[Atom], parameters: dict[str, Any]) -> list[tuple[str, int]]:
    """(field, axis) of every field that holds groups, and is given."""
    axes = {field.name: _AXES.get(field.metadata.get("names", "")) for field in cls.typed_fields()}
    return [
        (name, axis) for name, axis in axes.items() if axis is not None and parameters.get(name) is not None
    ]


def _groups(groups: Any, W: Named, axis: int, typed: str) -> Any:
    if isinstance(groups, Mapping):
        groups = list(groups.values())
    if not isinstance(groups, list):
        return groups
    for g, group in enumerate(groups):
        if isinstance(group, str):
            raise ModelError(
                f"group {g} is {group!r}, not a list",
                term=typed,
                write_instead=f"write [[{group!r}, ...], ...], a list a group",
            )
    return [
        [position_of(m, W, axis, typed, told=False) if isinstance(m, str) else m for m in group]
        if isinstance(group, list)
        else group
        for group in groups
    ]
