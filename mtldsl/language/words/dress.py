"""How a word looks from outside: its documentation, and a signature that an editor can show."""

from __future__ import annotations

import inspect
from dataclasses import MISSING

from mtldsl.values.arguments import complete

__all__ = ["dressed", "parameter"]


def parameter(name: str, default: object = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def dressed(word, cls, head, tail):
    """Give the word its atom's documentation and a signature that an editor can show."""
    given = {parameter.name for parameter in (*head, *tail)}
    own = [
        parameter(f.name, inspect.Parameter.empty if f.default is MISSING else f.default)
        for f in cls.typed_fields()
        if f.name not in given
    ]
    word.__signature__ = inspect.Signature([*head, *own, *tail])
    word.__name__ = word.__qualname__ = cls.name
    word.__doc__ = cls.__doc__
    word.__module__ = cls.__module__  # the class's own doctest is collected there, once
    word.atom = cls
    return complete(f"write {cls.name}{word.__signature__}")(word)
